import csv
import gzip
import hashlib
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skeleton_cgl.engine.exchange import export, import_export, read_export
from skeleton_cgl.engine.record import Kept, Record
from skeleton_cgl.engine.rows import PlannedStudy
from skeleton_cgl.engine.store import NotReproducible, Store
from skeleton_cgl.errors import InputError
from tests.conftest import Run
from tests.engine.made_rows import made_record, made_study, rich_record, same
from tests.engine.old_store import OLD, SPEC, OldStudy, key_of, write_old_export, write_old_store

A, B, C = (letter * 32 for letter in "abc")
A1, B1 = (letter * 31 + "1" for letter in "ab")
FIRST = key_of(1, 0, 0, 1)
FLOORS = {"1": "seeds", "2": "splits", "3": "both"}
RESULTS = Path(__file__).parents[2] / "results"


def contents(path: Path) -> tuple[Any, ...]:
    """Return everything in a store, as values that can be compared, without the numbers of its studies."""
    with Store(path, must_exist=True) as store:
        studies = [
            (replace(study, number=0), store.learners(study.number), store.runs(study.number))
            for study in store.studies()
        ]
        records = {
            record.key: (
                [(score.part, score.metric, score.values.tolist(), score.asked.tolist()) for score in record.scores],
                [None if score.counts is None else score.counts.tolist() for score in record.scores],
                None if record.answers is None else record.answers.tolist(),
                record.made,
            )
            for record in store.records()
        }
    return studies, repr(sorted(records.items()))


