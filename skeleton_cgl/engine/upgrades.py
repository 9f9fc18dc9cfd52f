"""What an older release wrote, read as what this one keeps: stores of versions 1 to 3, and exports of format 2.

Stores of version 1 and exports of format 2 know learners by titles and scores by confusion counts. Learners are found
again by what the study's file says; where it says nothing of a title, the title is all that is known of them. Stores of
version 2 know neither notes on the data nor what a noise floor draws anew, and no tallies. Up to version 3, all that is
known of what a method keeps is the bytes of its tensors.
"""

import copy
import filecmp
import glob
import itertools
import json
import sqlite3
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.config import put
from skeleton_cgl.engine import schema
from skeleton_cgl.engine.database import copy as copy_database
from skeleton_cgl.engine.record import Made, Record
from skeleton_cgl.engine.rows import ComponentRow, LearnerRow, PlannedStudy, RunRow, StudyRow, Values
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.scenarios.measures import QUERIED, accuracy_measure

_MOVED = {
    1: ("studies", "runs", "records", "failures"),
    2: ("studies", "learners", "runs", "records", "failures", "checks"),
    3: ("records",),
}
"""The tables of older versions that are written anew."""
_RECORD = "key, scores, seconds, host, versions, seed, created, fingerprint, kept, answers_checksum, checksum"
"""The columns of a record of versions 2 and 3 that are sealed by its checksum, and the checksum."""
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, zlib.error)
"""What reading something that is not as it should be ends with."""

Written = tuple[str, schema.Columns]
"""A table, and a row to be written to it."""


@dataclass(frozen=True)
class TitledRun:
    """A run of an old study, whose learner is known by titles."""

    kind: str
    backbone: str
    method: str
    repeat: int
    noise: int
    order: str
    keys: tuple[str, ...]


def upgrade(connection: sqlite3.Connection, path: Path, version: int, in_place: bool = True) -> None:
    """Bring the store at `path` to this version, inside the transaction that `connection` has begun.

    A copy is kept beside as NAME.v1, .v2 or .v3; not where the connection is to a copy already, and nothing is done in
    place. Refused, with the store as it was: a copy of another store in that place, and content that cannot be read.
    """
    if in_place:
        kept = path.with_name(f"{path.name}.v{version}")
        _keep_copy(path, kept)
        print(f"{path}: of an older release; it is upgraded, and kept as it was in {kept.name}", file=sys.stderr)
    for table in _MOVED[version]:
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    for table in schema.TABLES:
        connection.execute(table)
    written: Counter[str] = Counter()
    for what, source in _SOURCES[version].items():
        try:
            for table, row in source(connection):
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
                written[table] += 1
        except _UNREADABLE as error:
            raise InputError(f"{path}: a store of version {version}, its {what} cannot be read: {error}") from error
    for table in () if "tallies" in schema.MARKS[version] else schema.TALLIED:
        connection.execute("INSERT INTO tallies VALUES (?, ?, ?)", schema.sealed("tallies", (table, written[table])))
    for table in _MOVED[version]:
        connection.execute(f"DROP TABLE old_{table}")
    connection.execute(f"PRAGMA user_version = {schema.VERSION}")


def _keep_copy(path: Path, kept: Path) -> None:
    """Write a copy of a store; it is read by a connection of its own, because the one that writes must not copy."""
    for abandoned in path.parent.glob(f".{glob.escape(kept.name)}.*.unfinished*"):
        abandoned.unlink()
    with write_beside(kept) as unfinished:
        with closing(sqlite3.connect(path)) as source:
            copy_database(source, unfinished)
        unfinished.chmod(path.stat().st_mode & 0o777)
        if kept.exists() and not filecmp.cmp(kept, unfinished, shallow=False):
            raise InputError(
                f"{kept}: there already, and no copy of {path.name}, which is of an older version and would be copied "
                "there before it is upgraded; move it away"
            )


