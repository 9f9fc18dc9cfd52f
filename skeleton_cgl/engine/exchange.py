"""Taking a study out of a store and into another: one compressed CSV file, a row per stage of every run.

Confusion counts are rows joined by `;`, numbers by spaces. What describes a study as a whole (its file, data digests,
class names, default tasks) stands in the first line, a comment of JSON.
"""

import csv
import gzip
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from skeleton_cgl.engine.record import Record
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.scenarios.lessons import describe, parse

FORMAT = "skeleton_cgl export 2"
COLUMNS = (
    *("study", "method", "backbone", "kind", "repeat", "noise", "order", "step", "key"),
    *("test", "validation", "seconds", "host", "versions", "seed", "created"),
)


def export(store: Store, path: str | Path, chosen: Sequence[str | int] | None = None, progress: bool = False) -> int:
    """Write studies of a store, all or those `chosen`, to `path` (.csv.gz); return the number of stages written.

    A stage shared by several runs is written with each of them, so that a run can be read by itself; its counts are
    written with the first. Runs that are not finished are written as far as they got. Machines are numbered, not named.
    """
    path = Path(path)
    if not path.name.endswith(".csv.gz"):
        raise InputError(f"{path}: an export is called NAME.csv.gz")
    text = io.StringIO()
    written: set[str] = set()
    hosts: dict[str, str] = {}
    asked = store.studies() if chosen is None else [store.study(each) for each in chosen]
    studies = list({study["id"]: study for study in asked}.values())
    print("# " + json.dumps({"format": FORMAT, "studies": studies}), file=text)
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    done = store.done()
    runs = [(study["id"], run) for study in studies for run in store.runs(study["id"])]
    for study, run in tqdm(runs, f"export {path.name}", unit=" runs", delay=1, disable=not progress):
        table.writerows(_rows(store, study, run, done, written, hosts))
    with write_beside(path) as unfinished:
        # No time in the head of the file: the same store gives the same bytes.
        unfinished.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    return len(written)


def _rows(
    store: Store, study: int, run: dict[str, Any], done: set[str], written: set[str], hosts: dict[str, str]
) -> Iterator[tuple]:
    head = (study, run["method"], run["backbone"], run["kind"], run["repeat"], run["noise"], run["orders"])
    for step, key in enumerate(run["keys"], start=1):
        content: tuple = ("",) * 7
        if key in done and key not in written:
            record = store.record(key)
            written.add(key)
            content = (
                _text(record.test),
                _text(record.validation),
                repr(record.seconds),
                hosts.setdefault(record.host, f"machine {len(hosts) + 1}"),
                json.dumps(record.versions),
                record.seed,
                record.created,
            )
        yield (*head, step, key, *content)


def import_export(path: str | Path, store: Store, progress: bool = False) -> int:
    """Read an export into a store; return the number of stages read. Refused: another format, damaged content."""
    path = Path(path)
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            first = file.readline()
            head = json.loads(first.removeprefix("# ")) if first.startswith("# ") else {}
            if head.get("format") != FORMAT:
                raise InputError(f"{path}: expected {FORMAT!r} in the first line")
            rows = list(csv.DictReader(file))
    except (OSError, EOFError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: not a readable export: {error}") from error
    if rows and tuple(rows[0]) != COLUMNS:
        raise InputError(f"{path}: expected the columns {', '.join(COLUMNS)}")
    records = []
    runs: dict[int, dict[tuple, list[str]]] = {}
    for number, row in enumerate(
        tqdm(rows, f"import {path.name}", unit=" rows", delay=1, disable=not progress), start=3
    ):
        try:
            run = (row["kind"], row["backbone"], row["method"], int(row["repeat"]), int(row["noise"]), row["order"])
            runs.setdefault(int(row["study"]), {}).setdefault(run, []).append(row["key"])
            if row["test"]:
                prefix = describe(parse(row["order"])[: int(row["step"])])
                records.append((prefix, *run[1:5], _record(row)))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: line {number}: {error}") from error
    store.take_over(head["studies"], runs, records)
    return len(records)


def _record(row: dict[str, str]) -> Record:
    return Record(
        row["key"],
        _counts(row["test"]),
        _counts(row["validation"]),
        float(row["seconds"]),
        row["host"],
        json.loads(row["versions"]),
        int(row["seed"]),
        row["created"],
    )


def _text(counts: np.ndarray) -> str:
    return ";".join(" ".join(map(str, row)) for row in counts.tolist())


def _counts(text: str) -> np.ndarray:
    return np.array([[int(number) for number in row.split()] for row in text.split(";")], dtype=np.int64)
