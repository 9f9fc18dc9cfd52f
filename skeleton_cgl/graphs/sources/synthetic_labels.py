"""The built-in graph of many labels per node: one to four that overlap, in five domains.

Labels that come together in one domain do not in another, and neither the features of a node nor its neighbours tell
all of them. What a label looks like differs from domain to domain, and from nodes that have it alone to those that have
others too, so that who learns some labels after others has something to forget.
"""

import numpy as np

from skeleton_cgl.graphs.blocks import (
    MOST_GROUPS,
    MOST_NODES,
    MOST_SEEDS,
    Blocks,
    check_count,
    directions,
    named_groups,
    own_or_any,
    rounded,
    spread,
)
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.seeds import seed_of

_DOMAINS = 5
_FEATURES = 32
_LINKS_PER_NODE = 4
_SAME_LABEL, _SAME_DOMAIN = 0.8, 0.8
"""The share of links that stay with one of the own labels, and inside the own domain, for certain."""
_NUMBERS = (0.5, 0.3, 0.15, 0.05)
"""The share of nodes with one, two, three and four labels."""
_TOGETHER = 3.0
"""How far the logarithms are apart of how likely labels come together in a domain."""
_EVERYWHERE, _HERE, _NOISE = 0.35, 1.0, 0.15
"""How much features tell of a label as it looks everywhere, as it looks here and in this company, and of nothing."""


class SyntheticLabels(GraphSource):
    """nodes, labels: how many; seed: another seed, another graph."""

    def __init__(self, nodes: int = 1500, labels: int = 10, seed: int = 0) -> None:
        check_count("labels", labels, len(_NUMBERS), MOST_GROUPS)
        check_count("nodes", nodes, labels * _DOMAINS, MOST_NODES)
        check_count("seed", seed, 0, MOST_SEEDS)
        self.nodes, self.labels, self.seed = nodes, labels, seed

    def read(self) -> Graph:
        random = np.random.default_rng(seed_of("synthetic labels", self.seed))
        first, domains = spread(self.nodes, random, self.labels, _DOMAINS)
        labels = self._labels(first, domains, random)
        return make_graph(
            "synthetic-labels",
            self._links(labels, domains, random),
            self._features(labels, domains, random),
            labels,
            groups={"domain": named_groups("domain", domains)},
            both_ways=True,
        )

    def _labels(self, first: np.ndarray, domains: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return (N, K): every node's first label, and more, those likelier that come together with it."""
        liking = _TOGETHER * random.random((_DOMAINS, self.labels, self.labels))
        # The largest of logarithms of weights plus Gumbel noise are drawn without replacement by these weights.
        drawn = liking[domains, first] + random.gumbel(size=(self.nodes, self.labels))
        drawn[np.arange(self.nodes), first] = np.inf
        number = 1 + random.choice(len(_NUMBERS), self.nodes, p=_NUMBERS)
        place = np.argsort(np.argsort(-drawn, axis=1), axis=1)
        return (place < number[:, None]).astype(np.uint8)

    def _links(self, labels: np.ndarray, domains: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return (2, M): links that prefer one of a node's labels, and its domain; none of a node to itself."""
        shape = (self.labels, _DOMAINS)
        members = [np.flatnonzero(labels[:, label] & (domains == domain)) for label, domain in np.ndindex(*shape)]
        blocks = Blocks(members, self.nodes, random)
        ends = blocks.anyone(_LINKS_PER_NODE * self.nodes, random)
        shared = np.argmax(labels[ends] * random.random((len(ends), self.labels)), axis=1)
        wanted = (
            own_or_any(shared, _SAME_LABEL, self.labels, random),
            own_or_any(domains[ends], _SAME_DOMAIN, _DOMAINS, random),
        )
        return blocks.linked(ends, np.ravel_multi_index(wanted, shape), random)

    def _features(self, labels: np.ndarray, domains: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return (N, F): the sum of what a node's labels look like, everywhere and in its domain, and noise.

        In its domain, and again in the company of other labels, a label looks like another one does elsewhere; shifts
        of their own tell domains and company.
        """
        everywhere, here = directions(random, 2, self.labels, _FEATURES)
        shift = directions(random, _DOMAINS, 2, _FEATURES)
        company = (labels.sum(axis=1) > 1).astype(np.int64)
        meant = _EVERYWHERE * labels @ everywhere + _HERE * shift[domains, company]
        for domain, others in np.ndindex(_DOMAINS, 2):
            inside = (domains == domain) & (company == others)
            turned = np.roll(here, -domain - others * (self.labels // 2), axis=0)
            meant[inside] += _HERE * labels[inside] @ turned
        return rounded(meant + _NOISE * random.normal(size=meant.shape))
