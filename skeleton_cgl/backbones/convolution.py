"""What graph backbones share: the convolution of the GCNs, and the attention of edges that TWP asks for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.backbones.gates import UnitGate, Wire, at, chained
from skeleton_cgl.graphs.links import Links
from skeleton_cgl.plain import shown

PREDICTOR_WIDTH = 64
DEEPEST, WIDEST = 256, 8192
"""More layers or units than these are taken for a slip of the pen."""


def check_size(depth: int, width: int) -> None:
    """Refuse a depth or width that is no whole number, or that no backbone here can have."""
    for name, value, most in (("depth", depth, DEEPEST), ("width", width, WIDEST)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{name} must be a whole number, found {shown(value)}")
        if value > most:
            raise ValueError(f"{name} must be at most {most}, found {value}")
    if depth < 1 or width < 1:
        raise ValueError(f"depth and width must be at least 1, found {depth} and {width}")


class GraphConvolution(nn.Module):
    """h'ᵢ = BatchNorm(ReLU(Σ_j A_ij h_j W + b) + ReLU(hᵢ W_r + b_r)), statistics over all nodes of all graphs."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.neighbours = nn.Linear(inputs, width)
        self.own = nn.Linear(inputs, width)
        self.norm = nn.BatchNorm1d(width)
        self.unit_gate = UnitGate(width)

    def forward(self, features: Tensor, summed: Tensor) -> Tensor:
        """Return h' (…, width) from h (…, F) and its neighbour sums A·h (…, F)."""
        # As rows: what a layer gives for more dimensions is a view, and autograd is slow about changing views in place.
        rows, sums = features.flatten(0, -2), summed.flatten(0, -2)
        hidden: Tensor = self.unit_gate(self.norm(self.neighbours(sums).relu_() + self.own(rows).relu_()))
        return hidden.view(*features.shape[:-1], -1)


class StackedConvolutions(Backbone):
    """The weights of a GCN: `depth` convolutions of `width` units, a gate and a predictor for reading out whole graphs.

    Read-out: [Σᵢ σ(w·hᵢ+b)·hᵢ ‖ maxᵢ hᵢ], Linear → ReLU → BatchNorm.
    """

    # The constructor once had this argument for graphs as well.
    gone: ClassVar[Mapping[str, Any]] = {"layout": None}

    def __init__(self, features: int, width: int, depth: int) -> None:
        super().__init__()
        check_size(depth, width)
        layers = [GraphConvolution(width if before else features, width) for before in range(depth)]
        self.layers: Sequence[GraphConvolution] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.gate = nn.Linear(width, 1)
        self.predictor = nn.Sequential(
            nn.Linear(2 * width, PREDICTOR_WIDTH), nn.ReLU(), nn.BatchNorm1d(PREDICTOR_WIDTH)
        )
        self.predictor_gate = UnitGate(PREDICTOR_WIDTH)

    def embedded(self, hidden: Tensor, summed: Tensor, neighbour_sum: Callable[[Tensor], Tensor]) -> list[Tensor]:
        """Return what every layer gives, from features and their neighbour sums."""
        found: list[Tensor] = []
        for layer in self.layers:
            hidden = layer(hidden, neighbour_sum(hidden) if found else summed)
            found.append(hidden)
        return found

    def predicted(self, read_out: Tensor) -> Tensor:
        """Return (G, 64) from what was read out of whole graphs (G, 2·width)."""
        found: Tensor = self.predictor_gate(self.predictor(read_out))
        return found

    def gated(self) -> list[Wire]:
        """Return the weights between gates: every layer has one, and the predictor."""
        wires, gate = list[Wire](), None
        for layer in self.layers:
            for linear in (layer.neighbours, layer.own):
                wires += chained(gate, (linear, layer.unit_gate))
            gate = layer.unit_gate
        first = self.predictor[0]
        assert isinstance(first, nn.Linear)
        return [*wires, Wire(self.gate.weight, before=at(gate, 1)), *chained(gate, (first, self.predictor_gate))]

    def projected(self, features: Tensor, embedded: Sequence[Tensor]) -> list[Tensor]:
        """Return h W of what enters every layer."""
        entering = [features, *embedded[:-1]]
        return [hidden @ layer.neighbours.weight.T for hidden, layer in zip(entering, self.layers, strict=True)]


def attention_over(products: Tensor, adjacency: Tensor) -> Tensor:
    """Return the attention (edges,…) of products (…, i, j): LeakyReLU₀.₂, softmax over the in-edges j of every i."""
    scores = functional.leaky_relu(products, 0.2).masked_fill(adjacency == 0, -torch.inf)
    return torch.softmax(scores, dim=-1)


def attention_of(links: Links, hidden: Tensor, slope: float = 0.2) -> Tensor:
    """Return (E,): LeakyReLU(Σ_d h_jd · tanh(h_id)) for every edge j → i, softmax over the in-edges of i."""
    products = functional.leaky_relu(links.dots(torch.tanh(hidden), hidden), slope)
    return links.softmax(products[:, None])[:, 0]
