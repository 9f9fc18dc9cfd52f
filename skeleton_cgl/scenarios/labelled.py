"""What scenarios have in common whose samples have one class each: lessons, experiences, queries, scores by a split."""

import hashlib
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import NAMES, TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.lessons import Order, Prefix, Task, UnitKind, as_task, task_lessons, units_named
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.problem import OneClass, Problem, Truth, scopes
from skeleton_cgl.scenarios.scenario import Experience, Facts, Need, Queries, Samples, offers_in


class LabelledSamples:
    """Class- or task-incremental learning of samples with one class each: units and outputs are the classes.

    labels (N,) and the part (N,) of the split each sample of the pool is in; samples of classes that are in no task are
    unused. described: all else that decides what is handed out, asked and scored. offered: what methods may need.
    """

    unit_kind: UnitKind = "class"

    def __init__(
        self,
        pool: Pool,
        labels: np.ndarray,
        parts: np.ndarray,
        names: tuple[str, ...],
        tasks: ClassTasks,
        facts: Facts,
        described: bytes,
        offered: Iterable[Need] = ("one class",),
    ) -> None:
        self.units = self.outputs = units_named(names)
        self.problem: Problem = OneClass()
        self.facts = facts
        self.default = tasks.divide(names)
        self._reveals = tasks.setting == "task-il"
        self.offers = offers_in(tasks.setting, offered)
        self._pool = pool
        self._labels = torch.from_numpy(labels)
        used = np.where(np.isin(labels, [label for task in self.default for label in task]), parts, UNUSED)
        self._parts = torch.from_numpy(used)
        self.digest = hashlib.sha256(described + used.tobytes()).hexdigest()
        self._queries = ((self._parts == TEST) | (self._parts == VALIDATION)).nonzero()[:, 0]

    def lessons(self, order: Order) -> Prefix:
        """Return the tasks of an order; refuse unknown classes."""
        return task_lessons(tuple(self._known(task) for task in order))

    def _known(self, task: Task) -> Task:
        task = as_task(task)
        if task[0] < 0 or task[-1] >= len(self.units):
            raise InputError(f"task {task}: classes are 0–{len(self.units) - 1}")
        return task

    def experience(self, prefix: Prefix) -> Experience:
        """Return what a learner may see of the last task of a prefix."""
        task = self._known(prefix[-1].units)
        step = len(prefix) - 1 if self._reveals else -1
        return Experience(
            lesson=prefix[-1],
            keys=tuple(self.units[label].key for label in task),
            outputs=task,
            training=self._samples(task, TRAINING, step),
            validation=self._samples(task, VALIDATION, step),
        )

    def _samples(self, task: Task, part: int, step: int) -> Samples:
        ids = ((self._parts == part) & torch.isin(self._labels, torch.tensor(task))).nonzero()[:, 0]
        return Samples(self._pool, ids, self._labels[ids], torch.full((len(ids),), step))

    def queries(self, prefix: Prefix) -> Queries:
        """Return all queries; in task-il a query reveals its task, if that was learned."""
        # A copy: whoever is asked may write into it.
        return Queries(self._pool, self._queries.clone(), self._steps(prefix))

    def _steps(self, prefix: Prefix) -> Tensor:
        by_class = torch.full((len(self.units),), -1)
        if self._reveals:
            for step, lesson in enumerate(prefix):
                by_class[list(lesson.units)] = step
        return by_class[self._labels[self._queries]]

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:
        """Return the accuracies of the answers after a prefix, of test and of validation."""
        truth = self._labels[self._queries]
        among = scopes([lesson.units for lesson in prefix], len(self.outputs))[self._steps(prefix)]
        asked = torch.nn.functional.one_hot(truth, len(self.units)).bool()
        whole = Truth(truth, asked, torch.arange(len(self.units)), len(self.units))
        return score_parts(self.problem, answers, whole, among, self._parts[self._queries])


def score_parts(problem: Problem, answers: Tensor, truth: Truth, among: Tensor, parts: Tensor) -> tuple[Measure, ...]:
    """Return the worth of answers (Q, O) on test and on validation, from the part (Q,) of every query."""
    check_shape(answers, *among.shape)
    measures: list[Measure] = []
    for part in (TEST, VALIDATION):
        rows = parts == part
        measures += problem.measure(answers[rows], truth.of(rows), among[rows], NAMES[part])
    return tuple(measures)


def check_shape(answers: Tensor, queries: int, outputs: int) -> None:
    """Refuse answers that are not floating-point numbers of shape (queries, outputs)."""
    if tuple(answers.shape) != (queries, outputs) or not answers.is_floating_point():
        raise InputError(
            f"answers: expected floating-point numbers of shape {(queries, outputs)} (queries, outputs), "
            f"found {answers.dtype} of shape {tuple(answers.shape)}"
        )