def add(store: Store, planned: PlannedStudy) -> int:
    return store.add_study(planned.study, planned.learners, planned.runs)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of two studies that share a stage; one of its runs is not finished."""
    path = tmp_path / "x.db"
    with Store(path) as opened:
        add(opened, made_study("made", keys=(A, B), methods=("bare", "ewc")))
        add(opened, made_study("other", keys=(A, C)))
        records = [made_record(A), rich_record(B), made_record(A1, seed=1, host="there"), rich_record(C, 2)]
        opened.add([("stage", record) for record in records])
    return path


@pytest.fixture
def exported(store: Path, tmp_path: Path) -> Path:
    with Store(store) as opened:
        export(opened, tmp_path / "x.csv.gz")
    return tmp_path / "x.csv.gz"


def test_an_export_comes_back_as_the_same_store(store: Path, exported: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "y.db") as other:
        assert import_export(exported, other) == 4
        assert import_export(exported, other) == 4
        assert export(other, tmp_path / "y.csv.gz") == 4
        with Store(store) as opened:
            for key in opened.done():
                one, also = opened.record(key), other.record(key)
                machines = {"here": "machine 1", "there": "machine 2"}
                assert same(replace(one, made=replace(one.made, host=machines[one.made.host])), also)
                assert one.made.created == also.made.created
            assert other.studies() == opened.studies()
    assert contents(tmp_path / "y.db")[0] == contents(store)[0]
    assert (tmp_path / "y.csv.gz").read_bytes() == exported.read_bytes()


def test_machines_are_numbered_and_not_named(store: Path, tmp_path: Path) -> None:
    with Store(store) as opened:
        opened.add([("stage", made_record(B1, host="secret.example.org"))])
        export(opened, tmp_path / "x.csv.gz")
    text = gzip.decompress((tmp_path / "x.csv.gz").read_bytes()).decode()
    assert "secret" not in text
    assert "machine 3" in text


def test_other_programs_read_an_export(exported: Path) -> None:
    table = pd.read_csv(exported, comment="#", keep_default_na=False)
    assert list(table["key"]) == [A, B, A1, B1, A, C]
    assert set(table["backbone"]) == {"Net #1"}
    assert list(table["method"]) == ["bare", "bare", "ewc", "ewc", "bare", "bare"]
    assert set(table["point"]) == {"training.epochs=3"}
    assert list(table["step"]) == [1, 2, 1, 2, 1, 2]
    # The content of a stage stands with the first run that has it; b1 is not learned.
    assert list(table["seconds"] != "") == [True, True, True, False, False, True]
    counts = np.array([[int(number) for number in row.split()] for row in table["test"][0].split(";")])
    np.testing.assert_array_equal(counts, made_record(A).scores[0].counts)
    f1 = np.array([float(value) for value in table["test.f1"][1].split()])
    np.testing.assert_array_equal(f1, rich_record(B).measure("test", "f1").values)
    assert table["validation.f1.counts"][1] == ""


def test_answers_of_any_length_come_back(store: Path, tmp_path: Path) -> None:
    answers = np.random.default_rng(0).random((1000, 40))
    with Store(store) as opened, Store(tmp_path / "y.db") as other:
        opened.add([("stage", replace(made_record(B1), answers=answers))])
        export(opened, tmp_path / "x.csv.gz")
        import_export(tmp_path / "x.csv.gz", other)
        found = other.record(B1).answers
    assert found is not None
    np.testing.assert_array_equal(found, answers)


def test_chosen_studies_are_exported_with_what_they_need(store: Path, tmp_path: Path) -> None:
    with Store(store) as opened, Store(tmp_path / "y.db") as chosen, Store(tmp_path / "alone.db") as alone:
        assert export(opened, tmp_path / "x.csv.gz", ["other", "other"]) == 2
        import_export(tmp_path / "x.csv.gz", chosen)
        assert [study.name for study in chosen.studies()] == ["other"]
        assert chosen.done() == {A, C}
        with pytest.raises(InputError, match="no study 'othr'; did you mean 'other'"):
            export(opened, tmp_path / "z.csv.gz", ["othr"])
        # Which other studies the store has is not to be seen.
        alone.take_over(read_export(tmp_path / "x.csv.gz").studies, read_export(tmp_path / "x.csv.gz").records)
        export(alone, tmp_path / "alone.csv.gz")
    assert (tmp_path / "alone.csv.gz").read_bytes() == (tmp_path / "x.csv.gz").read_bytes()
    assert not (tmp_path / "z.csv.gz").exists()


def test_an_export_of_nothing_is_an_empty_one(tmp_path: Path) -> None:
    with Store(tmp_path / "x.db") as opened, Store(tmp_path / "y.db") as other:
        assert export(opened, tmp_path / "x.csv.gz") == 0
        assert import_export(tmp_path / "x.csv.gz", other) == 0


def test_a_metric_that_columns_could_not_tell_apart_is_refused(store: Path, tmp_path: Path) -> None:
    with Store(store) as opened:
        record = rich_record(B1)
        opened.add([("stage", replace(record, scores=(replace(record.scores[2], metric="f1.asked"),)))])
        with pytest.raises(InputError, match=r"metric 'f1\.asked'"):
            export(opened, tmp_path / "x.csv.gz")


def test_what_is_no_export_is_refused(store: Path, exported: Path, tmp_path: Path) -> None:
    def refuse(reason: str, content: bytes) -> None:
        (tmp_path / "bad.csv.gz").write_bytes(content)
        before = contents(store)
        with Store(store) as opened, pytest.raises(InputError, match=rf"bad\.csv\.gz: {reason}"):
            import_export(tmp_path / "bad.csv.gz", opened)
        assert contents(store) == before

    whole = exported.read_bytes()
    refuse("not a readable export", whole[: len(whole) // 2])
    refuse("not a readable export", b"hello")
    refuse("not a readable export", gzip.compress(b"# {not JSON\na,b\n"))
    for first in (b"", b"a,b\n", b"# 1\n", b'# {"format": "skeleton_cgl export 6"}\n'):
        refuse("expected 'skeleton_cgl export 5', ", gzip.compress(first))
    refuse("expected the columns study, method", gzip.compress(b'# {"format": "skeleton_cgl export 2"}\na,b\n'))
    with Store(store) as opened, pytest.raises(InputError, match=r"called NAME\.csv\.gz"):
        export(opened, tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"absent\.csv\.gz: not a readable export: .*No such file"):
        read_export(tmp_path / "absent.csv.gz")


Change = Callable[[dict[str, Any], list[list[str]]], None]


def one_more(text: str) -> str:
    return str(int(text[0]) + 1) + text[1:]


def change_count(_: dict[str, Any], rows: list[list[str]]) -> None:
    place = rows[0].index("test")
    rows[1][place] = one_more(rows[1][place])


def change_count_of_other(_: dict[str, Any], rows: list[list[str]]) -> None:
    rows[-1][rows[0].index("seed")] += "1"


def leave_out_a_row(_: dict[str, Any], rows: list[list[str]]) -> None:
    del rows[2]


def cut_a_row(_: dict[str, Any], rows: list[list[str]]) -> None:
    del rows[2][-1]


def rename_the_method(head: dict[str, Any], _: list[list[str]]) -> None:
    head["studies"][0]["learners"][1]["method"]["name"] = "mas"


def change_the_digest(head: dict[str, Any], _: list[list[str]]) -> None:
    head["studies"][1]["digest"] = "0" * 64


def leave_out_a_study(head: dict[str, Any], _: list[list[str]]) -> None:
    del head["studies"][1]


def name_a_column_otherwise(_: dict[str, Any], rows: list[list[str]]) -> None:
    rows[0][rows[0].index("test.f1")] = "test.f2"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (change_count, "study 'made': damaged or changed"),
        (change_count_of_other, "study 'other': damaged or changed"),
        (leave_out_a_row, "study 'made': damaged or changed"),
        (cut_a_row, "study 'made': damaged or changed"),
        (rename_the_method, "study 'made': damaged or changed"),
        (change_the_digest, "study 'other': damaged or changed"),
        (leave_out_a_study, "damaged or changed: it does not fit its digest"),
        (name_a_column_otherwise, "damaged or changed: it does not fit its digest"),
    ],
)
def test_an_export_that_was_changed_is_refused_and_the_study_named(
    exported: Path, tmp_path: Path, change: Change, reason: str
) -> None:
    first, body = gzip.decompress(exported.read_bytes()).decode().split("\n", 1)
    head, rows = json.loads(first.removeprefix("# ")), list(csv.reader(io.StringIO(body)))
    change(head, rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    changed = tmp_path / "changed.csv.gz"
    changed.write_bytes(gzip.compress(f"# {json.dumps(head)}\n{text.getvalue()}".encode()))
    with Store(tmp_path / "y.db") as other:
        with pytest.raises(InputError, match=rf"changed\.csv\.gz: {reason}"):
            import_export(changed, other)
        assert other.studies() == []
        assert other.done() == set()


def cells_of(column: str, **by_row: str) -> Change:
    """Return a change that writes cells of one column, by the number of their row."""

    def change(_: dict[str, Any], rows: list[list[str]]) -> None:
        for number, cell in by_row.items():
            rows[int(number.removeprefix("row"))][rows[0].index(column)] = cell

    return change


def in_the_head(**fields: Any) -> Change:
    return lambda head, _: head["studies"][0].update(fields)


def exchange_two_rows(_: dict[str, Any], rows: list[list[str]]) -> None:
    rows[1:3] = rows[2:0:-1]


def reverse_the_keys_of_a_run(_: dict[str, Any], rows: list[list[str]]) -> None:
    key, content = rows[0].index("key"), rows[0].index("test")
    rows[1][key], rows[2][key] = rows[2][key], rows[1][key]
    # Another run begins with the same stage.
    rows[3][key:] = [A, *[""] * len(rows[3][content:])]


def write_a_record_twice(_: dict[str, Any], rows: list[list[str]]) -> None:
    key = rows[0].index("key")
    first = rows[0].index("test")
    rows[5][first:] = rows[1][first:]
    assert rows[5][key] == rows[1][key]


def make_counts_perfect(_: dict[str, Any], rows: list[list[str]]) -> None:
    rows[6][rows[0].index("test")] = "300 0 0;0 20 0;0 0 70"


def seal(head: dict[str, Any], rows: list[list[str]]) -> bytes:
    """Return an export with digests that fit, as whoever changes it on purpose writes them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    for study in head["studies"]:
        study.pop("digest", None)
        digest = hashlib.sha256(json.dumps(study).encode())
        for row in rows[1:]:
            if row[0] == str(study["id"]):
                digest.update(("\x1e" + "\x1f".join(row)).encode())
        study["digest"] = digest.hexdigest()
    head.pop("digest")
    head["digest"] = hashlib.sha256(f"{json.dumps(head)}\n{text.getvalue()}".encode()).hexdigest()
    return gzip.compress(f"# {json.dumps(head)}\n{text.getvalue()}".encode())


