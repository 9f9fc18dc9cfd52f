"""One class per node, the same classes in every lesson: domains in any order, or periods with a graph that grows."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.parts import TRAINING, VALIDATION
from skeleton_cgl.scenarios.labelled import score_parts
from skeleton_cgl.scenarios.lessons import Order, Prefix, UnitKind, task_lessons, units_named
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.problem import OneClass, Problem, Truth, scopes
from skeleton_cgl.scenarios.scenario import Experience, Facts, Need, Queries, Samples
from skeleton_cgl.scenarios.settings import ScenarioSettings
from skeleton_cgl.scenarios.views import GraphPool, Surroundings
from tests.core.community import CLASSES, DOMAINS, FEATURES, Community, make_community


class GroupsSettings(ScenarioSettings):
    kind: str
    setting: Literal["domain-il", "time-il"] = "domain-il"

    def make(self, seed: int) -> "GroupsScenario":
        return GroupsScenario(make_community(seed), self.setting, f"groups {seed} {self.setting}")


class GroupsScenario:
    """What a period has not reached is in no graph yet, and cannot be asked about."""

    def __init__(self, graph: Community, setting: str, digest: str) -> None:
        self.units = units_named(f"group {number}" for number in range(DOMAINS))
        self.unit_kind: UnitKind = "domain" if setting == "domain-il" else "period"
        self.outputs = units_named(f"class {label}" for label in range(CLASSES))
        self.problem: Problem = OneClass()
        self.facts = Facts("graph", {"features": FEATURES})
        self.default: Order = tuple((number,) for number in range(DOMAINS))
        self.offers: frozenset[Need] = frozenset(["borders"])
        self.digest = digest
        self._graph = graph
        self._pools = [self._pool(reached + 1) for reached in range(DOMAINS)]
        self._labels, self._groups, self._parts = map(torch.from_numpy, (graph.labels, graph.domains, graph.parts))

    def _pool(self, reached: int) -> GraphPool:
        """Return all nodes on the graph as a prefix has it; nodes keep their numbers."""
        there = np.isin(self._graph.domains, range(reached)) | (self.unit_kind == "domain")
        edges = self._graph.edges[:, there[self._graph.edges].all(axis=0)]
        features = np.where(there[:, None], self._graph.features, np.float32(0))
        return Surroundings(edges, features, self_loops=False).whole

    def lessons(self, order: Order) -> Prefix:
        return task_lessons(order)

    def experience(self, prefix: Prefix) -> Experience:
        (group,) = prefix[-1].units
        own = self._groups == group
        training, validation = (self._samples(prefix, own & (self._parts == part)) for part in (TRAINING, VALIDATION))
        return Experience(prefix[-1], (self.units[group].key,), tuple(range(CLASSES)), training, validation)

    def _samples(self, prefix: Prefix, wanted: Tensor) -> Samples:
        ids = wanted.nonzero()[:, 0]
        return Samples(self._pools[len(prefix) - 1], ids, self._labels[ids], torch.full((len(ids),), -1))

    def queries(self, prefix: Prefix) -> Queries:
        ids = self._asked(prefix)
        return Queries(self._pools[max(len(prefix), 1) - 1], ids, torch.full((len(ids),), -1))

    def _asked(self, prefix: Prefix) -> Tensor:
        there = (self._groups < len(prefix)) | (self.unit_kind == "domain")
        return ((self._parts != TRAINING) & there).nonzero()[:, 0]

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:
        ids = self._asked(prefix)
        among = scopes([range(CLASSES)], CLASSES)[-1].expand(len(ids), -1)
        asked = self._groups[ids, None] == torch.arange(DOMAINS)
        whole = Truth(self._labels[ids], asked, torch.arange(DOMAINS), DOMAINS)
        return score_parts(self.problem, answers, whole, among, self._parts[ids])
