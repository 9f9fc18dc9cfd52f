"""One value for a graph data set, whatever file it came from: edges, features, labels, and what a split may go by.

Letters: N nodes, E edges, F features, K classes or labels.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import NAMES, UNUSED

NO_CLASS = -1
"""The label of a node that has none: it is in the graph, and neither learned nor asked about."""

Features: TypeAlias = np.ndarray | csr_array
"""(N, F) float32, dense or as sparse rows."""


@dataclass(frozen=True, eq=False)
class Groups:
    """What every node belongs to: numbers (N,) from 0, and the name of each."""

    numbers: np.ndarray
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph whose nodes are to be classified; `make_graph` makes one, and refuses what is none.

    edges (2, E) from sources to targets, each once, sorted by target and then by source; a link without a direction
    stands in both. features (N, F). labels (N,) of one class per node, NO_CLASS for none, or (N, K) of 0 and 1; classes
    are their names. groups: what nodes belong to, by what it is called, such as "language". times (N,): when a node
    appeared, as whole numbers. split (N,): the part each node was published in, UNUSED for none.
    """

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
        found = hashlib.sha256()
        for name, array in self._arrays():
            found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    def _arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        yield "edges", self.edges
        if isinstance(self.features, np.ndarray):
            yield "features", self.features
        else:
            yield f"width {self.features.shape[1]}", self.features.data
            yield "columns", self.features.indices.astype(np.int64)
            yield "rows", self.features.indptr.astype(np.int64)
        yield "labels", self.labels
        yield "classes", np.array(self.classes, dtype="U")
        for name, groups in sorted(self.groups.items()):
            yield f"groups {name!r}", groups.numbers
            yield "names", np.array(groups.names, dtype="U")
        yield from (
            (name, array) for name, array in (("times", self.times), ("split", self.split)) if array is not None
        )


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
    refuse = _Refusing(where)
    features = _checked_features(features, refuse)
    nodes = features.shape[0]
    labels = _checked_labels(np.asarray(labels), nodes, refuse)
    if classes is None:
        count = labels.shape[1] if labels.ndim == 2 else int(labels.max(initial=NO_CLASS)) + 1
        classes = tuple(f"{'label' if labels.ndim == 2 else 'class'} {number}" for number in range(count))
    _check_classes(labels, classes, refuse)
    found_groups = {} if groups is None else dict(groups)
    for called, each in found_groups.items():
        _check_numbers(f"groups {called!r}", each.numbers, nodes, 0, len(each.names), refuse)
    if times is not None:
        times = _whole("times", np.asarray(times), nodes, refuse)
    if split is not None:
        split = _whole("split", np.asarray(split), nodes, refuse)
        _check_numbers("split", split, nodes, UNUSED, len(NAMES), refuse)
    checked = _checked_edges(np.asarray(edges), nodes, both_ways, refuse)
    return Graph(name, checked, features, labels, tuple(classes), MappingProxyType(found_groups), times, split)


@dataclass(frozen=True)
class _Refusing:
    where: str

    def __call__(self, field: str, reason: str) -> InputError:
        return InputError(f"{self.where}: {field}: {reason}")


def _checked_features(features: Features, refuse: _Refusing) -> Features:
    if not isinstance(features, np.ndarray | csr_array) or features.ndim != 2:
        raise refuse("features", f"expected a table (nodes, features), found {_shape(features)}")
    if 0 in features.shape:
        raise refuse("features", f"expected at least one node and one feature, found {features.shape}")
    if features.dtype.kind not in "biuf":
        raise refuse("features", f"expected numbers, found {features.dtype}")
    with np.errstate(over="ignore"):
        if isinstance(features, np.ndarray):
            found: Features = np.ascontiguousarray(features, dtype=np.float32)
            finite = np.isfinite(found).all(axis=1)
        else:
            found = csr_array(features.astype(np.float32))
            found.sum_duplicates()
            finite = np.ones(found.shape[0], dtype=bool)
            bad = ~np.isfinite(found.data)
            finite[np.searchsorted(found.indptr, np.flatnonzero(bad), side="right") - 1] = False
    if not finite.all():
        raise refuse("features", f"node {int(np.argmin(finite))} has one that is not finite")
    return found


