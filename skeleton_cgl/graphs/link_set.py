"""One value for a graph whose links are classified, or some of them hidden and asked for.

Letters: N nodes, L links, F features, K classes.
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
    checked_parts,
    digest_of,
    feature_arrays,
    item_arrays,
)

LINKED = "linked"
"""The only class of links that are told apart from pairs without one, and not from one another."""


@dataclass(frozen=True, eq=False)
class LinkSet:
    """Links between nodes; `make_link_set` makes one, and refuses what is none.

    nodes: how many. ends (2, L): source and target of every link, in the sequence of the file. directed: whether a link
    leads from its source to its target alone. features (N, F) of the nodes, None where there are none: a scenario then
    takes degrees. negatives (2, M), where published: pairs without a link to be asked about, negatives_split (M,) in
    which part. notes: what a user must know of how it was read, in words. The rest is what all `Items` have, a link
    being one; one with NO_CLASS, or in no group, is part of the graph alone.
    """

    item: ClassVar[ItemKind] = "link"

    name: str
    nodes: int
    ends: np.ndarray
    directed: bool
    labels: np.ndarray
    classes: tuple[str, ...]
    features: Features | None = None
    groups: Mapping[str, Groups] = field(default_factory=lambda: MappingProxyType({}))
    times: np.ndarray | None = None
    split: np.ndarray | None = None
    negatives: np.ndarray | None = None
    negatives_split: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.ends.shape[1]

    @property
    def many_labels(self) -> bool:
        return False

    @cached_property
    def digest(self) -> str:
        """A digest of everything but the name and the notes."""
        return digest_of(self._arrays())

    def _arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        yield "nodes, directed", np.array([self.nodes, self.directed])
        yield "ends", self.ends
        if self.features is not None:
            yield from feature_arrays(self.features)
        if self.negatives is not None and self.negatives_split is not None:
            yield "negatives", self.negatives
            yield "negatives_split", self.negatives_split
        yield from item_arrays(self)


def make_link_set(
    name: str,
    nodes: int,
    ends: np.ndarray,
    directed: bool,
    labels: np.ndarray | None = None,
    classes: tuple[str, ...] | None = None,
    features: Features | None = None,
    groups: Mapping[str, Groups] | None = None,
    times: np.ndarray | None = None,
    split: np.ndarray | None = None,
    negatives: np.ndarray | None = None,
    negatives_split: np.ndarray | None = None,
    notes: tuple[str, ...] = (),
    where: str = "links",
) -> LinkSet:
    """Return links of what a reader found; without labels, all are of the one class `LINKED`.

    Refused, with the field and beginning with `where`: what `make_graph` refuses, of links; a pair that is listed as a
    link and as a negative, negatives without parts.
    """
    refuse = Refusing(where, "link")
    if nodes < 2:
        raise refuse("nodes", f"expected at least 2, found {nodes}")
    if features is not None:
        features = checked_features(features, refuse)
        if features.shape[0] != nodes:
            raise refuse("features", f"expected a row for each of {nodes} nodes, found {features.shape[0]}")
    ends = checked_ends("links", np.asarray(ends), nodes, refuse)
    if not ends.shape[1]:
        raise refuse("links", "expected at least one")
    if labels is None:
        labels, classes = np.zeros(ends.shape[1], dtype=np.int64), (LINKED,)
    items = checked_items(ends.shape[1], labels, classes, groups, times, split, refuse)
    if items["labels"].ndim == 2:
        raise refuse("labels", "expected one class per link, found many labels")
    if (negatives is None) != (negatives_split is None):
        raise refuse("negatives", "expected pairs and the part of each, found the one without the other")
    if negatives is not None and negatives_split is not None:
        negatives = checked_ends("negatives", np.asarray(negatives), nodes, refuse)
        negatives_split = checked_parts("negatives_split", negatives_split, negatives.shape[1], refuse)
        _refuse_linked(ends, negatives, nodes, directed, refuse)
    return LinkSet(
        name,
        int(nodes),
        ends,
        bool(directed),
        features=features,
        negatives=negatives,
        negatives_split=negatives_split,
        notes=notes,
        **items,
    )


def pair_keys(ends: np.ndarray, nodes: int, directed: bool) -> np.ndarray:
    """Return a number for every pair (2, P), the same for both directions unless directed."""
    sources, targets = ends if directed else np.sort(ends, axis=0)
    keys: np.ndarray = sources * nodes + targets
    return keys


def _refuse_linked(ends: np.ndarray, negatives: np.ndarray, nodes: int, directed: bool, refuse: Refusing) -> None:
    """Refuse pairs that are listed as links and as negatives."""
    linked = np.isin(pair_keys(negatives, nodes, directed), pair_keys(ends, nodes, directed))
    if linked.any():
        source, target = negatives[:, int(np.argmax(linked))].tolist()
        raise refuse("negatives", f"the pair {source} – {target} is listed as a link and as a negative")


__all__ = ["LINKED", "NO_CLASS", "Groups", "LinkSet", "make_link_set", "pair_keys"]
