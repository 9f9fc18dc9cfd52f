"""The store: one SQLite file that knows what is done.

Promises
- A record, once there, is never changed or lost; its key is a digest of everything that decides its content.
- A record offered again must say the same; if not, the store refuses it, because something is not reproducible.
- What `add` was given is either wholly there or not at all, whatever happens to the process.
- Many may read; several drivers may write, one after the other; each waits for the others.
- A full disk or a store that cannot be written to is reported in one message and leaves the store as it was.

Studies, their orders and their plans are kept beside the records, so that tables need no data set. The states of
stages whose branches are not finished lie in a folder beside the file, named after it, and are removed when their
branch is done.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.engine.record import Record, same_content
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import remove_abandoned, write_beside
from skeleton_cgl.scenarios.lessons import describe

if TYPE_CHECKING:
    from skeleton_cgl.engine.study import Plan, Run, Stage

VERSION = 1
_WAIT_SECONDS = 60
_TABLES = """
CREATE TABLE IF NOT EXISTS studies (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, spec TEXT NOT NULL, digests TEXT NOT NULL, units TEXT NOT NULL,
    tasks TEXT NOT NULL, created TEXT NOT NULL, UNIQUE (spec, digests)
);
CREATE TABLE IF NOT EXISTS runs (
    study INTEGER NOT NULL, run INTEGER NOT NULL, kind TEXT NOT NULL, backbone TEXT NOT NULL, method TEXT NOT NULL,
    repeat INTEGER NOT NULL, noise INTEGER NOT NULL, orders TEXT NOT NULL, keys TEXT NOT NULL,
    PRIMARY KEY (study, run)
);
CREATE TABLE IF NOT EXISTS records (
    key TEXT PRIMARY KEY, prefix TEXT NOT NULL, backbone TEXT NOT NULL, method TEXT NOT NULL, repeat INTEGER NOT NULL,
    noise INTEGER NOT NULL, test BLOB NOT NULL, validation BLOB NOT NULL, seconds REAL NOT NULL, host TEXT NOT NULL,
    versions TEXT NOT NULL, seed TEXT NOT NULL, created TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS failures (key TEXT PRIMARY KEY, stage TEXT NOT NULL, reason TEXT NOT NULL);
"""


class NotReproducible(InputError):
    """The same stage gave another record than the one in the store, for instance on another kind of processor."""


class Store:
    """The records at a path; the file is made if it is not there, unless it must exist."""

    def __init__(self, path: str | Path, must_exist: bool = False) -> None:
        self.path = Path(path)
        if must_exist and not self.path.is_file():
            raise InputError(f"{self.path}: no such store")
        with _explained(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
            self._prepare()
        self.states = States(self.path.with_name(f"{self.path.name}.states"))

    def _prepare(self) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version == VERSION:
            return
        if tables:
            raise InputError(f"{self.path}: a store of version {version}, this release reads {VERSION}")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing."""
        with _explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                # A full disk has ended the transaction already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def add_study(self, plan: "Plan") -> int:
        """Keep a study and its plan, if they are not there yet; return its number."""
        fields = {
            "spec": json.dumps(plan.study.model_dump(mode="json")),
            "digests": json.dumps(plan.digests),
            "units": json.dumps(plan.scenarios[0][0].units),
            "tasks": json.dumps(plan.scenarios[0][0].default_tasks),
        }
        with self._transaction() as connection:
            number = self._number_of(connection, plan.study.name, fields, _now())
            if number is None:
                query = "SELECT id FROM studies WHERE spec = ? AND digests = ?"
                return connection.execute(query, (fields["spec"], fields["digests"])).fetchone()[0]
            connection.executemany(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(number, place, *_run_row(run)) for place, run in enumerate(plan.runs)],
            )
        return number

    def done(self) -> set[str]:
        """Return the keys of all records."""
        return {key for (key,) in self._read("SELECT key FROM records")}

    def failed(self) -> dict[str, str]:
        """Return the keys of failed stages and their reasons."""
        return dict(self._read("SELECT key, reason FROM failures"))

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Let failed stages be tried again."""
        with self._transaction() as connection:
            connection.executemany("DELETE FROM failures WHERE key = ?", [(key,) for key in keys])

    def add(self, records: Iterable[tuple["Stage", Record]]) -> None:
        """Keep records; refuse one that says other than the one already there."""
        with self._transaction() as connection:
            for stage, record in records:
                facts = (stage.backbone.title, stage.method.title, stage.repeat, stage.noise)
                self._add_record(connection, describe(stage.prefix), facts, record)

    def _add_record(self, connection: sqlite3.Connection, prefix: str, facts: tuple, record: Record) -> None:
        row = (record.key, prefix, *facts, *_content(record))
        new = connection.execute(f"INSERT OR IGNORE INTO records VALUES ({', '.join('?' * len(row))})", row).rowcount
        if new:
            return
        there = self.record(record.key)
        if not same_content(there, record):
            raise NotReproducible(
                f"{self.path}: {facts[1]} {prefix}: learned again, it gave another record; the store keeps the first. "
                f"First {there.versions} on {there.host}, now {record.versions} on {record.host}. Records of both do "
                "not belong in one study: go on with the versions and the kind of machine of the first, or use a "
                "store of its own"
            )

    def take_over(
        self,
        studies: list[dict[str, Any]],
        runs: dict[int, dict[tuple, list[str]]],
        records: list[tuple[str, str, str, int, int, Record]],
    ) -> None:
        """Keep the studies of an export: their runs (kind, backbone, method, repeat, noise, order) and records."""
        with self._transaction() as connection:
            for study in studies:
                fields = {column: json.dumps(study[column]) for column in ("spec", "digests", "units", "tasks")}
                number = self._number_of(connection, study["name"], fields, study["created"])
                if number is not None:
                    connection.executemany(
                        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        [
                            (number, place, *run, " ".join(keys))
                            for place, (run, keys) in enumerate(runs.get(study["id"], {}).items())
                        ],
                    )
            for prefix, *facts, record in records:
                self._add_record(connection, prefix, tuple(facts), record)

    def _number_of(self, connection: sqlite3.Connection, name: str, fields: dict[str, str], created: str) -> int | None:
        """Return the number of a study that is new, None for one that is there."""
        there = connection.execute(
            "SELECT id FROM studies WHERE spec = ? AND digests = ?", (fields["spec"], fields["digests"])
        ).fetchone()
        if there:
            return None
        return connection.execute(
            "INSERT INTO studies (name, spec, digests, units, tasks, created) VALUES (?, ?, ?, ?, ?, ?)",
            (name, fields["spec"], fields["digests"], fields["units"], fields["tasks"], created),
        ).lastrowid

    def add_failure(self, stage: "Stage", reason: str) -> None:
        """Keep that a stage failed, and why."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", (stage.key, str(stage), reason))

    def record(self, key: str) -> Record:
        """Return one record."""
        columns = "key, test, validation, seconds, host, versions, seed, created"
        rows = self._read(f"SELECT {columns} FROM records WHERE key = ?", (key,))
        if not rows:
            raise KeyError(key)
        return _record(rows[0])

    def studies(self) -> list[dict[str, Any]]:
        """Return what is known of every study: id, name, spec, digests, units, tasks, created."""
        columns = ("id", "name", "spec", "digests", "units", "tasks", "created")
        rows = [dict(zip(columns, row, strict=True)) for row in self._read(f"SELECT {', '.join(columns)} FROM studies")]
        for row in rows:
            for column in ("spec", "digests", "units", "tasks"):
                row[column] = json.loads(row[column])
        return rows

    def study(self, which: str | int | None = None) -> dict[str, Any]:
        """Return what is known of the study of that name, the latest, or number; by default of the latest of all."""
        studies = self.studies()
        if not studies:
            raise InputError(f"{self.path}: no study in it")
        found = [each for each in studies if which in (None, each["name"], each["id"], str(each["id"]))]
        if not found:
            names = [each["name"] for each in studies]
            raise InputError(f"{self.path}: no study {which!r}{did_you_mean(str(which), names)}")
        return found[-1]

    def runs(self, study: int) -> list[dict[str, Any]]:
        """Return the runs of a study: kind, backbone, method, repeat, noise, orders, keys."""
        columns = ("kind", "backbone", "method", "repeat", "noise", "orders", "keys")
        rows = self._read(f"SELECT {', '.join(columns)} FROM runs WHERE study = ? ORDER BY run", (study,))
        runs = [dict(zip(columns, row, strict=True)) for row in rows]
        for run in runs:
            run["keys"] = run["keys"].split()
        return runs

    def confusions(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the test and validation counts of every record."""
        rows = self._read("SELECT key, test, validation FROM records")
        return {key: (_counts(test), _counts(validation)) for key, test, validation in rows}

    def provenance(self, keys: Iterable[str]) -> list[dict[str, Any]]:
        """Return where, when, how long and with what the records of some stages were made."""
        wanted = set(keys)
        columns = ("key", "seconds", "host", "versions", "created")
        rows = self._read(f"SELECT {', '.join(columns)} FROM records")
        found = [dict(zip(columns, row, strict=True)) for row in rows if row[0] in wanted]
        return [{**row, "versions": json.loads(row["versions"])} for row in found]

    def seconds(self) -> dict[tuple[str, str], float]:
        """Return the mean seconds of a stage by backbone and method."""
        rows = self._read("SELECT backbone, method, avg(seconds) FROM records GROUP BY backbone, method")
        return {(backbone, method): seconds for backbone, method, seconds in rows}

    def _read(self, query: str, values: tuple = ()) -> list[tuple]:
        with _explained(self.path):
            return self._connection.execute(query, values).fetchall()


class States:
    """The states of stages that still have children to learn, a file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, key: str) -> bool:
        return self._file(key).is_file()

    def write(self, key: str, state: bytes) -> None:
        with _explained(self._folder), write_beside(self._file(key)) as unfinished:
            unfinished.write_bytes(state)

    def read(self, key: str) -> bytes | None:
        """Return a state, or None where it is gone."""
        try:
            return self._file(key).read_bytes()
        except FileNotFoundError:
            return None

    def remove(self, key: str) -> None:
        self._file(key).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what a killed process left half-written, and the folder when nothing is in it."""
        remove_abandoned(self._folder)
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.safetensors"


def _run_row(run: "Run") -> tuple:
    return (run.kind, run.backbone, run.method, run.repeat, run.noise, describe(run.order), " ".join(run.keys))


def _content(record: Record) -> tuple:
    versions = json.dumps(record.versions)
    packed = (_packed(record.test), _packed(record.validation))
    return (*packed, record.seconds, record.host, versions, str(record.seed), record.created or _now())


def _record(row: tuple) -> Record:
    key, test, validation, seconds, host, versions, seed, created = row
    return Record(key, _counts(test), _counts(validation), seconds, host, json.loads(versions), int(seed), created)


def _packed(counts: np.ndarray) -> bytes:
    return zlib.compress(json.dumps(counts.tolist(), separators=(",", ":")).encode())


def _counts(packed: bytes) -> np.ndarray:
    return np.array(json.loads(zlib.decompress(packed)), dtype=np.int64)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the system says of a file into one message that names it."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path}: the store cannot be used: {error}; what it holds is intact") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; what the store holds is intact") from error
