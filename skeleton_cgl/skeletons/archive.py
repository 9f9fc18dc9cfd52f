"""The archive: one HDF5 file with all sequences of a data set, and how clips are made of them.

Layout of the file: `positions` (total frames, A, V, C) holds the centred sequences one after the other, as recorded in
length and scale; `sequences/*` holds one value per sequence (start, label, name, subject, view, repetition, and a
checksum of its content), `groups/*` what else a data set may be split by. Attributes hold format, version, layout,
classes, preparation, provenance, the recordings set aside or left out, and the digest. Scaling, number of frames and
stream are applied when clips are asked for, so that one archive serves them all, and augmentation too.

Promises: a file at its final path is complete (it is written beside and renamed) and sealed, so that damage is noticed
before anything is read, once per file, time of change and process; of one without a seal, written by an earlier release
or by other means, the content is read and compared with the digest instead. The digest depends on layout, classes,
preparation, labels and positions alone.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import h5py
import numpy as np

from skeleton_cgl.config import place_of
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.reading.formats import SKELETONS, refuse_other
from skeleton_cgl.reading.seal import SIZE as SEAL_SIZE
from skeleton_cgl.reading.seal import is_intact, is_known, is_sealed, remember, seal
from skeleton_cgl.skeletons.layout import JointLayout
from skeleton_cgl.skeletons.preparation import Augmentation, Preparation, centre, make_clip
from skeleton_cgl.skeletons.recording import FACTS, BadRecording, Recording, Source, tidy
from skeleton_cgl.version import __version__

VERSION = 1
_LARGEST = 2**31
_CONTENT_BYTES = 16
_FRAMES_PER_CHUNK = 128
_FRAMES_PER_WRITE = 16 * _FRAMES_PER_CHUNK

_UNREADABLE = (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError)
"""What h5py raises, and what is raised of values that are not what they should be, in a damaged file."""

Progress = Callable[[Iterator[Recording | BadRecording], int], Iterable[Recording | BadRecording]]


Duplicates = Literal["keep", "first"]
"""What becomes of recordings that are identical to an earlier one: all are kept, or the first alone."""


def _no_progress(recordings: Iterator[Recording | BadRecording], _total: int) -> Iterator[Recording | BadRecording]:
    return recordings


def write_archive(
    source: Source,
    path: str | Path,
    skip_bad: bool = False,
    progress: Progress = _no_progress,
    preparation: Preparation | None = None,
    duplicates: Duplicates = "keep",
) -> list[BadRecording]:
    """Write all recordings of `source` to a new archive at `path`; return the bad ones that were set aside.

    `preparation` is what clips are made by unless they are asked for otherwise; by default the source's own. Of
    identical recordings, duplicates "keep" writes all and "first" writes the first.

    Refused: a bad recording, unless `skip_bad`; two of one name; a class without a recording; a centre that is no
    joint. What is refused leaves no file behind, and leaves an archive that stood at `path` as it was.
    """
    path = Path(path)
    with write_beside(path) as unfinished:
        with h5py.File(unfinished, "w", userblock_size=SEAL_SIZE) as file:
            bad = _write(source, file, preparation or source.preparation, skip_bad, progress, duplicates)
        seal(unfinished)
    return bad


def _write(
    source: Source,
    file: h5py.File,
    preparation: Preparation,
    skip_bad: bool,
    progress: Progress,
    duplicates: Duplicates,
) -> list[BadRecording]:
    if preparation.centre >= len(source.layout):
        raise InputError(f"centre: joint {preparation.centre} is outside the joints 0–{len(source.layout) - 1}")
    bad: list[BadRecording] = []
    left_out: list[tuple[str, str]] = []
    first_of: dict[bytes, str] = {}
    columns: dict[str, list[Any]] = {name: [] for name in ("name", "label", "groups", *FACTS, "content")}
    starts = [0]
    positions = _PositionWriter(file)
    place_of_name: dict[str, int] = {}
    for place, recording in enumerate(progress(source.recordings(), len(source))):
        checked = _checked(recording, source, preparation.centre)
        if isinstance(checked, BadRecording):
            if not skip_bad:
                raise InputError(f"{checked} (--skip-bad sets such recordings aside)")
            bad.append(checked)
            continue
        earlier = place_of_name.setdefault(checked.name, place)
        if earlier != place:
            raise InputError(f"{checked.name} is there twice, as recording {earlier} and as recording {place}")
        content = _content(checked.positions)
        if duplicates == "first" and content in first_of:
            left_out.append((checked.name, first_of[content]))
            continue
        first_of.setdefault(content, checked.name)
        positions.append(checked.positions)
        starts.append(starts[-1] + checked.positions.shape[1])
        for name, values in columns.items():
            values.append(content if name == "content" else getattr(checked, name))
    positions.flush()
    _write_columns(file, source.classes, starts, columns)
    file.attrs.update(
        format=SKELETONS,
        version=VERSION,
        layout=source.layout.model_dump_json(),
        classes=json.dumps(source.classes),
        preparation=preparation.model_dump_json(),
        provenance=json.dumps({"skeleton_cgl": __version__, **source.provenance}),
        set_aside=json.dumps([[recording.name, recording.reason] for recording in bad]),
        left_out=json.dumps(left_out),
    )
    file.attrs["digest"] = _digest(file)
    return bad


def _checked(recording: Recording | BadRecording, source: Source, joint: int) -> Recording | BadRecording:
    """Return the recording with tidy positions, centred at a joint, or why it cannot be used."""
    if isinstance(recording, BadRecording):
        return recording
    if "\0" in recording.name:
        return BadRecording(repr(recording.name), "the name has a NUL in it")
    numbers = {field: getattr(recording, field) for field in ("label", *FACTS)}
    for field, value in {**numbers, **recording.groups}.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not -_LARGEST < int(value) < _LARGEST:
            return BadRecording(recording.name, f"{field}: expected a whole number of 32 bits, found {value!r:.40}")
    if not 0 <= recording.label < len(source.classes):
        return BadRecording(recording.name, f"label {recording.label} is outside the {len(source.classes)} classes")
    try:
        positions = tidy(recording.positions, source.layout)
    except InputError as error:
        return BadRecording(recording.name, str(error))
    if not positions[0].any():
        return BadRecording(recording.name, "the first actor has no frame")
    with np.errstate(over="ignore"):
        centred = centre(positions, joint)
    if not np.isfinite(centred).all():
        return BadRecording(recording.name, "positions are too large to be centred")
    return replace(recording, positions=centred)


def _write_columns(
    file: h5py.File, classes: Sequence[str], starts: Sequence[int], columns: Mapping[str, Sequence[Any]]
) -> None:
    """Write what is known of every sequence; refuse a class without one."""
    _refuse_empty_classes(np.array(columns["label"], dtype=np.int64), classes)
    group = file.create_group("sequences")
    group["start"] = np.array(starts, dtype=np.int64)
    group["label"] = np.array(columns["label"], dtype=np.int16 if len(classes) < 2**15 else np.int32)
    group.create_dataset("name", data=columns["name"], dtype=h5py.string_dtype())
    group["content"] = np.frombuffer(b"".join(columns["content"]), dtype=np.uint8).reshape(-1, _CONTENT_BYTES)
    for fact in FACTS:
        group[fact] = np.array(columns[fact], dtype=np.int32)
    _write_groups(file, columns["name"], columns["groups"])


def _write_groups(file: h5py.File, names: Sequence[str], groups: Sequence[Mapping[str, int]]) -> None:
    """Write every column of groups as `groups/COLUMN`; refuse a recording that has other columns than the first."""
    for name, columns in zip(names, groups, strict=True):
        if columns.keys() != groups[0].keys():
            raise InputError(f"{name}: groups: expected {sorted(groups[0])} as of {names[0]}, found {sorted(columns)}")
    for column in groups[0]:
        file[f"groups/{column}"] = np.array([columns[column] for columns in groups], dtype=np.int32)


def _refuse_empty_classes(labels: np.ndarray, classes: Sequence[str]) -> None:
    if not len(labels):
        raise InputError("no recording was found that fits the choice of classes and split")
    counts = np.bincount(labels, minlength=len(classes))
    empty = [name for name, count in zip(classes, counts, strict=True) if not count]
    if empty:
        raise InputError(f"no recording of class {empty[0]!r} ({len(empty)} of {len(classes)} classes are empty)")


class _PositionWriter:
    """Appends sequences to the data set `positions`, a few thousand frames at a time."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self._waiting: list[np.ndarray] = []
        self._count = 0

    def append(self, sequence: np.ndarray) -> None:
        frames = sequence.swapaxes(0, 1)
        if "positions" not in self._file:
            self._file.create_dataset(
                "positions",
                shape=(0, *frames.shape[1:]),
                maxshape=(None, *frames.shape[1:]),
                chunks=(_FRAMES_PER_CHUNK, *frames.shape[1:]),
                dtype=np.float32,
                compression="gzip",
                compression_opts=1,
                shuffle=True,
                fletcher32=True,
            )
        expected = self._file["positions"].shape[1:]
        if frames.shape[1:] != expected:
            raise InputError(
                f"all recordings must have the same actors, joints and coordinates {expected}, found {frames.shape[1:]}"
            )
        self._waiting.append(frames)
        self._count += len(frames)
        if self._count >= _FRAMES_PER_WRITE:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        positions = self._file["positions"]
        end = len(positions)
        positions.resize(end + self._count, axis=0)
        positions[end:] = np.concatenate(self._waiting)
        self._waiting, self._count = [], 0


