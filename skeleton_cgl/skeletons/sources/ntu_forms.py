"""The four forms in which NTU recordings lie on users' disks, each as a list of entries and a way to read them.

Raw text files, in a folder or a zip; an `.npy` array with a pickle of names and labels; the `.npz` of CTR-GCN; the
pickle of PYSKL. Arrays are read a row at a time; pickles are read by `unpickle` alone. What is wrong with a whole file
raises `InputError`; what is wrong with one recording comes out as a `BadRecording` in its place.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.members import Members
from skeleton_cgl.reading.npy import StoredArray
from skeleton_cgl.reading.unpickle import load_pickle
from skeleton_cgl.skeletons.layout import NTU
from skeleton_cgl.skeletons.recording import UNKNOWN, BadRecording
from skeleton_cgl.skeletons.sources.ntu_bodies import ACTORS, choose_actors, read_bodies

ACTION_COUNT = 60
FRAMES = 300
"""The length of every sequence in the forms that are arrays, shorter ones padded."""

NAME = re.compile(r"S\d{3}C(?P<view>\d{3})P(?P<subject>\d{3})R(?P<repetition>\d{3})A(?P<action>\d{3})")


@dataclass(frozen=True)
class Entry:
    """What is known of a recording before it is read; `action` counts from 1, `part` only where a form states it."""

    name: str
    action: int
    subject: int = UNKNOWN
    view: int = UNKNOWN
    repetition: int = UNKNOWN
    part: str | None = None


class Form(Protocol):
    """The recordings of one file or folder: all their entries, and the positions of the chosen ones."""

    description: str
    entries: list[Entry]

    def sequences(self, rows: Sequence[int]) -> Iterator[np.ndarray | BadRecording]:
        """Yield for each of `rows`, which must ascend, the positions (2, T, V, C) of the entry, or why it is bad."""
        ...


def entry_of(name: str) -> Entry | None:
    """Return what the name of a recording, SsssCcccPpppRrrrAaaa, says; None if it is not such a name."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    return Entry(
        name,
        action=int(match["action"]),
        subject=int(match["subject"]),
        view=int(match["view"]),
        repetition=int(match["repetition"]),
    )


def _entries_of(names: Sequence[Any], where: str) -> list[Entry]:
    """Return the entries of `names`; refuse what is no name of a recording and a name given twice."""
    entries: dict[str, Entry] = {}
    for row, name in enumerate(names):
        entry = entry_of(name.removesuffix(".skeleton")) if isinstance(name, str) else None
        if entry is None:
            raise InputError(f"{where}: entry {row}: expected a name like S001C001P001R001A001, found {name!r:.60}")
        if entry.name in entries:
            raise InputError(f"{where}: entry {row}: {entry.name} is there twice")
        entries[entry.name] = entry
    return list(entries.values())


def _label_problem(entry: Entry, label: Any) -> str | None:
    """Return what is wrong if `label`, counted from 0, is not the action of the name."""
    if _is_number(label, entry.action - 1):
        return None
    return f"label {label!r:.40} disagrees with the name, whose action {entry.action} is label {entry.action - 1}"


def _is_number(value: Any, expected: int) -> bool:
    return isinstance(value, int | np.integer) and value == expected


class RawFiles:
    """`SsssCcccPpppRrrrAaaa.skeleton` files at any depth of a folder or a zip, sorted by name."""

    def __init__(self, path: Path) -> None:
        self.description = "raw files in a folder" if path.is_dir() else "raw files in a zip"
        self._members = Members(path, ".skeleton")
        self._files: dict[str, str] = {}
        for file in self._members.names:
            name = Path(file).stem
            if entry_of(name) is None:
                continue
            if name in self._files:
                raise InputError(f"{path}: {name} is there twice, as {self._files[name]} and as {file}")
            self._files[name] = file
        if not self._files:
            raise InputError(f"{path}: no file called SsssCcccPpppRrrrAaaa.skeleton in it")
        self.entries = _entries_of(list(self._files), str(path))

    def sequences(self, rows: Sequence[int]) -> Iterator[np.ndarray | BadRecording]:
        for row in rows:
            yield self._sequence(self.entries[row].name)

    def _sequence(self, name: str) -> np.ndarray | BadRecording:
        try:
            return choose_actors(read_bodies(self._members.read(self._files[name])))
        except InputError as error:
            return BadRecording(name, str(error))


class NpyWithLabels:
    """An array (N, 3, 300, 25, 2) with a pickle (names, labels), in the order of the file."""

    description = "npy with label pickle"

    def __init__(self, path: Path, labels: Path | None) -> None:
        self._rows = _positions_of(path, None, (3, FRAMES, len(NTU), ACTORS))
        labels = labels or _labels_beside(path)
        content = load_pickle(labels)
        if not isinstance(content, tuple | list) or len(content) != 2:
            raise InputError(f"{labels}: expected the pair (names, labels), found {type(content).__name__}")
        for field, values in zip(("names", "labels"), content, strict=True):
            if not isinstance(values, tuple | list | np.ndarray):
                raise InputError(f"{labels}: {field}: expected a list, found {type(values).__name__}")
            if len(values) != len(self._rows):
                raise InputError(f"{labels}: {field}: expected {len(self._rows)}, as in {path}, found {len(values)}")
        names, self._labels = content
        self.entries = _entries_of(list(names), f"{labels}: names")

    def sequences(self, rows: Sequence[int]) -> Iterator[np.ndarray | BadRecording]:
        for row, values in zip(rows, self._rows.rows(rows), strict=True):
            entry = self.entries[row]
            problem = _label_problem(entry, self._labels[row])
            yield BadRecording(entry.name, problem) if problem else values.transpose(3, 1, 2, 0)


