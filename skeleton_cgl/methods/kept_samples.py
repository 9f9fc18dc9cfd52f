"""Samples that a method chose to keep: their ids, labels and steps, and none of their contents."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.scenario import Samples, join

_COLUMNS = ("ids", "labels", "step")


class KeptSamples:
    """The kept samples of one class each, in the sequence they came in, as samples of whatever pool is in view."""

    def __init__(self) -> None:
        none = torch.zeros(0, dtype=torch.int64)
        self._columns: tuple[Tensor, Tensor, Tensor] = none, none, none

    def __len__(self) -> int:
        return len(self._columns[0])

    @property
    def ids(self) -> Tensor:
        return self._columns[0]

    def of(self, pool: Pool) -> Samples:
        """Return what is kept as samples of a pool."""
        return Samples(pool, *self._columns)

    def add(self, samples: Samples) -> None:
        """Keep more samples."""
        self.replace(join([self.of(samples.pool), samples]))

    def replace(self, samples: Samples) -> None:
        """Keep these samples and no others."""
        self._columns = samples.ids, samples.labels, samples.step

    def has_room(self, sizes: Sequence[int]) -> bool:  # noqa: ARG002
        """Return false: how many are kept is for the method to say."""
        return False

    def state(self) -> dict[str, Any]:
        return dict(zip(_COLUMNS, self._columns, strict=True))

    def restore(self, state: dict[str, Any]) -> None:
        ids, labels, step = (state[name] for name in _COLUMNS)
        self._columns = ids, labels, step


def most_of_a_class(taught: Sequence[Tensor]) -> int:
    """Return the number of samples of the largest class of any lesson, from the labels of every one."""
    return max(int(labels.bincount(minlength=1).max()) for labels in taught)
