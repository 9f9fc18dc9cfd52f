import json
from dataclasses import replace
from pathlib import Path

from skeleton_cgl.engine.status import describe_status, status_of, status_values
from skeleton_cgl.engine.store import Store
from tests.conftest import Run
from tests.engine.made_rows import made_record, made_study


def add_study(path: Path, name: str = "made") -> None:
    planned = made_study(name, keys=("a", "b"), methods=("bare", "ewc", "mas"))
    with Store(path) as store:
        store.add_study(planned.study, planned.learners, planned.runs)


def add_records(path: Path, **seconds: float) -> None:
    with Store(path) as store:
        store.add([("stage", made_record(key, seconds=each)) for key, each in seconds.items()])


def test_what_is_done_and_left_is_counted_by_stage_and_by_run(tmp_path: Path) -> None:
    add_study(tmp_path / "x.db")
    add_records(tmp_path / "x.db", a=1, b=1, a1=1, elsewhere=1)
    (status,) = status_of(tmp_path / "x.db")
    assert (status.study, status.number, status.stages, status.done) == ("made", 1, 6, 3)
    assert (status.runs, status.finished_runs, status.failures) == (3, 1, ())
    assert "3 of 6 stages done, 3 left" in describe_status([status])
    assert "1 of 3 runs finished" in describe_status([status])


def test_the_time_left_is_that_of_the_learners_that_are_left(tmp_path: Path) -> None:
    add_study(tmp_path / "x.db")
    (status,) = status_of(tmp_path / "x.db")
    assert status.seconds_left is None
    assert "6 left, time unknown" in describe_status([status])
    add_records(tmp_path / "x.db", a=1, b=1, a1=100)
    (status,) = status_of(tmp_path / "x.db")
    # b1 takes as long as a1, and a2 and b2, of a learner not timed yet, as long as what is known to be left.
    assert status.seconds_left == 300
    assert "3 left, about 5 min 00 s of one worker" in describe_status([status])
    add_records(tmp_path / "x.db", b1=100, a2=1, b2=1)
    (status,) = status_of(tmp_path / "x.db")
    assert status.seconds_left == 0
    assert describe_status([status]).splitlines()[1].endswith("6 of 6 stages done, 0 left")


def test_stages_that_take_no_time_are_not_unknown(tmp_path: Path) -> None:
    add_study(tmp_path / "x.db")
    add_records(tmp_path / "x.db", a=0, a1=0, a2=0)
    assert "3 left, about 0 s of one worker" in describe_status(status_of(tmp_path / "x.db"))


def test_failures_are_told_with_the_study_they_belong_to(tmp_path: Path) -> None:
    for name in ("made", "other"):
        add_study(tmp_path / f"{name}.db", name)
    with Store(tmp_path / "made.db") as store:
        store.add_failure("a1", "ewc 0,1", "loss is not finite")
        store.add_failure("a2", "mas 0,1", "loss is not finite")
        store.add_failure("elsewhere", "mas 0,1", "out of memory")
    (status,) = status_of(tmp_path / "made.db")
    assert status.failures == (("a1", "loss is not finite"), ("a2", "loss is not finite"))
    assert describe_status([status]).splitlines()[-2:] == [
        "   2 failed; `run --retry` tries them again:",
        "     loss is not finite",
    ]


def test_a_store_without_studies_has_no_status(tmp_path: Path) -> None:
    Store(tmp_path / "x.db").close()
    assert describe_status(status_of(tmp_path / "x.db")) == "no study yet"


def test_the_values_for_json_have_the_names_they_always_had(tmp_path: Path) -> None:
    add_study(tmp_path / "x.db")
    with Store(tmp_path / "x.db") as store:
        store.add_failure("a1", "ewc 0,1", "why")
    (values,) = json.loads(json.dumps(status_values(status_of(tmp_path / "x.db"))))
    created = values.pop("created")
    assert created
    orders = [
        {"learner": f"{method}, Net #1, training.epochs=3", "repeat": 0, "finished": 0, "planned": 1}
        for method in ("bare", "ewc", "mas")
    ]
    assert values == {
        "study": "made",
        "id": 1,
        "stages": 6,
        "done": 0,
        "runs": 3,
        "finished_runs": 0,
        "seconds_left": None,
        "failures": {"a1": "why"},
        "notes": [],
        "orders": orders,
        "machines": {},
        "sources": [],
    }


def test_notes_machines_and_sources_are_told_by_study_and_repeat(run: Run, tmp_path: Path) -> None:
    planned = made_study(keys=("a", "b"))
    again = replace(planned.runs[0], repeat=1, keys=("c", "d"))
    here = (("processor", "EPYC 7B12 23/49/0"), ("instructions", "AVX2 fma"), ("threads", "1"), ("torch", "2.13.0"))
    there = (("processor", "Xeon 6/85/7"), ("instructions", "AVX512 fma"), ("threads", "4"), ("torch", "2.13.0"))
    fingerprints = {"a": here, "b": here, "c": here, "d": there}
    with Store(tmp_path / "x.db") as store:
        notes = ("split: 12 clips of test are in training", "split: all subjects are shared")
        store.add_study(replace(planned.study, notes=notes), planned.learners, (*planned.runs, again))
        for key, fingerprint in fingerprints.items():
            made = replace(made_record(key).made, fingerprint=fingerprint, versions=(("source", f"of {key < 'd'}"),))
            store.add([("stage", replace(made_record(key), made=made))])
    code, printed, _ = run("status", tmp_path / "x.db")
    assert code == 0
    assert printed.splitlines()[3:] == [
        "   1 of 1 planned orders finished, by every learner in every repeat",
        *(f"   {note}" for note in notes),
        "   repeat 0: EPYC 7B12 23/49/0, AVX2 fma, 1 thread, torch 2.13.0",
        "   repeat 1: EPYC 7B12 23/49/0, AVX2 fma, 1 thread, torch 2.13.0",
        "   repeat 1: Xeon 6/85/7, AVX512 fma, 4 threads, torch 2.13.0",
        "   source of True, of False",
    ]
    (values,) = json.loads(run("status", tmp_path / "x.db", "--json")[1])
    assert values["notes"] == list(notes)
    assert [len(words) for words in values["machines"].values()] == [1, 2]
    assert values["sources"] == ["of True", "of False"]


def test_orders_begun_are_counted_among_those_planned_and_noise_is_not(tmp_path: Path) -> None:
    planned = made_study(keys=("a", "b"), methods=("bare", "ewc"))
    other = replace(planned.runs[0], order=((2,), (0, 1)), keys=("c", "d"))
    noisy = replace(planned.runs[0], noise=1, floor="seeds", keys=("e", "f"))
    with Store(tmp_path / "x.db") as store:
        store.add_study(planned.study, planned.learners, (*planned.runs, other, noisy))
    add_records(tmp_path / "x.db", a=1, b=1, e=1, f=1, a1=1)
    text = describe_status(status_of(tmp_path / "x.db"))
    assert "bare, Net #1, training.epochs=3, repeat 0: 1 of 2 planned orders finished" in text
    assert text.count("planned orders") == 1
