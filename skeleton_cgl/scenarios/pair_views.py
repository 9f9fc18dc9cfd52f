"""What a learner sees of links of which some are hidden: the graph of a lesson, and pairs in it.

A sample is a linked pair, with twice the number of its link, or stands for a pair without a link, with the number after
it: such a pair begins at an end of the link and leads to a node drawn anew for every training batch. So numbers do not
depend on how many links are hidden, or to come.
"""

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.link_set import pair_keys
from skeleton_cgl.parts import TRAINING
from skeleton_cgl.scenarios.connections import Connections
from skeleton_cgl.scenarios.lessons import Prefix, Task, tokens
from skeleton_cgl.scenarios.link_pairs import is_among
from skeleton_cgl.scenarios.views import GraphPool
from skeleton_cgl.seeds import seed_of

_KEPT = 3
"""So many prefixes are remembered: of the lesson being learned, and of those tried before it."""
_ROUNDS = 20
"""So often is drawn anew what turned out to be linked."""


class PairPool(GraphPool):
    """Pairs in a graph as a pool, those without a link drawn anew for every training batch."""

    augmented = True

    def __init__(self, places: Places, draws: "Draws") -> None:
        super().__init__(places)
        self._pairs = places
        self._draws = draws

    def redrawn(self, ids: Tensor, random: np.random.Generator) -> Tensor:
        """Return (N, 2) the pairs of samples, those without a link drawn anew."""
        return torch.from_numpy(self._draws.pairs(ids.cpu().numpy(), random))

    def drawn(self, ids: Tensor, random: np.random.Generator) -> Places:
        return self._pairs.asking(self.redrawn(ids, random))


