"""The skeleton study's GCN on irregular graphs: an embedding per node asked about, or one per graph.

It has the weights of the GCN for clips, and on the graphs of skeletons gives the same numbers.
"""

import torch
from torch import Tensor

from skeleton_cgl.backbones.convolution import StackedConvolutions, attention_of
from skeleton_cgl.backbones.joins import multiplied
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.scenarios.inputs import Inputs


class SkeletonGCN(StackedConvolutions):
    """`depth` graph convolutions of `width` units; per graph [Σᵢ σ(w·hᵢ+b)·hᵢ ‖ maxᵢ hᵢ], Linear → ReLU → BatchNorm.

    As it is by default, it is CGLB's classifier of molecules, of 2 × 64: sums over neighbours that are not normalised,
    a skip by a linear layer, BatchNorm, and this read-out to 64.
    """

    takes = "graph"

    def __init__(self, features: int, width: int = 64, depth: int = 2) -> None:
        super().__init__(features, width, depth)

    def arrange(self, places: Places) -> Places:
        """Return the places with the neighbour sums of the features, which are the same in every epoch."""
        return places.keeping(summed=places.links.sum(places.dense_features))

    def forward(self, places: Places) -> Tensor:
        """Return (N·m, width), an embedding per place."""
        return self._embedded(places)[-1][places.asked]

    def join(self, embeddings: Tensor, inputs: Inputs) -> Tensor:
        """Return one embedding per row: of a graph read out, of a pair the product."""
        if not isinstance(inputs, Graphs):
            return multiplied(embeddings, inputs)
        weighted = inputs.sums(torch.sigmoid(self.gate(embeddings)) * embeddings)
        return self.predicted(torch.cat([weighted, inputs.largest(embeddings)], dim=1))

    def edge_attention(self, places: Places) -> list[Tensor]:
        """Return, per layer, softmax over the in-edges of i of LeakyReLU₀.₂(Σ_d (h_j W)_d · tanh((h_i W)_d))."""
        projected = self.projected(places.dense_features, self._embedded(places))
        return [attention_of(places.links, layer) for layer in projected]

    def _embedded(self, places: Places) -> list[Tensor]:
        features, total = places.dense_features, places.links.sum
        summed = places.kept.get("summed")
        return self.embedded(features, total(features) if summed is None else summed, total)
