"""Gates of units: what leaves a layer is multiplied unit by unit, by numbers that a method may learn for every task."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn


class UnitGate(nn.Module):
    """h ⊙ σ(s·e) for h (…, width), with one number e per unit; h as it is where there is no e, which a method gives.

    scale: s in training. hardest: s in evaluation.
    """

    embedding: nn.Parameter | None

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.scale = self.hardest = 1.0
        self.register_parameter("embedding", None)

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden if self.embedding is None else hidden * self.openness(self.embedding)

    def openness(self, embedding: Tensor) -> Tensor:
        """Return a = σ(s·e), between 0 and 1."""
        return torch.sigmoid((self.scale if self.training else self.hardest) * embedding)


At = tuple[UnitGate, int]
"""A gate, and the dimension of a weight that has its units; where these are joined several times, each time all."""


@dataclass(frozen=True)
class Wire:
    """A weight between gates: what it multiplies has passed the gate `before`, and what it gives passes that `behind`.

    A weight with neither is on no wire.
    """

    weight: Tensor
    behind: At | None = None
    before: At | None = None

    def used(self, openness: Mapping[UnitGate, Tensor]) -> Tensor:
        """Return how far what a weight does passes the gates: the smaller openness of the two, to be broadcast."""
        found = [self._along(dimension, openness[gate]) for gate, dimension in filter(None, (self.behind, self.before))]
        return found[0] if len(found) == 1 else torch.minimum(*found)

    def _along(self, dimension: int, values: Tensor) -> Tensor:
        shape = [1] * self.weight.ndim
        shape[dimension] = -1
        return values.repeat(self.weight.shape[dimension] // len(values)).view(shape)


def at(gate: UnitGate | None, dimension: int) -> At | None:
    """Return a place on a wire; none where there is no gate."""
    return None if gate is None else (gate, dimension)


def chained(gate: UnitGate | None, *layers: tuple[nn.Linear, UnitGate]) -> list[Wire]:
    """Return the wires of linear layers that follow a gate and one another, each with the gate behind it."""
    wires = []
    for layer, behind in layers:
        wires.append(Wire(layer.weight, (behind, 0), at(gate, 1)))
        gate = behind
    return wires
