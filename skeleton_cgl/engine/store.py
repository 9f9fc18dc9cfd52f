"""The store: one SQLite file that knows what is done.

Promises
- A record, once there, is never changed or lost; its key is a digest of everything that decides its content.
- A record offered again must say the same; if not, the store refuses it, because something is not reproducible.
- What `add` was given is either wholly there or not at all, whatever happens to the process.
- Many may read; several drivers may write, one after the other; each waits for the others.
- A full disk or a store that cannot be written to is reported in one message and leaves the store as it was.
- What comes out was verified: a row that does not fit its checksum is refused with its name, and so are rows that are
  fewer than were written. What is damaged is not written to.
- A store of an older version is upgraded when it is opened, once, with a copy of it kept beside; where it cannot be
  written to, in memory.

Studies, their learners and their runs are kept beside the records, so that tables need no data set. The states of
stages whose branches are not finished lie in a folder beside the file, named after it, and are removed when their
branch is done.
"""

import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.engine import database, schema
from skeleton_cgl.engine.database import explained
from skeleton_cgl.engine.record import Made, Record, same_content
from skeleton_cgl.engine.rows import LearnerRow, PlannedStudy, RunRow, StudyRow
from skeleton_cgl.engine.schema import Columns
from skeleton_cgl.engine.states import States
from skeleton_cgl.engine.upgrades import upgrade
from skeleton_cgl.engine.verification import Verification, verification
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.scenarios.measures import QUERIED

_AT_ONCE = 1000
"""So many keys are asked for in one query."""


class NotReproducible(InputError):
    """The same stage gave another record than the one in the store, for instance on another kind of processor."""


