"""The skeleton study's GCN on irregular graphs: an embedding per node asked about, or one per graph.

It has the weights of the GCN for clips, and on the graphs of skeletons gives the same numbers.
"""

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.backbones.convolution import StackedConvolutions, attention_of
from skeleton_cgl.graphs.batches import Places, neighbour_sum

if TYPE_CHECKING:
    import dgl


class SkeletonGCN(StackedConvolutions):
    """`depth` graph convolutions of `width` units; per graph [Σᵢ σ(w·hᵢ+b)·hᵢ ‖ maxᵢ hᵢ], Linear → ReLU → BatchNorm."""

    takes = "graph"

    def __init__(self, features: int, width: int = 64, depth: int = 2) -> None:
        super().__init__(features, width, depth)

    def arrange(self, places: Places) -> Places:
        """Return the places with the neighbour sums of the features, which are the same in every epoch."""
        return places.keeping(summed=places.links.sum(places.dense_features))

    def forward(self, inputs: "Places | dgl.DGLGraph") -> Tensor:
        """Return (N·m, width), an embedding per place; or (N, 64), one per graph of a batch."""
        hidden = self._embedded(inputs)[-1]
        if isinstance(inputs, Places):
            return hidden[inputs.at.flatten()]
        found: Tensor = self.predictor(self._read_out(inputs, hidden))
        return found

    def edge_attention(self, inputs: "Places | dgl.DGLGraph") -> list[Tensor]:
        """Return, per layer, softmax over the in-edges of i of LeakyReLU₀.₂(Σ_d (h_j W)_d · tanh((h_i W)_d))."""
        projected = self.projected(_features(inputs), self._embedded(inputs))
        return [_attention(inputs, layer) for layer in projected]

    def _embedded(self, inputs: "Places | dgl.DGLGraph") -> list[Tensor]:
        features = _features(inputs)
        total = inputs.links.sum if isinstance(inputs, Places) else partial(neighbour_sum, inputs)
        summed = inputs.kept.get("summed") if isinstance(inputs, Places) else None
        return self.embedded(features, total(features) if summed is None else summed, total)

    def _read_out(self, graph: "dgl.DGLGraph", hidden: Tensor) -> Tensor:
        """Return (graphs, 2·width) from (nodes, width)."""
        import dgl

        with graph.local_scope():
            graph.ndata["weighted"] = torch.sigmoid(self.gate(hidden)) * hidden
            weighted = dgl.sum_nodes(graph, "weighted")
        # Not dgl.max_nodes: its gradient cannot be differentiated again, and does not say so; TWP needs it.
        owner = torch.repeat_interleave(graph.batch_num_nodes()).unsqueeze(1).expand_as(hidden)
        largest = hidden.new_zeros(weighted.shape).scatter_reduce(0, owner, hidden, "amax", include_self=False)
        return torch.cat([weighted, largest], dim=1)


def _features(inputs: "Places | dgl.DGLGraph") -> Tensor:
    features: Tensor = inputs.dense_features if isinstance(inputs, Places) else inputs.ndata["features"]
    return features


def _attention(inputs: "Places | dgl.DGLGraph", projected: Tensor) -> Tensor:
    if isinstance(inputs, Places):
        return attention_of(inputs.links, projected)
    from dgl.nn.functional import edge_softmax

    sources, targets = inputs.edges()
    products = (projected[sources] * torch.tanh(projected[targets])).sum(dim=1)
    found: Tensor = edge_softmax(inputs, functional.leaky_relu(products, 0.2))
    return found
