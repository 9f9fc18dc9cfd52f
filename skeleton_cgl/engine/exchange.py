"""Taking studies out of a store and into another: one compressed CSV file, a row per stage of every run.

The first line, a comment of JSON, holds what describes a study as a whole (its file, data digests, unit names, default
tasks, notes, learners), a digest of every study and one of the whole file. Columns `test` and `validation` hold
confusion counts where accuracy follows from them, rows joined by `;`, numbers by spaces. Every other measure has three
columns, such as `test.f1`, `test.f1.asked` and `test.f1.counts`: its values, the queries behind each, counts if any.
"""

import csv
import gzip
import hashlib
import io
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from skeleton_cgl.engine import cells, schema
from skeleton_cgl.engine.cells import Row
from skeleton_cgl.engine.record import Record
from skeleton_cgl.engine.rows import PlannedStudy, StudyRow
from skeleton_cgl.engine.soundness import check_key, check_record, check_study, check_totals
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.upgrades import old_study
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside

FORMAT = "skeleton_cgl export 5"
FORMATS_BEFORE = ("skeleton_cgl export 4", "skeleton_cgl export 3")
OLD_FORMAT = "skeleton_cgl export 2"
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, zlib.error)
"""What reading something that is not as it should be ends with."""


@dataclass(frozen=True)
class Exported:
    """What an export holds: studies, and records with words that name their stages."""

    studies: tuple[PlannedStudy, ...]
    records: tuple[tuple[str, Record], ...]


def export(store: Store, path: str | Path, chosen: Sequence[str | int] | None = None, progress: bool = False) -> int:
    """Write studies of a store, all or those `chosen`, to `path` (.csv.gz); return the number of stages written.

    A stage shared by several runs is written with each of them, so that a run can be read by itself; its content is
    written with the first. Runs that are not finished are written as far as they got. Studies and machines are numbered
    from 1; machines are not named.
    """
    path = Path(path)
    if not path.name.endswith(".csv.gz"):
        raise InputError(f"{path}: an export is called NAME.csv.gz")
    asked = store.studies() if chosen is None else [store.study(each) for each in chosen]
    planned = [
        PlannedStudy(study, tuple(store.learners(study.number)), tuple(store.runs(study.number)))
        for study in {study.number: study for study in asked}.values()
    ]
    keys = dict.fromkeys(key for each in planned for run in each.runs for key in run.keys)
    bar = tqdm(store.records(keys), f"export {path.name}", len(keys), unit=" stages", delay=1, disable=not progress)
    contents = _contents(bar)
    number = len(contents)
    columns = _columns(contents)
    studies, rows = [], []
    for place, each in enumerate(planned, start=1):
        own = [[row.get(column, "") for column in columns] for row in _rows(place, each, contents)]
        described = _described(place, each)
        studies.append({**described, "digest": _study_digest(described, own)})
        rows += own
    body = _csv([columns, *rows])
    head = {"format": FORMAT, "studies": studies}
    text = f"# {json.dumps({**head, 'digest': _file_digest(head, body)})}\n{body}"
    with write_beside(path) as unfinished:
        # No time in the head of the file: the same store gives the same bytes.
        unfinished.write_bytes(gzip.compress(text.encode(), mtime=0))
    return number


def _contents(records: Iterable[Record]) -> dict[str, Row]:
    """Return the content of every record by its key, machines numbered as they are met."""
    hosts: dict[str, str] = {}
    return {
        record.key: cells.record_cells(record, hosts.setdefault(record.made.host, f"machine {len(hosts) + 1}"))
        for record in records
    }


def _columns(contents: dict[str, Row]) -> list[str]:
    """Return the columns of an export; those that hold scores in the sequence they are met."""
    met = dict.fromkeys(column for row in contents.values() for column in row)
    return [*cells.NAMES, *(column for column in met if column not in cells.MADE), *cells.MADE]


def _rows(number: int, planned: PlannedStudy, contents: dict[str, Row]) -> Iterator[Row]:
    """Yield the rows of a study; the content of a stage goes to the first that names it."""
    learners = {learner.number: cells.learner_cells(learner) for learner in planned.learners}
    for run in planned.runs:
        named = {"study": str(number), **learners[run.learner], **cells.run_cells(run)}
        for step, key in enumerate(run.keys, start=1):
            yield {**named, "step": str(step), "key": key, **contents.pop(key, {})}


