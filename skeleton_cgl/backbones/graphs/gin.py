"""GIN for nodes (Xu et al. 2019): the sum over neighbours and a multiple of a node's own, through two linear layers."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.backbones.convolution import attention_of, check_size
from skeleton_cgl.backbones.nodes import check_share, dropped, normalises, paths_of, sums_first
from skeleton_cgl.graphs.batches import Features, Paths, Places
from skeleton_cgl.graphs.links import Links


class GraphIsomorphism(nn.Module):
    """W₂·ReLU(BatchNorm(W₁·((1 + ε)·h_i + Σ_j h_j))) + b; ε is learned, from 0 on."""

    def __init__(self, inputs: int, width: int, batch_norm: bool) -> None:
        super().__init__()
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.first = nn.Parameter(torch.empty(inputs, width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.norm = nn.BatchNorm1d(width) if batch_norm else None
        self.second = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.first)

    def forward(self, features: Features, links: Links) -> Tensor:
        """Return (nodes, width) from the features (sources, inputs) of the links' sources."""
        if isinstance(features, Tensor) and sums_first(links, *self.first.shape):
            return self.of_sums(links.own(features), links.sum(features))
        # The sum of the products is the product of the sums.
        projected = features.matmul(self.first)
        return self._rest((1 + self.epsilon) * links.own(projected) + links.sum(projected))

    def of_sums(self, own: Tensor, sums: Tensor) -> Tensor:
        """Return (nodes, width) from the features (nodes, inputs) and their sums over neighbours."""
        return self._rest(((1 + self.epsilon) * own + sums).matmul(self.first))

    def _rest(self, hidden: Tensor) -> Tensor:
        hidden = hidden + self.shift
        found: Tensor = self.second((hidden if self.norm is None else self.norm(hidden)).relu())
        return found


class GIN(Backbone):
    """`depth` times the two linear layers on sums, BatchNorm, ReLU, dropout; each of `width` units.

    input_dropout: whether the features are dropped out as well.
    """

    takes = "graph"

    def __init__(
        self,
        features: int,
        width: int = 256,
        depth: int = 2,
        batch_norm: bool = True,
        dropout: float = 0.0,
        input_dropout: bool = False,
    ) -> None:
        super().__init__()
        check_size(depth, width)
        check_share("dropout", dropout)
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout else 0.0
        layers = [GraphIsomorphism(*sizes, batch_norm) for sizes in pairwise([features, *[width] * depth])]
        self.layers: Sequence[GraphIsomorphism] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in layers) if batch_norm else None

    def arrange(self, places: Places) -> Places:
        """Return the places with the sums of the features over neighbours, where these are the same in every epoch."""
        if self.input_dropout or not isinstance(places.features, Tensor):
            return places
        return places.keeping(sums=places.links.sum(places.features))

    def forward(self, places: Places) -> Tensor:
        """Return (N·m, width), an embedding per place."""
        paths = paths_of(places, len(self.layers), whole=normalises(self.norms))
        *_, hidden = self._leaving(places, paths)
        return hidden[paths.at]

    def edge_attention(self, places: Places) -> list[Tensor]:
        """Return, of what the second layer is given, softmax over the in-edges of i of Σ_d h_jd · tanh(h_id)."""
        hidden = next(self._leaving(places, paths_of(places, len(self.layers), whole=True)))
        return [attention_of(places.links, hidden, slope=1.0)]

    def _leaving(self, places: Places, paths: Paths) -> Iterator[Tensor]:
        """Yield what every layer gives."""
        sums = places.kept.get("sums")
        hidden: Any = None
        for number, layer in enumerate(self.layers):
            if number == 0 and isinstance(sums, Tensor) and isinstance(places.features, Tensor):
                own = paths.rows("own features", places.features, level=1)
                hidden = layer.of_sums(own, paths.rows("sums", sums, level=1))
            else:
                if number == 0:
                    hidden = dropped(paths.rows("features", places.features), self.input_dropout, self.training)
                hidden = layer(hidden, paths.links[number])
            if self.norms is not None:
                hidden = self.norms[number](hidden)
            hidden = dropped(hidden.relu_(), self.dropout, self.training)
            yield hidden
