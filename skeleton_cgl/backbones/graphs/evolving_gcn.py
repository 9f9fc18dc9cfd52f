"""EvolveGCN (Pareja et al. 2020): a GCN whose weights a GRU carries from snapshot to snapshot."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.backbones.convolution import check_size
from skeleton_cgl.backbones.entering import LinearEncoder
from skeleton_cgl.backbones.nodes import check_share, dropped, normalises, paths_of, sums_first
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Features, Paths, Places
from skeleton_cgl.graphs.links import Links, Weighting, check_weighting
from skeleton_cgl.graphs.sparse import Pattern, SparseFeatures

_VARIANTS = ("o", "h")


class Gate(nn.Module):
    """P·X + Q·W + S."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.of_input = nn.Parameter(torch.empty(inputs, inputs).uniform_(-bound, bound))
        self.of_weight = nn.Parameter(torch.empty(inputs, inputs).uniform_(-bound, bound))
        self.shift = nn.Parameter(torch.zeros(inputs, width))

    def forward(self, entering: Tensor, weight: Tensor) -> Tensor:
        found: Tensor = torch.addmm(self.shift, self.of_input, entering) + self.of_weight @ weight
        return found


class MatrixGRU(nn.Module):
    """W_t = (1 − Z) ⊙ W_{t−1} + Z ⊙ W̃ from X, of the shape of W.

    Z, R = σ(P·X + Q·W_{t−1} + S), W̃ = tanh(P·X + Q·(R ⊙ W_{t−1}) + S), each with P, Q and S of its own.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.update, self.reset, self.candidate = (Gate(inputs, width) for _ in range(3))

    def forward(self, entering: Tensor, weight: Tensor) -> Tensor:
        """Return W_t (inputs, width) from X and W_{t−1}."""
        update = torch.sigmoid(self.update(entering, weight))
        reset = torch.sigmoid(self.reset(entering, weight))
        return (1 - update) * weight + update * torch.tanh(self.candidate(entering, reset * weight))


class EvolvingGCN(Backbone):
    """`depth` times convolution, BatchNorm, ReLU, dropout, each of `width` units, with the weights W_t.

    The weights that are learned are W_0 and those of a GRU per layer; W_t comes of them anew in every pass, from W_0
    through all t snapshots that `evolve` tells of, as the method evolve-gcn does. With other methods there are none,
    and it is a GCN with the weights W_0.

    variant: what enters the GRU. "o": X = W_{t−1}. "h": of what enters the layer in the snapshot, H (nodes, inputs),
    y = H·p/‖p‖, and X = (H_k ⊙ tanh y_k)ᵀ of the k nodes with the largest y, k being the columns of W; where there are
    fewer nodes, the other columns are zero. What is pooled of snapshots is not dropped out; BatchNorm normalises it by
    statistics of the snapshot in training, and by the running ones, in which it leaves no trace, when answering.

    P and Q have as many rows and columns as W has rows. encoder: whether a linear layer makes `width` of the features
    first, which keeps them small. The others are those of the GCN.
    """

    takes = "graph"
    evolved: Tensor

    def __init__(
        self,
        features: int,
        variant: Literal["o", "h"] = "o",
        width: int = 256,
        depth: int = 2,
        normalisation: Weighting = "symmetric",
        batch_norm: bool = True,
        dropout: float = 0.0,
        encoder: bool = False,
    ) -> None:
        super().__init__()
        check_size(depth, width)
        check_weighting(normalisation)
        check_share("dropout", dropout)
        if variant not in _VARIANTS:
            raise ValueError(f"unknown variant {variant!r}{did_you_mean(str(variant), _VARIANTS)}")
        self.pools = variant == "h"
        self.depth = depth
        self.weighting: Weighting = normalisation
        self.dropout = dropout
        self.encoder = LinearEncoder(features, width) if encoder else None
        sizes = list(pairwise([width if encoder else features, *[width] * depth]))
        # Before all else that is drawn: without snapshots, it begins as a GCN of the same seed does.
        self.first = nn.ParameterList(nn.init.xavier_uniform_(torch.empty(size)) for size in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in sizes) if batch_norm else None
        cells = [MatrixGRU(*size) for size in sizes]
        self.cells: Sequence[MatrixGRU] = nn.ModuleList(cells)  # type: ignore[assignment]
        bounds = [(rows, rows**-0.5) for rows, _ in sizes] if self.pools else []
        self.scores = nn.ParameterList(torch.empty(rows).uniform_(-bound, bound) for rows, bound in bounds)
        self.register_buffer("evolved", torch.zeros((), dtype=torch.int64))
        self._past: list[tuple[Mapping[str, Tensor], Places]] = []

    def snapshot_of(self, places: Places) -> dict[str, Tensor]:
        """Return what `evolve` needs to be told of a graph: its features and edges, if anything of it is pooled."""
        if not self.pools:
            return {}
        links, features = places.links.pattern, places.features
        found = {"offsets": links.offsets, "sources": links.columns}
        if isinstance(features, Tensor):
            return found | {"features": features}
        entries, shape = features.pattern, torch.tensor(features.shape)
        return found | {
            "shape": shape,
            "rows": entries.offsets,
            "columns": entries.columns,
            "values": features.values,
        }

    def evolve(self, snapshots: Sequence[Mapping[str, Tensor]]) -> None:
        """Let the weights be those of W_0 carried through snapshots, all that there were: each as `snapshot_of` is."""
        self.evolved.fill_(len(snapshots))
        if not self.pools:
            return
        # One that was told of before is found again, with what was computed of it.
        made = {id(given): (given, places) for given, places in self._past}
        for given in snapshots:
            if id(given) not in made:
                made[id(given)] = given, self.arrange(_graph_of(given).to(self.evolved.device))
        self._past = [made[id(given)] for given in snapshots]

    def arrange(self, places: Places) -> Places:
        """Return the places with the sums of the features over neighbours, where these are the same in every epoch."""
        if self.encoder is not None or not isinstance(places.features, Tensor):
            return places
        return places.keeping(sums=places.links.sum(places.features, self.weighting))

    def forward(self, places: Places) -> Tensor:
        """Return (N·m, width), an embedding per place."""
        paths = paths_of(places, self.depth, whole=normalises(self.norms))
        hidden: Any = self._entering(paths.rows("features", places.features))
        for number, weight in enumerate(self.weights()):
            hidden = self._convolved(number, hidden, weight, places, paths)
            if self.norms is not None:
                hidden = self.norms[number](hidden)
            if number == self.depth - 1:
                hidden = hidden[paths.at]
            hidden = dropped(hidden.relu(), self.dropout, self.training)
        return hidden

    def weights(self) -> list[Tensor]:
        """Return W_t of every layer."""
        count = int(self.evolved)
        snapshots = [places for _, places in self._past]
        if self.pools and len(snapshots) != count:
            raise InputError(
                f"backbone EvolvingGCN: its weights are those of {count} snapshots, and it was told of {len(snapshots)}"
            )
        hidden = [self._entering(places.features) for places in snapshots]
        found = []
        for number, (weight, cell) in enumerate(zip(self.first, self.cells, strict=True)):
            for step in range(count):
                weight = cell(self._pooled(number, hidden[step]) if self.pools else weight, weight)
                if self.pools and number < self.depth - 1:
                    hidden[step] = self._given(number, hidden[step], weight, snapshots[step])
            found.append(weight)
        return found

    def _pooled(self, number: int, hidden: Features) -> Tensor:
        """Return X (inputs, width) of what enters a layer in a snapshot."""
        score, width = self.scores[number], self.first[number].shape[1]
        y = hidden.matmul((score / score.norm())[:, None])[:, 0]
        # Stable: of equals, those with the smallest numbers.
        chosen = y.argsort(descending=True, stable=True)[:width]
        rows = hidden[chosen] if isinstance(hidden, Tensor) else hidden.rows(chosen).dense()
        return functional.pad((rows * torch.tanh(y[chosen])[:, None]).T, (0, width - len(chosen)))

    def _given(self, number: int, hidden: Features, weight: Tensor, snapshot: Places) -> Tensor:
        """Return what a layer gives in a snapshot."""
        paths = Paths.through_all(snapshot.links, slice(None), self.depth)
        found = self._convolved(number, hidden, weight, snapshot, paths)
        if self.norms is not None:
            norm: Any = self.norms[number]
            mean, variance = (None, None) if norm.training else (norm.running_mean, norm.running_var)
            found = functional.batch_norm(
                found, mean, variance, norm.weight, norm.bias, training=norm.training, eps=norm.eps
            )
        return found.relu()

    def _entering(self, features: Features) -> Features:
        return features if self.encoder is None else self.encoder(features)

    def _convolved(self, number: int, hidden: Features, weight: Tensor, places: Places, paths: Paths) -> Tensor:
        """Return Σ_j a_ij h_j W."""
        if number == 0 and "sums" in places.kept:
            return paths.rows("sums", places.kept["sums"], level=1).matmul(weight)
        links = paths.links[number]
        if isinstance(hidden, Tensor) and sums_first(links, *weight.shape):
            return links.sum(hidden, self.weighting).matmul(weight)
        return links.sum(hidden.matmul(weight), self.weighting)


def _graph_of(snapshot: Mapping[str, Tensor]) -> Places:
    """Return the graph of a snapshot, all its nodes as places."""
    nodes = len(snapshot["offsets"]) - 1
    links = Links(Pattern((nodes, nodes), snapshot["offsets"], snapshot["sources"]))
    if "features" in snapshot:
        features: Features = snapshot["features"]
    else:
        rows, width = snapshot["shape"].tolist()
        features = SparseFeatures(Pattern((rows, width), snapshot["rows"], snapshot["columns"]), snapshot["values"])
    return Places(links, features, torch.arange(nodes)[:, None].to(links.device), every=True)
