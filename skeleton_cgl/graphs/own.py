"""What the forms of a user's own data share: named arrays, or columns of text, made into one value."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import NO_CLASS, Features, Graph, Groups, make_graph
from skeleton_cgl.graphs.items import NO_GROUP, ItemKind
from skeleton_cgl.graphs.link_set import LinkSet, make_link_set
from skeleton_cgl.graphs.rows import sparse_rows
from skeleton_cgl.parts import NAMES, UNUSED
from skeleton_cgl.plain import is_fit, shown
from skeleton_cgl.reading.npy import field_names, plain_array

MASKS = ("train_mask", "val_mask", "test_mask")
"""How DGL and PyG call a split: one array of true and false per part."""

_SPARSE = tuple(f"features_{part}" for part in ("data", "indices", "indptr", "shape"))
ARRAYS = ("edges", "features", *_SPARSE, "labels", "classes", "times", "split", *MASKS)
GROUPS = "groups_"
_EPOCH = date(1970, 1, 1)

_Refuse = Callable[[int, str], InputError]
"""An error about the value at a place, in words."""


def graph_of_arrays(name: str, where: str, arrays: Mapping[str, np.ndarray], both_ways: bool) -> Graph:
    """Return the graph of arrays called as in `ARRAYS`, with `groups_NAME` for groups; `where` begins every refusal."""
    require("edges", arrays, where)
    items = items_of_arrays("node", where, arrays)
    return make_graph(
        name, edges_of(arrays["edges"]), _features(arrays, where), both_ways=both_ways, where=where, **items
    )


def items_of_arrays(item: ItemKind, where: str, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return labels, classes, groups, times and split of such arrays, by name of the field."""

    def refusing(field: str) -> _Refuse:
        return lambda place, reason: InputError(f"{where}: array {field!r}: {item} {place}: {reason}")

    require("labels", arrays, where)
    given = arrays["labels"]
    # A column of whole graphs is one label, of which some may be missing.
    if given.ndim == 2 and given.shape[1] == 1 and item != "graph":
        given = given[:, 0]
    labels, classes = _labels(given, arrays.get("classes"), where, refusing("labels"))
    groups = {
        field.removeprefix(GROUPS): _groups(values, where, field, refusing(field))
        for field, values in arrays.items()
        if field.startswith(GROUPS)
    }
    split = _split(item, arrays, len(np.atleast_1d(labels)), where, refusing("split"))
    return {"labels": labels, "classes": classes, "groups": groups, "times": arrays.get("times"), "split": split}


def arrays_of_npz(path: Path, known: Sequence[str], both_ways: bool | None) -> tuple[dict[str, np.ndarray], bool]:
    """Return the arrays of an `.npz`, and whether its edges stand for both directions: as said, or as the file says.

    Refused: arrays that are neither known nor `groups_NAME` nor `both_ways`, and Python objects.
    """
    names, known = field_names(path), (*known, "both_ways")
    for name in names:
        if name not in known and not (name.startswith(GROUPS) and name != GROUPS):
            raise InputError(f"{path}: unknown array {shown(name)}{did_you_mean(name, (*known, 'groups_NAME'))}")
    arrays = {name: plain_array(path, name) for name in names}
    if "both_ways" in arrays:
        told = arrays.pop("both_ways")
        if told.shape != () or told.dtype != bool:
            raise InputError(f"{path}: array 'both_ways': expected true or false, found {told.dtype} {told.shape}")
        both_ways = bool(told) if both_ways is None else both_ways
    return arrays, bool(both_ways)


def require(field: str, arrays: Mapping[str, np.ndarray], where: str) -> None:
    """Refuse arrays without one of this name."""
    if field not in arrays:
        raise InputError(f"{where}: array {field!r} is missing; found {', '.join(sorted(arrays)) or 'none'}")


def graph_of_columns(
    name: str,
    where: str,
    columns: Mapping[str, Sequence[str]],
    edges: np.ndarray,
    both_ways: bool,
    row_of: Callable[[int], str],
) -> Graph:
    """Return the graph whose nodes are told of in columns of text.

    `label` is the class, -1 for none, or every `label:NAME` is 0 or 1; `time`: whole numbers, or dates as 2024-01-31,
    which become days since 1970; `part`: training, validation, test, or nothing; `group:NAME`: words. Every other
    column is a feature, a number. `row_of` calls a node as the user knows it, for refusals.
    """

    others = [column for column in columns if not _tells_of_item(column)]
    if not others:
        raise InputError(f"{where}: no column of features; expected at least one of numbers")
    items = items_of_columns(where, columns, row_of)
    features = features_of_columns(where, {column: columns[column] for column in others}, row_of)
    return make_graph(name, edges, features, both_ways=both_ways, where=where, **items)