def _labels_beside(path: Path) -> Path:
    match = re.fullmatch(r"(.+)_data.*", path.stem)
    labels = path.with_name(f"{match[1]}_label.pkl") if match else None
    if labels is None or not labels.is_file():
        expected = labels.name if labels else "one named like X_label.pkl for X_data.npy"
        raise InputError(f"{path}: its label pickle is not beside it, expected {expected}; give it with labels=")
    return labels


class CtrGcnArrays:
    """An `.npz` with x (N, 300, 150) and one-hot y (N, 60) of each part, in the order of the file.

    It has no names: recordings are called after their part and row, and nothing but the action is known of them.
    """

    description = "CTR-GCN npz"

    def __init__(self, path: Path, parts: Sequence[str]) -> None:
        self._parts: list[StoredArray] = []
        self.entries: list[Entry] = []
        for part in parts:
            rows = _positions_of(path, f"x_{part}", (FRAMES, ACTORS * len(NTU) * 3))
            labels = _read_one_hot(path, f"y_{part}", len(rows))
            self._parts.append(rows)
            self.entries += [Entry(f"{part} {row:06}", label + 1, part=part) for row, label in enumerate(labels)]

    def sequences(self, rows: Sequence[int]) -> Iterator[np.ndarray | BadRecording]:
        start = 0
        for part in self._parts:
            for values in part.rows([row - start for row in rows if start <= row < start + len(part)]):
                yield values.reshape(FRAMES, ACTORS, len(NTU), 3).swapaxes(0, 1)
            start += len(part)


def _read_one_hot(path: Path, field: str, count: int) -> list[int]:
    """Return the labels in the one-hot rows of y; refuse another shape and a row that is not one-hot."""
    labels = StoredArray(path, field)
    where = labels.where
    if labels.dtype.hasobject:
        raise InputError(f"{where}: expected numbers, found objects")
    one_hot = labels.whole()
    if one_hot.shape != (count, ACTION_COUNT):
        raise InputError(f"{where}: expected the shape {(count, ACTION_COUNT)}, found {one_hot.shape}")
    wrong = np.flatnonzero(((one_hot == 1).sum(axis=1) != 1) | ((one_hot != 0).sum(axis=1) != 1))
    if len(wrong):
        raise InputError(f"{where}: row {wrong[0]} is not one-hot")
    return one_hot.argmax(axis=1).tolist()


class PysklAnnotations:
    """A pickle with `annotations`, each a dict of frame_dir, label, total_frames and keypoint (M, T, V, C), by name.

    The file can only be read as a whole. It is held once: arrays that were not chosen are let go when reading begins,
    the others one by one as they are read; reading again loads the file again.
    """

    description = "PYSKL pickle"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._annotations: list[dict[str, Any]] | None = self._load()
        self.entries = _entries_of([each["frame_dir"] for each in self._annotations], f"{path}: frame_dir")

    def _load(self) -> list[dict[str, Any]]:
        content = load_pickle(self._path)
        annotations = content.get("annotations") if isinstance(content, dict) else None
        if not isinstance(annotations, list):
            raise InputError(f"{self._path}: expected a dict with a list `annotations`")
        for row, annotation in enumerate(annotations):
            if not isinstance(annotation, dict) or not isinstance(annotation.get("frame_dir"), str):
                raise InputError(f"{self._path}: annotations[{row}]: expected a dict with a text `frame_dir`")
        return sorted(annotations, key=lambda annotation: annotation["frame_dir"])

    def sequences(self, rows: Sequence[int]) -> Iterator[np.ndarray | BadRecording]:
        annotations, self._annotations = self._annotations or self._load(), None
        waiting = [(self.entries[row], annotations[row]) for row in reversed(rows)]
        del annotations
        while waiting:
            yield _annotated_positions(*waiting.pop())


def _annotated_positions(entry: Entry, annotation: dict[str, Any]) -> np.ndarray | BadRecording:
    lacking = [field for field in ("label", "total_frames", "keypoint") if field not in annotation]
    if lacking:
        return BadRecording(entry.name, f"field {lacking[0]!r} is missing")
    problem = _label_problem(entry, annotation["label"])
    if problem:
        return BadRecording(entry.name, problem)
    values, total = annotation["keypoint"], annotation["total_frames"]
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return BadRecording(entry.name, f"keypoint: expected numbers, found {getattr(values, 'dtype', type(values))}")
    if values.ndim != 4 or not 1 <= values.shape[0] <= ACTORS or values.shape[2:] != (len(NTU), 3):
        return BadRecording(entry.name, f"keypoint: expected (1 or 2, T, {len(NTU)}, 3), found {values.shape}")
    if not _is_number(total, values.shape[1]):
        return BadRecording(entry.name, f"total_frames is {total!r:.40}, but keypoint has {values.shape[1]} frames")
    positions = np.zeros((ACTORS, *values.shape[1:]), dtype=np.float32)
    positions[: len(values)] = values
    return positions


def _positions_of(path: Path, field: str | None, row_shape: tuple[int, ...]) -> StoredArray:
    """Return the array of positions; refuse another shape than (N, *row_shape), Fortran order, and whole numbers."""
    array = StoredArray(path, field)
    if len(array.shape) != 1 + len(row_shape) or array.shape[1:] != row_shape:
        expected = ", ".join(map(str, row_shape))
        raise InputError(f"{array.where}: expected the shape (N, {expected}), found {array.shape}")
    array.refuse_fortran_order()
    if array.dtype.kind != "f":
        raise InputError(f"{array.where}: expected floating-point numbers, found dtype {array.dtype}")
    return array
