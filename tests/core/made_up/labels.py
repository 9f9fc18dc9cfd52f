"""Any number of labels per node, some not known; labels arrive task by task.

A lesson has the nodes with one of its labels. In class-il they show all labels met so far, and the vector grows; in
task-il those of the lesson alone, and every node is asked about once for every task.
"""

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.parts import TRAINING, VALIDATION
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.labelled import score_parts
from skeleton_cgl.scenarios.lessons import Order, Prefix, Task, UnitKind, task_lessons, units_named
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.problem import ManyLabels, Problem, Truth, scopes
from skeleton_cgl.scenarios.scenario import Experience, Facts, Need, Queries, Samples
from skeleton_cgl.scenarios.settings import ScenarioSettings
from skeleton_cgl.scenarios.views import Surroundings
from tests.core.community import CLASSES, FEATURES, Community, make_community


class LabelsSettings(ClassTasks, ScenarioSettings):
    kind: str

    def make(self, seed: int) -> "LabelsScenario":
        return LabelsScenario(make_community(seed), self, f"labels {seed} {self.setting}")


def labels_of(graph: Community) -> Tensor:
    """Return (N, CLASSES): a node has its class and a label that its domain chooses; one in eight is not known."""
    found = np.zeros((len(graph.labels), CLASSES), dtype=np.float32)
    found[np.arange(len(found)), graph.labels] = 1
    found[np.arange(len(found)), (graph.labels + 1 + graph.domains) % CLASSES] = 1
    found[np.random.default_rng(0).random(found.shape) < 1 / 8] = np.nan
    return torch.from_numpy(found)


class LabelsScenario:
    def __init__(self, graph: Community, tasks: ClassTasks, digest: str) -> None:
        self.units = self.outputs = units_named(f"label {label}" for label in range(CLASSES))
        self.unit_kind: UnitKind = "label"
        self.problem: Problem = ManyLabels()
        self.facts = Facts("graph", {"features": FEATURES})
        self.default = tasks.divide([unit.name for unit in self.units])
        self._reveals = tasks.setting == "task-il"
        self.offers: frozenset[Need] = frozenset(["borders", "revealed task"] if self._reveals else ["borders"])
        self.digest = digest
        self._pool = Surroundings(graph.edges, graph.features, self_loops=False).whole
        self._labels, self._parts = labels_of(graph), torch.from_numpy(graph.parts)
        self._queried = (self._parts != TRAINING).nonzero()[:, 0]

    def lessons(self, order: Order) -> Prefix:
        return task_lessons(order)

    def experience(self, prefix: Prefix) -> Experience:
        task = prefix[-1].units
        shown = task if self._reveals else tuple(label for lesson in prefix for label in lesson.units)
        step = len(prefix) - 1 if self._reveals else -1
        training, validation = (self._samples(task, shown, part, step) for part in (TRAINING, VALIDATION))
        return Experience(prefix[-1], tuple(self.units[label].key for label in task), task, training, validation)

    def _samples(self, task: Task, shown: Task, part: int, step: int) -> Samples:
        has_one = (self._labels[:, list(task)] == 1).any(dim=1)
        ids = ((self._parts == part) & has_one).nonzero()[:, 0]
        labels = torch.full((len(ids), CLASSES), torch.nan)
        labels[:, list(shown)] = self._labels[ids][:, list(shown)]
        return Samples(self._pool, ids, labels, torch.full((len(ids),), step))

    def _blocks(self, prefix: Prefix) -> list[tuple[int, Task]]:
        """Return what is asked about every node: the step revealed, and the labels it is about."""
        if not self._reveals:
            return [(-1, tuple(range(CLASSES)))]
        learned = [lesson.units for lesson in prefix]
        left = tuple(label for label in range(CLASSES) if all(label not in units for units in learned))
        return [*enumerate(learned), *([(-1, left)] if left else [])]

    def queries(self, prefix: Prefix) -> Queries:
        steps = [step for step, _ in self._blocks(prefix)]
        return Queries(
            self._pool, self._queried.repeat(len(steps)), torch.tensor(steps).repeat_interleave(len(self._queried))
        )

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:
        queries = self.queries(prefix)
        about = torch.zeros(len(queries), CLASSES, dtype=torch.bool)
        for number, (_, asked) in enumerate(self._blocks(prefix)):
            about[number * len(self._queried) : (number + 1) * len(self._queried), list(asked)] = True
        labels = self._labels[queries.ids]
        whole = Truth(labels, about & ~labels.isnan(), torch.arange(CLASSES), CLASSES)
        among = scopes([lesson.units for lesson in prefix], CLASSES)[queries.step]
        return score_parts(self.problem, answers, whole, among, self._parts[queries.ids])
