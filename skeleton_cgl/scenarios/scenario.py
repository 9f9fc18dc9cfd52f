"""The words between data and learners: pools of samples, experiences, queries, and the scenario that hands them out.

A learner sees experiences and queries, never a scenario: the labels of queries stay behind `Scenario.score`. The number
of a sample says nothing about its class (scenarios shuffle their samples), and neither does the order of the queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from skeleton_cgl.scenarios.lessons import Task

SETTINGS = ("class-il", "task-il")
"""class-il: a query reveals nothing; task-il: it reveals its task, and the answer is among that task's classes."""


class Pool(Protocol):
    """All samples of a scenario, without labels; `augmented` if training inputs differ every time."""

    augmented: bool

    def inputs(self, ids: Tensor, backbone: nn.Module, training: bool = False) -> Any:
        """Return what `backbone` takes for the samples `ids`; augmented in training, where the scenario says so."""
        ...


@dataclass(frozen=True)
class Samples:
    """Labelled samples of a pool: ids (N,) and labels (N,), both int64."""

    pool: Pool
    ids: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, rows: Tensor) -> "Samples":
        """Return the samples at `rows`, in that order."""
        return Samples(self.pool, self.ids[rows], self.labels[rows])

    def of_classes(self, classes: Sequence[int]) -> "Samples":
        """Return the samples whose label is among `classes`."""
        return self.select(torch.isin(self.labels, torch.tensor(classes)).nonzero()[:, 0])


def join(parts: Sequence[Samples]) -> Samples:
    """Return the samples of all parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    return Samples(parts[0].pool, torch.cat([part.ids for part in parts]), torch.cat([part.labels for part in parts]))


@dataclass(frozen=True)
class Experience:
    """What a learner may see of one task."""

    task: Task
    training: Samples
    validation: Samples


@dataclass(frozen=True)
class Queries:
    """Samples to be answered, without labels."""

    pool: Pool
    ids: Tensor

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Score:
    """What the answers after one stage were worth: confusion counts (K, K), true class by answered class."""

    test: np.ndarray
    validation: np.ndarray


class Scenario(Protocol):
    """Data, a problem and a setting: hands out experiences, asks queries, scores answers.

    units names the K classes; setting is one of SETTINGS; default_tasks divides the classes in ascending order;
    digest changes with everything that decides what is handed out, asked and scored.
    """

    units: tuple[str, ...]
    setting: str
    default_tasks: tuple[Task, ...]
    digest: str

    def experience(self, task: Task) -> Experience:
        """Return what a learner may see of a task."""
        ...

    def queries(self) -> Queries:
        """Return all queries, test and validation alike, of all classes; they are asked after every stage."""
        ...

    def score(self, answers: Tensor, learned: Sequence[Task]) -> Score:
        """Return the worth of answers (queries, K): a number per class, larger for likelier, after these tasks."""
        ...

    def backbone_arguments(self) -> dict[str, Any]:
        """Return what a backbone's constructor may ask for by name."""
        ...