def _described(number: int, planned: PlannedStudy) -> dict[str, Any]:
    """Return what the first line says of a study, but for its digest."""
    study = planned.study
    return {
        "id": number,
        "name": study.name,
        "spec": json.loads(study.spec),
        "digests": study.digests,
        "units": study.units,
        "tasks": study.default,
        "metrics": study.metrics,
        "created": study.created,
        "notes": study.notes,
        "learners": [schema.learner_values(learner) for learner in planned.learners],
    }


def _study_of(described: dict[str, Any], runs: list[tuple[Row, list[str]]]) -> PlannedStudy:
    study = StudyRow(
        0,
        described["name"],
        json.dumps(described["spec"]),
        tuple(described["digests"]),
        tuple(described["units"]),
        schema.as_order(described["tasks"]),
        tuple(described["metrics"]),
        described["created"],
        tuple(described.get("notes", ())),
    )
    learners = tuple(schema.learner_of(values) for values in described["learners"])
    return PlannedStudy(study, learners, tuple(cells.run_of(row, keys) for row, keys in runs))


def _old_study_of(described: dict[str, Any], runs: list[tuple[Row, list[str]]]) -> PlannedStudy:
    titled = [cells.old_run_of(row, keys) for row, keys in runs]
    name, spec, created = described["name"], described["spec"], described["created"]
    return old_study(name, spec, described["digests"], described["units"], described["tasks"], created, titled)


def _study_digest(described: dict[str, Any], rows: Iterable[Sequence[str]]) -> str:
    """Return the digest of a study in an export: of what the first line says of it, and of its rows."""
    digest = hashlib.sha256(json.dumps(described).encode())
    for row in rows:
        digest.update(("\x1e" + "\x1f".join(row)).encode())
    return digest.hexdigest()


def _file_digest(head: dict[str, Any], body: str) -> str:
    """Return the digest of an export: of its first line, but for the digest itself, and of all other lines."""
    return hashlib.sha256(f"{json.dumps(head)}\n{body}".encode()).hexdigest()


def import_export(path: str | Path, store: Store, progress: bool = False) -> int:
    """Read an export into a store, wholly or, if any of it is refused, not at all; return the number of stages."""
    found = read_export(path, progress)
    store.take_over(found.studies, found.records)
    return len(found.records)


def import_file(path: str | Path, store: Path, progress: bool = False) -> int:
    """Read an export into the store at a path, which is made if it is not there, but not if the export is refused."""
    found = read_export(path, progress)
    is_new = not store.exists()
    try:
        with Store(store) as opened:
            opened.take_over(found.studies, found.records)
    except BaseException:
        if is_new:
            store.unlink(missing_ok=True)
        raise
    return len(found.records)


def read_export(path: str | Path, progress: bool = False) -> Exported:
    """Return what an export holds; refused: another format, damaged or changed content, and what cannot be true."""
    path = Path(path)
    head, columns, lines = _opened(path)
    bar = tqdm(lines, f"import {path.name}", unit=" rows", delay=1, disable=not progress)
    reader = _Reader(head["format"] == OLD_FORMAT, columns)
    for number, line in enumerate(bar, start=3):
        try:
            reader.take(dict(zip(columns, line, strict=True)))
        except _UNREADABLE as error:
            raise InputError(f"{path}: line {number}: {error}") from error
    studies = []
    for place, described in enumerate(head["studies"], start=1):
        try:
            if head["format"] != OLD_FORMAT and described["id"] != place:
                raise ValueError(f"study {place} has the number {described['id']}")
            studies.append(reader.study(described))
        except _UNREADABLE as error:
            raise InputError(f"{path}: its studies cannot be read: {_told(error)}") from error
    if reader.runs:
        raise InputError(f"{path}: the first line says nothing of study {', '.join(reader.runs)}, which has rows")
    return Exported(tuple(studies), tuple(reader.records.values()))


