"""Any other skeleton set, without code: an `.npz` with sequences and labels, and a layout file.

| array | what |
|---|---|
| sequences | (N, T, V, C), or an object array of N arrays (T, V, C) of any length; (A, T, V, C) for several actors |
| labels | (N,) class names, or numbers |
| class_names | optional: (K,) names; numeric labels then count from 0 in it, and it fixes the order of the classes |
| lengths | optional, with (N, T, V, C): how many frames of each sequence are real |
| names, subjects, views, repetitions | optional: (N,) |
| group_NAME | optional: (N,) whole numbers, what else the set may be split by, such as group_session |
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.npy import StoredArray, check_text, field_names
from skeleton_cgl.skeletons.layout import JointLayout
from skeleton_cgl.skeletons.preparation import Preparation
from skeleton_cgl.skeletons.recording import FACTS, UNKNOWN, BadRecording, Recording, Source

MOST_CLASSES = 10_000
_LARGEST_FACT = 2**31 - 1
_ARRAYS = ("sequences", "labels", "class_names", "lengths", "names", *(f"{fact}s" for fact in FACTS))
_GROUP = "group_"


class CustomSource(Source):
    """The sequences of a user's `.npz`; read one at a time unless they are of different lengths.

    Refused: unknown or missing arrays, arrays whose lengths differ, labels outside the class names, a shape that
    does not fit the layout, no sequence at all, very many classes, control characters in names.
    """

    def __init__(self, path: str | Path, layout: JointLayout, preparation: Preparation) -> None:
        self.layout = layout
        self.preparation = preparation
        self.provenance = {"data set": "custom", "source": Path(path).name}
        self._path = Path(path)
        self._present = field_names(self._path)
        for name in self._present:
            if name not in _ARRAYS and not _is_group(name):
                raise InputError(f"{path}: unknown array {shown(name)}{did_you_mean(name, _ARRAYS)}")
        self._sequences = self._checked_sequences()
        labels = self._per_sequence("labels")
        if labels is None:
            raise InputError(f"{path}: array 'labels' is missing")
        self.classes, self._labels = self._look_up(labels, self._class_names())
        if len(self.classes) > MOST_CLASSES:
            raise InputError(
                f"{path}: array 'labels': {len(self.classes):,} classes, at most {MOST_CLASSES:,} are read"
            )
        self._lengths = self._per_sequence("lengths")
        self._check_lengths()
        self._names = self._per_sequence("names")
        self._refuse_twice()
        self._facts = {fact: self._per_sequence(f"{fact}s", numbers=True) for fact in FACTS}
        self._groups = {
            name.removeprefix(_GROUP): self._per_sequence(name, numbers=True)
            for name in self._present
            if _is_group(name)
        }

    def _checked_sequences(self) -> StoredArray:
        sequences = StoredArray(self._path, "sequences")
        if sequences.dtype.hasobject:
            if len(sequences.shape) != 1:
                raise InputError(f"{sequences.where}: expected N arrays of numbers, found shape {sequences.shape}")
        else:
            sequences.refuse_fortran_order()
            if len(sequences.shape) not in (4, 5):
                raise InputError(f"{sequences.where}: expected (N, T, V, C), found {sequences.shape}")
            if sequences.dtype.kind not in "fiu":
                raise InputError(f"{sequences.where}: expected numbers, found {sequences.dtype}")
        if not len(sequences):
            raise InputError(f"{sequences.where}: no sequence in it")
        return sequences

    def _refuse_twice(self) -> None:
        found: dict[str, int] = {}
        for index, name in enumerate([] if self._names is None else map(str, self._names)):
            if found.setdefault(name, index) != index:
                raise InputError(
                    f"{self._path}: array 'names': {name!r} is there twice, as sequence {found[name]} and as {index}"
                )

    def _array(self, name: str) -> np.ndarray | None:
        """Return a small array, objects as text, or None where the file has none of that name."""
        if name not in self._present:
            return None
        array = StoredArray(self._path, name).whole()
        if array.dtype.hasobject:
            array = np.array([str(value) for value in array.ravel()])
        check_text(array, f"{self._path}: array {name!r}")
        return array

    def _class_names(self) -> np.ndarray | None:
        names = self._array("class_names")
        if names is not None and (names.ndim != 1 or names.dtype.kind not in "iuU"):
            raise InputError(
                f"{self._path}: array 'class_names': expected names (K,), found {names.dtype} {names.shape}"
            )
        return names

    def __len__(self) -> int:
        return len(self._sequences)

    def recordings(self) -> Iterator[Recording | BadRecording]:
        several = self._sequences.dtype.hasobject
        stored = self._sequences.whole() if several else self._sequences.rows(range(len(self)))
        for index, sequence in enumerate(stored):
            name = f"sequence {index}" if self._names is None else str(self._names[index])
            facts = {fact: UNKNOWN if values is None else int(values[index]) for fact, values in self._facts.items()}
            groups = {name: int(values[index]) for name, values in self._groups.items() if values is not None}
            try:
                positions = self._positions(sequence, index)
            except InputError as error:
                yield BadRecording(name, str(error))
                continue
            yield Recording(name, positions, int(self._labels[index]), **facts, groups=groups)

    def _positions(self, sequence: object, index: int) -> np.ndarray:
        if not isinstance(sequence, np.ndarray) or sequence.dtype.kind not in "fiu":
            raise InputError("array 'sequences': not an array of numbers")
        if sequence.ndim not in (3, 4) or sequence.shape[-2] != len(self.layout):
            raise InputError(f"array 'sequences': expected (T, {len(self.layout)}, C), found {sequence.shape}")
        positions = sequence if sequence.ndim == 4 else sequence[None]
        return positions if self._lengths is None else positions[:, : int(self._lengths[index])]

    def _look_up(self, labels: np.ndarray, class_names: np.ndarray | None) -> tuple[tuple[str, ...], np.ndarray]:
        """Return the class names, and (N,) for every sequence the position of its class among them."""
        if class_names is None:
            present = np.unique(labels)
            names = [str(label) if labels.dtype.kind == "U" else f"class {label}" for label in present]
            return tuple(names), np.searchsorted(present, labels)
        names = [str(name) for name in class_names]
        if len(set(names)) != len(names):
            raise InputError(f"{self._path}: array 'class_names': names must differ")
        known = {name: label for label, name in enumerate(names)} if labels.dtype.kind == "U" else range(len(names))
        for index, label in enumerate(labels.tolist()):
            if label not in known:
                raise InputError(
                    f"{self._path}: array 'labels': {shown(label)} of sequence {index} is not among the class names"
                )
        table = [known[label] for label in labels.tolist()]
        return tuple(names), np.array(table)

    def _per_sequence(self, name: str, numbers: bool = False) -> np.ndarray | None:
        """Return the optional array `name`; refuse it unless it has one value of the right kind per sequence."""
        array = self._array(name)
        if array is None:
            return None
        if array.shape != (len(self),):
            raise InputError(
                f"{self._path}: array {name!r}: expected one value per sequence, ({len(self)},), found {array.shape}"
            )
        if array.dtype.kind not in ("iu" if numbers else "iuU"):
            raise InputError(
                f"{self._path}: array {name!r}: expected {'whole numbers' if numbers else 'whole numbers or text'}"
                f", found {array.dtype}"
            )
        if numbers and not (array.min() >= UNKNOWN and array.max() <= _LARGEST_FACT):
            raise InputError(
                f"{self._path}: array {name!r}: expected {UNKNOWN} (unknown) to {_LARGEST_FACT}, "
                f"found {array.min()} to {array.max()}"
            )
        return array

    def _check_lengths(self) -> None:
        if self._lengths is None:
            return
        if self._sequences.dtype.hasobject:
            raise InputError(f"{self._path}: array 'lengths' only goes with sequences of one shape")
        frames = self._sequences.shape[-3]
        if self._lengths.dtype.kind not in "iu" or self._lengths.min() < 1 or self._lengths.max() > frames:
            raise InputError(f"{self._path}: array 'lengths': expected whole numbers from 1 to {frames}")


def _is_group(name: str) -> bool:
    return name.startswith(_GROUP) and name.removeprefix(_GROUP).isidentifier()
