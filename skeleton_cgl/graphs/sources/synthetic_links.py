"""The built-in graph of classified links: nodes of three types, in communities of five domains, over five periods.

The class of a link is the pair of types of its ends, whichever way it leads; that there is one is likely inside a
community. Features are noisy, and what tells of a community in one domain tells of a type in another and drifts from
period to period, so that who learns one domain or period after the other has something to forget.
"""

import numpy as np

from skeleton_cgl.graphs.blocks import (
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
from skeleton_cgl.graphs.link_set import LinkSet, make_link_set, pair_keys
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.seeds import seed_of

_DOMAINS, _PERIODS, _FIRST_YEAR = 5, 5, 2016
_TYPES, _COMMUNITIES = 3, 4
_FEATURES = 16
_LINKS_PER_NODE = 8
_SAME_TYPE, _SAME_COMMUNITY, _SAME_PERIOD = 0.25, 0.9, 0.4
"""The share of links that stay inside the own type, community and period for certain; the first makes classes even."""
_EVERYWHERE, _HERE, _NOW, _NOISE = 0.4, 1.2, 1.2, 0.3
"""How much features tell of a node's type everywhere, of type and community here, of the type by now, and nothing."""
_TURN = 2 * np.pi / 3
"""How far, as an angle, a type drifts from the first period to the last."""
_PAIRS = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])
"""The class of every pair of types."""


class SyntheticLinks(GraphSource):
    """nodes: how many, with eight links each; seed: another seed, other links."""

    def __init__(self, nodes: int = 500, seed: int = 0) -> None:
        check_count("nodes", nodes, _TYPES * _COMMUNITIES * _DOMAINS * _PERIODS, MOST_NODES)
        check_count("seed", seed, 0, MOST_SEEDS)
        self.nodes, self.seed = nodes, seed

    def read(self) -> LinkSet:
        random = np.random.default_rng(seed_of("synthetic links", self.seed))
        types, communities, domains, periods = spread(self.nodes, random, _TYPES, _COMMUNITIES, _DOMAINS, _PERIODS)
        ends = self._links(types, communities, domains, periods, random)
        sources, targets = ends
        return make_link_set(
            "synthetic-links",
            self.nodes,
            ends,
            directed=True,
            labels=_PAIRS[types[sources], types[targets]],
            features=self._features(types, communities, domains, periods, random),
            groups={"domain": named_groups("domain", domains[sources])},
            times=_FIRST_YEAR + np.maximum(periods[sources], periods[targets]),
        )

    def _links(
        self,
        types: np.ndarray,
        communities: np.ndarray,
        domains: np.ndarray,
        periods: np.ndarray,
        random: np.random.Generator,
    ) -> np.ndarray:
        """Return (2, L): links inside domains that prefer the own community and period, no pair of nodes twice."""
        shape = (_TYPES, _COMMUNITIES, _DOMAINS, _PERIODS)
        blocks = Blocks(
            members_of(np.ravel_multi_index((types, communities, domains, periods), shape)), self.nodes, random
        )
        number = _LINKS_PER_NODE * self.nodes
        found = np.zeros((2, 0), dtype=np.int64)
        while found.shape[1] < number:
            begin = blocks.anyone(number, random)
            wanted = (
                own_or_any(types[begin], _SAME_TYPE, _TYPES, random),
                own_or_any(communities[begin], _SAME_COMMUNITY, _COMMUNITIES, random),
                domains[begin],
                own_or_any(periods[begin], _SAME_PERIOD, _PERIODS, random),
            )
            drawn = blocks.linked(begin, np.ravel_multi_index(wanted, shape), random)
            found = np.concatenate([found, drawn], axis=1)
            _, first = np.unique(pair_keys(found, self.nodes, directed=False), return_index=True)
            found = found[:, np.sort(first)]
        return found[:, :number]

    def _features(
        self,
        types: np.ndarray,
        communities: np.ndarray,
        domains: np.ndarray,
        periods: np.ndarray,
        random: np.random.Generator,
    ) -> np.ndarray:
        """Return (N, F): what a node's type looks like everywhere, with its community here, and by now, and noise."""
        everywhere, now = directions(random, 2, _TYPES, _FEATURES)
        here = directions(random, _COMMUNITIES + _TYPES, _FEATURES)
        shift = directions(random, _DOMAINS, _FEATURES)
        angle = (_TURN * periods / (_PERIODS - 1))[:, None]
        meant = _EVERYWHERE * everywhere[types]
        meant += _HERE * (here[(communities + domains) % len(here)] + shift[domains])
        meant += _HERE * here[(_COMMUNITIES + types + domains) % len(here)]
        meant += _NOW * (np.cos(angle) * now[types] + np.sin(angle) * now[(types + 1) % _TYPES])
        return rounded(meant + _NOISE * random.normal(size=meant.shape))
