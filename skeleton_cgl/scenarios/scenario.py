"""The words between data and learners: samples, experiences, queries, and the scenario that hands them out.

A learner sees experiences and queries, never a scenario: the truth about queries stays behind `Scenario.score`. The
number of a sample says nothing about its class (scenarios shuffle their samples), and neither does the order of the
queries. What a sample or a query reveals of its lesson is its `step`: the lesson's place in the prefix, −1 for nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.lessons import Lesson, Order, Prefix, Unit, UnitKind
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.problem import Problem

Need = Literal[
    "borders",
    "revealed task",
    "new classes",
    "one class",
    "graphs",
    "nodes",
    "edge attention",
    "aggregated features",
    "gates",
    "evolving weights",
]
"""What a method may need: lessons with a beginning and an end; queries that reveal their task; lessons that bring
classes or labels of their own; samples of one class each; samples in graphs with features of nodes, or that are nodes
of one; of a backbone, attention of edges, embeddings of features aggregated beforehand, gates of units, or weights that
evolve.
"""

_OF_SETTING: dict[str, tuple[Need, ...]] = {
    "class-il": ("new classes",),
    "task-il": ("new classes", "revealed task"),
    "domain-il": (),
    "time-il": (),
}


def offers_in(setting: str, of_kind: Iterable[Need]) -> frozenset[Need]:
    """Return what methods may need in a setting, of a kind of scenario that offers this in all of them."""
    return frozenset(["borders", *_OF_SETTING[setting], *of_kind])


def offers_on_stream(offered: Iterable[Need]) -> frozenset[Need]:
    """Return what is left, on a stream, of what a scenario offers: no borders, no tasks, no lessons' own classes."""
    of_samples: frozenset[Need] = frozenset(["one class", "graphs", "nodes"])
    return of_samples.intersection(offered)


@dataclass(frozen=True)
class Samples:
    """Labelled samples of a pool: ids (N,), labels (N,) or (N, O), and the step (N,) each reveals.

    sizes: where samples of several origins were joined, how many are of each; none where they were picked since.
    """

    pool: Pool
    ids: Tensor
    labels: Tensor
    step: Tensor
    sizes: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, rows: Tensor) -> "Samples":
        """Return the samples at `rows`, in that order."""
        return Samples(self.pool, self.ids[rows], self.labels[rows], self.step[rows])


def join(parts: Sequence[Samples]) -> Samples:
    """Return the samples of all parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    columns = ("ids", "labels", "step")
    ids, labels, step = (torch.cat([getattr(part, column) for part in parts]) for column in columns)
    return Samples(parts[0].pool, ids, labels, step, sizes=tuple(map(len, parts)))


class Pace(Protocol):
    """How often and in which batches the samples of a lesson are gone through."""

    def epochs(self, samples: Samples) -> Iterator[Iterator[Tensor]]:
        """Yield every epoch as the rows (B,) of its batches; the same rows again are the same tensor."""
        ...


@dataclass(frozen=True)
class GivenBatches:
    """One pass over batches given by row: a stream."""

    batches: tuple[Tensor, ...]

    def epochs(self, samples: Samples) -> Iterator[Iterator[Tensor]]:  # noqa: ARG002
        yield iter(self.batches)


@dataclass(frozen=True)
class Experience:
    """What a learner may see of one lesson.

    keys: names of what is taught, for seeds. outputs: what the head needs for it, which is also what a sample is
    answered among that reveals this lesson. pace: the lesson's own, where it is a piece of a stream, instead of the
    training recipe's. Such a lesson has no borders: a method hears of its steps alone, and the head meets an output
    when a sample first tells of it, so that what is learned does not depend on where a stream is cut into lessons.
    """

    lesson: Lesson
    keys: tuple[str, ...]
    outputs: tuple[int, ...]
    training: Samples
    validation: Samples
    pace: Pace | None = None


@dataclass(frozen=True)
class Queries:
    """Samples to be answered, without labels: ids (Q,) and the step (Q,) each reveals."""

    pool: Pool
    ids: Tensor
    step: Tensor

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Facts:
    """What a backbone may know of the data: what it is given, and what its constructor may ask for by name.

    join: how the embeddings of a query with several places become one.
    """

    takes: Literal["clips", "graph"]
    offered: Mapping[str, Any]
    join: Literal["mean", "product"] = "mean"


class Scenario(Protocol):
    """Data, a problem and a setting: hands out experiences, asks queries, scores answers, all by the prefix.

    units are what orders arrange, and unit_kind what they are: classes and labels can be mixed anew into tasks, domains
    only change places, and periods have one order, the calendar's. outputs are what the head has; default is the order
    of the default tasks; offers is what methods may need; digest changes with everything that decides what is handed
    out, asked and scored.
    """

    units: tuple[Unit, ...]
    unit_kind: UnitKind
    outputs: tuple[Unit, ...]
    problem: Problem
    facts: Facts
    default: Order
    offers: frozenset[Need]
    digest: str

    def lessons(self, order: Order) -> Prefix:
        """Return the lessons an order means; refuse one that does not fit."""
        ...

    def experience(self, prefix: Prefix) -> Experience:
        """Return what a learner may see of the last lesson of a prefix."""
        ...

    def queries(self, prefix: Prefix) -> Queries:
        """Return all queries, test and validation alike, of all units, as they are asked after a prefix."""
        ...

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:
        """Return the worth of answers (Q, outputs), larger for likelier, after a prefix; refuse another shape."""
        ...
