"""What is classified, whether nodes, links or whole graphs: labels, and what units and splits may go by.

Letters: I items, N nodes, F features, K classes or labels.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import NAMES, UNUSED

NO_CLASS = -1
"""The label of an item that has none: it is there, and neither learned nor asked about."""

NO_GROUP = -1
"""The number of a link that belongs to none of some groups."""

Features: TypeAlias = np.ndarray | csr_array
"""(N, F) float32, dense or as sparse rows."""

ItemKind = Literal["node", "link", "graph"]


@dataclass(frozen=True, eq=False)
class Groups:
    """What every item belongs to: numbers (I,) from 0, and the name of each."""

    numbers: np.ndarray
    names: tuple[str, ...]


class Items(Protocol):
    """What all data sets of graphs have.

    item: what is classified. labels (I,) of one class per item, NO_CLASS for none, or (I, K) of 0 and 1, in graphs also
    NaN for what is not known; classes are their names. groups: what items belong to, by what it is called, such as
    "language". times (I,): when an item appeared, as whole numbers. split (I,): the part each item was published in,
    UNUSED for none.
    """

    @property
    def item(self) -> ItemKind: ...

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> np.ndarray: ...

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def groups(self) -> Mapping[str, Groups]: ...

    @property
    def times(self) -> np.ndarray | None: ...

    @property
    def split(self) -> np.ndarray | None: ...

    @property
    def many_labels(self) -> bool: ...

    @property
    def digest(self) -> str:
        """A digest of everything but the name."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Refusing:
    """Makes refusals that begin with a place; item: what is classified."""

    where: str
    item: ItemKind = "node"

    def __call__(self, field: str, reason: str) -> InputError:
        return InputError(f"{self.where}: {field}: {reason}")


def checked_items(
    count: int,
    labels: np.ndarray,
    classes: tuple[str, ...] | None,
    groups: Mapping[str, Groups] | None,
    times: np.ndarray | None,
    split: np.ndarray | None,
    refuse: Refusing,
    missing: bool = False,
) -> dict[str, Any]:
    """Return what all data sets have, by name of the field, for so many items.

    missing: whether a label of many may be NaN. Refused: arrays of other shapes or lengths, labels that are no class, a
    label matrix of other than 0 and 1, a class without an item, groups and parts that there are not.
    """
    labels = _checked_labels(np.asarray(labels), count, missing, refuse)
    if classes is None:
        number = labels.shape[1] if labels.ndim == 2 else int(labels.max(initial=NO_CLASS)) + 1
        classes = tuple(f"{'label' if labels.ndim == 2 else 'class'} {label}" for label in range(number))
    _check_classes(labels, classes, refuse)
    found_groups = {} if groups is None else dict(groups)
    # A link may be in no group, and is part of the graph alone.
    lowest = NO_GROUP if refuse.item == "link" else 0
    for called, each in found_groups.items():
        _check_numbers(f"groups {called!r}", each.numbers, count, lowest, len(each.names), refuse)
    if times is not None:
        times = _whole("times", np.asarray(times), count, refuse)
    if split is not None:
        split = checked_parts("split", split, count, refuse)
    return {
        "labels": labels,
        "classes": tuple(classes),
        "groups": MappingProxyType(found_groups),
        "times": times,
        "split": split,
    }


def checked_parts(field: str, parts: np.ndarray, count: int, refuse: Refusing) -> np.ndarray:
    """Return (I,) the parts of items as whole numbers; refuse what is no part."""
    checked = _whole(field, np.asarray(parts), count, refuse)
    _check_numbers(field, checked, count, UNUSED, len(NAMES), refuse)
    return checked


def checked_features(features: Features, refuse: Refusing) -> Features:
    """Return features (N, F) as float32; refuse other tables, and numbers that are not finite."""
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


def checked_ends(field: str, edges: np.ndarray, nodes: int, refuse: Refusing) -> np.ndarray:
    """Return edges (2, E) as whole numbers; refuse ends that are no node."""
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        raise refuse(field, f"expected whole numbers (2, E), {_found(edges)}")
    wrong = ((edges < 0) | (edges >= nodes)).any(axis=0)
    if wrong.any():
        place = int(np.argmax(wrong))
        ends = " – ".join(map(str, edges[:, place].tolist()))
        raise refuse(field, f"edge {place}, {ends}, has an end outside the nodes 0–{nodes - 1}")
    return edges.astype(np.int64)