def items_of_columns(
    where: str, columns: Mapping[str, Sequence[str]], row_of: Callable[[int], str], missing: bool = False
) -> dict[str, Any]:
    """Return labels, classes, groups, times and split of such columns, by name of the field.

    missing: whether nothing may stand for a `label:NAME` that is not known.
    """
    refusing = _refusing_columns(where, row_of)
    marks = {column.removeprefix("label:"): column for column in columns if column.startswith("label:")}
    if ("label" in columns) == bool(marks):
        raise InputError(f"{where}: expected a column 'label', or columns 'label:NAME'; found {', '.join(columns)}")
    classes: tuple[str, ...]
    if marks:
        labels = np.stack([_marks(columns[column], refusing(column), missing) for column in marks.values()], axis=1)
        classes = tuple(marks)
    else:
        labels, classes = _classes_of_words(columns["label"], refusing("label"))
    groups = {
        column.removeprefix("group:"): _groups_of_words(values, refusing(column))
        for column, values in columns.items()
        if column.startswith("group:")
    }
    times = _times(columns["time"], refusing("time")) if "time" in columns else None
    split = _parts_of_words(columns["part"], refusing("part")) if "part" in columns else None
    return {"labels": labels, "classes": classes, "groups": groups, "times": times, "split": split}


def features_of_columns(where: str, columns: Mapping[str, Sequence[str]], row_of: Callable[[int], str]) -> np.ndarray:
    """Return (N, F) the numbers of columns; refuse what is no finite number."""
    refusing = _refusing_columns(where, row_of)
    return np.stack([_finite(values, refusing(column)) for column, values in columns.items()], axis=1)


def _refusing_columns(where: str, row_of: Callable[[int], str]) -> Callable[[str], _Refuse]:
    def refusing(column: str) -> _Refuse:
        return lambda place, reason: InputError(f"{where}: column {column!r}: {row_of(place)}: {reason}")

    return refusing


def _tells_of_item(column: str) -> bool:
    return column in ("label", "time", "part") or column.startswith(("label:", "group:"))


def _marks(words: Sequence[str], refuse: _Refuse, missing: bool) -> np.ndarray:
    """Return labels of 0 and 1, NaN for nothing where some may be missing."""
    known = np.array([bool(word) or not missing for word in words])
    marks = np.full(len(words), np.nan)
    marks[known] = _numbers([word if kept else "0" for word, kept in zip(words, known, strict=True)], refuse)[known]
    wrong = known & ~np.isin(marks, (0, 1))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise refuse(place, f"expected 0 or 1, found {shown(words[place])}")
    return marks


def links_of_columns(name: str, where: str, columns: Mapping[str, Sequence[str]], directed: bool) -> LinkSet:
    """Return the links that are told of in columns of text, each in a row.

    `source` and `target` are what the ends are called, nodes being numbered as they appear. The others need not be
    there: `label`, `time`, `part` and `group:NAME` as in `graph_of_columns`, and `group` for groups of that name. A
    link without a group is part of the graph alone. Refused: any other column.
    """

    def refusing(column: str) -> _Refuse:
        return lambda place, reason: InputError(f"{where}: column {column!r}: row {place + 1}: {reason}")

    for column in ("source", "target"):
        if column not in columns:
            raise InputError(f"{where}: column {column!r} is missing; found {', '.join(columns)}")
        _check_words(columns[column], refusing(column), "expected what a node is called")
    called = {column: column.removeprefix("group:") for column in columns if column.startswith("group:")}
    known = ("source", "target", "label", "time", "part", "group")
    if "group" in columns:
        if "group" in called.values():
            raise InputError(f"{where}: columns 'group' and 'group:group': expected one of them")
        called["group"] = "group"
    for column in columns:
        if column not in (*known, *called):
            raise InputError(f"{where}: unknown column {shown(column)}{did_you_mean(column, (*known, 'group:NAME'))}")
    numbers: dict[str, int] = {}
    ends = [
        [numbers.setdefault(end, len(numbers)) for end in pair]
        for pair in zip(columns["source"], columns["target"], strict=True)
    ]
    labels, classes = _classes_of_words(columns["label"], refusing("label")) if "label" in columns else (None, None)
    return make_link_set(
        name,
        len(numbers),
        np.array(ends).T,
        directed,
        labels,
        classes,
        groups={each: _groups_of_some(columns[column], refusing(column)) for column, each in called.items()},
        times=_times(columns["time"], refusing("time")) if "time" in columns else None,
        split=_parts_of_words(columns["part"], refusing("part")) if "part" in columns else None,
        where=where,
    )


