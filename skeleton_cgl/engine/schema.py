"""What a store of version 4 looks like inside: its tables, and how rows and records become columns and come back.

Every row ends with a checksum of its table's name and its other columns. The answers of a record are beside, with a
checksum of their own that the record's covers, so that scores are read and verified without them. A row that is gone
has no checksum: a study says how many learners and runs it has, and the table of tallies how many rows there are of
everything else.

Scores are one compressed blob: the length of a head (four bytes), the head (JSON, padded to eight bytes: part, metric,
number of units, type of `asked`, type and shape of `counts`), then all values as float64, all `asked`, all `counts`,
little-endian and in the narrowest type that holds them. Records of one problem have the same head, so that it is parsed
once.
"""

import hashlib
import io
import json
import math
import struct
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from skeleton_cgl.engine.record import Facts, Kept, Made, Record
from skeleton_cgl.engine.rows import ComponentRow, LearnerRow, RunRow, StudyRow
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, describe, parse
from skeleton_cgl.scenarios.measures import Measure

VERSION = 4
TABLES = (
    """CREATE TABLE IF NOT EXISTS studies (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, spec TEXT NOT NULL, digests TEXT NOT NULL, units TEXT NOT NULL,
    tasks TEXT NOT NULL, metrics TEXT NOT NULL, created TEXT NOT NULL, notes TEXT NOT NULL, learners INTEGER NOT NULL,
    runs INTEGER NOT NULL, checksum BLOB NOT NULL, UNIQUE (spec, digests)
)""",
    """CREATE TABLE IF NOT EXISTS learners (
    study INTEGER NOT NULL, learner INTEGER NOT NULL, content TEXT NOT NULL, checksum BLOB NOT NULL,
    PRIMARY KEY (study, learner)
)""",
    """CREATE TABLE IF NOT EXISTS runs (
    study INTEGER NOT NULL, run INTEGER NOT NULL, learner INTEGER NOT NULL, kind TEXT NOT NULL,
    repeat INTEGER NOT NULL, noise INTEGER NOT NULL, floor TEXT NOT NULL, orders TEXT NOT NULL, keys TEXT NOT NULL,
    checksum BLOB NOT NULL, PRIMARY KEY (study, run)
)""",
    """CREATE TABLE IF NOT EXISTS records (
    key TEXT PRIMARY KEY, scores BLOB NOT NULL, seconds REAL NOT NULL, host TEXT NOT NULL, versions TEXT NOT NULL,
    seed TEXT NOT NULL, created TEXT NOT NULL, fingerprint TEXT NOT NULL, kept_samples INTEGER,
    kept_floats INTEGER, kept_bytes INTEGER, answers_checksum BLOB, checksum BLOB NOT NULL, answers BLOB
)""",
    """CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY, stage TEXT NOT NULL, reason TEXT NOT NULL, checksum BLOB NOT NULL
)""",
    "CREATE TABLE IF NOT EXISTS checks (digest TEXT PRIMARY KEY, created TEXT NOT NULL, checksum BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS tallies (counted TEXT PRIMARY KEY, number INTEGER NOT NULL, checksum BLOB NOT NULL)",
)
TALLIED = ("studies", "records", "failures", "checks")
"""The tables whose rows are counted in the table of tallies."""
MARKS = {
    1: (),
    2: ("learners",),
    3: ("learners", "tallies"),
    4: ("learners", "tallies", "records.kept_bytes"),
}
"""The tables, and columns of records, of those that came later, that a store of each version has."""
_WHOLE = (("<u1", 2**8 - 1), ("<u2", 2**16 - 1), ("<u4", 2**32 - 1), ("<i8", 2**63 - 1))
"""The types that counts are written in, and the largest number that each holds."""
_NAMED_BY = {"learners": 2, "runs": 2}
"""How many columns name a row of a table, where it is not one."""
RECORD = (
    "key, scores, seconds, host, versions, seed, created, fingerprint, kept_samples, kept_floats, kept_bytes, "
    "answers_checksum, checksum"
)
"""The columns of a record that are sealed by its checksum, and the checksum."""

Columns = tuple[Any, ...]
"""The columns of a row as SQLite has them: numbers, text, bytes and None."""


def checksum(content: Columns | bytes) -> bytes:
    """Return the checksum of the columns of a row, or of bytes."""
    read = content if isinstance(content, bytes) else repr(content).encode()
    return hashlib.blake2b(read, digest_size=8).digest()


def sealed(table: str, columns: Columns) -> Columns:
    """Return the columns of a row with their checksum."""
    return (*columns, checksum((table, *columns)))


def fits(table: str, row: Columns) -> bool:
    """Return whether a row fits the checksum at its end."""
    return checksum((table, *row[:-1])) == row[-1]


