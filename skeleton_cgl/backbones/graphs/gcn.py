"""GCN (Kipf and Welling 2017), in the sizes and normalisations of the benchmarks as presets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.convolution import attention_of, check_size
from skeleton_cgl.backbones.entering import Codes, LinearEncoder
from skeleton_cgl.backbones.joins import Rows
from skeleton_cgl.backbones.layered import Layered
from skeleton_cgl.backbones.nodes import check_share, dropped, paths_of, projected, sums_first
from skeleton_cgl.backbones.products import Times
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.graphs.batches import Features, Paths, Places
from skeleton_cgl.graphs.links import Links, Weighting, check_weighting

_HEADS = ("linear", "convolution")


class GraphConvolution(nn.Module):
    """Σ_j a_ij h_j W (+ b): the weighted sum over in-edges, before or after the product, whichever is less work."""

    def __init__(self, inputs: int, width: int, bias: bool, times: Times = torch.matmul) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None
        self.times = times
        nn.init.xavier_uniform_(self.weight)

    def forward(self, features: Features, links: Links, weighting: Weighting) -> Tensor:
        """Return (nodes, width) from the features (sources, inputs) of the links' sources."""
        if isinstance(features, Tensor) and sums_first(links, *self.weight.shape):
            return self.of_sums(links.sum(features, weighting))
        found = links.sum(projected(features, self.weight, self.times), weighting)
        return found if self.bias is None else found + self.bias

    def of_sums(self, sums: Tensor, encoder: Tensor | None = None) -> Tensor:
        """Return (nodes, width) from the weighted sums (nodes, inputs) of the features.

        encoder (F, inputs): by which what was summed (nodes, F) is yet to be multiplied.
        """
        weight = self.weight if encoder is None else encoder.matmul(self.weight)
        if self.bias is not None and self.times is torch.matmul:
            return torch.addmm(self.bias, sums, weight)
        found = self.times(sums, weight)
        return found if self.bias is None else found + self.bias


