"""How the embeddings that a backbone gives for one query become one: those of actors, of the ends of a pair, of nodes.

A backbone may have a join of its own as `join`, a module that is given embeddings and the inputs they are of; without
one, the mean or the product is taken, as the scenario says.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.convolution import WIDEST
from skeleton_cgl.backbones.gates import UnitGate, Wire, chained
from skeleton_cgl.backbones.nodes import check_share, dropped
from skeleton_cgl.backbones.products import times
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.scenarios.inputs import Inputs

if TYPE_CHECKING:
    from skeleton_cgl.backbones.backbone import Backbone
    from skeleton_cgl.scenarios.scenario import Facts

Join = Callable[[Tensor, Any], Tensor]
"""From embeddings (P, width) of inputs of N rows to (N, width)."""

Rows = Literal["nodes", "pairs", "graphs"]
"""What the rows are that embeddings are wanted of; graph backbones may ask for it by the name `rows`."""

READ_OUTS = ("mean", "sum", "gated")


def join_of(backbone: "Backbone", facts: "Facts") -> Join:
    """Return how embeddings become one per row: the backbone's own way, or the scenario's."""
    found: Join = getattr(backbone, "join", None) or {"mean": mean, "product": multiplied}[facts.join]
    return found


def joined_width(backbone: "Backbone", join: Join, inputs: Inputs, width: int) -> int:
    """Return the width of what embeddings of `width` are joined to."""
    if getattr(backbone, "join", None) is None:
        return width
    training = backbone.training
    backbone.eval()
    try:
        with torch.no_grad():
            return join(torch.zeros(inputs.embedded, width), inputs).shape[1]
    finally:
        backbone.train(training)


def mean(embeddings: Tensor, inputs: Inputs) -> Tensor:
    """Return (N, width): the mean over the places of a row, or over the nodes of a graph."""
    if isinstance(inputs, Graphs):
        return inputs.means(embeddings)
    return embeddings if inputs.places == 1 else embeddings.unflatten(0, (-1, inputs.places)).mean(dim=1)


def multiplied(embeddings: Tensor, inputs: Inputs) -> Tensor:
    """Return (N, width): the product over the places of a row."""
    if inputs.places == 1:
        return embeddings
    places = embeddings.unflatten(0, (-1, inputs.places))
    # Of two, faster than their `prod`, whose gradient takes care of factors that are zero.
    return torch.mul(*places.unbind(dim=1)) if inputs.places == 2 else places.prod(dim=1)


class Gated(nn.Module):
    """[Σᵢ σ(w·hᵢ+b)·hᵢ ‖ maxᵢ hᵢ] over the nodes of a graph: (G, 2·width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 1)

    def forward(self, embeddings: Tensor, inputs: Graphs) -> Tensor:
        weighted = inputs.sums(torch.sigmoid(self.gate(embeddings)) * embeddings)
        return torch.cat([weighted, inputs.largest(embeddings)], dim=1)


class Joined(nn.Module):
    """One embedding per row, then linear layers of the widths `after`, each with ReLU and dropout.

    rows: nodes are taken as they are, of pairs the product; read_out of graphs: mean, sum or gated.
    """

    def __init__(self, rows: Rows, width: int, read_out: str, after: Sequence[int], dropout: float) -> None:
        super().__init__()
        if read_out not in READ_OUTS:
            raise ValueError(f"unknown read_out {read_out!r}{did_you_mean(str(read_out), READ_OUTS)}")
        check_share("after_dropout", dropout)
        for each in after:
            if type(each) is not int or not 1 <= each <= WIDEST:
                raise ValueError(f"after must have widths of 1 to {WIDEST}, found {each!r}")
        self.rows, self.read_out, self.dropout = rows, read_out, dropout
        gated = rows == "graphs" and read_out == "gated"
        self.gated = Gated(width) if gated else None
        sizes = [2 * width if gated else width, *after]
        layers = [nn.Linear(*each) for each in pairwise(sizes)]
        self.layers: Sequence[nn.Linear] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.unit_gates: Sequence[UnitGate] = nn.ModuleList(map(UnitGate, after))  # type: ignore[assignment]

    def forward(self, embeddings: Tensor, inputs: Inputs) -> Tensor:
        found = self._one(embeddings, inputs)
        for layer, gate in zip(self.layers, self.unit_gates, strict=True):
            found = gate((times(found, layer.weight.T) + layer.bias).relu_())
            found = dropped(found, self.dropout, self.training)
        return found

    def wires(self, before: UnitGate) -> list[Wire]:
        """Return the weights between gates; before: the one that embeddings have passed."""
        read_out = [] if self.gated is None else [Wire(self.gated.gate.weight, before=(before, 1))]
        return read_out + chained(before, *zip(self.layers, self.unit_gates, strict=True))

    def _one(self, embeddings: Tensor, inputs: Inputs) -> Tensor:
        if not isinstance(inputs, Graphs):
            return multiplied(embeddings, inputs) if self.rows == "pairs" else mean(embeddings, inputs)
        if self.gated is not None:
            found: Tensor = self.gated(embeddings, inputs)
            return found
        return inputs.sums(embeddings) if self.read_out == "sum" else inputs.means(embeddings)
