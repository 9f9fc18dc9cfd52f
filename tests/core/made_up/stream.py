"""Nodes in small batches, each seen once; classes come in latent tasks that run into each other at their borders.

The learner is told of no task. It is examined after every few batches.
"""

from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.parts import TRAINING
from skeleton_cgl.scenarios.labelled import score_parts
from skeleton_cgl.scenarios.lessons import Order, Prefix, Segment, UnitKind, as_task, units_named
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.problem import OneClass, Problem, Truth, scopes
from skeleton_cgl.scenarios.scenario import Experience, Facts, GivenBatches, Need, Queries, Samples
from skeleton_cgl.scenarios.settings import ScenarioSettings
from skeleton_cgl.scenarios.views import Surroundings
from skeleton_cgl.seeds import seed_of
from tests.core.community import CLASSES, FEATURES, Community, make_community

BATCH = 4


class StreamSettings(ScenarioSettings):
    version: ClassVar[int] = 2

    kind: str
    every: int = 3

    def make(self, seed: int) -> "StreamScenario":
        return StreamScenario(make_community(seed), self.every, seed)


class StreamScenario:
    def __init__(self, graph: Community, every: int, seed: int) -> None:
        self.units = self.outputs = units_named(f"class {label}" for label in range(CLASSES))
        self.unit_kind: UnitKind = "class"
        self.problem: Problem = OneClass()
        self.facts = Facts("graph", {"features": FEATURES})
        self.default: Order = tuple((label, label + 1) for label in range(0, CLASSES, 2))
        self.offers: frozenset[Need] = frozenset(["nodes", "one class"])
        # Not by how often it is examined: a segment names its own batches.
        self.digest = f"stream {seed}"
        self._every, self._seed = every, seed
        self._pool = Surroundings(graph.edges, graph.features, self_loops=False).whole
        self._labels, self._parts = torch.from_numpy(graph.labels), torch.from_numpy(graph.parts)
        self._queried = (self._parts != TRAINING).nonzero()[:, 0]

    def batches(self, order: Order) -> list[list[int]]:
        """Return a stream: the samples of every task, shuffled, the last and the first of neighbours exchanged."""
        queues = [self._queue(as_task(task)) for task in order]
        for before, after in pairwise(queues):
            before[-1], after[0] = after[0], before[-1]
        flat = [sample for queue in queues for sample in queue]
        return [flat[start : start + BATCH] for start in range(0, len(flat), BATCH)]

    def _queue(self, task: tuple[int, ...]) -> list[int]:
        ids = ((self._parts == TRAINING) & torch.isin(self._labels, torch.tensor(task))).nonzero()[:, 0].numpy()
        return np.random.default_rng(seed_of("queue", self._seed, task)).permutation(ids).tolist()

    def lessons(self, order: Order) -> Prefix:
        batches, every = self.batches(order), self._every
        return tuple(self._segment(batches[start : start + every]) for start in range(0, len(batches), every))

    def _segment(self, batches: list[list[int]]) -> Segment:
        labels = self._labels[[sample for batch in batches for sample in batch]]
        return Segment(as_task(labels.unique().tolist()), tuple(map(tuple, batches)))

    def experience(self, prefix: Prefix) -> Experience:
        segment = prefix[-1]
        assert isinstance(segment, Segment)
        rows = torch.arange(sum(map(len, segment.batches))).split([len(batch) for batch in segment.batches])
        training = self._samples(torch.tensor([sample for batch in segment.batches for sample in batch]))
        nothing = self._samples(torch.tensor([], dtype=torch.int64))
        return Experience(segment, (segment.token,), (), training, nothing, GivenBatches(rows))

    def _samples(self, ids: Tensor) -> Samples:
        return Samples(self._pool, ids, self._labels[ids], torch.full((len(ids),), -1))

    def queries(self, prefix: Prefix) -> Queries:  # noqa: ARG002
        return Queries(self._pool, self._queried, torch.full((len(self._queried),), -1))

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:
        truth = self._labels[self._queried]
        among = scopes([lesson.units for lesson in prefix], CLASSES)[-1].expand(len(truth), -1)
        whole = Truth(truth, truth[:, None] == torch.arange(CLASSES), torch.arange(CLASSES), CLASSES)
        return score_parts(self.problem, answers, whole, among, self._parts[self._queried])
