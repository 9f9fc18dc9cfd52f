"""NTU RGB+D (Shahroudy et al. 2016) as a source of recordings: which are chosen, whatever form they lie in on disk.

All four forms of `ntu_forms` give the same sequences: frames nobody is in are dropped, and padding is taken off.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import field_validator

from skeleton_cgl.config import Checked, check
from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons.layout import NTU
from skeleton_cgl.skeletons.preparation import Preparation
from skeleton_cgl.skeletons.recording import BadRecording, Recording, Source, tidy
from skeleton_cgl.skeletons.sources.ntu_forms import (
    ACTION_COUNT,
    FRAMES,
    NAME,
    CtrGcnArrays,
    Entry,
    Form,
    NpyWithLabels,
    PysklAnnotations,
    RawFiles,
)

TRAINING_SUBJECTS = frozenset({1, 2, 4, 5, 8, 9, 13, 14, 15, 16, 17, 18, 19, 25, 27, 28, 31, 34, 35, 38})
TRAINING_VIEWS = frozenset({2, 3})
ACTIONS = (
    *["drink water", "eat meal", "brush teeth", "brush hair", "drop"],
    *["pick up", "throw", "sit down", "stand up", "clapping"],
    *["reading", "writing", "tear up paper", "put on jacket", "take off jacket"],
    *["put on a shoe", "take off a shoe", "put on glasses", "take off glasses", "put on a hat"],
    *["take off a hat", "cheer up", "hand waving", "kicking something", "reach into pocket"],
    *["hopping", "jump up", "phone call", "play with phone", "type on a keyboard"],
    *["point to something", "taking a selfie", "check time", "rub two hands", "nod head or bow"],
    *["shake head", "wipe face", "salute", "put palms together", "cross hands in front"],
    *["sneeze or cough", "staggering", "falling down", "headache", "chest pain"],
    *["back pain", "neck pain", "nausea or vomiting", "fan self", "punch or slap"],
    *["kicking", "pushing", "pat on back", "point finger", "hugging"],
    *["giving object", "touch pocket", "shaking hands", "walking towards", "walking apart"],
)
"""The names of the actions A001 to A060."""

_MISSING_LISTS = "*samples_with_missing_skeletons*.txt"
_BENCHMARK_MARKS = {"NTU60_CS": "x-sub", "NTU60_CV": "x-view"}


class Selection(Checked):
    """Which recordings are chosen, and how many actors of each; classes are numbered as in A001 to A060."""

    classes: tuple[int, ...]
    benchmark: Literal["x-sub", "x-view"]
    part: Literal["train", "test", "all"]
    actors: Literal[1, 2]

    @field_validator("classes")
    @classmethod
    def _classes_are_known_and_distinct(cls, classes: tuple[int, ...]) -> tuple[int, ...]:
        if not classes:
            raise ValueError("at least one class is needed")
        for action, times in Counter(classes).items():
            if not 1 <= action <= ACTION_COUNT:
                raise ValueError(f"class {action} is unknown, expected 1–{ACTION_COUNT}")
            if times > 1:
                raise ValueError(f"class {action} is given twice")
        return tuple(sorted(classes))

    @property
    def parts(self) -> tuple[str, ...]:
        return ("train", "test") if self.part == "all" else (self.part,)

    def takes(self, entry: Entry) -> bool:
        """Return whether a recording is chosen."""
        return entry.action in self.classes and self.part_of(entry) in self.parts

    def part_of(self, entry: Entry) -> str:
        """Return "train" or "test": where the benchmark puts a recording."""
        if entry.part is not None:
            return entry.part
        if self.benchmark == "x-sub":
            return "train" if entry.subject in TRAINING_SUBJECTS else "test"
        return "train" if entry.view in TRAINING_VIEWS else "test"


class NtuSource(Source):
    """The chosen recordings of NTU RGB+D at a path, by default those of the order study.

    path: a folder or .zip of raw `.skeleton` files, an `X_data*.npy` with `X_label.pkl` beside it or given as `labels`,
    an .npz of CTR-GCN or a .pkl of PYSKL.
    missing: the text file of samples with missing skeletons, which are left out; for raw files, one lying in their
    folder or the folder above is found by itself.
    Refused: a selection that does not exist, a path that is none of these, a whole file of wrong content.
    """

    layout = NTU
    preparation = Preparation(frames=FRAMES, centre=1, scale="none", fit="repeat")

    def __init__(
        self,
        path: str | Path,
        classes: Iterable[int] = range(1, 11),
        benchmark: str = "x-sub",
        part: str = "train",
        actors: int = 1,
        missing: str | Path | None = None,
        labels: str | Path | None = None,
    ) -> None:
        path = Path(path)
        selection = check(
            {"classes": tuple(classes), "benchmark": benchmark, "part": part, "actors": actors}, Selection, where="ntu"
        )
        if labels is not None and path.suffix.lower() != ".npy":
            raise InputError(f"{path}: labels are for an .npy array, found labels={labels}")
        self._form = _open_form(path, selection, None if labels is None else Path(labels))
        self._actors = selection.actors
        self._labels = {action: label for label, action in enumerate(selection.classes)}
        self.classes = tuple(ACTIONS[action - 1] for action in selection.classes)
        if missing is not None and isinstance(self._form, CtrGcnArrays):
            raise InputError(f"{path}: has no names of recordings, so that missing={missing} cannot be applied")
        near = _lists_near(path) if missing is None and isinstance(self._form, RawFiles) else []
        lists = near if missing is None else [Path(missing)]
        self._rows, left_out = self._choose(selection, lists, path.resolve().name)
        found = " (found beside the recordings)" if near else ""
        self.provenance = {
            "source": path.resolve().name,
            "form": self._form.description,
            "benchmark": benchmark,
            "part": part,
            "classes": " ".join(f"A{action:03}" for action in selection.classes),
            "actors": str(actors),
            "missing list": ", ".join(file.name for file in lists) + found if lists else "none",
            "missing count": str(left_out),
        }

    def _choose(self, selection: Selection, lists: Iterable[Path], where: str) -> tuple[list[int], int]:
        """Return the rows a selection takes and no list names, and how many the lists left out."""
        missing = {name for file in lists for name in _read_missing(file)}
        entries = self._form.entries
        taken = [row for row, entry in enumerate(entries) if selection.takes(entry)]
        rows = [row for row in taken if entries[row].name not in missing]
        found = {entries[row].action for row in rows}
        for action in selection.classes:
            if action not in found:
                raise InputError(
                    f"{where}: no recording of class {action} ({ACTIONS[action - 1]}) "
                    f"in {selection.benchmark}, {selection.part}"
                )
        return rows, len(taken) - len(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def recordings(self) -> Iterator[Recording | BadRecording]:
        for row, sequence in zip(self._rows, self._form.sequences(self._rows), strict=True):
            yield sequence if isinstance(sequence, BadRecording) else self._recording(self._form.entries[row], sequence)

    def _recording(self, entry: Entry, sequence: np.ndarray) -> Recording | BadRecording:
        try:
            sequence = tidy(_unpadded(sequence), NTU)
        except InputError as error:
            return BadRecording(entry.name, str(error))
        # Some padded arrays repeat each actor by itself, so that the first has a period where both together have none.
        positions = _unpadded(sequence[: self._actors])
        return Recording(entry.name, positions, self._labels[entry.action], entry.subject, entry.view, entry.repetition)


def _open_form(path: Path, selection: Selection, labels: Path | None) -> Form:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    kind = "folder" if path.is_dir() else path.suffix.lower()
    if kind in ("folder", ".zip"):
        return RawFiles(path)
    if kind == ".npy":
        form = NpyWithLabels(path, labels)
        _refuse_other_benchmark(path, form, selection)
        return form
    if kind == ".npz":
        for mark, benchmark in _BENCHMARK_MARKS.items():
            if mark.lower() in path.name.lower() and benchmark != selection.benchmark:
                raise InputError(f"{path}: benchmark: {mark} is {benchmark}, asked for {selection.benchmark}")
        return CtrGcnArrays(path, selection.parts)
    if kind == ".pkl":
        return PysklAnnotations(path)
    raise InputError(f"{path}: expected a folder, .zip, .npy, .npz or .pkl, found {path.suffix or 'none of these'!r}")


def _refuse_other_benchmark(path: Path, form: NpyWithLabels, selection: Selection) -> None:
    """Refuse a `train_data*.npy` or `val_data*.npy` that was made for the other benchmark, by the names in it."""
    expected = {"train": "train", "val": "test", "test": "test"}.get(path.stem.split("_")[0])
    for entry in form.entries:
        if expected and selection.part_of(entry) != expected:
            raise InputError(f"{path}: {entry.name} is not in the {expected} part of {selection.benchmark}")


def _lists_near(path: Path) -> list[Path]:
    """Return the lists of missing samples in the folder of raw files or of their zip, else in the folder above."""
    folder = path.resolve() if path.is_dir() else path.resolve().parent
    for place in (folder, folder.parent):
        lists = sorted(file for file in place.glob(_MISSING_LISTS) if file.is_file())
        if lists:
            return lists
    return []


def _read_missing(path: Path) -> frozenset[str]:
    """Return the names of recordings anywhere in a text file; refuse a file without one."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    names = frozenset(match[0] for match in NAME.finditer(text))
    if not names:
        raise InputError(f"{path}: no name of a recording in it, expected lines like S001C001P001R001A001")
    return names


def _unpadded(sequence: np.ndarray) -> np.ndarray:
    """Return (A, p, V, C): a sequence of 300 frames without padding by repetition, any other as it is.

    p is the smallest period: x[t] = x[t − p] for all t ≥ p. Repeating the result to 300 frames gives `sequence` again.
    """
    if sequence.shape[1] != FRAMES:
        return sequence
    like_the_first = (sequence[:, 1:] == sequence[:, :1]).all(axis=(0, 2, 3))
    for period in 1 + np.flatnonzero(like_the_first):
        if (sequence[:, period:] == sequence[:, :-period]).all():
            return sequence[:, :period]
    return sequence
