import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skeleton_cgl.engine.database import in_memory, open_to_read
from skeleton_cgl.engine.record import Kept, Record
from skeleton_cgl.engine.rows import ComponentRow, LearnerRow, PlannedStudy, RunRow
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.upgrades import upgrade
from skeleton_cgl.errors import InputError
from tests.engine.made_rows import made_record, made_study, rich_record, same
from tests.engine.old_store import (
    CREATED,
    OLD,
    SPEC,
    OldStudy,
    counts_of,
    key_of,
    write_old_store,
    write_store_2,
    write_store_3,
)

KILLED_WHILE_UPGRADING = """
import os, signal, sys
from skeleton_cgl.engine import upgrades
from skeleton_cgl.engine.store import Store
counted = []
def count(part, counts, original=upgrades.accuracy_measure):
    counted.append(part)
    if len(counted) > 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(part, counts)
upgrades.accuracy_measure = count
Store(sys.argv[1])
"""


def old_content(path: Path) -> tuple[Any, ...]:
    """Return everything in a store of version 1, and its version."""
    with closing(sqlite3.connect(path)) as connection:
        tables = ("studies", "runs", "records", "failures")
        rows = [connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables]
        return (*rows, connection.execute("PRAGMA user_version").fetchone())


def learners_of(path: Path, spec: dict[str, Any], *titles: tuple[str, str]) -> tuple[list[LearnerRow], list[RunRow]]:
    """Return the learners and runs of an upgraded store of one study."""
    with Store(write_old_store(path, OldStudy(spec, titles))) as store:
        return store.learners(1), store.runs(1)


def test_every_record_is_kept_with_the_scores_its_counts_give(tmp_path: Path) -> None:
    write_old_store(tmp_path / "x.db", OLD)
    _, _, old, failures, _ = old_content(tmp_path / "x.db")
    with Store(tmp_path / "x.db") as store:
        records = {record.key: record for record in store.records()}
        assert records.keys() == {row[0] for row in old}
        assert store.failed() == {key: reason for key, _, reason in failures}
        accuracies = store.scores("accuracy")
    for key, *_, seconds, host, versions, seed, created in old:
        record = records[key]
        for part, counts, values in zip(("test", "validation"), counts_of(key), accuracies[key], strict=True):
            measure = record.measure(part, "accuracy")
            np.testing.assert_array_equal(measure.counts, counts)
            np.testing.assert_array_equal(measure.asked, counts.sum(axis=1))
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(values, counts.diagonal() / counts.sum(axis=1))
        made = record.made
        assert (made.seconds, made.host, dict(made.versions)) == (seconds, host, json.loads(versions))
        assert (str(made.seed), made.created, made.fingerprint, made.kept) == (seed, created, (), None)


def test_studies_and_runs_keep_their_numbers_and_sequence(tmp_path: Path) -> None:
    other = OldStudy({**SPEC, "name": "other"}, [("net", "bare")])
    write_old_store(tmp_path / "x.db", OLD, other)
    with Store(tmp_path / "x.db") as store:
        assert [(study.number, study.name) for study in store.studies()] == [(1, "old"), (2, "other")]
        study = store.study("old")
        assert json.loads(study.spec) == SPEC
        assert (study.digests, study.units) == (("digest",), ("sit", "stand", "walk"))
        assert (study.default, study.metrics, study.created) == (((0, 1), (2,)), ("accuracy",), CREATED)
        runs = store.runs(1)
        assert [" ".join(run.keys) for run in runs] == [run[-1] for run in OLD.runs(1)]
        assert [(run.learner, run.repeat) for run in runs] == [
            (learner, repeat) for learner in range(4) for repeat in (0, 1)
        ]
        assert {(run.kind, run.noise, run.order) for run in runs} == {("task", 0, ((0, 1), (2,)))}
        assert [run.learner for run in store.runs(2)] == [2]


def test_the_same_study_is_found_again_after_the_upgrade(tmp_path: Path) -> None:
    with Store(write_old_store(tmp_path / "x.db", OLD)) as store:
        study = store.study()
        assert store.add_study(study, (), ()) == study.number
        assert len(store.studies()) == 1


def test_learners_are_found_again_by_what_the_study_says_of_their_titles(tmp_path: Path) -> None:
    with Store(write_old_store(tmp_path / "x.db", OLD)) as store:
        gcn, net = ComponentRow("gcn", parameters=(("width", 8),)), ComponentRow("my/net.py")
        bare, strong = ComponentRow("bare"), ComponentRow("ewc", "strong", (("strength", 5.0),))
        pairs = [(gcn, bare), (gcn, strong), (net, bare), (net, strong)]
        assert store.learners(1) == [LearnerRow(number, *pair) for number, pair in enumerate(pairs)]