class GCN(Layered):
    """`depth` times convolution, BatchNorm, ReLU, dropout; each of `width` units.

    Where edges have features, every layer has e_ij of its own tables, or of its own linear map, added to the messages:
    d_i^−½ Σ_j (d_j^−½ h_j + e_ij) W where neighbours are weighted symmetrically, as BeGin has it; otherwise likewise.

    preset: of nodes begin (BeGin's 3 × 256), cglb (CGLB's and DRIFT's, of two convolutions), agale (AGALE's, likewise);
    begin-links and begin-graphs (BeGin's 3 × 256 and 4 × 146, and the layers that follow them); or None for the usual
    values; whatever else is given wins over it. normalisation: how neighbours are weighted, plain, symmetric or mean.
    head: linear, or convolution: the embeddings are summed over neighbours once more, so that the learner's head makes
    a convolution of its own of them. The rest is what all `Layered` have.
    """

    usual: ClassVar[Mapping[str, Any]] = {
        "width": 256,
        "depth": 2,
        "normalisation": "symmetric",
        "batch_norm": True,
        "bias": False,
        "dropout": 0.0,
        "input_dropout": False,
        "head": "linear",
        "read_out": "mean",
        "after": (),
        "after_dropout": 0.0,
        "encoder": False,
    }
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "begin": {"depth": 3, "input_dropout": True},
        "begin-links": {"depth": 3, "after": (256, 256)},
        "begin-graphs": {"depth": 4, "width": 146, "encoder": True, "after": (73, 36)},
        "cglb": {"depth": 1, "normalisation": "plain", "batch_norm": False, "head": "convolution"},
        "agale": {"depth": 1, "batch_norm": False, "bias": True, "dropout": 0.5, "head": "convolution"},
    }

    def __init__(
        self,
        features: int,
        preset: str | None = None,
        width: int | None = None,
        depth: int | None = None,
        normalisation: Weighting | None = None,
        batch_norm: bool | None = None,
        bias: bool | None = None,
        dropout: float | None = None,
        input_dropout: bool | None = None,
        head: str | None = None,
        read_out: str | None = None,
        after: Sequence[int] | None = None,
        after_dropout: float | None = None,
        encoder: bool | None = None,
        rows: Rows = "nodes",
        codes: Codes | None = None,
        edge_features: int = 0,
        edge_codes: Codes | None = None,
    ) -> None:
        super().__init__()
        given: dict[str, Any] = {
            "read_out": read_out,
            "after": after,
            "after_dropout": after_dropout,
            "encoder": encoder,
        }
        given |= {"normalisation": normalisation, "batch_norm": batch_norm, "bias": bias, "dropout": dropout}
        values = self.settled(preset, width=width, depth=depth, input_dropout=input_dropout, head=head, **given)
        self.width, self.depth = values["width"], values["depth"]
        check_size(self.depth, self.width)
        check_weighting(values["normalisation"])
        check_share("dropout", values["dropout"])
        if values["head"] not in _HEADS:
            raise ValueError(f"unknown head {values['head']!r}{did_you_mean(str(values['head']), _HEADS)}")
        self.weighting: Weighting = values["normalisation"]
        self.dropout: float = values["dropout"]
        self.input_dropout = self.dropout if values["input_dropout"] else 0.0
        self.sums_last = values["head"] == "convolution"
        inputs = self.enter(features, self.width, values["encoder"], codes, rows)
        sizes = [inputs, *[self.width] * self.depth]
        layers = [GraphConvolution(inputs, width, values["bias"], self.times) for inputs, width in pairwise(sizes)]
        self.layers: Sequence[GraphConvolution] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norms = nn.ModuleList(nn.BatchNorm1d(self.width) for _ in self.layers) if values["batch_norm"] else None
        self.heed_edges(edge_features, edge_codes, sizes[:-1])
        self.leave(self.width, *(values[name] for name in ("read_out", "after", "after_dropout")))

    @classmethod
    def settled(cls, preset: str | None, **given: Any) -> dict[str, Any]:
        """Return the value of every parameter: as given, or else of the preset, or else the usual one."""
        if preset is not None and preset not in cls.presets:
            raise ValueError(f"unknown preset {preset!r}{did_you_mean(str(preset), cls.presets)}")
        explicit = {name: value for name, value in given.items() if value is not None}
        return {**cls.usual, **(cls.presets[preset] if preset else {}), **explicit}

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters with what a preset stands for, so that one meaning has one key."""
        offered = {name: parameters[name] for name in ("rows", "codes", "edge_features", "edge_codes")}
        return super().spelled_out({**offered, **cls.settled(**parameters)})

    def arrange(self, places: Places) -> Places:
        """Return the places with the sums of the features over neighbours, where these are the same in every epoch.

        A linear encoder comes after the sums then, to which it needs that of ones for its bias.
        """
        places = self.with_edges(places, self.weighting)
        if self.sums_stay(places):
            features = places.dense_features
            if isinstance(self.encoder, LinearEncoder):
                features = functional.pad(features, (0, 1), value=1.0)
            return places.keeping(sums=places.links.sum(features, self.weighting))
        if places.every:
            # Computed for all graphs: batches of some pick theirs.
            places.links.weights(self.weighting, places.features.dtype)
        return places

    def forward(self, places: Places) -> Tensor:
        """Return (N·m, width), an embedding per place."""
        paths = self.paths(places, self.depth + self.sums_last)
        *_, hidden = self._entering(places, paths)
        return self.asked(paths.links[-1].sum(hidden, self.weighting), paths) if self.sums_last else hidden

    def edge_attention(self, places: Places) -> list[Tensor]:
        """Return, per layer, softmax over the in-edges of i of LeakyReLU₀.₂(Σ_d (h_j W)_d · tanh((h_i W)_d))."""
        kept = dict(places.kept)
        if self.encoder is not None:
            # What was summed is not what enters the first layer.
            kept.pop("sums", None)
        entering = self._entering(replace(places, kept=kept), paths_of(places, self.depth, whole=True))
        pairs = zip(entering, self.layers, strict=False)
        return [attention_of(places.links, hidden.matmul(layer.weight)) for hidden, layer in pairs]

    def _entering(self, places: Places, paths: Paths) -> Iterator[Any]:
        """Yield what enters every layer, and what leaves the last: of the places alone, unless it is summed again."""
        sums = places.kept.get("sums")
        marked = self.marked(places, self.weighting)
        encoder = self._opened(0, self.encoder.matrix) if isinstance(self.encoder, LinearEncoder) else None
        hidden = self.entering(places, paths) if sums is None else places.features
        yield hidden
        for number, layer in enumerate(self.layers):
            if number == 0 and sums is not None:
                hidden = layer.of_sums(paths.rows("sums", sums, level=1), encoder)
            else:
                hidden = layer(hidden, paths.links[number], self.weighting)
            of_edges = self.of_edges(marked, paths, number, layer.weight)
            if of_edges is not None:
                hidden = hidden + of_edges
            if self.norms is not None:
                hidden = self.norms[number](hidden)
            if number == self.depth - 1 and not self.sums_last:
                hidden = self.asked(hidden, paths)
            hidden = dropped(self.unit_gates[number](hidden.relu_()), self.dropout, self.training)
            yield hidden
