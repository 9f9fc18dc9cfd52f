"""What scenarios have in common whose samples have one class each: experiences, queries and scores by a split."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.evaluator import check_shape, confusion
from skeleton_cgl.scenarios.lessons import Task, as_task
from skeleton_cgl.scenarios.scenario import SETTINGS, Experience, Pool, Queries, Samples, Score


class LabelledSamples:
    """Samples of a pool with their labels (N,) and the part (N,) of the split each is in; other parts are unused.

    The classes are divided in ascending order into tasks of `classes_per_task`.
    """

    def __init__(
        self,
        pool: Pool,
        labels: Tensor,
        parts: Tensor,
        units: tuple[str, ...],
        setting: str,
        classes_per_task: int,
    ) -> None:
        if setting not in SETTINGS:
            raise InputError(f"scenario: setting {setting!r} is not one of {', '.join(SETTINGS)}")
        self.units = units
        self.setting = setting
        self.default_tasks = _divide_classes(len(units), classes_per_task)
        self._pool = pool
        self._labels = labels
        self._parts = parts
        self._queries = ((parts == TEST) | (parts == VALIDATION)).nonzero()[:, 0]

    def experience(self, task: Task) -> Experience:
        """Return what a learner may see of a task; refuse unknown classes."""
        task = as_task(task)
        if task[0] < 0 or task[-1] >= len(self.units):
            raise InputError(f"task {task}: classes are 0–{len(self.units) - 1}")
        return Experience(task, self._samples(task, TRAINING), self._samples(task, VALIDATION))

    def _samples(self, task: Task, part: int) -> Samples:
        ids = ((self._parts == part) & torch.isin(self._labels, torch.tensor(task))).nonzero()[:, 0]
        return Samples(self._pool, ids, self._labels[ids])

    def queries(self) -> Queries:
        """Return all queries."""
        return Queries(self._pool, self._queries)

    def score(self, answers: Tensor, learned: Sequence[Task]) -> Score:
        """Return the confusion counts of the answers after the tasks `learned`."""
        check_shape(answers, len(self._queries), len(self.units))
        return Score(*(self._counts(answers, part, learned) for part in (TEST, VALIDATION)))

    def _counts(self, answers: Tensor, part: int, learned: Sequence[Task]) -> np.ndarray:
        rows = self._parts[self._queries] == part
        truth = self._labels[self._queries][rows]
        return confusion(answers[rows], truth, learned, len(self.units), self.setting)


def _divide_classes(classes: int, per_task: int) -> tuple[Task, ...]:
    if per_task < 1 or classes % per_task:
        raise InputError(f"scenario: classes_per_task: {classes} classes do not divide into tasks of {per_task}")
    return tuple(tuple(range(first, first + per_task)) for first in range(0, classes, per_task))