class Store:
    """The records at a path; the file is made if it is not there, unless it must exist.

    One that must exist is for reading: it may be where nothing can be written.
    """

    def __init__(self, path: str | Path, must_exist: bool = False) -> None:
        self.path = Path(path)
        if not self.path.name or self.path.is_dir():
            raise InputError(f"{self.path}: a folder, expected a store")
        self.states = States(self.path.with_name(f"{self.path.name}.states"))
        if must_exist and not self.path.is_file():
            raise InputError(f"{self.path}: no such store")
        self._reads_only = must_exist and not database.is_writable(self.path)
        with explained(self.path):
            opener = database.open_to_read if self._reads_only else database.open_to_write
            self._connection = opener(self.path)
        self._file = database.identity(self.path)
        self._found_sound = False
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Make the tables of a new store; bring an old one to this version."""
        version = self._version()
        if version == schema.VERSION:
            return
        if self._reads_only:
            self._upgrade_in_memory(version)
            return
        if version is None:
            self._read("PRAGMA journal_mode = WAL")
        with self._transaction() as connection:
            # Another process may have done it meanwhile.
            version = self._version()
            if version is None:
                for table in schema.TABLES:
                    connection.execute(table)
                for counted in schema.TALLIED:
                    _insert(connection, "tallies", (counted, 0))
                connection.execute(f"PRAGMA user_version = {schema.VERSION}")
            elif version < schema.VERSION:
                upgrade(connection, self.path, version)

    def _upgrade_in_memory(self, version: int | None) -> None:
        if version is None:
            raise InputError(f"{self.path}: empty: no store, and it cannot be written to")
        with explained(self.path):
            copied = database.in_memory(self._connection)
            self._connection.close()
            self._connection = copied
            self._refuse_faults()
            upgrade(copied, self.path, version, in_place=False)

    def _version(self) -> int | None:
        """Return the version of the store, None if it is new; refuse one that this release does not know."""
        ((version,),) = self._read("PRAGMA user_version")
        tables = {name for (name,) in self._read("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables and not version:
            return None
        if version not in schema.MARKS:
            raise InputError(f"{self.path}: a store of version {version}, this release reads {schema.VERSION}")
        columns = {f"records.{name}" for (name,) in self._read("SELECT name FROM pragma_table_info('records')")}
        known = {mark for marks in schema.MARKS.values() for mark in marks}
        if known & (tables | columns) != set(schema.MARKS[version]):
            raise InputError(f"{self.path}: damaged: its tables are not those of a store of version {version}")
        return int(version)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; nothing where the file is damaged."""
        if self._reads_only:
            raise InputError(f"{self.path}: it, or its folder, cannot be written to")
        with explained(self.path):
            if not self._found_sound:
                self._refuse_faults()
                self._found_sound = True
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                # A full disk has ended the transaction already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _refuse_faults(self) -> None:
        for fault in map(database.one_line, database.faults(self._connection, at_most=1)):
            raise InputError(f"{self.path}: damaged, and not written to: {fault}; `status --verify` tells more")

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """What is read inside belongs together, whoever writes meanwhile."""
        if self._connection.in_transaction:
            yield
            return
        with explained(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def check_still_there(self) -> None:
        """Refuse to go on when the file was deleted or replaced; what it held is written beside."""
        if database.identity(self.path) == self._file:
            return
        names = (f"{self.path.name}.rescued{number or ''}" for number in itertools.count())
        rescued = next(path for path in map(self.path.with_name, names) if not path.exists())
        with explained(self.path), write_beside(rescued) as unfinished:
            database.copy(self._connection, unfinished)
        raise InputError(
            f"{self.path}: deleted or replaced while it was in use; what it held is in {rescued.name}: call it "
            f"{self.path.name} again, and the same command goes on"
        )

    def verify(self) -> Verification:
        """Return what of the store is damaged, after reading all of it."""
        with self._snapshot():
            return verification(self._connection)

    def add_study(self, study: StudyRow, learners: Sequence[LearnerRow], runs: Sequence[RunRow]) -> int:
        """Keep a study with its learners and runs, if it is not there yet; return its number in this store."""
        with self._transaction() as connection:
            return self._add_study(connection, PlannedStudy(study, tuple(learners), tuple(runs)))

    def add(self, records: Iterable[tuple[str, Record]]) -> None:
        """Keep records, each with words that name its stage; refuse one that says other than the one already there."""
        with self._transaction() as connection:
            self._add(connection, records)

    def take_over(self, studies: Iterable[PlannedStudy], records: Iterable[tuple[str, Record]]) -> None:
        """Keep studies and records that come from elsewhere, all of them or, if one is refused, none."""
        with self._transaction() as connection:
            for each in studies:
                number = self._add_study(connection, each)
                if tuple(self.learners(number)) != each.learners or set(self.runs(number)) != set(each.runs):
                    raise InputError(f"{self.path}: study {each.study.name!r} is there already, with other runs")
            self._add(connection, records)

    def _add_study(self, connection: sqlite3.Connection, planned: PlannedStudy) -> int:
        """Return the number of a study, which is kept if it was not there."""
        ((number,),) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM studies")
        study = planned.study if planned.study.created else replace(planned.study, created=_now())
        row = schema.study_columns(number, study, len(planned.learners), len(planned.runs))
        if not _insert_sealed(connection, "studies", row, "spec, digests"):
            query = "SELECT id FROM studies WHERE spec = ? AND digests = ?"
            ((there,),) = connection.execute(query, row[2:4])
            return int(there)
        for learner in planned.learners:
            _insert_sealed(connection, "learners", schema.learner_columns(number, learner))
        for place, run in enumerate(planned.runs):
            _insert_sealed(connection, "runs", schema.run_columns(number, place, run))
        self._count("studies", 1)
        return int(number)

    def _add(self, connection: sqlite3.Connection, records: Iterable[tuple[str, Record]]) -> None:
        now, added = _now(), 0
        for words, given in records:
            record = given if given.made.created else replace(given, made=replace(given.made, created=now))
            if _insert_sealed(connection, "records", schema.record_columns(record), "key"):
                added += 1
            else:
                self._compare(words, record)
        self._count("records", added)

    def _compare(self, words: str, record: Record) -> None:
        there = self.record(record.key)
        if not same_content(there, record):
            first, now = (f"{dict(each.made.versions)} on {each.made.host}" for each in (there, record))
            raise NotReproducible(
                f"{self.path}: {words}: learned again, it gave another record; the store keeps the first. "
                f"First {first}, now {now}. Records of both do not belong in one study: go on with the versions and "
                "the kind of machine of the first, or use a store of its own"
            )

    def done(self) -> set[str]:
        """Return the keys of all records."""
        with self._snapshot():
            return {row[0] for row in self._every("records")}

    def failed(self) -> dict[str, str]:
        """Return the keys of failed stages and their reasons."""
        with self._snapshot():
            return {key: reason for key, _, reason in self._every("failures")}

    def add_failure(self, key: str, stage: str, reason: str) -> None:
        """Keep that a stage failed, which one in words, and why."""
        with self._transaction() as connection:
            self._forget_failures(connection, [key])
            _insert(connection, "failures", (key, stage, reason))
            self._count("failures", 1)

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Let failed stages be tried again."""
        with self._transaction() as connection:
            self._forget_failures(connection, keys)

    def _forget_failures(self, connection: sqlite3.Connection, keys: Iterable[str]) -> None:
        for key in keys:
            forgotten = connection.execute("DELETE FROM failures WHERE key = ?", (key,)).rowcount
            if forgotten:
                self._count("failures", -forgotten)

    def checked(self, digest: str) -> bool:
        """Return whether the method of this digest was tried, and found to save all that it keeps."""
        return any(self._verified("checks", "SELECT * FROM checks WHERE digest = ?", (digest,)))

    def add_check(self, digest: str) -> None:
        """Keep that the method of this digest was found to save all that it keeps."""
        with self._transaction() as connection:
            if _insert(connection, "checks", (digest, _now()), "digest"):
                self._count("checks", 1)

    def record(self, key: str) -> Record:
        """Return one record; an unknown key is a KeyError."""
        for record in self.records([key]):
            return record
        raise KeyError(key)

    def records(self, keys: Iterable[str] | None = None) -> Iterator[Record]:
        """Yield the records of these keys that are there, in this sequence, or all."""
        for row in self._all_records() if keys is None else self._record_rows(keys):
            scores, made = schema.unpack_scores(row[1]), schema.made_of(row)
            yield Record(row[0], scores, made, None if row[-1] is None else self._answers(row[0], row[-1]))

    def _answers(self, key: str, expected: bytes) -> np.ndarray:
        ((answers,),) = self._read("SELECT answers FROM records WHERE key = ?", (key,))
        if not isinstance(answers, bytes) or schema.checksum(answers) != expected:
            raise self._damaged("records", f"{key}, answers")
        return schema.unpack_array(answers)

    def scores(self, metric: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the values (U,) of a metric on test and on validation, by key, of all records that have both."""
        wanted = tuple((part, metric) for part in QUERIED)
        found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        with self._snapshot():
            for key, scores, *_ in self._every("records"):
                values = schema.unpack_values(scores, wanted)
                if values is not None:
                    test, validation = values
                    found[key] = (test, validation)
        return found

    def asked(self, metric: str, key: str) -> np.ndarray:
        """Return the number of test queries (U,) behind each value of a metric."""
        return self.record(key).measure(QUERIED[0], metric).asked

    def made(self, keys: Iterable[str]) -> list[Made]:
        """Return how the records of some stages came about, each stage once, in this sequence, where there is one."""
        return list(self.made_by_key(dict.fromkeys(keys)).values())

    def made_by_key(self, keys: Iterable[str]) -> dict[str, Made]:
        """Return how the records of some stages came about, by key, where there is one."""
        return {row[0]: schema.made_of(row) for row in self._record_rows(keys)}

    def studies(self) -> list[StudyRow]:
        """Return all studies, the latest one last."""
        with self._snapshot():
            return [schema.study_row(row) for row in self._every("studies")]

    def study(self, which: str | int | None = None) -> StudyRow:
        """Return the study of that name, the latest, or number; by default the latest of all."""
        studies = self.studies()
        if not studies:
            raise InputError(f"{self.path}: no study in it")
        found = [each for each in studies if which in (None, each.name, each.number, str(each.number))]
        if not found:
            names = {each.name for each in studies}
            raise InputError(f"{self.path}: no study {which!r}{did_you_mean(str(which), names)}")
        return found[-1]

    def learners(self, study: int) -> list[LearnerRow]:
        """Return the learners of a study, by number."""
        return [schema.learner_row(row) for row in self._of_study("learners", study)]

    def runs(self, study: int) -> list[RunRow]:
        """Return the runs of a study, in the sequence they were planned in."""
        return [schema.run_row(row) for row in self._of_study("runs", study)]

    def _of_study(self, table: str, study: int) -> list[Columns]:
        """Return the rows of a study in a table, as many as the study says."""
        with self._snapshot():
            rows = list(self._verified(table, f"SELECT * FROM {table} WHERE study = ? ORDER BY 2", (study,)))
            told = list(self._verified("studies", "SELECT * FROM studies WHERE id = ?", (study,)))
        expected = schema.planned_rows(table, told[0]) if told else 0
        found = len({row[1] for row in rows if row[0] == study})
        if found != expected or len(rows) != expected:
            raise InputError(
                f"{self.path}: table {table}: damaged: study {study} has {expected} rows, {found} are found"
            )
        return rows

    def _every(self, table: str) -> Iterator[Columns]:
        """Yield all rows of a table that has a tally, in the sequence they were written in; refuse another number."""
        names = set()
        # Not by an index: a row that it has lost would not be found.
        query = f"SELECT {schema.columns_of(table)} FROM {table} NOT INDEXED ORDER BY rowid"
        for row in self._verified(table, query):
            names.add(row[0])
            yield row
        expected = self._tally(table)
        if expected != len(names):
            told = f"{expected} rows were written, {len(names)} are found"
            raise InputError(f"{self.path}: table {table}: damaged: {told}")

    def _tally(self, table: str) -> int:
        """Return how many rows were written to a table."""
        query = "SELECT * FROM tallies NOT INDEXED WHERE counted = ?"
        for _, number in self._verified("tallies", query, (table,)):
            return int(number)
        raise InputError(f"{self.path}: table tallies: damaged: row {table} is gone")

    def _count(self, table: str, more: int) -> None:
        """Change the tally of a table by so many rows, inside of a transaction."""
        row = schema.sealed("tallies", (table, self._tally(table) + more))
        self._connection.execute("INSERT OR REPLACE INTO tallies VALUES (?, ?, ?)", row)

    def _all_records(self) -> list[Columns]:
        with self._snapshot():
            return list(self._every("records"))

    def _record_rows(self, keys: Iterable[str]) -> Iterator[Columns]:
        """Yield the sealed columns of the records of these keys that are there, in this sequence."""
        wanted = list(keys)
        missing: set[str] = set()
        for some in (wanted[start : start + _AT_ONCE] for start in range(0, len(wanted), _AT_ONCE)):
            found = self._by_key(some)
            missing.update(key for key in some if key not in found)
            yield from (found[key] for key in some if key in found)
        # Of those that the index does not find, none may be in the table.
        for key in missing & self.done() if missing else ():
            if key not in self._by_key([key]):
                raise InputError(f"{self.path}: table records, row {key}: damaged: its index does not lead to it")

    def _by_key(self, keys: Sequence[str]) -> dict[str, Columns]:
        query = f"SELECT {schema.RECORD} FROM records WHERE key IN ({', '.join('?' * len(keys))})"
        return {row[0]: row for row in self._verified("records", query, tuple(keys))}

    def _verified(self, table: str, query: str, values: tuple[Any, ...] = ()) -> Iterator[Columns]:
        """Yield rows without their checksums; refuse one that does not fit its own."""
        with explained(self.path):
            for row in self._connection.execute(query, values):
                if not schema.fits(table, row):
                    raise self._damaged(table, schema.row_name(table, row))
                yield row[:-1]

    def _damaged(self, table: str, row: str) -> InputError:
        return InputError(f"{self.path}: table {table}, row {row}: damaged: it does not fit its checksum")

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[Columns]:
        with explained(self.path):
            return self._connection.execute(query, values).fetchall()


def _insert(connection: sqlite3.Connection, table: str, row: Columns, unless: str = "") -> bool:
    return _insert_sealed(connection, table, schema.sealed(table, row), unless)


def _insert_sealed(connection: sqlite3.Connection, table: str, row: Columns, unless: str = "") -> bool:
    """Write a row, unless there is one with the same in these columns; return whether it was written."""
    query = f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})"
    return connection.execute(f"{query} ON CONFLICT ({unless}) DO NOTHING" if unless else query, row).rowcount > 0


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
