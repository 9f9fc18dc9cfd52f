"""The built-in graph of one class per node: an attributed block model with five domains and five periods.

A class is told neither by a node's features alone, which are noisy, nor by its neighbours alone, of which half are of
other classes. What a class looks like differs from domain to domain and drifts from period to period, so that who
learns one domain or period after the other has something to forget.
"""

import numpy as np

from skeleton_cgl.graphs.blocks import (
    MOST_GROUPS,
    MOST_NODES,
    MOST_SEEDS,
    Blocks,
    check_count,
    directions,
    members_of,
    named_groups,
    own_or_any,
    rounded,
    spread,
)
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.seeds import seed_of

_DOMAINS, _PERIODS, _FIRST_YEAR = 5, 5, 2016
_FEATURES = 32
_LINKS_PER_NODE = 5
_SAME_CLASS, _SAME_DOMAIN, _SAME_PERIOD = 0.55, 0.8, 0.6
"""The share of links that stay inside the own class, domain and period for certain."""
_EVERYWHERE, _HERE, _NOW, _NOISE = 0.4, 1.0, 1.0, 0.35
"""How much features tell of the class as it looks in all domains and periods, in this one, by now, and of nothing."""
_TURN = 2 * np.pi / 3
"""How far, as an angle, a class drifts from the first period to the last."""


class SyntheticGraph(GraphSource):
    """nodes, classes: how many; seed: another seed, another graph."""

    def __init__(self, nodes: int = 1500, classes: int = 10, seed: int = 0) -> None:
        check_count("classes", classes, 2, MOST_GROUPS)
        check_count("nodes", nodes, classes * _DOMAINS * _PERIODS, MOST_NODES)
        check_count("seed", seed, 0, MOST_SEEDS)
        self.nodes, self.classes, self.seed = nodes, classes, seed

    def read(self) -> Graph:
        random = np.random.default_rng(seed_of("synthetic graph", self.seed))
        labels, domains, periods = spread(self.nodes, random, self.classes, _DOMAINS, _PERIODS)
        return make_graph(
            "synthetic",
            self._links(labels, domains, periods, random),
            self._features(labels, domains, periods, random),
            labels,
            groups={"domain": named_groups("domain", domains)},
            times=_FIRST_YEAR + periods,
            both_ways=True,
        )

    def _links(
        self, labels: np.ndarray, domains: np.ndarray, periods: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """Return (2, M): links that prefer the own class, domain and period, none of a node to itself."""
        shape = (self.classes, _DOMAINS, _PERIODS)
        blocks = Blocks(members_of(np.ravel_multi_index((labels, domains, periods), shape)), self.nodes, random)
        number = _LINKS_PER_NODE * self.nodes
        ends = blocks.anyone(number, random)
        others = (labels[ends] + random.integers(1, self.classes, number)) % self.classes
        wanted = (
            np.where(random.random(number) < _SAME_CLASS, labels[ends], others),
            own_or_any(domains[ends], _SAME_DOMAIN, _DOMAINS, random),
            own_or_any(periods[ends], _SAME_PERIOD, _PERIODS, random),
        )
        return blocks.linked(ends, np.ravel_multi_index(wanted, shape), random)

    def _features(
        self, labels: np.ndarray, domains: np.ndarray, periods: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """Return (N, F): what a node's class looks like everywhere, here and by now, and noise.

        Here it looks like another class does in another domain, and it drifts to where another class was; a shift of
        its own tells each domain.
        """
        everywhere, here, now = directions(random, 3, self.classes, _FEATURES)
        shift = directions(random, _DOMAINS, _FEATURES)
        angle = (_TURN * periods / (_PERIODS - 1))[:, None]
        following = (labels + 1) % self.classes
        meant = _EVERYWHERE * everywhere[labels]
        meant += _HERE * (here[(labels + domains) % self.classes] + shift[domains])
        meant += _NOW * (np.cos(angle) * now[labels] + np.sin(angle) * now[following])
        return rounded(meant + _NOISE * random.normal(size=meant.shape))
