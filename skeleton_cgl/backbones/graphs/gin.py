"""GIN (Xu et al. 2019): the sum over neighbours and a multiple of a node's own, through two linear layers."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.convolution import attention_of, check_size
from skeleton_cgl.backbones.entering import Codes
from skeleton_cgl.backbones.gates import UnitGate, Wire, at
from skeleton_cgl.backbones.joins import Rows
from skeleton_cgl.backbones.layered import Layered
from skeleton_cgl.backbones.nodes import check_share, dropped, paths_of, projected, sums_first
from skeleton_cgl.backbones.products import Times
from skeleton_cgl.graphs.batches import Features, Paths, Places
from skeleton_cgl.graphs.links import Links


class GraphIsomorphism(nn.Module):
    """W₂·ReLU(BatchNorm(W₁·((1 + ε)·h_i + Σ_j (h_j + e_ij)))) + b; ε is learned, from 0 on.

    e_ij: what edges add to messages, where they have features.
    """

    def __init__(self, inputs: int, width: int, batch_norm: bool, times: Times = torch.matmul) -> None:
        super().__init__()
        self.times = times
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.first = nn.Parameter(torch.empty(inputs, width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.norm = nn.BatchNorm1d(width) if batch_norm else None
        self.second = nn.Linear(width, width)
        self.unit_gate = UnitGate(width)
        nn.init.xavier_uniform_(self.first)

    def forward(self, features: Features, links: Links, of_edges: Tensor | None = None) -> Tensor:
        """Return (nodes, width) from features (sources, inputs) of the links' sources; of_edges: Σ_j e_ij."""
        if isinstance(features, Tensor) and sums_first(links, *self.first.shape):
            return self.of_sums(links.own(features), links.sum(features), of_edges)
        # The sum of the products is the product of the sums.
        hidden = projected(features, self.first, self.times)
        found = (1 + self.epsilon) * links.own(hidden) + links.sum(hidden)
        return self._rest(found if of_edges is None else found + of_edges.matmul(self.first))

    def of_sums(self, own: Tensor, sums: Tensor, of_edges: Tensor | None = None) -> Tensor:
        """Return (nodes, width) from the features (nodes, inputs) and their sums over neighbours."""
        found = (1 + self.epsilon) * own + sums
        return self._rest(self.times(found if of_edges is None else found + of_edges, self.first))

    def _rest(self, hidden: Tensor) -> Tensor:
        hidden = hidden + self.shift
        found: Tensor = self.second(self.unit_gate((hidden if self.norm is None else self.norm(hidden)).relu()))
        return found


class GIN(Layered):
    """`depth` times the two linear layers on sums, BatchNorm, ReLU, dropout; each of `width` units.

    Where edges have features, e_ij is added to the h_j that are summed. The other parameters are those of all
    `Layered`.
    """

    def __init__(
        self,
        features: int,
        width: int = 256,
        depth: int = 2,
        batch_norm: bool = True,
        dropout: float = 0.0,
        input_dropout: bool = False,
        read_out: str = "mean",
        after: Sequence[int] = (),
        after_dropout: float = 0.0,
        encoder: bool = False,
        rows: Rows = "nodes",
        codes: Codes | None = None,
        edge_features: int = 0,
        edge_codes: Codes | None = None,
    ) -> None:
        super().__init__()
        check_size(depth, width)
        check_share("dropout", dropout)
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout else 0.0
        inputs = self.enter(features, width, encoder, codes, rows)
        layers = [GraphIsomorphism(*sizes, batch_norm, self.times) for sizes in pairwise([inputs, *[width] * depth])]
        self.layers: Sequence[GraphIsomorphism] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in layers) if batch_norm else None
        self.heed_edges(edge_features, edge_codes, [inputs, *[width] * (depth - 1)])
        self.leave(width, read_out, after, after_dropout)

    def arrange(self, places: Places) -> Places:
        """Return the places with the sums of the features over neighbours, where these are the same in every epoch."""
        places = self.with_edges(places, "plain")
        if self.encoder is not None or not self.sums_stay(places):
            return places
        return places.keeping(sums=places.links.sum(places.dense_features))

    def forward(self, places: Places) -> Tensor:
        """Return (N·m, width), an embedding per place."""
        paths = self.paths(places, len(self.layers))
        *_, hidden = self._leaving(places, paths)
        return self.asked(hidden, paths)

    def edge_attention(self, places: Places) -> list[Tensor]:
        """Return, of what the second layer is given, softmax over the in-edges of i of Σ_d h_jd · tanh(h_id)."""
        hidden = next(self._leaving(places, paths_of(places, len(self.layers), whole=True)))
        return [attention_of(places.links, hidden, slope=1.0)]

    def wires(self, number: int) -> list[Wire]:
        """Return the weights of a layer that are between gates; there is one after either linear layer."""
        layer, before = self.layers[number], self.gate_before(number)
        first = Wire(layer.first, (layer.unit_gate, 1), at(before, 0))
        second = Wire(layer.second.weight, (self.unit_gates[number], 0), (layer.unit_gate, 1))
        return [first, second, *self.wires_of_edges(number, before)]

    def _leaving(self, places: Places, paths: Paths) -> Iterator[Tensor]:
        """Yield what every layer gives."""
        sums = places.kept.get("sums")
        marked = self.marked(places, "plain")
        hidden: Any = self.entering(places, paths) if sums is None else None
        for number, layer in enumerate(self.layers):
            of_edges = self.of_edges(marked, paths, number)
            if number == 0 and sums is not None:
                own = paths.rows("own features", places.dense_features, level=1)
                hidden = layer.of_sums(own, paths.rows("sums", sums, level=1), of_edges)
            else:
                hidden = layer(hidden, paths.links[number], of_edges)
            if self.norms is not None:
                hidden = self.norms[number](hidden)
            hidden = dropped(self.unit_gates[number](hidden.relu_()), self.dropout, self.training)
            yield hidden
