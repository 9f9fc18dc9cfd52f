"""GAT for nodes (Veličković et al. 2018): neighbours weighted by attention, in several heads side by side."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.backbones.convolution import check_size
from skeleton_cgl.backbones.nodes import check_share, dropped, normalises, paths_of
from skeleton_cgl.graphs.batches import Features, Paths, Places
from skeleton_cgl.graphs.links import Links


class GraphAttention(nn.Module):
    """Per head Σ_j α_ij h_j W, α the softmax over the in-edges of i of LeakyReLU(a·h_j W + b·h_i W); then a bias."""

    def __init__(self, inputs: int, width: int, heads: int, slope: float) -> None:
        super().__init__()
        self.slope = slope
        self.weight = nn.Parameter(torch.empty(inputs, width))
        self.of_source = nn.Parameter(torch.empty(heads, width // heads))
        self.of_target = nn.Parameter(torch.empty(heads, width // heads))
        self.bias = nn.Parameter(torch.zeros(width))
        for parameter in (self.weight, self.of_source, self.of_target):
            nn.init.xavier_normal_(parameter, gain=nn.init.calculate_gain("relu"))

    def forward(self, features: Features, links: Links) -> Tensor:
        """Return (nodes, width) from the features (sources, inputs) of the links' sources."""
        projected = self._projected(features)
        attention = self._attention(projected, links)
        heads = zip(projected.unbind(dim=1), attention.unbind(dim=1), strict=True)
        return torch.cat([links.sum(each, weights) for each, weights in heads], dim=1) + self.bias

    def attention(self, features: Features, links: Links) -> Tensor:
        """Return α (E, heads)."""
        return self._attention(self._projected(features), links)

    def _projected(self, features: Features) -> Tensor:
        return features.matmul(self.weight).unflatten(1, self.of_source.shape)

    def _attention(self, projected: Tensor, links: Links) -> Tensor:
        at_sources = (projected * self.of_source).sum(dim=2)
        at_targets = links.own((projected * self.of_target).sum(dim=2))
        scores = links.of_sources(at_sources) + links.of_targets(at_targets)
        return links.softmax(functional.leaky_relu(scores, self.slope))


class GAT(Backbone):
    """`depth` times attention, BatchNorm, ELU, dropout; each of `width` units, shared out among the heads.

    input_dropout: whether the features are dropped out as well.
    """

    takes = "graph"

    def __init__(
        self,
        features: int,
        width: int = 256,
        depth: int = 2,
        heads: int = 8,
        slope: float = 0.2,
        batch_norm: bool = True,
        dropout: float = 0.0,
        input_dropout: bool = False,
    ) -> None:
        super().__init__()
        check_size(depth, width)
        check_share("dropout", dropout)
        if not isinstance(heads, int) or heads < 1 or width % heads:
            raise ValueError(f"heads must share out the width of {width} evenly, found {heads!r}")
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout else 0.0
        layers = [GraphAttention(*sizes, heads, slope) for sizes in pairwise([features, *[width] * depth])]
        self.layers: Sequence[GraphAttention] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in layers) if batch_norm else None

    def forward(self, places: Places) -> Tensor:
        """Return (N·m, width), an embedding per place."""
        paths = paths_of(places, len(self.layers), whole=normalises(self.norms))
        *_, hidden = self._entering(places, paths)
        return hidden[paths.at]

    def edge_attention(self, places: Places) -> list[Tensor]:
        """Return the attention (E, heads) of the first layer, the one of which TWP takes the topology here."""
        features = dropped(places.features, self.input_dropout, self.training)
        return [self.layers[0].attention(features, places.links)]

    def _entering(self, places: Places, paths: Paths) -> Iterator[Any]:
        """Yield what enters every layer, and what leaves the last."""
        hidden: Any = dropped(paths.rows("features", places.features), self.input_dropout, self.training)
        yield hidden
        for number, layer in enumerate(self.layers):
            hidden = layer(hidden, paths.links[number])
            if self.norms is not None:
                hidden = self.norms[number](hidden)
            hidden = dropped(functional.elu(hidden), self.dropout, self.training)
            yield hidden
