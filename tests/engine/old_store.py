"""Stores of versions 1 to 3 and exports of format 2 as the first releases wrote them, by hand."""

import csv
import gzip
import io
import json
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.engine import schema
from skeleton_cgl.engine.record import Record
from skeleton_cgl.engine.rows import PlannedStudy

TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE studies (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, spec TEXT NOT NULL, digests TEXT NOT NULL, units TEXT NOT NULL,
    tasks TEXT NOT NULL, created TEXT NOT NULL, UNIQUE (spec, digests)
);
CREATE TABLE runs (
    study INTEGER NOT NULL, run INTEGER NOT NULL, kind TEXT NOT NULL, backbone TEXT NOT NULL, method TEXT NOT NULL,
    repeat INTEGER NOT NULL, noise INTEGER NOT NULL, orders TEXT NOT NULL, keys TEXT NOT NULL,
    PRIMARY KEY (study, run)
);
CREATE TABLE records (
    key TEXT PRIMARY KEY, prefix TEXT NOT NULL, backbone TEXT NOT NULL, method TEXT NOT NULL, repeat INTEGER NOT NULL,
    noise INTEGER NOT NULL, test BLOB NOT NULL, validation BLOB NOT NULL, seconds REAL NOT NULL, host TEXT NOT NULL,
    versions TEXT NOT NULL, seed TEXT NOT NULL, created TEXT NOT NULL
);
CREATE TABLE failures (key TEXT PRIMARY KEY, stage TEXT NOT NULL, reason TEXT NOT NULL);
PRAGMA user_version = 1;
"""
TABLES_2 = """
PRAGMA journal_mode = WAL;
CREATE TABLE studies (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, spec TEXT NOT NULL, digests TEXT NOT NULL, units TEXT NOT NULL,
    tasks TEXT NOT NULL, metrics TEXT NOT NULL, created TEXT NOT NULL, checksum BLOB NOT NULL, UNIQUE (spec, digests)
);
CREATE TABLE learners (
    study INTEGER NOT NULL, learner INTEGER NOT NULL, content TEXT NOT NULL, checksum BLOB NOT NULL,
    PRIMARY KEY (study, learner)
);
CREATE TABLE runs (
    study INTEGER NOT NULL, run INTEGER NOT NULL, learner INTEGER NOT NULL, kind TEXT NOT NULL,
    repeat INTEGER NOT NULL, noise INTEGER NOT NULL, orders TEXT NOT NULL, keys TEXT NOT NULL, checksum BLOB NOT NULL,
    PRIMARY KEY (study, run)
);
CREATE TABLE records (
    key TEXT PRIMARY KEY, scores BLOB NOT NULL, seconds REAL NOT NULL, host TEXT NOT NULL, versions TEXT NOT NULL,
    seed TEXT NOT NULL, created TEXT NOT NULL, fingerprint TEXT NOT NULL, kept INTEGER, answers_checksum BLOB,
    checksum BLOB NOT NULL, answers BLOB
);
CREATE TABLE failures (key TEXT PRIMARY KEY, stage TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE checks (digest TEXT PRIMARY KEY, created TEXT NOT NULL);
PRAGMA user_version = 2;
"""
TABLES_3 = """
PRAGMA journal_mode = WAL;
CREATE TABLE studies (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, spec TEXT NOT NULL, digests TEXT NOT NULL, units TEXT NOT NULL,
    tasks TEXT NOT NULL, metrics TEXT NOT NULL, created TEXT NOT NULL, notes TEXT NOT NULL, learners INTEGER NOT NULL,
    runs INTEGER NOT NULL, checksum BLOB NOT NULL, UNIQUE (spec, digests)
);
CREATE TABLE learners (
    study INTEGER NOT NULL, learner INTEGER NOT NULL, content TEXT NOT NULL, checksum BLOB NOT NULL,
    PRIMARY KEY (study, learner)
);
CREATE TABLE runs (
    study INTEGER NOT NULL, run INTEGER NOT NULL, learner INTEGER NOT NULL, kind TEXT NOT NULL,
    repeat INTEGER NOT NULL, noise INTEGER NOT NULL, floor TEXT NOT NULL, orders TEXT NOT NULL, keys TEXT NOT NULL,
    checksum BLOB NOT NULL, PRIMARY KEY (study, run)
);
CREATE TABLE records (
    key TEXT PRIMARY KEY, scores BLOB NOT NULL, seconds REAL NOT NULL, host TEXT NOT NULL, versions TEXT NOT NULL,
    seed TEXT NOT NULL, created TEXT NOT NULL, fingerprint TEXT NOT NULL, kept INTEGER, answers_checksum BLOB,
    checksum BLOB NOT NULL, answers BLOB
);
CREATE TABLE failures (
    key TEXT PRIMARY KEY, stage TEXT NOT NULL, reason TEXT NOT NULL, checksum BLOB NOT NULL
);
CREATE TABLE checks (digest TEXT PRIMARY KEY, created TEXT NOT NULL, checksum BLOB NOT NULL);
CREATE TABLE tallies (counted TEXT PRIMARY KEY, number INTEGER NOT NULL, checksum BLOB NOT NULL);
PRAGMA user_version = 3;
"""
ORDER = "0,1 > 2"
VERSIONS = '{"torch": "2.13", "numpy": "2.4"}'
CREATED = "2026-01-02T03:04:05+00:00"
SPEC: dict[str, Any] = {
    "name": "old",
    "backbone": [
        {"name": "gcn", "label": "", "parameters": {"width": 8}},
        {"name": "my/net.py", "label": "", "parameters": {}},
    ],
    "methods": [
        {"name": "bare", "label": "", "parameters": {}},
        {"name": "ewc", "label": "strong", "parameters": {"strength": 5.0}},
    ],
    "training": {"epochs": 2},
    "sweep": {},
}


def key_of(number: int, place: int, repeat: int, step: int) -> str:
    """Return the key of a stage of an old study."""
    return f"{number}{place}{repeat}{step}".zfill(32)


class OldStudy:
    """A study of an old release: its file, and its runs of two stages each, known by the titles of their learners."""

    def __init__(self, spec: dict[str, Any], titles: Sequence[tuple[str, str]], repeats: int = 1) -> None:
        self.spec, self.titles, self.repeats = spec, titles, repeats

    def runs(self, number: int) -> list[tuple[Any, ...]]:
        """Return kind, titles, repeat, noise, order and keys of every run."""
        return [
            ("task", *titles, repeat, 0, ORDER, " ".join(key_of(number, place, repeat, step) for step in (1, 2)))
            for place, titles in enumerate(self.titles)
            for repeat in range(self.repeats)
        ]


OLD = OldStudy(SPEC, [("gcn", "bare"), ("gcn", "strong"), ("net", "bare"), ("net", "strong")], repeats=2)


def counts_of(key: str) -> np.ndarray:
    """Return the counts (2, 3, 3) of a record, on test and validation, which its key decides."""
    random = np.random.default_rng(zlib.crc32(key.encode()))
    return random.multinomial([[20, 0, 9], [7, 8, 0]], [0.5, 0.2, 0.3])


def write_old_store(path: Path, *studies: OldStudy) -> Path:
    """Write a store of version 1 with these studies, whose last stage of all is not done but failed."""
    keys = [
        key for number, study in enumerate(studies, start=1) for run in study.runs(number) for key in run[-1].split()
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES)
        for number, study in enumerate(studies, start=1):
            texts = (study.spec, ["digest"], ["sit", "stand", "walk"], [[0, 1], [2]])
            row = (number, study.spec["name"], *map(json.dumps, texts), CREATED)
            connection.execute("INSERT INTO studies VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            for place, run in enumerate(study.runs(number)):
                connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, place, *run))
        for place, key in enumerate(keys[:-1]):
            packed = [zlib.compress(json.dumps(counts.tolist()).encode()) for counts in counts_of(key)]
            row = (
                key,
                "0,1",
                "gcn",
                "bare",
                0,
                0,
                *packed,
                place + 0.5,
                "machine 1",
                VERSIONS,
                str(2**63 + place),
                CREATED,
            )
            connection.execute(f"INSERT INTO records VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("INSERT INTO failures VALUES (?, ?, ?)", (keys[-1], "strong 0,1 > 2", "out of memory"))
    return path


def write_old_export(path: Path, *studies: OldStudy) -> Path:
    """Write an export of format 2 of what `write_old_store` writes."""
    columns = (
        "study,method,backbone,kind,repeat,noise,order,step,key,test,validation,seconds,host,versions,seed,created"
    )
    described = [
        {
            "id": 10 * number,
            "name": study.spec["name"],
            "spec": study.spec,
            "digests": ["digest"],
            "units": ["sit", "stand", "walk"],
            "tasks": [[0, 1], [2]],
            "created": CREATED,
        }
        for number, study in enumerate(studies, start=1)
    ]
    text = io.StringIO()
    print("# " + json.dumps({"format": "skeleton_cgl export 2", "studies": described}), file=text)
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns.split(","))
    rows = [
        (10 * number, method, backbone, kind, repeat, noise, order, step, key)
        for number, study in enumerate(studies, start=1)
        for kind, backbone, method, repeat, noise, order, keys in study.runs(number)
        for step, key in enumerate(keys.split(), start=1)
    ]
    for place, row in enumerate(rows):
        counts = [";".join(" ".join(map(str, line)) for line in each.tolist()) for each in counts_of(row[-1])]
        content = (*counts, repr(place + 0.5), "machine 1", VERSIONS, str(2**63 + place), CREATED)
        table.writerow((*row, *(content if row is not rows[-1] else [""] * 7)))
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    return path


def write_store_2(path: Path, planned: PlannedStudy, records: Sequence[Record]) -> Path:
    """Write a store of version 2 with a study, records, a failure and a check."""

    def insert(table: str, row: tuple[Any, ...], *beside: Any) -> None:
        whole = (*row, blake2b(repr(row).encode(), digest_size=8).digest(), *beside)
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(whole))})", whole)

    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES_2)
        study = schema.study_columns(1, planned.study, 0, 0)
        insert("studies", (*study[:7], CREATED))
        for learner in planned.learners:
            insert("learners", schema.learner_columns(1, learner)[:-1])
        for place, run in enumerate(planned.runs):
            row = schema.run_columns(1, place, run)
            insert("runs", (*row[:6], *row[7:-1]))
        for record in records:
            insert("records", *_record_before(record))
        connection.execute("INSERT INTO failures VALUES ('k', 'strong 0,1 > 2', 'out of memory')")
        connection.execute("INSERT INTO checks VALUES ('method', ?)", (CREATED,))
    return path


def write_store_3(path: Path, planned: PlannedStudy, records: Sequence[Record]) -> Path:
    """Write a store of version 3 with a study, records, a failure and a check."""

    def insert(table: str, row: tuple[Any, ...], *beside: Any) -> None:
        whole = (*row, blake2b(repr((table, *row)).encode(), digest_size=8).digest(), *beside)
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(whole))})", whole)

    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES_3)
        study = schema.study_columns(1, planned.study, len(planned.learners), len(planned.runs))
        insert("studies", (*study[:7], CREATED, *study[8:-1]))
        for learner in planned.learners:
            insert("learners", schema.learner_columns(1, learner)[:-1])
        for place, run in enumerate(planned.runs):
            insert("runs", schema.run_columns(1, place, run)[:-1])
        for record in records:
            insert("records", *_record_before(record))
        insert("failures", ("k", "strong 0,1 > 2", "out of memory"))
        insert("checks", ("method", CREATED))
        for counted, number in (("studies", 1), ("records", len(records)), ("failures", 1), ("checks", 1)):
            insert("tallies", (counted, number))
    return path


def _record_before(record: Record) -> tuple[tuple[Any, ...], Any]:
    """Return the sealed columns of a record of versions 2 and 3, which count bytes alone, and its answers."""
    *first, _, _, kept, answers_checksum, _, answers = schema.record_columns(record)
    return (*first, kept, answers_checksum), answers
