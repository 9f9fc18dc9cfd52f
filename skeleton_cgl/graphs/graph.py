"""One value for a graph whose nodes are classified, whatever file it came from.

Letters: N nodes, E edges, F features, K classes or labels.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from skeleton_cgl.graphs.items import (
    NO_CLASS,
    Features,
    Groups,
    ItemKind,
    Refusing,
    checked_ends,
    checked_features,
    checked_items,
    digest_of,
    feature_arrays,
    item_arrays,
)

__all__ = ["NO_CLASS", "Features", "Graph", "Groups", "make_graph"]


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph whose nodes are to be classified; `make_graph` makes one, and refuses what is none.

    edges (2, E) from sources to targets, each once, sorted by target and then by source; a link without a direction
    stands in both. features (N, F). The rest is what all `Items` have, a node being one.
    """

    item: ClassVar[ItemKind] = "node"

    name: str
    edges: np.ndarray
    features: Features
    labels: np.ndarray
    classes: tuple[str, ...]
    groups: Mapping[str, Groups] = field(default_factory=lambda: MappingProxyType({}))
    times: np.ndarray | None = None
    split: np.ndarray | None = None

    def __len__(self) -> int:
        return self.features.shape[0]

    @property
    def many_labels(self) -> bool:
        """Whether a node may have several labels."""
        return self.labels.ndim == 2

    @cached_property
    def digest(self) -> str:
        """A digest of everything but the name."""
        return digest_of(self._arrays())

    def _arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        yield "edges", self.edges
        yield from feature_arrays(self.features)
        yield from item_arrays(self)


def make_graph(
    name: str,
    edges: np.ndarray,
    features: Features,
    labels: np.ndarray,
    classes: tuple[str, ...] | None = None,
    groups: Mapping[str, Groups] | None = None,
    times: np.ndarray | None = None,
    split: np.ndarray | None = None,
    both_ways: bool = False,
    where: str = "graph",
) -> Graph:
    """Return a graph of what a reader found; both_ways: every edge is given once and stands for both directions.

    Edges given twice count once. Refused, with the field and beginning with `where`: arrays of other shapes or lengths,
    ends of edges that are no node, features that are not finite, labels that are no class, a label matrix of other than
    0 and 1, a class without a node, groups and parts that there are not.
    """
    refuse = Refusing(where)
    features = checked_features(features, refuse)
    nodes = features.shape[0]
    items = checked_items(nodes, labels, classes, groups, times, split, refuse)
    sources, targets = checked_ends("edges", np.asarray(edges), nodes, refuse)
    if both_ways:
        sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    unique = np.unique(targets * nodes + sources)
    return Graph(name, np.stack([unique % nodes, unique // nodes]), features, **items)
