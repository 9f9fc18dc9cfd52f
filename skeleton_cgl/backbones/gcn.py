"""GCN: graph convolutions, a sum and a max read-out joined, and a predictor, on skeletons or on any graph.

Clips of one data set share one graph, so on skeletons the convolution is dense linear algebra over (N, V, F), and the
first neighbour sum, which depends on the data alone, is taken once per data set. Irregular graphs go through DGL. Both
paths use the same weights and give the same numbers.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.graphs.batches import GraphBatch, neighbour_sum
from skeleton_cgl.skeletons.layout import JointLayout

if TYPE_CHECKING:
    import dgl

PREDICTOR_WIDTH = 64


class GraphConvolution(nn.Module):
    """h'ᵢ = BatchNorm(ReLU(Σ_j A_ij h_j W + b) + ReLU(hᵢ W_r + b_r)), statistics over all nodes of all graphs."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.neighbours = nn.Linear(inputs, width)
        self.own = nn.Linear(inputs, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, features: Tensor, summed: Tensor) -> Tensor:
        """Return h' (…, width) from h (…, F) and its neighbour sums A·h (…, F)."""
        # As rows: what a layer gives for more dimensions is a view, and autograd is slow about changing views in place.
        rows, sums = features.flatten(0, -2), summed.flatten(0, -2)
        hidden = self.norm(self.neighbours(sums).relu_() + self.own(rows).relu_())
        return hidden.view(*features.shape[:-1], -1)


class GCN(Backbone):
    """`depth` graph convolutions of `width` units, [Σᵢ σ(w·hᵢ+b)·hᵢ ‖ maxᵢ hᵢ], Linear → ReLU → BatchNorm.

    On skeletons a node is a joint and its features are its whole trajectory, frames × coordinates.
    """

    adjacency: Tensor

    def __init__(self, features: int, layout: JointLayout | None = None, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        if depth < 1 or width < 1:
            raise ValueError(f"depth and width must be at least 1, found {depth} and {width}")
        self.layers = nn.ModuleList(GraphConvolution(width if before else features, width) for before in range(depth))
        self.gate = nn.Linear(width, 1)
        self.predictor = nn.Sequential(
            nn.Linear(2 * width, PREDICTOR_WIDTH), nn.ReLU(), nn.BatchNorm1d(PREDICTOR_WIDTH)
        )
        adjacency = torch.zeros(0, 0) if layout is None else torch.from_numpy(layout.adjacency())
        self.register_buffer("adjacency", adjacency, persistent=False)

    def arrange(self, clips: Tensor) -> tuple[Tensor, Tensor]:
        """Return joint trajectories (N, V, T·C) and their neighbour sums, from clips (N, C, T, V)."""
        trajectories = clips.permute(0, 3, 2, 1).flatten(2).contiguous()
        return trajectories, self._dense_sum(trajectories)

    def forward(self, inputs: tuple[Tensor, Tensor] | GraphBatch) -> Tensor:
        """Return (N, 64), an embedding per clip or graph; (N, width) per node where nodes are asked about."""
        embedded = self._embed(inputs)[-1]
        if not isinstance(inputs, GraphBatch):
            return self.predictor(self._read_clips(embedded))
        if inputs.nodes is not None:
            return embedded[inputs.nodes]
        return self.predictor(self._read_graphs(inputs.graph, embedded))

    def edge_attention(self, inputs: tuple[Tensor, Tensor] | GraphBatch) -> list[Tensor]:
        """Return, per layer, softmax over the in-edges of i of LeakyReLU₀.₂(Σ_d (h_j W)_d · tanh((h_i W)_d))."""
        on_graph = isinstance(inputs, GraphBatch)
        entering = [inputs.features if on_graph else inputs[0], *self._embed(inputs)[:-1]]
        projected = [hidden @ layer.neighbours.weight.T for hidden, layer in zip(entering, self.layers, strict=True)]
        if on_graph:
            return [_attention_on_graph(inputs.graph, layer) for layer in projected]
        return [attention_over(torch.tanh(layer) @ layer.mT, self.adjacency) for layer in projected]

    def _embed(self, inputs: tuple[Tensor, Tensor] | GraphBatch) -> list[Tensor]:
        """Return what every layer gives."""
        summed_by: Callable[[Tensor], Tensor]
        if isinstance(inputs, GraphBatch):
            hidden = inputs.features
            summed_by = partial(neighbour_sum, inputs.graph)
            summed = summed_by(hidden) if inputs.summed is None else inputs.summed
        else:
            hidden, summed = inputs
            summed_by = self._dense_sum
        embedded = []
        for layer in self.layers:
            hidden = layer(hidden, summed_by(hidden) if embedded else summed)
            embedded.append(hidden)
        return embedded

    def _dense_sum(self, features: Tensor) -> Tensor:
        """Return A·h for h (N, V, F)."""
        # bmm: matmul with a two-dimensional left factor folds h through a transposed copy when it needs a gradient.
        return torch.bmm(self.adjacency.to(features).expand(len(features), -1, -1), features)

    def _read_clips(self, hidden: Tensor) -> Tensor:
        """Return (N, 2·width) from (N, V, width)."""
        # A product: the gradient of (gate * h).sum(1) comes back transposed in memory and slows all that follows.
        weighted = torch.bmm(torch.sigmoid(self.gate(hidden)).mT, hidden).squeeze(1)
        return torch.cat([weighted, _largest(hidden)], dim=1)

    def _read_graphs(self, graph: "dgl.DGLGraph", hidden: Tensor) -> Tensor:
        """Return (graphs, 2·width) from (nodes, width)."""
        import dgl

        with graph.local_scope():
            graph.ndata["weighted"] = torch.sigmoid(self.gate(hidden)) * hidden
            weighted = dgl.sum_nodes(graph, "weighted")
        # Not dgl.max_nodes: its gradient cannot be differentiated again, and does not say so; TWP needs it.
        owner = torch.repeat_interleave(graph.batch_num_nodes()).unsqueeze(1).expand_as(hidden)
        largest = hidden.new_zeros(weighted.shape).scatter_reduce(0, owner, hidden, "amax", include_self=False)
        return torch.cat([weighted, largest], dim=1)


def _largest(hidden: Tensor) -> Tensor:
    """Return (N, width), the maximum over the joints of (N, V, width)."""
    # Pooling finds the places ten times faster than Tensor.max; gathering has the faster gradient.
    _, places = functional.max_pool1d(hidden.detach().mT, hidden.shape[1], return_indices=True)
    return hidden.gather(1, places.mT).squeeze(1)


def attention_over(products: Tensor, adjacency: Tensor) -> Tensor:
    """Return the attention (edges,…) of products (…, i, j): LeakyReLU₀.₂, softmax over the in-edges j of every i."""
    scores = functional.leaky_relu(products, 0.2).masked_fill(adjacency == 0, -torch.inf)
    return torch.softmax(scores, dim=-1)


def _attention_on_graph(graph: "dgl.DGLGraph", projected: Tensor) -> Tensor:
    from dgl.nn.functional import edge_softmax

    sources, targets = graph.edges()
    products = (projected[sources] * torch.tanh(projected[targets])).sum(dim=1)
    return edge_softmax(graph, functional.leaky_relu(products, 0.2))