@dataclass(frozen=True, eq=False)
class Draws:
    """How the pairs of samples are drawn. It goes to the learner, and so holds links that were taught and no others.

    links (T,), ascending: their numbers. ends (2, T), which are among so many nodes. there (R,): the nodes to lead to,
    unit by unit; begins and stops (T,): where those of a link's unit are among them. known, ascending: the keys of the
    pairs that the learner was told to be linked, which are not drawn.
    """

    links: np.ndarray
    ends: np.ndarray
    nodes: int
    there: np.ndarray
    begins: np.ndarray
    stops: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, links: np.ndarray, ends: np.ndarray, unit: np.ndarray, nodes: int, known: np.ndarray) -> "Draws":
        """Return draws for links (T,) with their ends (2, T), each of a unit (T,)."""
        units, place = np.unique(unit, return_inverse=True)
        found = [np.unique(ends[:, unit == each]) for each in units]
        starts = np.concatenate([[0], np.cumsum([len(each) for each in found])])
        return cls(links, ends, nodes, np.concatenate(found), starts[place], starts[place + 1], known)

    def pairs(self, ids: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return (N, 2): linked pairs as they are, the others drawn, but for those known to be linked."""
        rows = np.searchsorted(self.links, ids // 2)
        found = self.ends[:, rows]
        unlinked = np.flatnonzero(ids % 2)
        found[0, unlinked] = found[random.integers(0, 2, len(unlinked)), unlinked]
        begins, stops = self.begins[rows[unlinked]], self.stops[rows[unlinked]]
        for _ in range(_ROUNDS):
            found[1, unlinked] = self.there[random.integers(begins, stops)]
            drawn = found[:, unlinked]
            wrong = (drawn[0] == drawn[1]) | is_among(pair_keys(drawn, self.nodes, directed=False), self.known)
            if not wrong.any():
                break
            unlinked, begins, stops = unlinked[wrong], begins[wrong], stops[wrong]
        return found.T.copy()


class PairViews:
    """The graphs of all prefixes of lessons, and the pairs that are asked about in them.

    unit (L,) of every link, −1 for the base, which is always there; parts (L,): only links for training are ever seen.
    calendar: units are periods, of which a share of each joins the base for later ones. so_far: lessons see the links
    of those before them. shared: they see those of all, to come or not.
    """

    def __init__(
        self,
        links: Connections,
        unit: np.ndarray,
        parts: np.ndarray,
        keys: tuple[str, ...],
        seed: int,
        calendar: bool,
        joins_base: float,
        so_far: bool,
        shared: bool,
    ) -> None:
        self._links = links
        self._unit = unit
        self._training = parts == TRAINING
        self._keys = keys
        self._seed = seed
        self._calendar, self._joins_base, self._so_far, self._shared = calendar, joins_base, so_far, shared
        self._pools: OrderedDict[str, PairPool] = OrderedDict()

    def training_of(self, units: Task) -> np.ndarray:
        """Return the links that a lesson is learned from, ascending."""
        return np.flatnonzero(self._training & np.isin(self._unit, units))

    def numbers(self, links: np.ndarray) -> np.ndarray:
        """Return the numbers of the samples that are links (S,), then of those that stand for pairs without one."""
        return np.concatenate([2 * links, 2 * links + 1])

    def pool(self, prefix: Prefix) -> PairPool:
        """Return what a learner sees while it learns the last lesson of a prefix."""
        called = tokens(prefix)
        if called not in self._pools:
            self._pools[called] = self._made(prefix)
            while len(self._pools) > _KEPT:
                self._pools.popitem(last=False)
        return self._pools[called]

    def asked(self, prefix: Prefix, pairs: np.ndarray, numbers: np.ndarray) -> GraphPool:
        """Return pairs (2, P) as samples of these ascending numbers (P,) on the graph of a prefix."""
        seen = self._links.ends[:, self._seen(prefix)]
        return GraphPool(self._links.places(seen, pairs.T.copy(), numbers))

    def _made(self, prefix: Prefix) -> PairPool:
        draws = self._draws(prefix)
        numbers = np.sort(self.numbers(draws.links))
        places = self._links.places(self._links.ends[:, self._seen(prefix)], self._fixed_pairs(prefix), numbers)
        return PairPool(places, draws)

    def _draws(self, prefix: Prefix) -> Draws:
        """Return how the pairs of all lessons of a prefix are drawn."""
        taught = self.training_of(tuple(unit for lesson in prefix for unit in lesson.units))
        known = np.concatenate([np.flatnonzero(self._unit < 0), taught])
        ends = self._links.ends
        keys = np.sort(pair_keys(ends[:, known], self._links.nodes, directed=False))
        return Draws.of(taught, ends[:, taught], self._unit[taught], self._links.nodes, keys)

    def _fixed_pairs(self, prefix: Prefix) -> np.ndarray:
        """Return (N, 2) the samples of a prefix, ascending, as they are when nothing is drawn anew.

        Those of a lesson are drawn by what was known when it came, and stay the same whatever comes later: of a method
        that remembers samples as they are.
        """
        links, pairs = [], []
        for step, lesson in enumerate(prefix):
            draws = self._draws(prefix[: step + 1])
            for unit in lesson.units:
                own = self.training_of((unit,))
                random = np.random.default_rng(seed_of("pairs", self._seed, self._keys[unit]))
                links.append(own)
                pairs.append(draws.pairs(np.sort(self.numbers(own)), random).reshape(-1, 4))
        found: np.ndarray = np.concatenate(pairs)[np.argsort(np.concatenate(links))].reshape(-1, 2)
        return found

    def _seen(self, prefix: Prefix) -> np.ndarray:
        """Return the links of the graph of a prefix, ascending."""
        if self._shared:
            return np.flatnonzero((self._unit < 0) | self._training)
        earlier = [unit for lesson in prefix[:-1] for unit in lesson.units]
        there = [np.flatnonzero(self._unit < 0), self.training_of(prefix[-1].units)]
        if self._calendar:
            there += [self._joined(unit) for unit in earlier]
        elif self._so_far:
            there.append(self.training_of(tuple(earlier)))
        return np.unique(np.concatenate(there))

    def _joined(self, unit: int) -> np.ndarray:
        """Return the links of a period that are base for later ones."""
        links = self.training_of((unit,))
        random = np.random.default_rng(seed_of("joins base", self._seed, self._keys[unit]))
        return random.permutation(links)[: round(self._joins_base * len(links))]