def test_a_point_of_a_sweep_is_data_and_no_longer_part_of_a_title(tmp_path: Path) -> None:
    spec = {**SPEC, "backbone": SPEC["backbone"][:1], "sweep": {"backbone.width": [4, 8], "training.epochs": [1, 2]}}
    titles = [(f"gcn width={width}, training.epochs={epochs}", "strong") for width in (8, 4) for epochs in (2, 1)]
    learners, runs = learners_of(tmp_path / "x.db", spec, *titles)
    points = [(("backbone.width", width), ("training.epochs", epochs)) for width in (4, 8) for epochs in (1, 2)]
    assert [learner.point for learner in learners] == [point for point in points for _ in SPEC["methods"]]
    for learner in learners:
        assert learner.backbone == ComponentRow("gcn", parameters=(("width", learner.point[0][1]),))
    ran = [learners[run.learner] for run in runs]
    assert [learner.method.label for learner in ran] == ["strong"] * 4
    assert [[value for _, value in learner.point] for learner in ran] == [[8, 2], [8, 1], [4, 2], [4, 1]]


def test_a_swept_backbone_takes_the_place_of_the_one_given(tmp_path: Path) -> None:
    spec = {**SPEC, "sweep": {"backbone": ["stgcn", {"name": "gcn", "label": "wide", "width": 512}]}}
    learners, runs = learners_of(tmp_path / "x.db", spec, ("wide", "bare"), ("stgcn", "strong"))
    assert [learners[run.learner].backbone for run in runs] == [
        ComponentRow("gcn", "wide", (("width", 512),)),
        ComponentRow("stgcn"),
    ]


def test_learners_of_one_title_have_their_runs_in_turn(tmp_path: Path) -> None:
    spec = {**SPEC, "sweep": {"backbone": ["one/net.py", "other/net.py"]}}
    learners, runs = learners_of(tmp_path / "x.db", spec, ("net", "bare"), ("net", "bare"))
    assert [learners[run.learner].backbone.name for run in runs] == ["one/net.py", "other/net.py"]


@pytest.mark.parametrize("spec", [{"name": "x"}, {**SPEC, "sweep": {"training.epochs.x": [1]}}])
def test_where_the_study_says_nothing_of_a_title_it_is_the_name(tmp_path: Path, spec: dict[str, Any]) -> None:
    learners, runs = learners_of(tmp_path / "x.db", spec, ("GCN by hand", "mine"), ("GCN by hand", "mine"))
    assert learners[-1] == LearnerRow(len(learners) - 1, ComponentRow("GCN by hand"), ComponentRow("mine"))
    assert {run.learner for run in runs} == {learners[-1].number}


def test_the_old_store_is_kept_beside_as_it_was_and_upgraded_once(tmp_path: Path) -> None:
    write_old_store(tmp_path / "x.db", OLD)
    before = old_content(tmp_path / "x.db")
    Store(tmp_path / "x.db").close()
    assert old_content(tmp_path / "x.db.v1") == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.db", "x.db.v1"]
    (tmp_path / "x.db.v1").unlink()
    Store(tmp_path / "x.db").close()
    assert [file.name for file in tmp_path.iterdir()] == ["x.db"]


def test_an_upgrade_that_fails_leaves_the_old_store(tmp_path: Path) -> None:
    write_old_store(tmp_path / "x.db", OLD)
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute("UPDATE records SET test = x'00' WHERE key = ?", (key_of(1, 3, 0, 1),))
    before = old_content(tmp_path / "x.db")
    with pytest.raises(InputError, match=r"x\.db: a store of version 1, its records cannot be read: "):
        Store(tmp_path / "x.db")
    assert old_content(tmp_path / "x.db") == before


def test_a_killed_upgrade_leaves_the_old_store_and_the_next_one_succeeds(tmp_path: Path) -> None:
    write_old_store(tmp_path / "x.db", OLD)
    before = old_content(tmp_path / "x.db")
    environment = {**os.environ, "PYTHONPATH": "."}
    arguments = [sys.executable, "-c", KILLED_WHILE_UPGRADING, str(tmp_path / "x.db")]
    killed = subprocess.run(arguments, check=False, cwd=Path(__file__).parents[2], env=environment)
    assert killed.returncode == -9
    assert old_content(tmp_path / "x.db") == before
    (tmp_path / ".x.db.v1.1.unfinished").touch()
    with Store(tmp_path / "x.db") as store:
        assert len(store.done()) == len(before[2])
    assert old_content(tmp_path / "x.db.v1") == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.db", "x.db.v1"]


def test_a_copy_of_another_store_is_not_written_over(tmp_path: Path) -> None:
    write_old_store(tmp_path / "x.db", OLD)
    write_old_store(tmp_path / "x.db.v1", OldStudy({**SPEC, "name": "another"}, [("net", "bare")]))
    before = old_content(tmp_path / "x.db"), old_content(tmp_path / "x.db.v1")
    with pytest.raises(InputError, match=r"x\.db\.v1: there already, and no copy of x\.db"):
        Store(tmp_path / "x.db")
    assert (old_content(tmp_path / "x.db"), old_content(tmp_path / "x.db.v1")) == before


