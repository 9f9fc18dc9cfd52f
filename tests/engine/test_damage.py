"""A store that is damaged says so, whatever is damaged; it never tells other than what was written."""

import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.engine.status import verified
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from tests.conftest import Run
from tests.engine.made_rows import made_record, made_study, rich_record

PAGE = 4096
FLIPS = 250


def write_store(path: Path) -> Path:
    """Write a store of two studies with something in every table."""
    with Store(path) as store:
        for name in ("one", "two"):
            planned = made_study(name, [f"{name}{step}".zfill(31) for step in range(6)], ("bare", "ewc", "mas"))
            store.add_study(planned.study, planned.learners, planned.runs)
            keys = [key for run in planned.runs for key in run.keys]
            store.add([("s", (made_record, rich_record)[n % 2](key, n)) for n, key in enumerate(keys[:-1])])
            store.add_failure(keys[-1], "stage", "out of memory")
            store.add_check(f"method {name}")
    return path


def told_by(path: Path) -> str:
    """Return all that a store tells."""
    with Store(path, must_exist=True) as store:
        studies = [(study, store.learners(study.number), store.runs(study.number)) for study in store.studies()]
        records = [
            (record.key, record.made, [score.values.tolist() for score in record.scores], repr(record.answers))
            for record in store.records(sorted(store.done()))
        ]
        scores = sorted((key, repr(values)) for key, values in store.scores("accuracy").items())
        return repr((studies, records, scores, sorted(store.failed().items())))


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """Return the bytes of a file with a bit flipped, a byte changed, a piece erased or a page in place of another."""
    content = bytearray(whole)
    # Where a file and a page say how they are to be read, more often than elsewhere.
    page = PAGE * chance.randrange(len(whole) // PAGE)
    place = chance.choice([chance.randrange(100), page + chance.randrange(64), chance.randrange(len(whole))])
    kind = chance.random()
    if kind < 0.7:
        content[place] ^= 1 << chance.randrange(8)
    elif kind < 0.85:
        content[place] = chance.randrange(256)
    elif kind < 0.95:
        content[place : place + 200] = bytes(len(content[place : place + 200]))
    else:
        other = PAGE * chance.randrange(len(whole) // PAGE)
        content[page : page + PAGE] = whole[other : other + PAGE]
    return bytes(content)


def test_a_file_damaged_anywhere_is_refused_or_tells_what_it_held(tmp_path: Path) -> None:
    expected = told_by(write_store(tmp_path / "x.db"))
    whole = (tmp_path / "x.db").read_bytes()
    chance = random.Random(0)
    came_to: Counter[str] = Counter()
    for number in range(FLIPS):
        content = damaged(whole, chance)
        path = tmp_path / f"{number}.db"
        path.write_bytes(content)
        try:
            found, refusal = told_by(path), ""
        except InputError as error:
            found, refusal = expected, str(error)
        came_to["refused" if refusal else "told"] += 1
        assert found == expected, f"damage {number}"
        assert refusal.isprintable()
        assert "intact" not in refusal
        assert not refusal or verified(path).damages
    assert min(came_to["refused"], came_to["told"]) > FLIPS / 10


@pytest.mark.parametrize("table", ["studies", "learners", "runs", "records", "failures", "checks", "tallies"])
def test_a_row_that_is_gone_is_missed(run: Run, tmp_path: Path, table: str) -> None:
    path = write_store(tmp_path / "x.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})")
    if table != "checks":
        with pytest.raises(InputError, match=rf"table {table}: damaged"):
            told_by(path)
    code, printed, _ = run("status", path, "--verify")
    assert code == 1
    assert "damaged" in printed.splitlines()[0]
    assert any(f"table {table}: " in line or table == "tallies" for line in printed.splitlines()[1:])


def test_verify_names_every_damaged_row_and_counts_what_is_recorded(run: Run, tmp_path: Path) -> None:
    path = write_store(tmp_path / "x.db")
    code, printed, _ = run("status", path, "--verify")
    assert code == 0
    assert printed == (
        f"{path}: intact: 2 studies, 6 learners, 6 runs, 34 records, 2 failures, 2 checks; "
        "34 of 36 stages recorded, 2 missing\n"
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE runs SET repeat = 5 WHERE study = 1 AND run = 2")
        connection.execute("UPDATE records SET answers = x'00' WHERE key LIKE '%one1'")
        connection.execute("UPDATE failures SET reason = 'none' WHERE key LIKE '%two52'")
    code, printed, _ = run("status", path, "--verify", "--json")
    found = json.loads(printed)
    assert (code, found["intact"]) == (1, False)
    assert found["damages"] == [
        "table runs, row 1 2: does not fit its checksum",
        f"table failures, row {'two52'.zfill(32)}: does not fit its checksum",
        "table failures: 2 rows were written, 1 are sound",
        "table runs: study 1 has 3 rows, 2 are sound",
        f"table records, row {'one1'.zfill(31)}, answers: do not fit their checksum",
    ]


def test_answers_that_do_not_give_the_counts_are_found(tmp_path: Path) -> None:
    record = made_record("k")
    answers = np.repeat(
        np.tile(np.arange(3, dtype=np.uint8), 2), [s for m in record.scores for s in m.counts.sum(axis=0)]
    )
    with Store(tmp_path / "x.db") as store:
        store.add([("stage", replace(record, answers=answers))])
        assert not store.verify().damages
        store.add([("stage", replace(made_record("l"), answers=answers[::-1]))])
        assert store.verify().damages == (
            "table records, row l, answers: test: the answers are not those that were counted",
        )


def test_what_cannot_be_opened_is_told_and_not_called_intact(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no store " * 1000)
    code, printed, _ = run("status", tmp_path / "x.db", "--verify")
    assert code == 1
    assert "file is not a database; the file is damaged, or no store" in printed
    assert "intact" not in printed
    assert run("status", tmp_path / "absent.db", "--verify")[0] == 2


def test_a_damaged_store_is_not_written_to(tmp_path: Path) -> None:
    path = write_store(tmp_path / "x.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_records_1'")
        ((key,),) = connection.execute("SELECT key FROM records WHERE rowid = 9")
    whole = path.read_bytes()
    place = whole.index(key.encode(), PAGE * (root - 1), PAGE * root)
    path.write_bytes(whole[:place] + b"x" + whole[place + 1 :])
    with Store(path) as store, pytest.raises(InputError, match=r"x\.db: damaged, and not written to: "):
        store.add([("stage", made_record("new"))])
    with Store(path) as store, pytest.raises(InputError, match=rf"row {key}: damaged: its index does not lead to it"):
        store.record(key)