def opened_export(path: Path) -> tuple[dict[str, Any], list[list[str]]]:
    first, body = gzip.decompress(path.read_bytes()).decode().split("\n", 1)
    return json.loads(first.removeprefix("# ")), list(csv.reader(io.StringIO(body)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (make_counts_perfect, "line 8: test: the answers are not those that were counted"),
        (cells_of("test", row1="-1 301 0;20 0 0;0 0 70"), "line 3: test accuracy: counts are numbers from 0 on"),
        (cells_of("test", row1="299 0 0;20 0 0;0 0 70"), "its studies .* of one repeat: test accuracy: not asked the"),
        (cells_of("test", row1="390 0;0 0"), r"its studies .* expected test accuracy of 3 units"),
        (cells_of("test.f1", row2="1.5 nan 0.5 0.5"), "line 4: test f1: values are numbers from 0 to 1"),
        (cells_of("seconds", row2="-1.0"), "line 4: expected seconds"),
        (cells_of("kept_samples", row2="-1"), "line 4: expected a number of samples kept from 0 on, found -1"),
        (cells_of("kept_floats", row2="-2"), "line 4: expected a number of floats kept from 0 on, found -2"),
        (cells_of("kept_bytes", row2="-3"), "line 4: expected a number of bytes kept from 0 on, found -3"),
        (cells_of("kept_bytes", row2=""), "line 4: samples or floats are kept, but no bytes"),
        (leave_out_a_row, "line 4: step 1|its studies cannot be read: order 0,1 > 2: expected 2 steps, found 1"),
        (exchange_two_rows, "line 3: step 2 of order 0,1 > 2 does not follow the row before it"),
        (cells_of("step", row2="3"), "line 4: step 3 .* does not follow"),
        (cells_of("steps", row1="3", row2="3"), "its studies cannot be read: .* expected 3 steps, found 2"),
        (cells_of("order", row2="2 > 0,1"), "line 4: step 2 of order 2 > 0,1 does not follow"),
        (cells_of("order", row1="0,1 > 3", row2="0,1 > 3"), "its studies cannot be read: order 0,1 > 3: units are 0–2"),
        (reverse_the_keys_of_a_run, "its studies cannot be read: .* key a+ is that of another stage"),
        (cells_of("key", row2="../../x"), "line 4: expected a key of 32 digits"),
        (cells_of("key", row2="B" * 32), "line 4: expected a key of 32 digits"),
        (cells_of("noise", row1="1", row2="1"), "its studies cannot be read: .* no run of a floor ''"),
        (cells_of("floor", row1="seeds", row2="seeds"), "its studies cannot be read: .* no run of a floor 'seeds'"),
        (cells_of("learner", row1="7", row2="7"), "its studies cannot be read: nothing is said of learner 7"),
        (cells_of("learner", row3="0", row4="0"), "its studies cannot be read: .* the run is there twice"),
        (cells_of("study", row5="3", row6="3"), "the first line says nothing of study 3"),
        (in_the_head(id=7), "its studies cannot be read: study 1 has the number 7"),
        (write_a_record_twice, "line 7: the record a+ is there twice"),
    ],
)
def test_what_cannot_be_true_is_refused_though_its_digests_fit(
    run: Run, store: Path, tmp_path: Path, change: Change, reason: str
) -> None:
    with Store(store) as opened, Store(tmp_path / "answers.db") as other:
        for study in opened.studies():
            add(other, PlannedStudy(study, tuple(opened.learners(study.number)), tuple(opened.runs(study.number))))
        other.add([("s", record if record.key != C else with_answers(record)) for record in opened.records()])
        export(other, tmp_path / "x.csv.gz")
    head, rows = opened_export(tmp_path / "x.csv.gz")
    assert read_export(tmp_path / "x.csv.gz").records
    change(head, rows)
    (tmp_path / "x.csv.gz").write_bytes(seal(head, rows))
    code, _, errors = run("import", tmp_path / "x.csv.gz", "--store", tmp_path / "y.db")
    assert code == 2
    assert re.search(rf"error: .*x\.csv\.gz: ({reason})", errors), errors
    assert not list(tmp_path.glob("y.db*"))