def _sealed_anew(connection: sqlite3.Connection) -> Iterator[Written]:
    """Yield the rows of a store of version 2, each with its table."""
    learners, runs = (_rows_by_study(connection, table) for table in ("learners", "runs"))
    for row in _verified(connection, "studies"):
        yield "studies", schema.sealed("studies", (*row, "[]", learners[row[0]], runs[row[0]]))
    for row in _verified(connection, "learners"):
        yield "learners", schema.sealed("learners", row)
    for row in _verified(connection, "runs"):
        yield "runs", schema.sealed("runs", (*row[:6], schema.floor_before(row[5]), *row[6:]))
    yield from _counted_anew(connection, _verified(connection, "records"))
    yield from _new_failures(connection)
    for row in connection.execute("SELECT digest, created FROM old_checks ORDER BY rowid"):
        yield "checks", schema.sealed("checks", row)


def _records_of_3(connection: sqlite3.Connection) -> Iterator[Written]:
    return _counted_anew(connection, _verified(connection, "records", "records"))


def _counted_anew(connection: sqlite3.Connection, records: Iterable[schema.Columns]) -> Iterator[Written]:
    """Yield records of versions 2 and 3, of which the bytes of tensors are all that is known of what was kept."""
    for *first, kept, answers_checksum in records:
        ((answers,),) = connection.execute("SELECT answers FROM old_records WHERE key = ?", first[:1])
        row = (*first, *schema.kept_columns(schema.kept_before(kept)), answers_checksum)
        yield "records", (*schema.sealed("records", row), answers)


def _verified(connection: sqlite3.Connection, table: str, *named: str) -> Iterator[schema.Columns]:
    """Yield the rows of an old table without their checksums; refuse one that does not fit its own.

    named: what a checksum is of before the columns; the table's name from version 3 on.
    """
    query = f"SELECT {_RECORD if table == 'records' else '*'} FROM old_{table} ORDER BY rowid"
    for *found, checksum in connection.execute(query):
        row = tuple(found)
        if schema.checksum((*named, *row)) != checksum:
            raise ValueError(f"table {table}, row {schema.row_name(table, row)}: damaged")
        yield row


def _rows_by_study(connection: sqlite3.Connection, table: str) -> Counter[int]:
    return Counter(dict(connection.execute(f"SELECT study, count(*) FROM old_{table} GROUP BY study").fetchall()))


def _new_failures(connection: sqlite3.Connection) -> Iterator[Written]:
    for row in connection.execute("SELECT key, stage, reason FROM old_failures ORDER BY rowid"):
        yield "failures", schema.sealed("failures", row)


def _new_studies(connection: sqlite3.Connection) -> Iterator[Written]:
    """Yield the rows of an old store's studies, learners and runs, each with its table."""
    columns = "kind, backbone, method, repeat, noise, orders, keys"
    for number, name, *texts, created in connection.execute(
        "SELECT id, name, spec, digests, units, tasks, created FROM old_studies ORDER BY id"
    ).fetchall():
        spec, digests, units, tasks = map(json.loads, texts)
        found = connection.execute(f"SELECT {columns} FROM old_runs WHERE study = ? ORDER BY run", (number,))
        titled = [
            TitledRun(kind, backbone, method, repeat, noise, order, tuple(keys.split()))
            for kind, backbone, method, repeat, noise, order, keys in found
        ]
        planned = old_study(name, spec, digests, units, tasks, created, titled)
        numbers = (len(planned.learners), len(planned.runs))
        yield "studies", schema.study_columns(number, planned.study, *numbers)
        yield from (("learners", schema.learner_columns(number, learner)) for learner in planned.learners)
        yield from (("runs", schema.run_columns(number, place, run)) for place, run in enumerate(planned.runs))


def _new_records(connection: sqlite3.Connection) -> Iterator[Written]:
    columns = "key, test, validation, seconds, host, versions, seed, created"
    for key, *packed, seconds, host, versions, seed, created in connection.execute(
        f"SELECT {columns} FROM old_records ORDER BY rowid"
    ):
        test, validation = (np.array(json.loads(zlib.decompress(counts)), dtype=np.int64) for counts in packed)
        record = old_record(key, test, validation, seconds, host, versions, seed, created)
        yield "records", schema.record_columns(record)


_SOURCES: dict[int, dict[str, Callable[[sqlite3.Connection], Iterator[Written]]]] = {
    1: {"studies, runs": _new_studies, "records": _new_records, "failures": _new_failures},
    2: {"rows": _sealed_anew},
    3: {"records": _records_of_3},
}
"""What gives the new rows of a store of an older version, by what it reads."""


