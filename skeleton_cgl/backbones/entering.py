"""What enters the layers of graph backbones: features of nodes, encoded or as they are, and features of edges.

Features are measures, or codes: numbers of kinds, so many of each column. Letters: n nodes, E edges, B columns.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.graphs.batches import Features, Places
from skeleton_cgl.graphs.links import Links, Weighting
from skeleton_cgl.graphs.sparse import Pattern, product

Codes = Sequence[int]
"""How many kinds there are of every column."""


class LinearEncoder(nn.Linear):
    """X·W + b of measures, dense or sparse."""

    def forward(self, features: Features) -> Tensor:
        """Return (n, width) from features (n, F)."""
        if isinstance(features, Tensor):
            return functional.linear(features, self.weight, self.bias)
        return features.matmul(self.weight.T) + self.bias

    @property
    def matrix(self) -> Tensor:
        """(F + 1, width): [X | 1] times it is what `forward` gives."""
        return torch.cat([self.weight.T, self.bias[None]])


class CodeEncoder(nn.Module):
    """The sum of an embedding per column of codes, each looked up in a table of its own."""

    shift: Tensor

    def __init__(self, codes: Codes, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(_tables(codes, width))
        self.register_buffer("shift", _shifts(codes), persistent=False)

    def forward(self, codes: Tensor) -> Tensor:
        """Return (n, width) from codes (n, F)."""
        rows, columns = codes.shape
        offsets = torch.arange(0, codes.numel() + 1, columns, device=codes.device)
        found = (codes.long() + self.shift).flatten()
        return product(Pattern((rows, len(self.weight)), offsets, found), None, self.weight)


class EdgeEncoder(nn.Module):
    """What an edge adds to the message it carries: of codes the sum of an embedding per column, of measures f·W.

    Both are products of what `marks` gives with one matrix, so that the sum over edges may be taken before them.
    """

    def __init__(self, columns: int, codes: Codes | None, width: int) -> None:
        super().__init__()
        weight = nn.init.xavier_uniform_(torch.empty(columns, width)) if codes is None else _tables(codes, width)
        self.weight = nn.Parameter(weight)

    def forward(self, marks: Tensor) -> Tensor:
        """Return (…, width) from marks (…, M), or from sums of them."""
        return marks.matmul(self.weight)


def marks(places: Places, codes: Codes | None) -> Tensor:
    """Return (E, M): of measures themselves, of codes a 1 for the kind in every column; of a loop that was added 0."""
    features = places.edge_features
    if features is None:
        raise ValueError("the backbone was made for features of edges, and these graphs have none")
    kind = places.features.dtype
    added = (features == -1).all(dim=1) & (places.links.sources == places.links.targets)
    if codes is None:
        return features.to(kind).masked_fill(added[:, None], 0)
    proper = (~added).nonzero()
    found = torch.zeros(len(features), sum(codes), dtype=kind, device=features.device)
    found[proper, features[proper[:, 0]].long() + _shifts(codes).to(features.device)] = 1
    return found


def mark_sums(places: Places, codes: Codes | None, weighting: Weighting) -> Tensor:
    """Return (n, M): for every node the sum of the marks of its in-edges, times d_in^0, d_in^−1 or d_in^−½.

    It is the part of a weighting that is a node's own: plain, mean or symmetric.
    """
    found = edge_sums(places.links, marks(places, codes), None)
    power = {"plain": 0.0, "mean": -1.0, "symmetric": -0.5}[weighting]
    return found * places.links.in_degrees.clamp(min=1).to(found.dtype).pow(power)[:, None]


def edge_sums(links: Links, table: Tensor, weights: Tensor | None) -> Tensor:
    """Return (n, M): for every node the sum over its in-edges of their rows in a table (E, M), weighted by (E,)."""
    edges = torch.arange(len(links), device=links.device)
    return product(Pattern((links.nodes, len(links)), links.pattern.offsets, edges), weights, table)


def _tables(codes: Codes, width: int) -> Tensor:
    """Return (Σ codes, width): the first tables of all columns, one below the other."""
    found = torch.empty(sum(codes), width)
    for table in found.split(list(codes)):
        nn.init.xavier_uniform_(table)
    return found


def _shifts(codes: Codes) -> Tensor:
    """Return (B,): where the table of every column begins."""
    return functional.pad(torch.tensor(list(codes)).cumsum(0), (1, 0))[:-1]