def _checked_labels(labels: np.ndarray, nodes: int, refuse: _Refusing) -> np.ndarray:
    if labels.ndim not in (1, 2) or len(labels) != nodes:
        raise refuse(
            "labels", f"expected one class ({nodes},) or a row of labels ({nodes}, K) per node, {_found(labels)}"
        )
    if labels.ndim == 1:
        return _whole("labels", labels, nodes, refuse)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        node, label = np.argwhere(np.isnan(labels))[0]
        raise refuse("labels", f"label {label} of node {node} is not a number")
    if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
        node, label = np.argwhere(~np.isin(labels, (0, 1)))[0]
        raise refuse("labels", f"expected 0 or 1, found {labels[node, label]} as label {label} of node {node}")
    return labels.astype(np.uint8)


def _whole(field: str, values: np.ndarray, nodes: int, refuse: _Refusing) -> np.ndarray:
    if values.shape != (nodes,):
        raise refuse(field, f"expected one per node ({nodes},), {_found(values)}")
    if values.dtype.kind == "f":
        wrong = ~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) >= 2**53)
    else:
        wrong = np.full(nodes, values.dtype.kind not in "biu")
    if wrong.any():
        node = int(np.argmax(wrong))
        raise refuse(field, f"expected a whole number, found {values[node].item()!r:.40} at node {node}")
    return values.astype(np.int64)


def _check_classes(labels: np.ndarray, classes: tuple[str, ...], refuse: _Refusing) -> None:
    if not classes:
        raise refuse("labels", "no node has a class")
    if len(set(classes)) < len(classes):
        raise refuse("classes", "two have the same name")
    if labels.ndim == 2:
        if labels.shape[1] != len(classes):
            raise refuse("labels", f"{labels.shape[1]} columns, but {len(classes)} names")
        counts = labels.sum(axis=0, dtype=np.int64)
    else:
        _check_numbers("labels", labels, len(labels), NO_CLASS, len(classes), refuse)
        counts = np.bincount(labels[labels >= 0], minlength=len(classes))
    if not counts.all():
        raise refuse("labels", f"no node has {classes[int(np.argmin(counts))]!r}")


def _check_numbers(field: str, numbers: np.ndarray, nodes: int, lowest: int, end: int, refuse: _Refusing) -> None:
    """Refuse other than a whole number from `lowest` to before `end` for every node."""
    if numbers.shape != (nodes,) or numbers.dtype.kind not in "iu":
        raise refuse(field, f"expected a whole number per node ({nodes},), {_found(numbers)}")
    wrong = (numbers < lowest) | (numbers >= end)
    if wrong.any():
        node = int(np.argmax(wrong))
        raise refuse(field, f"expected {lowest} to {end - 1}, found {numbers[node]} at node {node}")


def _checked_edges(edges: np.ndarray, nodes: int, both_ways: bool, refuse: _Refusing) -> np.ndarray:
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        raise refuse("edges", f"expected whole numbers (2, E), {_found(edges)}")
    wrong = ((edges < 0) | (edges >= nodes)).any(axis=0)
    if wrong.any():
        place = int(np.argmax(wrong))
        ends = " – ".join(map(str, edges[:, place].tolist()))
        raise refuse("edges", f"edge {place}, {ends}, has an end outside the nodes 0–{nodes - 1}")
    sources, targets = edges.astype(np.int64)
    if both_ways:
        sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    unique = np.unique(targets * nodes + sources)
    return np.stack([unique % nodes, unique // nodes])


def _found(array: np.ndarray) -> str:
    return f"found {array.dtype} of shape {array.shape}"


def _shape(found: object) -> str:
    return str(getattr(found, "shape", type(found).__name__))
