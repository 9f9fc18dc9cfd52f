"""What a learner sees of links of which some are hidden: the graph of a lesson, and pairs in it.

A sample is a linked pair, with the number of its link, or stands for a pair without a link, with that number plus the
number of all links: such a pair begins at an end of the link and leads to a node drawn anew for every training batch.
"""

from collections import OrderedDict

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
    """Pairs in a graph as a pool, those without a link drawn anew for every training batch.

    known: the keys of the pairs that the learner was told to be linked, ascending, which are not drawn.
    """

    augmented = True

    def __init__(self, places: Places, draws: "Draws", known: np.ndarray) -> None:
        super().__init__(places)
        self._draws = draws
        self._known = known

    def redrawn(self, ids: Tensor, random: np.random.Generator) -> Tensor:
        """Return (N, 2) the pairs of samples, those without a link drawn anew."""
        return torch.from_numpy(self._draws.pairs(ids.cpu().numpy(), random, self._known))


class Draws:
    """How the pairs of samples are drawn: links (2, L), the unit (L,) of each, and the nodes to lead to by unit."""

    def __init__(self, ends: np.ndarray, nodes: int, unit: np.ndarray, training: np.ndarray, units: int) -> None:
        self._ends = ends
        self._nodes = nodes
        self._unit = unit
        found = [np.unique(ends[:, training & (unit == number)]) for number in range(units)]
        self._there = np.concatenate(found)
        self._starts = np.concatenate([[0], np.cumsum([len(each) for each in found])])

    def pairs(self, ids: np.ndarray, random: np.random.Generator, known: np.ndarray) -> np.ndarray:
        """Return (N, 2): linked pairs as they are, the others drawn, but for those known to be linked."""
        links = self._ends.shape[1]
        rows = ids % links
        found = self._ends[:, rows].copy()
        unlinked = np.flatnonzero(ids >= links)
        found[0, unlinked] = found[random.integers(0, 2, len(unlinked)), unlinked]
        begins, ends = (self._starts[self._unit[rows[unlinked]] + later] for later in (0, 1))
        for _ in range(_ROUNDS):
            found[1, unlinked] = self._there[random.integers(begins, ends)]
            drawn = found[:, unlinked]
            wrong = (drawn[0] == drawn[1]) | is_among(pair_keys(drawn, self._nodes, directed=False), known)
            if not wrong.any():
                break
            unlinked, begins, ends = unlinked[wrong], begins[wrong], ends[wrong]
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
        self._draws = Draws(links.ends, links.nodes, unit, self._training, len(keys))
        self._pools: OrderedDict[str, PairPool] = OrderedDict()

    def training_of(self, units: Task) -> np.ndarray:
        """Return the links that a lesson is learned from, ascending."""
        return np.flatnonzero(self._training & np.isin(self._unit, units))

    def without_link(self, links: np.ndarray) -> np.ndarray:
        """Return the numbers of the samples that stand for pairs without a link, one for each of some links."""
        return links + len(self._unit)

    def pool(self, prefix: Prefix) -> PairPool:
        """Return what a learner sees while it learns the last lesson of a prefix."""
        called = tokens(prefix)
        if called not in self._pools:
            self._pools[called] = self._made(prefix)
            while len(self._pools) > _KEPT:
                self._pools.popitem(last=False)
        return self._pools[called]

    def asked(self, prefix: Prefix, pairs: np.ndarray) -> GraphPool:
        """Return pairs (2, P) as samples 0 to P − 1 on the graph of a prefix."""
        seen = self._links.ends[:, self._seen(prefix)]
        return GraphPool(self._links.places(seen, pairs.T.copy(), np.arange(pairs.shape[1])))

    def _made(self, prefix: Prefix) -> PairPool:
        taught = np.unique(np.concatenate([self.training_of(lesson.units) for lesson in prefix]))
        numbers = np.concatenate([taught, self.without_link(taught)])
        known = self._keys_of(np.concatenate([np.flatnonzero(self._unit < 0), taught]))
        # The same pairs whatever comes later: of a method that remembers samples as they are.
        pairs = self._fixed_pairs(numbers, taught)
        return PairPool(self._links.places(self._links.ends[:, self._seen(prefix)], pairs, numbers), self._draws, known)

    def _fixed_pairs(self, numbers: np.ndarray, taught: np.ndarray) -> np.ndarray:
        """Return (N, 2) the samples as they are when nothing is drawn anew; a unit's depend on its own links alone."""
        pairs = self._links.ends[:, numbers % len(self._unit)].T.copy()
        unit = np.concatenate([np.full(len(taught), -1), self._unit[taught]])
        for each in np.unique(self._unit[taught]):
            random = np.random.default_rng(seed_of("pairs", self._seed, self._keys[each]))
            own = np.flatnonzero(unit == each)
            known = self._keys_of(np.flatnonzero(self._training & (self._unit == each)))
            pairs[own] = self._draws.pairs(numbers[own], random, known)
        return pairs

    def _keys_of(self, links: np.ndarray) -> np.ndarray:
        return np.sort(pair_keys(self._links.ends[:, links], self._links.nodes, directed=False))

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