def _digest(file: h5py.File) -> str:
    """Return the SHA-256 of layout, classes, preparation, starts, labels and positions, as hexadecimal digits."""
    digest = hashlib.sha256()
    for name in ("layout", "classes", "preparation"):
        digest.update(file.attrs[name].encode() + b"\0")
    for name in ("sequences/start", "sequences/label"):
        digest.update(file[name][:].astype("<i8").tobytes())
    digest.update(repr(file["positions"].shape).encode())
    for _, frames in _blocks(file):
        digest.update(frames.astype("<f4").tobytes())
    return digest.hexdigest()


def _first_not_finite(file: h5py.File) -> int | None:
    """Return the first frame with a position that is not finite."""
    for start, frames in _blocks(file):
        broken = np.flatnonzero(~np.isfinite(frames).all(axis=(1, 2, 3)))
        if len(broken):
            return start + int(broken[0])
    return None


def _blocks(file: h5py.File) -> Iterator[tuple[int, np.ndarray]]:
    """Yield all positions, some frames at a time, each time with the number of the first."""
    positions = file["positions"]
    for start in range(0, len(positions), _FRAMES_PER_WRITE):
        yield start, positions[start : start + _FRAMES_PER_WRITE]


def _content(sequence: np.ndarray) -> bytes:
    """Return a checksum of a centred sequence (A, T, V, C), which tells whether two are identical."""
    digest = hashlib.blake2b(repr(sequence.shape).encode(), digest_size=_CONTENT_BYTES)
    digest.update(sequence.astype("<f4").tobytes())
    return digest.digest()


