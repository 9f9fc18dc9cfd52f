"""A memory of nodes that a method made: features of its own, without neighbours, a few for every task."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.scenarios.scenario import Samples
from skeleton_cgl.scenarios.views import GraphPool

_COLUMNS = ("rows", "labels", "step")


class Condensed:
    """What is kept of every task: rows (M_t, F), the label of each, and the step each reveals."""

    def __init__(self) -> None:
        self._kept: list[tuple[Tensor, Tensor, Tensor]] = []

    def __len__(self) -> int:
        return sum(len(rows) for rows, _, _ in self._kept)

    def keep(self, rows: Tensor, labels: Tensor, step: Tensor) -> None:
        """Keep the rows of one more task."""
        self._kept.append((rows.detach().cpu(), labels, step))

    def samples(self) -> Samples:
        """Return the rows of all tasks as samples, which know how many are of each."""
        rows, labels, step = (torch.cat(columns) for columns in zip(*self._kept, strict=True))
        sizes = tuple(len(each) for each, _, _ in self._kept)
        return Samples(GraphPool(Places.alone(rows)), torch.arange(len(rows)), labels, step, sizes)

    def has_room(self, sizes: Sequence[int]) -> bool:  # noqa: ARG002
        """Return false: rows are made up, and no sample is kept, however many rows there are."""
        return False

    def state(self) -> dict[str, Any]:
        return {name: [columns[place] for columns in self._kept] for place, name in enumerate(_COLUMNS)}

    def restore(self, state: dict[str, Any]) -> None:
        self._kept = list(zip(*(state[name] for name in _COLUMNS), strict=True))


def drawn_per_class(labels: Tensor, counts: dict[int, int], random: torch.Generator) -> Tensor:
    """Return as many different samples of every class as `counts` says, at random, class by class."""
    drawn = []
    for label, count in counts.items():
        members = (labels == label).nonzero()[:, 0]
        drawn.append(members[torch.randperm(len(members), generator=random)[:count]])
    return torch.cat(drawn)


def lowered(loss: Callable[[Tensor], Tensor], rows: Tensor, steps: int, rate: float) -> Tensor:
    """Return rows (M, F) after so many steps of Adam down a loss, which may be another one every time."""
    made = rows.clone().requires_grad_()
    optimizer = torch.optim.Adam([made], lr=rate, fused=True)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(made).backward()
        optimizer.step()
    return made.detach()
