"""A memory of past tasks: a random part of each one's training samples, chosen once and kept."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.methods.parameters import check_whole
from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.scenario import Experience, Samples

_COLUMNS = ("ids", "labels", "step")
_FRACTION = 0.2
"""Kept where neither a fraction nor a count is given."""


def with_fraction(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a method with the fraction that is kept where neither that nor a count is given."""
    unsaid = all(parameters.get(name, "no parameter") is None for name in ("fraction", "count"))
    return {**parameters, "fraction": _FRACTION} if unsaid else parameters


class Memory:
    """Keeps a fraction of every task's training samples (at least `fewest`), or a count of them.

    Which samples are kept depends on the seed given to `keep` alone; a task keeps its samples for good.
    """

    def __init__(self, fraction: float | None, count: int | None, fewest: int = 1) -> None:
        if (fraction is None) == (count is None):
            raise InputError("memory: give either a fraction or a count")
        if fraction is not None and (isinstance(fraction, bool) or not 0 < fraction <= 1):
            raise InputError(f"memory: fraction {fraction} is not between 0 and 1")
        check_whole(fewest, optional=True, count=count)
        self._fraction = fraction
        self._count = count
        self._fewest = fewest
        self._kept: list[tuple[Tensor, Tensor, Tensor]] = []

    def keep(self, experience: Experience, seed: int) -> None:
        """Choose and keep samples of a task that has been learned."""
        training = experience.training
        shuffled = torch.randperm(len(training), generator=torch.Generator().manual_seed(seed))
        self._keep(training.select(shuffled[: self.wanted(len(training))].sort().values))

    def keep_all(self, experience: Experience) -> None:
        """Keep all samples of a task that has been learned, for `wanted` of them to be drawn anew."""
        self._keep(experience.training)

    def wanted(self, number: int) -> int:
        """Return how many of so many samples are to be kept; perhaps more than there are."""
        if self._fraction is None:
            assert self._count is not None
            return self._count
        return max(self._fewest, round(self._fraction * number))

    def has_room(self, sizes: Sequence[int]) -> bool:
        """Return whether all samples of tasks of these sizes would be kept."""
        return all(self.wanted(size) >= size for size in sizes)

    def _keep(self, chosen: Samples) -> None:
        self._kept.append((chosen.ids, chosen.labels, chosen.step))

    def of_tasks(self, pool: Pool) -> list[Samples]:
        """Return what is kept of every past task, in the order they were learned."""
        return [Samples(pool, *columns) for columns in self._kept]

    def __len__(self) -> int:
        """Return how many samples are kept."""
        return sum(len(ids) for ids, *_ in self._kept)

    def state(self) -> dict[str, Any]:
        return {name: [columns[place] for columns in self._kept] for place, name in enumerate(_COLUMNS)}

    def restore(self, state: dict[str, Any]) -> None:
        self._kept = list(zip(*(state[name] for name in _COLUMNS), strict=True))
