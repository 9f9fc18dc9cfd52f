"""What GCN, GAT and GIN share: what enters their first layer, what edges add to messages, and what comes after."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.backbones.entering import CodeEncoder, Codes, EdgeEncoder, LinearEncoder, mark_sums
from skeleton_cgl.backbones.gates import UnitGate, Wire, at
from skeleton_cgl.backbones.joins import READ_OUTS, Joined, Rows
from skeleton_cgl.backbones.nodes import dropped, normalises, paths_of
from skeleton_cgl.backbones.products import Times, times
from skeleton_cgl.graphs.batches import Paths, Places
from skeleton_cgl.graphs.links import Weighting
from skeleton_cgl.graphs.sparse import Pattern, product


class Layered(Backbone):
    """Layers over the edges of a graph, one embedding per node.

    read_out: how the nodes of a graph become one, by their mean, sum, or gated (a gated sum and the largest); of a pair
    the product is taken. after: the widths of linear layers, each with ReLU and after_dropout, that follow. encoder:
    whether a linear layer makes `width` of the features first; where these are codes, tables of embeddings always do.
    input_dropout: whether what enters the first layer is dropped out as well.
    """

    takes = "graph"
    younger: ClassVar[Mapping[str, Any]] = {
        "read_out": "mean",
        "after": (),
        "after_dropout": 0.0,
        "encoder": False,
        "rows": "nodes",
        "codes": None,
        "edge_features": 0,
        "edge_codes": None,
    }

    layers: Sequence[nn.Module]
    norms: nn.ModuleList | None
    encoder: LinearEncoder | CodeEncoder | None
    edges: Sequence[EdgeEncoder] | None
    encoder_gate: UnitGate | None
    unit_gates: Sequence[UnitGate]
    dropout: float
    input_dropout: float

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, the widths of layers that follow in one spelling."""
        after = parameters["after"]
        return {**parameters, "after": tuple(after) if isinstance(after, list) else after}

    def enter(self, features: int, width: int, encoder: bool, codes: Codes | None, rows: Rows) -> int:
        """Make the encoder, if there is to be one; return how many numbers of a node enter the first layer."""
        self.rows = rows
        self.times: Times = torch.matmul if rows == "nodes" else times
        if not isinstance(encoder, bool):
            raise ValueError(f"encoder must be true or false, found {encoder!r}")
        self.encoder = None
        if codes is not None:
            self.encoder = CodeEncoder(codes, width)
        elif encoder:
            self.encoder = LinearEncoder(features, width)
        self.encoder_gate = None if self.encoder is None else UnitGate(width)
        return features if self.encoder is None else width

    def heed_edges(self, columns: int, codes: Codes | None, widths: Sequence[int]) -> None:
        """Make what the edges of every layer add to messages of so many numbers, where edges have features."""
        self.edge_codes = codes
        made = nn.ModuleList(EdgeEncoder(columns, codes, width) for width in widths) if columns else None
        self.edges = made  # type: ignore[assignment]

    def leave(self, width: int, read_out: str, after: Sequence[int], dropout: float) -> None:
        """Make what embeddings are joined by, where they are not taken as they are."""
        if not isinstance(after, list | tuple):
            raise ValueError(f"after must be a list of widths, found {after!r}")
        if self.rows != "graphs" and read_out in READ_OUTS[1:]:
            raise ValueError(f"read_out: {read_out} is of whole graphs; the scenario has {self.rows}")
        joined = Joined(self.rows, width, read_out, after, dropout)
        if self.rows != "nodes" or after:
            self.join = joined
        self.unit_gates = nn.ModuleList(UnitGate(width) for _ in self.layers)  # type: ignore[assignment]

    def gate_before(self, number: int) -> UnitGate | None:
        """Return the gate that what enters a layer has passed; features that are not encoded pass none."""
        return self.unit_gates[number - 1] if number else self.encoder_gate

    def gated(self) -> list[Wire]:
        """Return the weights between gates: every layer has one, the encoder, and the layers that follow."""
        wires = list[Wire]()
        if self.encoder is not None and self.encoder_gate is not None:
            units = 1 if isinstance(self.encoder, CodeEncoder) else 0
            wires.append(Wire(self.encoder.weight, (self.encoder_gate, units)))
        for number in range(len(self.layers)):
            wires += self.wires(number)
        joined = getattr(self, "join", None)
        return wires if joined is None else wires + joined.wires(self.unit_gates[-1])

    def wires(self, number: int) -> list[Wire]:
        """Return the weights of a layer that are between gates: its own, and that of what edges add to what enters."""
        layer, before = self.layers[number], self.gate_before(number)
        wires = [Wire(layer.weight, (self.unit_gates[number], 1), at(before, 0))]  # type: ignore[arg-type]
        return wires + self.wires_of_edges(number, before)

    def wires_of_edges(self, number: int, gate: UnitGate | None) -> list[Wire]:
        """Return the weight of what edges add in a layer, where that passes a gate."""
        return [] if self.edges is None or gate is None else [Wire(self.edges[number].weight, (gate, 1))]

    def entering(self, places: Places, paths: Paths) -> Any:
        """Return what enters the first layer."""
        features: Any = paths.rows("features", places.features)
        if self.encoder is not None:
            features = self._opened(0, self.encoder(features))
        return dropped(features, self.input_dropout, self.training)

    def sums_stay(self, places: Places) -> bool:
        """Return whether sums of the features over neighbours are all that is needed, and the same in every epoch."""
        steady = not isinstance(self.encoder, CodeEncoder) and not self.input_dropout
        return steady and isinstance(places.features, Tensor)

    def with_edges(self, places: Places, weighting: Weighting) -> Places:
        """Return the places with the sums of the marks of every node's in-edges, where edges have features."""
        found = self.marked(places, weighting)
        return places if found is None else places.keeping(marks=found)

    def marked(self, places: Places, weighting: Weighting) -> Tensor | None:
        """Return (n, M) the sums of the marks of every node's in-edges, where edges have features."""
        if self.edges is None or "marks" in places.kept:
            return places.kept.get("marks")
        return mark_sums(places, self.edge_codes, weighting)

    def of_edges(self, marked: Tensor | None, paths: Paths, number: int, weight: Tensor | None = None) -> Tensor | None:
        """Return what its in-edges add to the messages to every node in a layer, of the sums of their marks.

        weight: by which messages are yet to be multiplied.
        """
        if self.edges is None or marked is None:
            return None
        sums = paths.rows(f"marks {number}", marked, level=number + 1)
        if weight is None:
            return self._opened(number, self.edges[number](sums))
        # The tables are small: multiplied first, they cost next to nothing.
        return sums.matmul(self._opened(number, self.edges[number].weight).matmul(weight))

    def _opened(self, number: int, entering: Tensor) -> Tensor:
        """Return what enters a layer by the gate before it; what edges add has no other."""
        gate = self.gate_before(number)
        return entering if gate is None else gate(entering)

    def paths(self, places: Places, hops: int) -> Paths:
        """Return the links of so many layers."""
        return paths_of(places, hops, whole=normalises(self.norms))

    def asked(self, hidden: Tensor, paths: Paths) -> Tensor:
        """Return (N·m, width): what the last layer gives for every place."""
        at = paths.at
        if isinstance(at, slice):
            # No view of it: changing one in place is slow with gradients to come.
            return hidden
        if self.rows != "pairs":
            return hidden[at]
        # A node is in many pairs: its gradients are summed as a bag, which is faster than one by one.
        offsets = torch.arange(len(at) + 1, device=at.device)
        return product(Pattern((len(at), len(hidden)), offsets, at), None, hidden)