def columns_of(table: str) -> str:
    """Return the columns of a table that are sealed by its checksums, and the checksum."""
    return RECORD if table == "records" else "*"


def row_name(table: str, row: Columns) -> str:
    """Return what a row of a table is called in messages, also where its name is damaged."""
    name = " ".join(map(str, row[: _NAMED_BY.get(table, 1)]))
    return name[:64] if name.isprintable() else ascii(name)[:64]


def study_columns(number: int, study: StudyRow, learners: int, runs: int) -> Columns:
    """Return a study as columns; its spec is written in one way, so that the same study has the same text."""
    try:
        spec = json.dumps(json.loads(study.spec))
    except ValueError as error:
        raise InputError(f"study {study.name!r}: its spec is not JSON: {error}") from error
    lists = (study.digests, study.units, study.default, study.metrics)
    told = (*map(json.dumps, lists), study.created, json.dumps(study.notes))
    return sealed("studies", (number, study.name, spec, *told, learners, runs))


def study_row(columns: Columns) -> StudyRow:
    number, name, spec, digests, units, default, metrics, created, notes, *_ = columns
    return StudyRow(
        number,
        name,
        spec,
        tuple(json.loads(digests)),
        tuple(json.loads(units)),
        as_order(json.loads(default)),
        tuple(json.loads(metrics)),
        created,
        tuple(json.loads(notes)),
    )


def planned_rows(table: str, columns: Columns) -> int:
    """Return how many learners or runs a study has, by the name of their table."""
    return int(columns[{"learners": -2, "runs": -1}[table]])


def as_order(tasks: Iterable[Iterable[int]]) -> Order:
    """Return an order read from JSON."""
    return tuple(tuple(task) for task in tasks)


def learner_columns(study: int, learner: LearnerRow) -> Columns:
    return sealed("learners", (study, learner.number, json.dumps(learner_values(learner))))


def learner_row(columns: Columns) -> LearnerRow:
    return learner_of(json.loads(columns[2]))


def learner_values(learner: LearnerRow) -> dict[str, Any]:
    """Return a learner as plain values for JSON."""
    return asdict(learner)


def learner_of(values: dict[str, Any]) -> LearnerRow:
    """Return the learner that `learner_values` gave these for; lists in its parameters come back as tuples."""
    backbone, method = (ComponentRow(**_frozen(values[part])) for part in ("backbone", "method"))
    return LearnerRow(int(values["number"]), backbone, method, _frozen(values["point"]))


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(each) for each in value)
    return {name: _frozen(each) for name, each in value.items()} if isinstance(value, dict) else value


def run_columns(study: int, place: int, run: RunRow) -> Columns:
    names = (run.learner, run.kind, run.repeat, run.noise, run.floor)
    return sealed("runs", (study, place, *names, describe(run.order), " ".join(run.keys)))


def run_row(columns: Columns) -> RunRow:
    _, _, learner, kind, repeat, noise, floor, orders, keys = columns
    return RunRow(learner, kind, repeat, noise, order_of(orders), tuple(keys.split()), floor)


def floor_before(noise: int) -> str:
    """Return the floor of a run of an older release, which knew one that draws seeds anew, and did not name it."""
    return "seeds" if noise else ""


order_of = lru_cache(maxsize=4096)(parse)
"""The order of a text; the same few are met again and again."""


def record_columns(record: Record) -> Columns:
    made = record.made
    answers = None if record.answers is None else pack_array(record.answers)
    facts = (facts_text(made.versions), str(made.seed), made.created, facts_text(made.fingerprint))
    row = (record.key, pack_scores(record.scores), float(made.seconds), made.host, *facts, *kept_columns(made.kept))
    return (*sealed("records", (*row, None if answers is None else checksum(answers))), answers)


def made_of(columns: Columns) -> Made:
    _, _, seconds, host, versions, seed, created, fingerprint, samples, floats, size, *_ = columns
    kept = None if size is None else Kept(samples, floats, size)
    return Made(seconds, host, facts_of(versions), int(seed), created, facts_of(fingerprint), kept)


def kept_columns(kept: Kept | None) -> Columns:
    return (None, None, None) if kept is None else (kept.samples, kept.floats, kept.bytes)


def kept_before(size: int | None) -> Kept | None:
    """Return what an older release noted of what is kept: the bytes of tensors, without the inputs of samples."""
    return None if size is None else Kept(None, None, size)


@lru_cache(maxsize=1024)
def facts_text(facts: Facts) -> str:
    """Return facts as a JSON object."""
    return json.dumps(dict(facts))


@lru_cache(maxsize=1024)
def facts_of(text: str) -> Facts:
    """Return facts written as a JSON object."""
    return tuple(json.loads(text).items())