def digest_of(arrays: Iterable[tuple[str, np.ndarray]]) -> str:
    """Return a digest of named arrays."""
    found = hashlib.sha256()
    for name, array in arrays:
        found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def feature_arrays(features: Features) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what features are made of, by name."""
    if isinstance(features, np.ndarray):
        yield "features", features
    else:
        yield f"width {features.shape[1]}", features.data
        yield "columns", features.indices.astype(np.int64)
        yield "rows", features.indptr.astype(np.int64)


def item_arrays(items: Items) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what all data sets have, by name."""
    yield "labels", items.labels
    yield "classes", np.array(items.classes, dtype="U")
    for name, groups in sorted(items.groups.items()):
        yield f"groups {name!r}", groups.numbers
        yield "names", np.array(groups.names, dtype="U")
    yield from ((name, array) for name, array in (("times", items.times), ("split", items.split)) if array is not None)


def _checked_labels(labels: np.ndarray, count: int, missing: bool, refuse: Refusing) -> np.ndarray:
    item = refuse.item
    if labels.ndim not in (1, 2) or len(labels) != count:
        raise refuse(
            "labels", f"expected one class ({count},) or a row of labels ({count}, K) per {item}, {_found(labels)}"
        )
    if labels.ndim == 1:
        return _whole("labels", labels, count, refuse)
    unknown = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(labels.shape, dtype=bool)
    if unknown.any() and not missing:
        place, label = np.argwhere(unknown)[0]
        raise refuse("labels", f"label {label} of {item} {place} is not a number")
    wrong = ~np.isin(labels, (0, 1)) & ~unknown
    if labels.dtype.kind not in "biuf" or wrong.any():
        place, label = np.argwhere(wrong)[0]
        raise refuse("labels", f"expected 0 or 1, found {labels[place, label]} as label {label} of {item} {place}")
    return labels.astype(np.float32 if missing else np.uint8)


def _whole(field: str, values: np.ndarray, count: int, refuse: Refusing) -> np.ndarray:
    if values.shape != (count,):
        raise refuse(field, f"expected one per {refuse.item} ({count},), {_found(values)}")
    if values.dtype.kind == "f":
        wrong = ~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) >= 2**53)
    else:
        wrong = np.full(count, values.dtype.kind not in "biu")
    if wrong.any():
        place = int(np.argmax(wrong))
        raise refuse(field, f"expected a whole number, found {values[place].item()!r:.40} at {refuse.item} {place}")
    return values.astype(np.int64)


def _check_classes(labels: np.ndarray, classes: tuple[str, ...], refuse: Refusing) -> None:
    if not classes:
        raise refuse("labels", f"no {refuse.item} has a class")
    if len(set(classes)) < len(classes):
        raise refuse("classes", "two have the same name")
    if labels.ndim == 2:
        if labels.shape[1] != len(classes):
            raise refuse("labels", f"{labels.shape[1]} columns, but {len(classes)} names")
        counts = (labels == 1).sum(axis=0, dtype=np.int64)
    else:
        _check_numbers("labels", labels, len(labels), NO_CLASS, len(classes), refuse)
        counts = np.bincount(labels[labels >= 0], minlength=len(classes))
    if not counts.all():
        raise refuse("labels", f"no {refuse.item} has {classes[int(np.argmin(counts))]!r}")


def _check_numbers(field: str, numbers: np.ndarray, count: int, lowest: int, end: int, refuse: Refusing) -> None:
    """Refuse other than a whole number from `lowest` to before `end` for every item."""
    if numbers.shape != (count,) or numbers.dtype.kind not in "iu":
        raise refuse(field, f"expected a whole number per {refuse.item} ({count},), {_found(numbers)}")
    wrong = (numbers < lowest) | (numbers >= end)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise refuse(field, f"expected {lowest} to {end - 1}, found {numbers[place]} at {refuse.item} {place}")


def _found(array: np.ndarray) -> str:
    return f"found {array.dtype} of shape {array.shape}"


def _shape(found: object) -> str:
    return str(getattr(found, "shape", type(found).__name__))
