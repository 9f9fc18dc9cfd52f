"""InfoGraph (Sun et al. 2020): telling which nodes are a graph's own, without labels."""

from math import log
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.scenarios.inputs import Inputs
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


@runtime_checkable
class WholeGraphs(Protocol):
    """Inputs that are whole graphs, of which a backbone embeds every node."""

    @property
    def sizes(self) -> Tensor:
        """(G,) the number of nodes of every graph."""
        ...


class InfoGraph(nn.Module):
    """mean_other[softplus(−q)+q−ln 2] − mean_own[ln 2−softplus(−q)] over the scores q of all pairs of node and graph.

    q is the inner product of what a network makes of a node's embedding and another of what its graph's nodes are
    joined to, as in the paper; BeGin has none of the latter. A node's embedding is what the backbone's last layer
    gives, where the paper takes those of all layers.
    """

    most: int | None = 128
    """So many graphs make a batch where the recipe does not say."""

    def __init__(self, learner: "Learner", experience: Experience) -> None:
        super().__init__()
        width = learner.head.width
        self.of_nodes, self.of_graphs = _Network(learner.model.width, width), _Network(width, width)
        self._learner = learner
        self._samples = experience.training

    def __len__(self) -> int:
        return len(self._samples)

    def begin_epoch(self) -> None:
        """Do nothing: every graph is compared with the nodes of the others, and none is corrupted."""

    def embed(self, rows: Tensor) -> Tensor:
        """Return (B, d) the embeddings of a batch of graphs."""
        return self._learner.embeddings(self._inputs(rows))

    def loss(self, rows: Tensor) -> Tensor:
        """Return the loss of a batch of graphs."""
        inputs, nodes = self._inputs(rows), list[Tensor]()
        assert isinstance(inputs, WholeGraphs)
        # Nodes and graphs of one pass: in another one, dropout would be another, and BatchNorm would count twice.
        with self._learner.backbone.register_forward_hook(lambda _module, _given, found: nodes.append(found)):
            graphs = self._learner.embeddings(inputs)
        return infograph(self.of_nodes(nodes[0]), self.of_graphs(graphs), inputs.sizes)

    def _inputs(self, rows: Tensor) -> Inputs:
        return self._learner.inputs(self._samples.select(rows))


def infograph(nodes: Tensor, graphs: Tensor, sizes: Tensor) -> Tensor:
    """Return the loss of nodes (n, d), graph by graph, and graphs (G, d) of so many nodes (G,) each."""
    scores = nodes @ graphs.T
    own = functional.one_hot(torch.repeat_interleave(sizes), len(graphs)).bool()
    of_own, of_others = scores[own], scores[~own]
    agreement = log(2) - functional.softplus(-of_own)
    disagreement = functional.softplus(-of_others) + of_others - log(2)
    # A graph alone has no others.
    return disagreement.sum() / max(len(of_others), 1) - agreement.mean()


class _Network(nn.Module):
    """Three linear layers, each with ReLU, plus a linear map past them."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        sizes = (inputs, width, width)
        self.layers = nn.Sequential(*(part for size in sizes for part in (nn.Linear(size, width), nn.ReLU())))
        self.skip = nn.Linear(inputs, width)

    def forward(self, embeddings: Tensor) -> Tensor:
        found: Tensor = self.layers(embeddings) + self.skip(embeddings)
        return found
