"""Whether two nodes of a domain are linked; the domains arrive one by one.

The graph has the links between domains alone. Those within a domain are hidden; some are asked about, among as many
pairs of the domain that are not linked.
"""

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.inputs import Inputs
from skeleton_cgl.scenarios.labelled import score_parts
from skeleton_cgl.scenarios.lessons import Order, Prefix, UnitKind, task_lessons, units_named
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.problem import LinkExists, Problem, Truth
from skeleton_cgl.scenarios.scenario import Experience, Facts, Need, Queries, Samples
from skeleton_cgl.scenarios.settings import ScenarioSettings
from tests.core.community import DOMAINS, FEATURES, Community, make_community

K, LINKS = 1, 15
_PARTS = (TRAINING, TRAINING, TRAINING, VALIDATION, TEST)


class LinksSettings(ScenarioSettings):
    kind: str

    def make(self, seed: int) -> "LinksScenario":
        return LinksScenario(make_community(seed), seed)


class PairPool:
    augmented = False

    def __init__(self, digest: str, places: Places) -> None:
        self.digest = digest
        self._places = places

    def whole(self) -> Places:
        return self._places

    def drawn(self, ids: Tensor, random: np.random.Generator) -> Inputs:  # noqa: ARG002
        return self._places.rows(ids)


class LinksScenario:
    def __init__(self, graph: Community, seed: int) -> None:
        self.units = units_named(f"domain {number}" for number in range(DOMAINS))
        self.unit_kind: UnitKind = "domain"
        self.outputs = units_named(["link"])
        self.problem: Problem = LinkExists(K)
        self.facts = Facts("graph", {"features": FEATURES}, join="product")
        self.default: Order = tuple((number,) for number in range(DOMAINS))
        self.offers: frozenset[Need] = frozenset(["borders"])
        self.digest = f"links {seed}"
        pairs, linked, parts = _pairs(graph, seed)
        self._labels, self._parts = torch.from_numpy(linked), torch.from_numpy(parts)
        self._domains = torch.from_numpy(graph.domains[pairs[:, 0]])
        self._queried = (self._parts != TRAINING).nonzero()[:, 0]
        between = graph.domains[graph.edges[0]] != graph.domains[graph.edges[1]]
        seen = graph.edges[:, between | (graph.edges[0] == graph.edges[1])]
        places = Places.of(seen, graph.features, pairs, self_loops=False)
        self._pool = PairPool(self.digest, places)

    def lessons(self, order: Order) -> Prefix:
        return task_lessons(order)

    def experience(self, prefix: Prefix) -> Experience:
        (domain,) = prefix[-1].units
        training, validation = (self._samples(domain, part) for part in (TRAINING, VALIDATION))
        return Experience(prefix[-1], (self.units[domain].key,), (0,), training, validation)

    def _samples(self, domain: int, part: int) -> Samples:
        ids = ((self._domains == domain) & (self._parts == part)).nonzero()[:, 0]
        return Samples(self._pool, ids, self._labels[ids], torch.full((len(ids),), -1))

    def queries(self, prefix: Prefix) -> Queries:  # noqa: ARG002
        return Queries(self._pool, self._queried, torch.full((len(self._queried),), -1))

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:  # noqa: ARG002
        asked = self._domains[self._queried, None] == torch.arange(DOMAINS)
        whole = Truth(self._labels[self._queried], asked, torch.arange(DOMAINS), DOMAINS)
        among = torch.ones(len(self._queried), 1, dtype=torch.bool)
        return score_parts(self.problem, answers, whole, among, self._parts[self._queried])


def _pairs(graph: Community, seed: int) -> tuple[np.ndarray, ...]:
    """Return pairs (P, 2) within domains in a random sequence, whether each is linked, and the part each is in."""
    random = np.random.default_rng(seed)
    linked = np.zeros((len(graph.labels),) * 2, dtype=bool)
    linked[tuple(graph.edges)] = True
    within = np.triu(graph.domains[:, None] == graph.domains, 1)
    chosen = []
    for domain in range(DOMAINS):
        for which in (linked, ~linked):
            own = np.argwhere(within & (graph.domains == domain) & which)
            chosen.append(random.permutation(own)[:LINKS])
    parts = np.tile(_PARTS, len(chosen) * LINKS // len(_PARTS))
    shuffled = random.permutation(len(parts))
    pairs = np.concatenate(chosen)[shuffled]
    return pairs, linked[tuple(pairs.T)].astype(np.int64), parts[shuffled]
