"""The store: one SQLite file that knows what is done.

Promises
- A record, once there, is never changed or lost; its key is a digest of everything that decides its content.
- A record offered again must say the same; if not, the store refuses it, because something is not reproducible.
- What `add` was given is either wholly there or not at all, whatever happens to the process.
- Many may read; several drivers may write, one after the other; each waits for the others.
- A full disk or a store that cannot be written to is reported in one message and leaves the store as it was.
- What comes out was verified: a row that does not fit its checksum is refused with its name.
- A store of an older version is upgraded when it is opened, once, with a copy of it kept beside.

Studies, their learners and their runs are kept beside the records, so that tables need no data set. The states of
stages whose branches are not finished lie in a folder beside the file, named after it, and are removed when their
branch is done.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.engine import schema
from skeleton_cgl.engine.record import Made, Record, same_content
from skeleton_cgl.engine.rows import LearnerRow, PlannedStudy, RunRow, StudyRow
from skeleton_cgl.engine.schema import Columns
from skeleton_cgl.engine.states import States, files_explained
from skeleton_cgl.engine.upgrades import upgrade
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.measures import QUERIED

_WAIT_SECONDS = 60
_AT_ONCE = 1000
"""So many keys are asked for in one query."""
_NAMED_BY = {"studies": 1, "learners": 2, "runs": 2, "records": 1}
"""How many columns name a row of each table that has checksums."""


class NotReproducible(InputError):
    """The same stage gave another record than the one in the store, for instance on another kind of processor."""


class Store:
    """The records at a path; the file is made if it is not there, unless it must exist."""

    def __init__(self, path: str | Path, must_exist: bool = False) -> None:
        self.path = Path(path)
        self.states = States(self.path.with_name(f"{self.path.name}.states"))
        if must_exist and not self.path.is_file():
            raise InputError(f"{self.path}: no such store")
        with _explained(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        # Damaged text is read as it is, and found by its checksum.
        self._connection.text_factory = lambda text: text.decode(errors="surrogateescape")
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
        if version is None:
            self._read("PRAGMA journal_mode = WAL")
        with self._transaction() as connection:
            # Another process may have done it meanwhile.
            version = self._version()
            if version == 1:
                upgrade(connection, self.path)
            elif version is None:
                for table in schema.TABLES:
                    connection.execute(table)
                connection.execute(f"PRAGMA user_version = {schema.VERSION}")

    def _version(self) -> int | None:
        """Return the version of the store, None if it is new; refuse one that this release does not know."""
        ((version,),) = self._read("PRAGMA user_version")
        ((tables,),) = self._read("SELECT count(*) FROM sqlite_master")
        if tables and not 1 <= version <= schema.VERSION:
            raise InputError(f"{self.path}: a store of version {version}, this release reads {schema.VERSION}")
        return version if tables else None

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
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

    def add_study(self, study: StudyRow, learners: Sequence[LearnerRow], runs: Sequence[RunRow]) -> int:
        """Keep a study with its learners and runs, if it is not there yet; return its number in this store."""
        with self._transaction() as connection:
            return _add_study(connection, study, learners, runs)

    def add(self, records: Iterable[tuple[str, Record]]) -> None:
        """Keep records, each with words that name its stage; refuse one that says other than the one already there."""
        with self._transaction() as connection:
            self._add(connection, records)

    def take_over(self, studies: Iterable[PlannedStudy], records: Iterable[tuple[str, Record]]) -> None:
        """Keep studies and records that come from elsewhere, all of them or, if one is refused, none."""
        with self._transaction() as connection:
            for each in studies:
                _add_study(connection, each.study, each.learners, each.runs)
            self._add(connection, records)

    def _add(self, connection: sqlite3.Connection, records: Iterable[tuple[str, Record]]) -> None:
        now = _now()
        for words, given in records:
            record = given if given.made.created else replace(given, made=replace(given.made, created=now))
            if not _insert(connection, "records", schema.record_columns(record), "key"):
                self._compare(words, record)

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
        return {key for (key,) in self._read("SELECT key FROM records")}

    def failed(self) -> dict[str, str]:
        """Return the keys of failed stages and their reasons."""
        return dict(self._read("SELECT key, reason FROM failures"))

    def add_failure(self, key: str, stage: str, reason: str) -> None:
        """Keep that a stage failed, which one in words, and why."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", (key, stage, reason))

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Let failed stages be tried again."""
        with self._transaction() as connection:
            connection.executemany("DELETE FROM failures WHERE key = ?", [(key,) for key in keys])

    def checked(self, digest: str) -> bool:
        """Return whether the method of this digest was tried, and found to save all that it keeps."""
        return bool(self._read("SELECT 1 FROM checks WHERE digest = ?", (digest,)))

    def add_check(self, digest: str) -> None:
        """Keep that the method of this digest was found to save all that it keeps."""
        with self._transaction() as connection:
            _insert(connection, "checks", (digest, _now()), "digest")

    def record(self, key: str) -> Record:
        """Return one record; an unknown key is a KeyError."""
        for record in self.records([key]):
            return record
        raise KeyError(key)

    def records(self, keys: Iterable[str] | None = None) -> Iterator[Record]:
        """Yield the records of these keys that are there, in this sequence, or all."""
        for row in self._record_rows(keys):
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
        for key, scores, *_ in self._record_rows():
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
        return [schema.made_of(row) for row in self._record_rows(dict.fromkeys(keys))]

    def seconds(self, study: int) -> dict[int, float]:
        """Return the mean seconds of a stage by learner, of the stages of a study that are done."""
        learner_of = {key: run.learner for run in self.runs(study) for key in run.keys}
        found: dict[int, list[float]] = {}
        for row in self._record_rows(learner_of):
            found.setdefault(learner_of[row[0]], []).append(schema.made_of(row).seconds)
        return {learner: float(np.mean(seconds)) for learner, seconds in found.items()}

    def studies(self) -> list[StudyRow]:
        """Return all studies, the latest one last."""
        return [schema.study_row(row) for row in self._verified("studies", "SELECT * FROM studies ORDER BY id")]

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
        query = "SELECT * FROM learners WHERE study = ? ORDER BY learner"
        return [schema.learner_row(row) for row in self._verified("learners", query, (study,))]

    def runs(self, study: int) -> list[RunRow]:
        """Return the runs of a study, in the sequence they were planned in."""
        query = "SELECT * FROM runs WHERE study = ? ORDER BY run"
        return [schema.run_row(row) for row in self._verified("runs", query, (study,))]

    def _record_rows(self, keys: Iterable[str] | None = None) -> Iterator[Columns]:
        """Yield the sealed columns of records, in the sequence of the keys, or of all."""
        if keys is None:
            yield from self._verified("records", f"SELECT {schema.RECORD} FROM records ORDER BY rowid")
            return
        wanted = list(keys)
        for some in (wanted[start : start + _AT_ONCE] for start in range(0, len(wanted), _AT_ONCE)):
            query = f"SELECT {schema.RECORD} FROM records WHERE key IN ({', '.join('?' * len(some))})"
            found = {row[0]: row for row in self._verified("records", query, tuple(some))}
            yield from (found[key] for key in some if key in found)

    def _verified(self, table: str, query: str, values: tuple[Any, ...] = ()) -> Iterator[Columns]:
        """Yield rows without their checksums; refuse one that does not fit its own."""
        with _explained(self.path):
            for found in self._connection.execute(query, values):
                row, expected = found[:-1], found[-1]
                if schema.checksum(row) != expected:
                    raise self._damaged(table, " ".join(map(str, row[: _NAMED_BY[table]])))
                yield row

    def _damaged(self, table: str, row: str) -> InputError:
        return InputError(f"{self.path}: table {table}, row {row}: damaged: it does not fit its checksum")

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[Columns]:
        with _explained(self.path):
            return self._connection.execute(query, values).fetchall()


def _add_study(
    connection: sqlite3.Connection, study: StudyRow, learners: Sequence[LearnerRow], runs: Sequence[RunRow]
) -> int:
    """Return the number of a study, which is kept if it was not there."""
    ((number,),) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM studies")
    row = schema.study_columns(number, study if study.created else replace(study, created=_now()))
    if not _insert(connection, "studies", row, "spec, digests"):
        query = "SELECT id FROM studies WHERE spec = ? AND digests = ?"
        ((there,),) = connection.execute(query, row[2:4])
        return int(there)
    for learner in learners:
        _insert(connection, "learners", schema.learner_columns(number, learner))
    for place, run in enumerate(runs):
        _insert(connection, "runs", schema.run_columns(number, place, run))
    return int(number)


def _insert(connection: sqlite3.Connection, table: str, row: Columns, unless: str = "") -> bool:
    """Write a row, unless there is one with the same in these columns; return whether it was written."""
    query = f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})"
    return connection.execute(f"{query} ON CONFLICT ({unless}) DO NOTHING" if unless else query, row).rowcount > 0


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite or the system says of a file into one message that names it."""
    with files_explained(path):
        try:
            yield
        except sqlite3.DatabaseError as error:
            damaged = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CORRUPT
            state = "the file is damaged" if damaged else "what it holds is intact"
            raise InputError(f"{path}: the store cannot be used: {error}; {state}") from error
        except UnicodeDecodeError as error:
            # What SQLite says of a damaged file can hold pieces of it.
            raise InputError(f"{path}: the store cannot be used; the file is damaged") from error