class _Reader:
    """Takes the rows of an export one by one; gives its studies and records."""

    def __init__(self, old: bool, columns: Sequence[str]) -> None:
        self._old = old
        others = {*cells.NAMES, *cells.MADE, *cells.MADE_BEFORE}
        self._scores = [column for column in columns if column not in others]
        self.runs: dict[str, list[tuple[Row, list[str]]]] = {}
        self.records: dict[str, tuple[str, Record]] = {}

    def take(self, row: Row) -> None:
        """Read a row; refuse one out of sequence, and a record that cannot be true or is there already."""
        check_key(row["key"])
        runs = self.runs.setdefault(row["study"], [])
        if row["step"] == "1":
            runs.append((row, []))
        first, keys = runs[-1] if runs else (row, [])
        named = [name for name in cells.NAMES if name in row and name not in ("step", "key")]
        if row["step"] != str(len(keys) + 1) or any(row[name] != first[name] for name in named):
            raise ValueError(f"step {row['step']} of order {row['order']} does not follow the row before it")
        keys.append(row["key"])
        if row["seconds"]:
            if row["key"] in self.records:
                raise ValueError(f"the record {row['key']} is there twice")
            record = cells.old_record_of(row) if self._old else cells.record_of(row, self._scores)
            check_record(record)
            self.records[row["key"]] = (cells.stage_words(row), record)

    def study(self, described: dict[str, Any]) -> PlannedStudy:
        """Return a study by what the first line says of it; refuse one that its rows do not fit."""
        study_of = _old_study_of if self._old else _study_of
        planned = study_of(described, self.runs.pop(str(described["id"]), []))
        check_study(planned)
        check_totals(planned, {key: record for key, (_, record) in self.records.items()})
        return planned


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, ValueError) else repr(error)


def _opened(path: Path) -> tuple[dict[str, Any], list[str], list[list[str]]]:
    """Return the first line of an export, its columns and other lines, verified where the format has digests."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            first, body = file.readline(), file.read()
        head = json.loads(first.removeprefix("# ")) if first.startswith("# ") else {}
        columns, *lines = _read_csv(body) or [[]]
    except (OSError, EOFError, ValueError, RecursionError, csv.Error, zlib.error) as error:
        raise InputError(f"{path}: not a readable export: {error}") from error
    found = head.get("format") if isinstance(head, dict) else None
    if found not in (FORMAT, *FORMATS_BEFORE, OLD_FORMAT):
        before = ", ".join(map(repr, FORMATS_BEFORE))
        raise InputError(f"{path}: expected {FORMAT!r}, {before} or {OLD_FORMAT!r} in the first line")
    names = cells.NAMES_BEFORE if found == FORMATS_BEFORE[-1] else cells.NAMES
    made = cells.MADE if found == FORMAT else cells.MADE_BEFORE
    scores = columns[len(names) : -len(made)]
    expected = list(cells.OLD_COLUMNS) if found == OLD_FORMAT else [*names, *scores, *made]
    if columns != expected or len(set(columns)) != len(columns):
        raise InputError(f"{path}: expected the columns {', '.join(expected)}, each once")
    if not isinstance(head.get("studies"), list) or not all(isinstance(study, dict) for study in head["studies"]):
        raise InputError(f"{path}: expected a list of studies in the first line")
    if found != OLD_FORMAT:
        _verify(path, head, body, lines)
    return head, columns, lines


def _verify(path: Path, head: dict[str, Any], body: str, lines: list[list[str]]) -> None:
    """Refuse an export that does not fit its digests, naming the study if it is one that does not."""
    own: dict[str, list[list[str]]] = {}
    for line in lines:
        own.setdefault("".join(line[:1]), []).append(line)
    for study in head["studies"]:
        described = {name: value for name, value in study.items() if name != "digest"}
        if _study_digest(described, own.get(str(study.get("id")), [])) != study.get("digest"):
            raise InputError(f"{path}: study {study.get('name')!r}: damaged or changed: it does not fit its digest")
    if _file_digest({name: value for name, value in head.items() if name != "digest"}, body) != head.get("digest"):
        raise InputError(f"{path}: damaged or changed: it does not fit its digest")


def _csv(rows: Sequence[Sequence[str]]) -> str:
    # Readers that leave out comments cut a cell at `#`, unless it is quoted.
    comments = any("#" in cell for row in rows for cell in row)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if comments else csv.QUOTE_MINIMAL).writerows(rows)
    return text.getvalue()


def _read_csv(text: str) -> list[list[str]]:
    # Many answers are longer than what the reader takes for a cell by default.
    before = csv.field_size_limit(sys.maxsize)
    try:
        return list(csv.reader(io.StringIO(text, newline="")))
    finally:
        csv.field_size_limit(before)