def numbers_of(ids: Sequence[str], where: str) -> dict[str, int]:
    """Return the number of every node by what it is called; refuse two of one name, and one without."""
    found: dict[str, int] = {}
    for number, name in enumerate(ids):
        if not name or found.setdefault(name, number) != number:
            raise InputError(f"{where}: row {number + 1}: expected an id of its own, found {shown(name)}")
    return found


def edges_of(edges: np.ndarray) -> np.ndarray:
    """Return edges (2, E), which may be given as (E, 2)."""
    return edges.T if edges.ndim == 2 and edges.shape[0] != 2 and edges.shape[1] == 2 else edges


def _features(arrays: Mapping[str, np.ndarray], where: str) -> Features:
    if "features" in arrays:
        return arrays["features"]
    missing = [field for field in _SPARSE if field not in arrays]
    if missing:
        raise InputError(f"{where}: array 'features' is missing, or all of {', '.join(_SPARSE)}")
    return sparse_rows(arrays, "features", where)


def _labels(
    labels: np.ndarray, classes: np.ndarray | None, where: str, refuse: _Refuse
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    names = None if classes is None else _names(classes, where)
    if labels.ndim != 1 or labels.dtype.kind not in "biufU":
        return labels, names
    if labels.dtype.kind == "U":
        return _classes_of_words(labels.tolist(), refuse, names)
    fits = labels.dtype.kind != "f" or (np.isfinite(labels) & (labels == np.floor(labels))).all()
    if names is not None or not fits or labels.min(initial=0) < NO_CLASS:
        return labels, names
    present = np.unique(labels[labels != NO_CLASS])
    ranks = np.where(labels == NO_CLASS, NO_CLASS, np.searchsorted(present, labels))
    return ranks, tuple(f"class {int(label)}" for label in present)


def _names(classes: np.ndarray, where: str) -> tuple[str, ...]:
    if classes.ndim != 1 or classes.dtype.kind not in "iuU":
        raise InputError(f"{where}: array 'classes': expected names (K,), found {classes.dtype} {classes.shape}")
    return tuple(map(str, classes.tolist()))


def _classes_of_words(
    words: Sequence[str], refuse: _Refuse, names: tuple[str, ...] | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the numbers and names of classes; whole numbers are sorted as such."""
    expected = "expected a class, or -1 for none"
    _check_words(words, refuse, expected)
    for place, word in enumerate(words):
        # What pandas and others write where there is no value would otherwise be a class of its own.
        if word.lower() == "nan":
            raise refuse(place, f"{expected}, found {shown(word)}")
    none = str(NO_CLASS)
    present = {word for word in words if word != none}
    if names is None:
        if all(word.isdecimal() and word.isascii() and len(word) <= 18 for word in present):
            order = sorted(present, key=int)
            names = tuple(f"class {word}" for word in order)
        else:
            order = sorted(present)
            names = tuple(order)
    else:
        order = list(names)
    numbers = {none: NO_CLASS, **{word: number for number, word in enumerate(order)}}
    for place, word in enumerate(words):
        if word not in numbers:
            raise refuse(place, f"{shown(word)} is not among the classes")
    return np.array([numbers[word] for word in words]), names


def _check_words(words: Sequence[str], refuse: _Refuse, expected: str, or_nothing: bool = False) -> None:
    for place, word in enumerate(words):
        if not (word or or_nothing) or not is_fit(word):
            raise refuse(place, f"{expected}, found {shown(word)}")


def _groups(values: np.ndarray, where: str, field: str, refuse: _Refuse) -> Groups:
    if values.ndim != 1 or values.dtype.kind not in "iuU":
        raise InputError(
            f"{where}: array {field!r}: expected whole numbers or text (N,), found {values.dtype} {values.shape}"
        )
    if values.dtype.kind == "U":
        return _groups_of_words(values.tolist(), refuse)
    present, numbers = np.unique(values, return_inverse=True)
    return Groups(numbers, tuple(map(str, present.tolist())))


def _groups_of_words(words: Sequence[str], refuse: _Refuse) -> Groups:
    _check_words(words, refuse, "expected the name of a group")
    present, numbers = np.unique(np.array(words, dtype="U"), return_inverse=True)
    return Groups(numbers, tuple(map(str, present.tolist())))


def _groups_of_some(words: Sequence[str], refuse: _Refuse) -> Groups:
    """Return the groups of items of which some have none: nothing is written there."""
    expected = "expected the name of a group, or nothing"
    _check_words(words, refuse, expected, or_nothing=True)
    names = sorted({word for word in words if word})
    if not names:
        raise refuse(0, f"{expected}, but found a name in no row")
    numbers = {"": NO_GROUP, **{name: number for number, name in enumerate(names)}}
    return Groups(np.array([numbers[word] for word in words]), tuple(names))


def _split(
    item: ItemKind, arrays: Mapping[str, np.ndarray], count: int, where: str, refuse: _Refuse
) -> np.ndarray | None:
    if "split" in arrays:
        split = arrays["split"]
        return _parts_of_words(split.tolist(), refuse) if split.dtype.kind == "U" and split.ndim == 1 else split
    if not any(mask in arrays for mask in MASKS):
        return None
    split = np.full(count, UNUSED)
    for part, mask in enumerate(MASKS):
        members = arrays.get(mask, np.zeros(count, dtype=bool))
        if members.shape != (count,) or members.dtype.kind not in "biu" or not np.isin(members, (0, 1)).all():
            raise InputError(
                f"{where}: array {mask!r}: expected true or false for every {item}, "
                f"found {members.dtype} of shape {members.shape}"
            )
        members = members.astype(bool)
        twice = members & (split != UNUSED)
        if twice.any():
            raise InputError(f"{where}: array {mask!r}: {item} {int(np.argmax(twice))} is in another part already")
        split[members] = part
    return split


def _parts_of_words(words: Sequence[str], refuse: _Refuse) -> np.ndarray:
    known = {"": UNUSED, **{name: part for part, name in enumerate(NAMES)}}
    for place, word in enumerate(words):
        if word not in known:
            raise refuse(place, f"expected {', '.join(NAMES)} or nothing, found {shown(word)}")
    return np.array([known[word] for word in words])


def _numbers(words: Sequence[str], refuse: _Refuse) -> np.ndarray:
    try:
        return np.array(words, dtype=object).astype(np.float64)
    except ValueError:
        for place, word in enumerate(words):
            try:
                float(word)
            except ValueError as error:
                raise refuse(place, f"expected a number, found {shown(word)}") from error
        raise


def _finite(words: Sequence[str], refuse: _Refuse) -> np.ndarray:
    numbers = _numbers(words, refuse)
    with np.errstate(over="ignore"):
        finite = np.isfinite(numbers.astype(np.float32))
    if not finite.all():
        place = int(np.argmin(finite))
        raise refuse(place, f"expected a finite number, found {shown(words[place])}")
    return numbers


def _times(words: Sequence[str], refuse: _Refuse) -> np.ndarray:
    """Return whole numbers, or the days from 1970 to dates; all have to be of the first one's kind."""
    read, kind = (_day, "a date as 2024-01-31") if words and _whole(words[0]) is None else (_whole, "a whole number")
    times = [read(word) for word in words]
    if None in times:
        place = times.index(None)
        expected = "a whole number, or a date as 2024-01-31" if place == 0 else f"{kind} like the first"
        raise refuse(place, f"expected {expected}, found {shown(words[place])}")
    return np.array(times, dtype=np.int64)


def _whole(word: str) -> int | None:
    digits = word.removeprefix("-")
    return int(word) if digits.isdecimal() and digits.isascii() and len(digits) <= 18 else None


def _day(word: str) -> int | None:
    try:
        return (date.fromisoformat(word) - _EPOCH).days if len(word) == 10 else None
    except ValueError:
        return None