def with_answers(record: Record) -> Record:
    """Return a record with answers that give its counts."""
    counts = [record.measure(part, "accuracy").counts for part in ("test", "validation")]
    given = [np.repeat(np.arange(3), each.sum(axis=0)) for each in counts if each is not None]
    return replace(record, answers=np.concatenate(given).astype(np.uint8))


def test_an_import_refused_by_the_store_itself_leaves_no_new_store(run: Run, exported: Path, tmp_path: Path) -> None:
    head, rows = opened_export(exported)
    head["studies"][1]["spec"], head["studies"][1]["digests"] = (
        head["studies"][0][each] for each in ("spec", "digests")
    )
    exported.write_bytes(seal(head, rows))
    code, _, errors = run("import", exported, "--store", tmp_path / "y.db")
    assert code == 2
    assert "study 'other' is there already, with other runs" in errors
    assert not list(tmp_path.glob("y.db*"))


def test_floors_and_notes_are_carried(tmp_path: Path) -> None:
    planned = made_study(keys=(A, B))
    floors = [
        replace(planned.runs[0], noise=1, floor=floor, keys=(n * 32, n * 31 + "f")) for n, floor in FLOORS.items()
    ]
    study = replace(planned.study, notes=("3 identical clips", "all subjects shared"))
    with Store(tmp_path / "x.db") as store, Store(tmp_path / "y.db") as other:
        add(store, PlannedStudy(study, planned.learners, (*planned.runs, *floors)))
        export(store, tmp_path / "x.csv.gz")
        import_export(tmp_path / "x.csv.gz", other)
        assert other.study().notes == study.notes
        assert other.runs(1) == [*planned.runs, *floors]