def test_several_that_open_an_old_store_at_once_upgrade_it_once(tmp_path: Path) -> None:
    write_old_store(tmp_path / "x.db", OLD)
    found = []

    def count() -> None:
        with Store(tmp_path / "x.db") as store:
            found.append(len(store.done()))

    readers = [threading.Thread(target=count) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert found == [15] * 4


def test_a_store_of_version_2_keeps_everything_and_its_noise_runs_are_of_seeds(tmp_path: Path) -> None:
    planned = made_study(methods=("bare", "ewc"))
    noisy = replace(planned.runs[1], noise=1, keys=("c", "d"))
    planned = replace(planned, runs=(*planned.runs, noisy))
    records = [rich_record("a"), made_record("b"), made_record("c", seed=3)]
    write_store_2(tmp_path / "x.db", planned, records)
    whole = (tmp_path / "x.db").read_bytes()
    with Store(tmp_path / "x.db") as store:
        study = store.study()
        assert study == replace(planned.study, number=1, created=CREATED)
        assert store.learners(1) == list(planned.learners)
        assert store.runs(1) == [*planned.runs[:2], replace(noisy, floor="seeds")]
        assert all(same(bytes_alone(record), found) for record, found in zip(records, store.records(), strict=True))
        assert store.failed() == {"k": "out of memory"}
        assert store.checked("method")
        assert not store.verify().damages
    with closing(sqlite3.connect(tmp_path / "x.db.v2")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    assert (tmp_path / "x.db").read_bytes() != whole


def test_a_store_of_version_3_keeps_everything_and_of_what_was_kept_the_bytes(tmp_path: Path) -> None:
    planned = made_study(methods=("bare", "ewc"))
    planned = replace(planned, study=replace(planned.study, notes=("3 identical clips",)))
    records = [rich_record("b"), made_record("a"), made_record("c", seed=3)]
    write_store_3(tmp_path / "x.db", planned, records)
    with Store(tmp_path / "x.db") as store:
        assert store.study() == replace(planned.study, number=1, created=CREATED)
        assert (store.learners(1), store.runs(1)) == (list(planned.learners), list(planned.runs))
        found = list(store.records())
        assert all(same(bytes_alone(record), also) for record, also in zip(records, found, strict=True))
        assert [record.made.kept for record in found] == [Kept(None, None, 2**40), None, None]
        assert store.failed() == {"k": "out of memory"}
        assert store.checked("method")
        assert not store.verify().damages
        store.add([("stage", rich_record("d"))])
        assert store.record("d").made.kept == Kept(48, 2**33, 2**40)
    with closing(sqlite3.connect(tmp_path / "x.db.v3")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        assert connection.execute("SELECT kept FROM records ORDER BY rowid").fetchall() == [(2**40,), (None,), (None,)]


def test_a_store_of_version_3_that_cannot_be_written_to_is_read(tmp_path: Path) -> None:
    path = write_store_3(tmp_path / "x.db", made_study(), [rich_record("a")])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    before = path.read_bytes()
    with closing(open_to_read(path)) as connection, closing(in_memory(connection)) as memory:
        upgrade(memory, path, 3, in_place=False)
        ((key, *kept),) = memory.execute("SELECT key, kept_samples, kept_floats, kept_bytes FROM records")
    assert (key, kept) == ("a", [None, None, 2**40])
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.db"]


def test_rows_that_a_store_of_version_3_has_lost_are_still_missing_after_the_upgrade(tmp_path: Path) -> None:
    write_store_3(tmp_path / "x.db", made_study(), [made_record("a"), made_record("b")])
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute("DELETE FROM records WHERE key = 'b'")
    with Store(tmp_path / "x.db") as store, pytest.raises(InputError, match="2 rows were written, 1 are found"):
        store.done()


def bytes_alone(record: Record) -> Record:
    """Return a record as older releases kept it: of what a method keeps, they counted the bytes."""
    kept = record.made.kept
    return replace(record, made=replace(record.made, kept=kept and Kept(None, None, kept.bytes)))


@pytest.mark.parametrize(("version", "write"), [(2, write_store_2), (3, write_store_3)])
def test_a_damaged_row_of_an_old_store_is_refused_by_name_and_the_store_left_as_it_was(
    tmp_path: Path, version: int, write: Callable[[Path, PlannedStudy, list[Record]], Path]
) -> None:
    write(tmp_path / "x.db", made_study(), [made_record("a"), made_record("b")])
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute("UPDATE records SET host = 'there' WHERE key = 'b'")
    with pytest.raises(InputError, match=rf"x\.db: a store of version {version}, .*: table records, row b: damaged"):
        Store(tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
        assert connection.execute("SELECT count(*) FROM records").fetchone() == (2,)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_store_that_was_upgraded_is_not_taken_for_an_old_one(tmp_path: Path, version: int) -> None:
    Store(tmp_path / "x.db").close()
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(InputError, match=rf"x\.db: damaged: its tables are not those of a store of version {version}"):
        Store(tmp_path / "x.db")
    assert [file.name for file in tmp_path.iterdir()] == ["x.db"]
