"""A repeat is made on one kind of machine, unless its mixing is asked for; every repeat may have its own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from skeleton_cgl.engine.fingerprint import fingerprint
from skeleton_cgl.engine.mixing import Fingerprints, Unmixed
from skeleton_cgl.engine.plan import Plan, make_plan
from skeleton_cgl.engine.record import Facts
from skeleton_cgl.engine.run import run_study
from skeleton_cgl.engine.stage import Branch, Outcome
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.study import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.process import settle
from tests.conftest import Run
from tests.engine.made_rows import made_record
from tests.engine.studies import small_study

ORDERS = {"given": [[[0, 1], [2, 3]]]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mixing")


@pytest.fixture(scope="module")
def here() -> Facts:
    settle()
    return fingerprint(torch.device("cpu"))


def elsewhere(here: Facts, **changes: str) -> Facts:
    return tuple({**dict(here), **changes}.items())


def two_methods(folder: Path, repeats: int = 1) -> Study:
    return small_study(folder, methods=["bare", "ewc"], orders=ORDERS, repeats=repeats)


def begin(study: Study, path: Path, made_at: dict[int, Facts]) -> Plan:
    """Put records of the first method into a store, as if made on machines of these fingerprints; return the plan."""
    plan = make_plan(study)
    with Store(path) as store:
        for key, stage in plan.stages.items():
            if stage.learner == 0 and stage.repeat in made_at:
                record = made_record(key)
                made = replace(record.made, fingerprint=made_at[stage.repeat])
                store.add([(str(stage), replace(record, made=made))])
    return plan


def test_a_repeat_that_was_begun_elsewhere_is_refused_before_anything_is_learned(
    folder: Path, tmp_path: Path, here: Facts
) -> None:
    store, study = tmp_path / "x.db", two_methods(folder)
    begin(study, store, {0: elsewhere(here, processor="Z80", BLAS="none")})
    with pytest.raises(InputError) as refused:
        run_study(study, store, progress=False)
    words = str(refused.value)
    assert words.startswith(
        f"{store}: study 'small': repeat 0: begun otherwise than it would go on here: processor: Z80"
    )
    assert f"processor: Z80 then, {dict(here)['processor']} now; BLAS: none then" in words
    assert "torch" not in words.partition(". Records of both")[0].replace(str(store), "")
    assert "--mix" in words
    assert "\n" not in words
    with Store(store) as opened:
        assert opened.studies() == []
        assert len(opened.done()) == 2


def test_mixing_is_possible_where_it_is_asked_for(folder: Path, tmp_path: Path, here: Facts, run: Run) -> None:
    store, study = tmp_path / "x.db", two_methods(folder)
    run_study(small_study(folder, methods=["bare"], orders=ORDERS), tmp_path / "here.db", progress=False)
    with Store(tmp_path / "here.db") as made, Store(store) as opened:
        for record in made.records():
            there = replace(record.made, fingerprint=elsewhere(here, threads="64"))
            opened.add([(record.key, replace(record, made=there))])
    file = tmp_path / "study.yaml"
    file.write_text(study.model_dump_json())
    code, _, errors = run("run", file, "--store", store)
    assert code == 2
    assert "threads: 64 then, 1 now" in errors
    assert run("run", file, "--store", store, "--mix")[0] == 0


def test_other_repeats_may_be_made_elsewhere(folder: Path, tmp_path: Path, here: Facts) -> None:
    store, study = tmp_path / "x.db", two_methods(folder, repeats=3)
    plan = begin(study, store, {0: here, 1: elsewhere(here, threads="64"), 2: elsewhere(here, threads="64")})
    with pytest.raises(InputError, match="repeat 1, 2: begun otherwise"):
        run_study(study, store, progress=False)
    with Store(store) as opened:
        left = [stage for key, stage in plan.stages.items() if stage.repeat > 0 and key not in opened.done()]
        opened.add([(str(stage), made_record(stage.key)) for stage in left])
    assert run_study(study, store, progress=False)[1].learned == 2


def test_what_is_finished_is_not_asked_where_it_was_made(folder: Path, tmp_path: Path, here: Facts) -> None:
    store, study = tmp_path / "x.db", small_study(folder, methods=["bare"], orders=ORDERS)
    begin(study, store, {0: elsewhere(here, threads="64")})
    assert run_study(study, store, progress=False)[1].learned == 0


def test_records_without_a_fingerprint_are_told_of_and_not_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, study = tmp_path / "x.db", two_methods(folder)
    begin(study, store, {0: ()})
    assert run_study(study, store)[1].learned == 2
    assert "records without a fingerprint: 2 of repeat 0; whether this machine" in capsys.readouterr().err
    run_study(study, store)
    assert "without a fingerprint" not in capsys.readouterr().err


class Made:
    """Workers of a cluster, each with a fingerprint of its own."""

    room = 1

    def __init__(self, outcomes: list[Outcome]) -> None:
        self._outcomes = outcomes

    def hand_in(self, branch: Branch) -> None:
        raise AssertionError(branch)

    def results(self) -> Iterator[list[Outcome]]:
        yield self._outcomes


def test_workers_of_two_kinds_are_refused_within_a_repeat(folder: Path, tmp_path: Path, here: Facts) -> None:
    plan = make_plan(two_methods(folder, repeats=2))

    def learned(repeat: int, facts: Facts) -> Outcome:
        key = next(key for key, stage in plan.stages.items() if stage.repeat == repeat)
        record = made_record(key)
        return Outcome(key, replace(record, made=replace(record.made, host="there", fingerprint=facts)))

    other = elsewhere(here, threads="4")
    with Store(tmp_path / "x.db") as store:
        apart = Unmixed(Made([learned(0, here), learned(1, other)]), Fingerprints(plan, store))
        assert len(list(apart.results())) == 1
        mixed = Unmixed(Made([learned(0, here), learned(0, other)]), Fingerprints(plan, store))
        with pytest.raises(InputError, match="it would go on at there: threads: 1 then, 4 now"):
            list(mixed.results())