def kept_bytes_alone(rows: list[list[str]]) -> None:
    """Leave out what formats 3 and 4 did not have of what a method keeps."""
    place = rows[0].index("kept_samples")
    rows[0][place : place + 3] = ["kept", "", ""]
    for row in rows[1:]:
        row[place] = row[place + 2]
    for row in rows:
        del row[place + 1 : place + 3]


def test_an_export_of_format_4_is_read_with_the_bytes_kept(store: Path, exported: Path, tmp_path: Path) -> None:
    head, rows = opened_export(exported)
    head["format"] = "skeleton_cgl export 4"
    kept_bytes_alone(rows)
    exported.write_bytes(seal(head, rows))
    with Store(tmp_path / "y.db") as other, Store(store) as opened:
        import_export(exported, other)
        assert other.studies() == opened.studies()
        assert other.runs(1) == opened.runs(1)
        for key in (A, B, A1, C):
            one, also = opened.record(key), other.record(key)
            before = one.made.kept and Kept(None, None, one.made.kept.bytes)
            assert same(replace(one, made=replace(one.made, host=also.made.host, kept=before)), also)
        assert other.record(B).made.kept == Kept(None, None, 2**40)
        # Written anew, what was not counted is left empty, and comes back so.
        export(other, tmp_path / "y.csv.gz")
    found = {record.key: record.made.kept for _, record in read_export(tmp_path / "y.csv.gz").records}
    assert found == {A: None, B: Kept(None, None, 2**40), A1: None, C: Kept(None, None, 2**40)}


def test_an_export_of_format_3_is_read(store: Path, exported: Path, tmp_path: Path) -> None:
    head, rows = opened_export(exported)
    head["format"] = "skeleton_cgl export 3"
    for study in head["studies"]:
        del study["notes"]
    kept_bytes_alone(rows)
    later = [rows[0].index(column) for column in ("floor", "steps")]
    before = [[cell for place, cell in enumerate(row) if place not in later] for row in rows]
    noise = before[0].index("noise")
    for row in before[3:5]:
        row[noise] = "1"
    exported.write_bytes(seal(head, before))
    with Store(tmp_path / "y.db") as other, Store(store) as opened:
        import_export(exported, other)
        assert other.done() == opened.done()
        assert [run.floor for run in other.runs(1)] == ["", "seeds"]
        assert other.runs(2) == opened.runs(2)


