"""GAT (Veličković et al. 2018): neighbours weighted by attention, in several heads side by side."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.convolution import check_size
from skeleton_cgl.backbones.entering import Codes, edge_sums, marks
from skeleton_cgl.backbones.gates import UnitGate, Wire, at
from skeleton_cgl.backbones.joins import Rows
from skeleton_cgl.backbones.layered import Layered
from skeleton_cgl.backbones.nodes import check_share, dropped, projected
from skeleton_cgl.backbones.products import Times
from skeleton_cgl.graphs.batches import Features, Paths, Places
from skeleton_cgl.graphs.links import Links


class GraphAttention(nn.Module):
    """Per head Σ_j α_ij (h_j W + e_ij), α the softmax over the in-edges of i of LeakyReLU(a·h_j W + b·h_i W); a bias.

    e_ij: what edges add to messages, where they have features; attention does not heed it.
    """

    def __init__(self, inputs: int, width: int, heads: int, slope: float, times: Times = torch.matmul) -> None:
        super().__init__()
        self.times = times
        self.slope = slope
        self.weight = nn.Parameter(torch.empty(inputs, width))
        self.of_source = nn.Parameter(torch.empty(heads, width // heads))
        self.of_target = nn.Parameter(torch.empty(heads, width // heads))
        self.bias = nn.Parameter(torch.zeros(width))
        for parameter in (self.weight, self.of_source, self.of_target):
            nn.init.xavier_normal_(parameter, gain=nn.init.calculate_gain("relu"))

    def forward(self, features: Features, links: Links, gate: UnitGate, of_edges: Tensor | None = None) -> Tensor:
        """Return (nodes, width) from features (sources, inputs) of the links' sources; of_edges: e (E, width).

        gate: that of the units, by which attention sees them; messages pass it later.
        """
        hidden = self._projected(features)
        attention = self._attention(gate(hidden.flatten(1)).view_as(hidden), links)
        heads = zip(hidden.unbind(dim=1), attention.unbind(dim=1), strict=True)
        found = torch.cat([links.sum(each, weights) for each, weights in heads], dim=1) + self.bias
        if of_edges is None:
            return found
        heads = zip(of_edges.unflatten(1, self.of_source.shape).unbind(dim=1), attention.unbind(dim=1), strict=True)
        return found + torch.cat([edge_sums(links, each, weights) for each, weights in heads], dim=1)

    def attention(self, features: Features, links: Links) -> Tensor:
        """Return α (E, heads)."""
        return self._attention(self._projected(features), links)

    def _projected(self, features: Features) -> Tensor:
        return projected(features, self.weight, self.times).unflatten(1, self.of_source.shape)

    def _attention(self, hidden: Tensor, links: Links) -> Tensor:
        at_sources = (hidden * self.of_source).sum(dim=2)
        at_targets = links.own((hidden * self.of_target).sum(dim=2))
        scores = links.of_sources(at_sources) + links.of_targets(at_targets)
        return links.softmax(functional.leaky_relu(scores, self.slope))


class GAT(Layered):
    """`depth` times attention, BatchNorm, ELU, dropout; each of `width` units, shared out among the heads.

    Where edges have features, e_ij is added to the messages h_j W before these are weighted by attention. The other
    parameters are those of all `Layered`.
    """

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
        if not isinstance(heads, int) or heads < 1 or width % heads:
            raise ValueError(f"heads must share out the width of {width} evenly, found {heads!r}")
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout else 0.0
        inputs = self.enter(features, width, encoder, codes, rows)
        layers = [GraphAttention(*sizes, heads, slope, self.times) for sizes in pairwise([inputs, *[width] * depth])]
        self.layers: Sequence[GraphAttention] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in layers) if batch_norm else None
        self.heed_edges(edge_features, edge_codes, [width] * depth)
        self.leave(width, read_out, after, after_dropout)

    def forward(self, places: Places) -> Tensor:
        """Return (N·m, width), an embedding per place."""
        paths = self.paths(places, len(self.layers))
        return self.asked(self._leaving(places, paths), paths)

    def edge_attention(self, places: Places) -> list[Tensor]:
        """Return the attention (E, heads) of the first layer, the one of which TWP takes the topology here."""
        entering = self.entering(places, Paths.through_all(places.links, places.asked, 0))
        return [self.layers[0].attention(entering, places.links)]

    def wires(self, number: int) -> list[Wire]:
        """Return the weights of a layer that are between gates; those of attention are of a whole head, and on none."""
        gate = self.unit_gates[number]
        weight = Wire(self.layers[number].weight, (gate, 1), at(self.gate_before(number), 0))
        return [weight, *self.wires_of_edges(number, gate)]

    def _leaving(self, places: Places, paths: Paths) -> Tensor:
        """Return what the last layer gives."""
        hidden: Any = self.entering(places, paths)
        marked = None if self.edges is None else marks(places, self.edge_codes)
        for number, layer in enumerate(self.layers):
            links = paths.links[number]
            of_edges = None
            if self.edges is not None and marked is not None:
                of_edges = self.edges[number](marked if links.part_of is None else marked[links.part_of.edges])
            hidden = layer(hidden, links, self.unit_gates[number], of_edges)
            if self.norms is not None:
                hidden = self.norms[number](hidden)
            hidden = dropped(self.unit_gates[number](functional.elu(hidden)), self.dropout, self.training)
        return hidden