def old_record(
    key: str,
    test: np.ndarray,
    validation: np.ndarray,
    seconds: float,
    host: str,
    versions: str,
    seed: str,
    created: str,
) -> Record:
    """Return a record of confusion counts (K, K) on test and validation."""
    scores = tuple(accuracy_measure(part, counts) for part, counts in zip(QUERIED, (test, validation), strict=True))
    return Record(key, scores, Made(float(seconds), host, schema.facts_of(versions), int(seed), created))


def old_study(
    name: str,
    spec: dict[str, Any],
    digests: Iterable[str],
    units: Iterable[str],
    tasks: Iterable[Iterable[int]],
    created: str,
    runs: Iterable[TitledRun],
) -> PlannedStudy:
    """Return a study of old fields, with its learners and runs."""
    learners = _Learners(spec)
    rows = tuple(
        RunRow(
            learners.number_of(run),
            run.kind,
            run.repeat,
            run.noise,
            schema.order_of(run.order),
            run.keys,
            schema.floor_before(run.noise),
        )
        for run in runs
    )
    order = schema.as_order(tasks)
    study = StudyRow(0, name, json.dumps(spec), tuple(digests), tuple(units), order, created=created)
    return PlannedStudy(study, tuple(learners.rows), rows)


class _Learners:
    """The learners of an old study, found by their titles."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.rows: list[LearnerRow] = []
        self._titled: dict[tuple[str, str], list[int]] = {}
        self._met: Counter[tuple[Any, ...]] = Counter()
        for point in _points(spec):
            backbones, methods = _components_at(spec, point)
            swept = ", ".join(
                f"{path.removeprefix('backbone.')}={value}" for path, value in point if path != "backbone"
            )
            for backbone, method in itertools.product(backbones, methods):
                titles = (f"{_title(backbone)} {swept}".strip(), _title(method))
                self._add(titles, backbone, method, point)

    def _add(self, titles: tuple[str, str], backbone: ComponentRow, method: ComponentRow, point: Values = ()) -> None:
        self._titled.setdefault(titles, []).append(len(self.rows))
        self.rows.append(LearnerRow(len(self.rows), backbone, method, point))

    def number_of(self, run: TitledRun) -> int:
        """Return the learner of a run; of several with its titles, each in turn, as the runs of a plan are."""
        titles = (run.backbone, run.method)
        if titles not in self._titled:
            self._add(titles, ComponentRow(run.backbone), ComponentRow(run.method))
        same = (*titles, run.kind, run.repeat, run.noise, run.order)
        place = min(self._met[same], len(self._titled[titles]) - 1)
        self._met[same] += 1
        return self._titled[titles][place]


def _points(spec: dict[str, Any]) -> list[Values]:
    """Return the points of a study's sweep; without one, the empty point."""
    sweep = spec.get("sweep", {})
    return [tuple(zip(sweep, values, strict=True)) for values in itertools.product(*sweep.values())]


def _components_at(spec: dict[str, Any], point: Values) -> tuple[list[ComponentRow], list[ComponentRow]]:
    """Return the backbones and methods at a point of a sweep; none where the point does not fit."""
    fields = copy.deepcopy(spec)
    for part in ("backbone", "methods"):
        fields[part] = [_written(component) for component in fields.get(part, [])]
    try:
        for path, value in point:
            put(fields, path, copy.deepcopy(value))
    except InputError:
        return [], []
    backbones, methods = (
        [_component(entry) for entry in (fields[part] if isinstance(fields[part], list) else [fields[part]])]
        for part in ("backbone", "methods")
    )
    return backbones, methods


def _written(component: dict[str, Any]) -> dict[str, Any]:
    """Return a component as a study file has it: its parameters beside its name."""
    return {"name": component["name"], "label": component.get("label", ""), **component.get("parameters", {})}


def _component(entry: str | dict[str, Any]) -> ComponentRow:
    fields: dict[str, Any] = {"name": entry} if isinstance(entry, str) else dict(entry)
    name, label = fields.pop("name"), fields.pop("label", "")
    parameters: dict[str, Any] = fields.get("parameters", fields)
    return ComponentRow(name, label, tuple(parameters.items()))


def _title(component: ComponentRow) -> str:
    """Return what the old releases called a component."""
    return component.label or Path(component.name).stem
