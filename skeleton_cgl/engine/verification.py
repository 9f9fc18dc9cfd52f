"""Reading all of a store, to find every row that is damaged rather than to stop at the first."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from skeleton_cgl.engine import schema
from skeleton_cgl.engine.database import faults, one_line
from skeleton_cgl.engine.record import Record
from skeleton_cgl.engine.schema import Columns
from skeleton_cgl.engine.soundness import check_answers

_TABLES = ("studies", "learners", "runs", "records", "failures", "checks", "tallies")


@dataclass(frozen=True)
class Verification:
    """What reading all of a store came to.

    damages: by table and row. rows: how many of each table are sound. stages: how many the runs ask for, and recorded:
    how many of these have a record.
    """

    damages: tuple[str, ...]
    rows: tuple[tuple[str, int], ...] = ()
    stages: int = 0
    recorded: int = 0


def verification(connection: sqlite3.Connection) -> Verification:
    """Return what is damaged of a store of this version."""
    damages = list(_faults(connection))
    sound: dict[str, list[Columns]] = {}
    for table in _TABLES:
        sound[table] = []
        damages += _damaged_rows(connection, table, sound[table])
    damages += [*_missing_rows(sound), *_damaged_answers(connection, sound["records"])]
    stages = {key for row in sound["runs"] for key in schema.run_row(row).keys}
    recorded = stages & {row[0] for row in sound["records"]}
    rows = tuple((table, len(sound[table])) for table in _TABLES if table != "tallies")
    return Verification(tuple(damages), rows, len(stages), len(recorded))


def _faults(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        yield from (f"the file: {one_line(fault)}" for fault in faults(connection))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        yield f"the file: {one_line(error)}"


def _damaged_rows(connection: sqlite3.Connection, table: str, sound: list[Columns]) -> Iterator[str]:
    """Yield the damages of a table's rows; put the others, without their checksums, into `sound`."""
    try:
        for row in connection.execute(f"SELECT {schema.columns_of(table)} FROM {table} NOT INDEXED ORDER BY rowid"):
            if schema.fits(table, row):
                sound.append(row[:-1])
            else:
                yield f"table {table}, row {schema.row_name(table, row)}: does not fit its checksum"
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        yield f"table {table}, after {len(sound)} rows: {one_line(error)}"


def _missing_rows(sound: dict[str, list[Columns]]) -> Iterator[str]:
    tallies: dict[str, int] = dict(sound["tallies"])
    for table in schema.TALLIED:
        found = len({row[0] for row in sound[table]})
        if tallies.get(table) != found:
            yield f"table {table}: {tallies.get(table, 'an unknown number of')} rows were written, {found} are sound"
    for study in sound["studies"]:
        for table in ("learners", "runs"):
            expected = schema.planned_rows(table, study)
            found = len({row[:2] for row in sound[table] if row[0] == study[0]})
            if found != expected:
                yield f"table {table}: study {study[0]} has {expected} rows, {found} are sound"


def _damaged_answers(connection: sqlite3.Connection, records: list[Columns]) -> Iterator[str]:
    for row in records:
        key, expected = row[0], row[-1]
        if expected is None:
            continue
        try:
            found = connection.execute("SELECT answers FROM records WHERE key = ?", (key,)).fetchall()
            if [schema.checksum(answers) for (answers,) in found if isinstance(answers, bytes)] != [expected]:
                yield f"table records, row {key}, answers: do not fit their checksum"
                continue
            record = Record(key, schema.unpack_scores(row[1]), schema.made_of(row), schema.unpack_array(found[0][0]))
            check_answers(record)
        except (sqlite3.DatabaseError, UnicodeDecodeError, ValueError) as error:
            yield f"table records, row {key}, answers: {error}"