class Archive:
    """An archive opened for reading; positions are read from the file when sequences or clips are asked for.

    labels, subjects, views, repetitions are (N,) integers, −1 where unknown; lengths (N,) are recorded frames. groups
    are columns (N,) of the data set's own. left_out names the recordings that were not written because they are
    identical to another, and that other.
    """

    def __init__(self, file: h5py.File, path: str) -> None:
        self._file = file
        self.path = path
        try:
            self._read_head()
        except InputError:
            raise
        except _UNREADABLE as error:
            raise _damaged(path, error) from error

    @classmethod
    def open(cls, path: str | Path) -> "Archive":
        """Open the archive at `path`; refuse what is no archive, a damaged one and one of another version."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"{path}: no such file; make it with `skeleton-cgl prepare`")
        known = is_known(path)
        sealed = known or is_sealed(path)
        if not known and sealed and not is_intact(path):
            raise _damaged(str(path), "its bytes are not those that were written")
        try:
            file = h5py.File(path, "r")
        except OSError as error:
            raise _damaged(str(path), error) from error
        try:
            archive = cls(file, str(path))
            if not sealed:
                archive.verify()
        except InputError:
            file.close()
            raise
        remember(path)
        return archive

    @classmethod
    def in_memory(cls, source: Source) -> "Archive":
        """Return an archive of `source` that lives in memory alone."""
        file = h5py.File.in_memory()
        try:
            _write(source, file, source.preparation, skip_bad=False, progress=_no_progress, duplicates="keep")
            return cls(file, source.layout.name)
        except BaseException:
            file.close()
            raise

    def _read_head(self) -> None:
        file, attributes = self._file, self._file.attrs
        refuse_other(self.path, attributes.get("format"), SKELETONS)
        if attributes["version"] != VERSION:
            raise InputError(
                f"{self.path}: archive version {attributes['version']}, this release reads {VERSION}; "
                "prepare it again from the recordings"
            )
        self.digest = str(attributes["digest"])
        self.layout = JointLayout.model_validate_json(attributes["layout"])
        self.classes: tuple[str, ...] = tuple(json.loads(attributes["classes"]))
        self.preparation = Preparation.model_validate_json(attributes["preparation"])
        self.provenance: dict[str, str] = json.loads(attributes["provenance"])
        self.set_aside = [BadRecording(*entry) for entry in json.loads(attributes["set_aside"])]
        self.left_out = [(name, first) for name, first in json.loads(attributes.get("left_out", "[]"))]
        self._starts = file["sequences/start"][:]
        self.lengths = np.diff(self._starts)
        self.names = tuple(file["sequences/name"].asstr()[:])
        columns = {field: file[f"sequences/{field}"][:] for field in ("label", *FACTS)}
        self.groups: dict[str, np.ndarray] = {name: column[:] for name, column in file.get("groups", {}).items()}
        self._check_columns({**columns, **self.groups})
        self.labels = columns["label"].astype(np.int64)
        self.subjects, self.views, self.repetitions = (columns[fact] for fact in FACTS)

    def _check_columns(self, columns: Mapping[str, np.ndarray]) -> None:
        """Refuse columns and positions that do not fit each other, the layout or the classes."""
        for field, column in {"start": self._starts, **columns}.items():
            if column.ndim != 1 or column.dtype.kind not in "iu":
                raise InputError(f"{self.path}: {field}: expected whole numbers, found {column.dtype} {column.shape}")
        if any(len(column) != len(self) for column in (self.names, *columns.values())):
            raise ValueError("its parts differ in length")
        positions = self._file["positions"]
        if positions.ndim != 4 or positions.shape[2] != len(self.layout) or positions.dtype != np.float32:
            raise InputError(
                f"{self.path}: positions: expected float32 (frames, actors, {len(self.layout)} joints, coordinates), "
                f"found {positions.dtype} {positions.shape}"
            )
        if self.preparation.centre >= len(self.layout):
            raise InputError(f"{self.path}: preparation: centre {self.preparation.centre} is no joint")
        for row in np.flatnonzero((self.lengths < 1) | (self._starts[:-1] < 0))[:1]:
            raise InputError(
                f"{self.path}: sequence {row} ({self.names[row]}): start: from frame {self._starts[row]} "
                f"to {self._starts[row + 1]}"
            )
        if self._starts[0] != 0 or self._starts[-1] != len(positions):
            raise InputError(
                f"{self.path}: start: frames {self._starts[0]} to {self._starts[-1]}, but there are {len(positions)}"
            )
        labels = columns["label"]
        for row in np.flatnonzero((labels < 0) | (labels >= len(self.classes)))[:1]:
            raise InputError(
                f"{self.path}: sequence {row} ({self.names[row]}): label {labels[row]} is outside the "
                f"{len(self.classes)} classes"
            )

    def __len__(self) -> int:
        return len(self._starts) - 1

    @property
    def sequence_shape(self) -> tuple[int, int, int]:
        """The actors A, joints V and coordinates C of every sequence."""
        return self._file["positions"].shape[1:]

    @cached_property
    def copies(self) -> np.ndarray:
        """(N,) the first sequence with the same content: its own place unless it is identical to an earlier one."""
        if "content" in self._file["sequences"]:
            contents = [row.tobytes() for row in self._file["sequences/content"][:]]
        else:
            contents = [_content(self.sequence(index)) for index in range(len(self))]
        first_of: dict[bytes, int] = {}
        return np.array([first_of.setdefault(content, index) for index, content in enumerate(contents)])

    def index(self, sequence: str) -> int:
        """Return the index of a sequence given by name or by number; refuse an unknown one."""
        place = place_of(sequence, self.names)
        if place is not None:
            return place
        near = get_close_matches(sequence, self.names, n=1)
        raise InputError(
            f"{self.path}: no sequence {sequence!r}; expected 0–{len(self) - 1} or a name such as "
            f"{near[0] if near else self.names[0]!r}"
        )

    def sequence(self, index: int) -> np.ndarray:
        """Return (A, T, V, C) float32: the centred positions of one sequence, as recorded in length and scale."""
        if not 0 <= index < len(self):
            raise IndexError(f"{self.path}: sequence {index} of {len(self)}")
        start, end = self._starts[index : index + 2]
        try:
            return self._file["positions"][start:end].swapaxes(0, 1)
        except OSError as error:
            raise _damaged(self.path, error) from error

    def clips(
        self,
        indices: Sequence[int] | np.ndarray | None = None,
        preparation: Preparation | None = None,
        augmentation: Augmentation | None = None,
        random: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Return (N, A, frames, V, C) float32: clips of the chosen sequences, or of all, ready to learn from.

        `preparation` defaults to the archive's own; the joint of `centre` is the archive's in any case.
        """
        indices = range(len(self)) if indices is None else indices
        preparation = preparation or self.preparation
        actors, joints, coordinates = self.sequence_shape
        clips = np.empty((len(indices), actors, preparation.frames, joints, coordinates), dtype=np.float32)
        for row, index in enumerate(indices):
            clips[row] = make_clip(self.sequence(index), self.layout, preparation, augmentation, random)
        return clips

    def verify(self) -> None:
        """Read everything; refuse the archive unless it has the content its digest tells, all of it finite."""
        try:
            found, broken = _digest(self._file), _first_not_finite(self._file)
        except _UNREADABLE as error:
            raise _damaged(self.path, error) from error
        if found != self.digest:
            raise _damaged(self.path, f"digest {found[:12]}…, expected {self.digest[:12]}…")
        if broken is not None:
            row = int(np.searchsorted(self._starts, broken, side="right")) - 1
            raise InputError(f"{self.path}: sequence {row} ({self.names[row]}): positions: not all are finite")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "Archive":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _damaged(path: str, reason: object) -> InputError:
    said = " ".join(str(reason).split())
    return InputError(f"{path}: damaged, or not an archive ({said}); prepare it again from the recordings")