def test_an_import_that_says_otherwise_than_the_store_changes_nothing(exported: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "y.db") as other:
        other.add([("stage", made_record(A1, seed=99))])
        with pytest.raises(NotReproducible, match=r"y\.db: ewc 0,1: learned again, it gave another record"):
            import_export(exported, other)
        assert other.studies() == []
        assert other.done() == {A1}


def test_an_old_export_gives_the_store_that_an_upgrade_gives(tmp_path: Path) -> None:
    sweep = {**SPEC, "name": "swept", "sweep": {"backbone.width": [4, 8]}}
    studies = (OLD, OldStudy(sweep, [("gcn width=8", "strong"), ("net width=4", "bare")]))
    with Store(tmp_path / "x.db") as store:
        assert import_export(write_old_export(tmp_path / "x.csv.gz", *studies), store) == 19
    write_old_store(tmp_path / "y.db", *studies)
    assert contents(tmp_path / "x.db") == contents(tmp_path / "y.db")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((f"{FIRST},", f"{FIRST},x"), "line 3: "),
        ((f"{FIRST},", f"{FIRST},0."), "line 3: expected counts"),
        ((f"{FIRST},", f"{FIRST},1 2 3;"), "line 3: expected counts"),
        ((",0,0,", ",zero,0,"), "line 4: step 2 of order 0,1 > 2 does not follow"),
        (('"id": 10', '"id": 11'), "the first line says nothing of study 10"),
        (('"units"', '"unit"'), "its studies cannot be read: KeyError.*units"),
    ],
)
def test_a_damaged_old_export_is_refused_by_line(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    path = write_old_export(tmp_path / "x.csv.gz", OLD)
    text = gzip.decompress(path.read_bytes()).decode()
    path.write_bytes(gzip.compress(text.replace(*change, 1).encode()))
    with pytest.raises(InputError, match=rf"x\.csv\.gz: {reason}"):
        read_export(path)


@pytest.mark.parametrize(
    ("name", "stages", "learners"),
    [("ucla-gcn/sweeps", 630, 35), ("ucla-stgcn/records", 15, 3), ("ucla-stgcn/short", 222, 2)],
)
def test_committed_exports_are_read_and_written_anew(tmp_path: Path, name: str, stages: int, learners: int) -> None:
    with Store(tmp_path / "x.db") as store, Store(tmp_path / "y.db") as other:
        assert import_export(RESULTS / f"{name}.csv.gz", store) == len(store.done()) == stages
        for study in store.studies():
            rows = store.learners(study.number)
            assert len(rows) == learners
            assert {run.learner for run in store.runs(study.number)} <= set(range(learners))
            assert not any("=" in row.backbone.name for row in rows)
        export(store, tmp_path / "x.csv.gz")
        import_export(tmp_path / "x.csv.gz", other)
    assert contents(tmp_path / "x.db") == contents(tmp_path / "y.db")


def test_the_commands_take_studies_from_store_to_store(run: Run, store: Path, tmp_path: Path) -> None:
    code, printed, _ = run("export", store, "--study", "made", "--study", 2, "--out", tmp_path / "x.csv.gz")
    assert (code, printed) == (0, f"{tmp_path / 'x.csv.gz'}: 4 stages\n")
    code, printed, _ = run("import", tmp_path / "x.csv.gz", "--store", tmp_path / "new" / "y.db")
    assert (code, printed) == (0, f"{tmp_path / 'new' / 'y.db'}: 4 stages\n")
    assert contents(tmp_path / "new" / "y.db")[0] == contents(store)[0]


def test_a_refused_import_leaves_no_new_store(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.csv.gz").write_text("hello")
    code, _, errors = run("import", tmp_path / "bad.csv.gz", "--store", tmp_path / "y.db")
    assert code == 2
    assert "error: " in errors
    assert not (tmp_path / "y.db").exists()