def pack_scores(scores: tuple[Measure, ...]) -> bytes:
    """Return scores as one compressed blob; refuse what is no row of numbers per unit."""
    entries: list[tuple[Any, ...]] = []
    every: tuple[list[np.ndarray], ...] = ([], [], [])
    for score in scores:
        _check(score)
        asked = _narrowed(score.asked)
        counts = None if score.counts is None else _narrowed(score.counts)
        described = None if counts is None else (counts.dtype.str, *counts.shape)
        entries.append((score.part, score.metric, len(score.values), asked.dtype.str, described))
        every[0].append(score.values.astype("<f8"))
        every[1].append(asked)
        if counts is not None:
            every[2].append(counts)
    content = b"".join(array.tobytes() for arrays in every for array in arrays)
    # A small window: to set up a large one takes longer than to compress so little.
    compressor = zlib.compressobj(level=3, wbits=12, memLevel=5)
    return compressor.compress(_written_head(tuple(entries)) + content) + compressor.flush()


def unpack_scores(blob: bytes) -> tuple[Measure, ...]:
    """Return the scores that `pack_scores` made this of."""
    content = zlib.decompress(blob)
    return tuple(
        Measure(
            place.part,
            place.metric,
            place.values.read(content),
            place.asked.read(content).astype(np.int64),
            None if place.counts is None else place.counts.read(content).astype(np.int64),
        )
        for place in _places(_head(content))
    )


def unpack_values(blob: bytes, wanted: tuple[tuple[str, str], ...]) -> tuple[np.ndarray, ...] | None:
    """Return the values (U,) of the wanted parts and metrics alone; None where one is not among the scores."""
    content = zlib.decompress(blob)
    places = {(place.part, place.metric): place.values for place in _places(_head(content))}
    if not places.keys() >= set(wanted):
        return None
    return tuple(places[each].read(content) for each in wanted)


@dataclass(frozen=True)
class _Array:
    """Where an array stands among the bytes of scores."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    count: int

    def read(self, content: bytes) -> np.ndarray:
        return np.frombuffer(content, self.dtype, self.count, self.start).reshape(self.shape)


@dataclass(frozen=True)
class _Place:
    """Where one measure stands among the bytes of scores."""

    part: str
    metric: str
    values: _Array
    asked: _Array
    counts: _Array | None


@lru_cache(maxsize=256)
def _written_head(entries: tuple[tuple[Any, ...], ...]) -> bytes:
    written = json.dumps(entries, separators=(",", ":")).encode()
    written += b" " * (-(4 + len(written)) % 8)
    return struct.pack("<I", len(written)) + written


def _head(content: bytes) -> bytes:
    (length,) = struct.unpack_from("<I", content)
    return content[: 4 + length]


@lru_cache(maxsize=256)
def _places(head: bytes) -> tuple[_Place, ...]:
    entries = json.loads(head[4:])
    end = len(head)

    def next_array(dtype: str, *shape: int) -> _Array:
        nonlocal end
        array = _Array(np.dtype(dtype), shape, end, math.prod(shape))
        end += array.count * array.dtype.itemsize
        return array

    values = [next_array("<f8", units) for _, _, units, _, _ in entries]
    asked = [next_array(dtype, units) for _, _, units, dtype, _ in entries]
    counts = [None if described is None else next_array(*described) for *_, described in entries]
    return tuple(
        _Place(part, metric, *arrays)
        for (part, metric, *_), arrays in zip(entries, zip(values, asked, counts, strict=True), strict=True)
    )


def _check(score: Measure) -> None:
    shapes = [None if array is None else array.shape for array in (score.values, score.asked, score.counts)]
    fits = len(score.values.shape) == 1 and score.asked.shape == score.values.shape
    if not fits or (score.counts is not None and score.counts.ndim != 2):
        raise InputError(f"{score.part} {score.metric}: expected values (U,), asked (U,), counts (K, K); got {shapes}")


def _narrowed(numbers: np.ndarray) -> np.ndarray:
    """Return whole numbers in the narrowest little-endian type that holds them."""
    # As a number without sign, a negative one is larger than all that are expected.
    largest = int(numbers.astype(np.uint64).max(initial=0)) if numbers.dtype.kind in "iu" else -1
    for dtype, holds in _WHOLE:
        if 0 <= largest <= holds:
            return numbers.astype(dtype)
    raise InputError(f"expected whole numbers from 0 on, found {numbers.dtype}, {numbers.min()} among them")


def pack_array(array: np.ndarray) -> bytes:
    """Return an array of plain numbers or text as compressed bytes."""
    written = io.BytesIO()
    np.save(written, array, allow_pickle=False)
    return zlib.compress(written.getvalue())


def unpack_array(blob: bytes) -> np.ndarray:
    """Return the array that `pack_array` made this of."""
    array: np.ndarray = np.load(io.BytesIO(zlib.decompress(blob)), allow_pickle=False)
    return array
