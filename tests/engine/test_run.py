import gzip
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl import Results, Study
from skeleton_cgl.engine import run as engine_run
from skeleton_cgl.engine.exchange import export, import_export
from skeleton_cgl.engine.forecast import forecast
from skeleton_cgl.engine.plan import Plan, Stage, make_plan
from skeleton_cgl.engine.stage import Failure, Outcome
from skeleton_cgl.engine.status import describe_status, status_of
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from tests.engine.studies import METHODS, contents, small_archive, small_study

# Dask's scheduler leaves closing some of its sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engine")


def run(study: Study, store: Path, **options: object) -> Results:
    return study.run(store, progress=False, **options)


def re_seeded(runs: int) -> dict[str, object]:
    """Return a noise floor of one order and of seeds alone."""
    return {"runs": runs, "orders": 1, "kinds": ["seeds"]}


def add_study(store: Store, plan: Plan) -> None:
    store.add_study(plan.row(), plan.learners, plan.runs)


@pytest.mark.parametrize("method", METHODS)
def test_the_tree_gives_the_records_of_every_order_run_alone(folder: Path, tmp_path: Path, method: str) -> None:
    study = small_study(folder, methods=[method], noise_floor=re_seeded(2))
    run(study, tmp_path / "tree.db")
    run(study, tmp_path / "alone.db", tree=False)
    assert contents(tmp_path / "tree.db") == contents(tmp_path / "alone.db")
    assert len(contents(tmp_path / "tree.db")) == 8 + 3


def test_any_number_of_workers_gives_the_same_records(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods=METHODS)
    for workers in (1, 2, 3):
        run(study, tmp_path / f"{workers}.db", workers=workers)
    assert contents(tmp_path / "1.db") == contents(tmp_path / "2.db") == contents(tmp_path / "3.db")


def test_workers_tell_of_the_epochs_they_are_at(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from skeleton_cgl.engine import workers as engine_workers
    from skeleton_cgl.engine.schedule import Driver

    monkeypatch.setattr(engine_workers, "_TELL_SECONDS", 0)
    plan = make_plan(small_study(folder, methods=["bare"], training={"epochs": 3}))
    told = []

    def tell(stage: Stage, epoch: int, loss: float) -> None:
        told.append((stage.key, epoch))
        assert loss > 0

    with Store(tmp_path / "x.db") as store, engine_workers.DaskWorkers(plan, 2, epoch=tell) as workers:
        Driver(plan, store, workers).run()
        everything = {(key, epoch) for key in plan.stages for epoch in range(3)}
        give_up = time.monotonic() + 30
        while set(told) != everything and time.monotonic() < give_up:
            time.sleep(0.05)
    assert sorted(told) == sorted(everything)


def test_a_study_runs_only_what_the_store_lacks(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "x.db"
    assert run(small_study(folder, methods=["bare"]), store).summary.learned == 8
    assert run(small_study(folder, methods=["bare"]), store).summary.learned == 0
    assert run(small_study(folder, methods=["bare", "ewc"]), store).summary.learned == 8
    longer = {"given": [[[0, 1], [2, 3], [4, 5]], [[0, 1], [2, 3], [6, 7]]]}
    # The state of ((0,1), (2,3)) is gone, so that it is learned again, and its record must be the same.
    assert run(small_study(folder, methods=["bare"], orders=longer), store).summary.learned == 3
    assert len(contents(store)) == 17
    assert list(tmp_path.iterdir()) == [store]


@pytest.mark.parametrize(
    "changes",
    [
        {"training": {"epochs": 3, "learning_rate": 0.01}},
        {"backbone": {"name": "gcn", "width": 9}},
        {"methods": [{"name": "ewc", "strength": 5}]},
        {"seed": 1},
        {"scenario": {"setting": "task-il"}},
        {"scenario": {"split": {"ratios": [6, 2, 2]}}},
        {"scenario": {"preparation": {"frames": 9}}},
        {"initialisation": "per-order"},
    ],
)
def test_whatever_decides_a_record_is_in_its_key(folder: Path, changes: dict) -> None:
    def keys(study: Study) -> set[str]:
        return set(make_plan(study).stages)

    base = small_study(folder, methods=["ewc"])
    if "scenario" in changes:
        changes = {"scenario": {**base.scenario, **changes["scenario"]}}
    assert not keys(base) & keys(small_study(folder, **{"methods": ["ewc"], **changes}))


def test_what_does_not_decide_a_record_is_not_in_its_key(folder: Path) -> None:
    def keys(study: Study, repeat: int = 0) -> set[str]:
        return {stage.key for stage in make_plan(study).stages.values() if stage.repeat == repeat}

    base = keys(small_study(folder, methods=["ewc"]))
    assert keys(small_study(folder, name="other", methods=[{"name": "ewc", "strength": 1e6}])) == base
    assert keys(small_study(folder, methods=["bare", "ewc"])) > base
    assert keys(small_study(folder, methods=["ewc"], repeats=2), repeat=1) == keys(
        small_study(folder, methods=["ewc"], seed=1)
    )


def test_the_code_of_a_users_own_backbone_is_in_the_key(folder: Path, tmp_path: Path) -> None:
    code = "\n".join(
        [
            "from torch import nn",
            "from skeleton_cgl.backbones.backbone import Backbone",
            "class Net(Backbone):",
            "    def __init__(self, frames):",
            "        super().__init__()",
            "        self.linear = nn.Linear(frames, 4)",
            "    def forward(self, clips):",
            "        return self.linear(clips.mean((1, 3)))",
        ]
    )
    own = tmp_path / "net.py"

    def keys() -> set[str]:
        study = small_study(folder, backbone=str(own), methods=["bare"])
        return set(make_plan(study).stages)

    own.write_text(code)
    before = keys()
    assert keys() == before
    own.write_text(code.replace("mean", "sum"))
    assert not keys() & before


def test_the_forecast_times_what_is_left(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods=["bare", "ewc"])
    whole = forecast(study, tmp_path / "x.db")
    assert (whole.stages, whole.alone, whole.done) == (16, 18, 0)
    assert 0 < whole.seconds < 60
    run(small_study(folder, methods=["bare"]), tmp_path / "x.db")
    assert forecast(study, tmp_path / "x.db").done == 8
    run(study, tmp_path / "x.db")
    assert forecast(study, tmp_path / "x.db").seconds == 0
    broken = {"name": "ewc", "strength": 1e60}
    study = small_study(folder, methods=[broken], training={"epochs": 3, "learning_rate": 0.1})
    assert forecast(study).seconds is None


def test_a_method_that_goes_by_the_number_of_tasks_refuses_orders_of_another(folder: Path) -> None:
    task_il = small_study(folder).scenario | {"setting": "task-il"}
    orders = {"given": [[[0, 1], [2, 3], [4, 5]], [[0], [1], [2], [3], [4], [5]]]}
    assert forecast(small_study(folder, scenario=task_il, orders=orders), timed=False).orders == 2
    with pytest.raises(InputError, match=r"method packnet goes by the number of tasks, which is 5 by default; order"):
        forecast(small_study(folder, scenario=task_il, orders=orders, methods=["packnet"]), timed=False)


def test_what_a_method_does_not_train_takes_the_same_for_any_number_of_epochs(folder: Path) -> None:
    slow = {"name": "ridge", "projection": 3000}
    study = small_study(folder, methods=[slow], training={"epochs": 1_000_000})
    # One epoch of it tells, and would be taken for a millionth of the whole.
    assert forecast(study).seconds < 600


def test_own_first_weights_for_every_order_share_nothing(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods=["bare"], initialisation="per-order")
    assert forecast(study, timed=False).stages == forecast(study, timed=False).alone == 9
    results = run(study, tmp_path / "x.db")
    assert sum(run.order[0] == (0, 1) for run in results.scores.runs) == 2
    assert results.finished_runs == 3


DRIVER = """
import sys
from pathlib import Path
from tests.engine.studies import small_study
if __name__ == "__main__":
    study = small_study(Path(sys.argv[1]), methods=["bare", "replay", "ewc"], training={"epochs": 6})
    study.run(sys.argv[2], progress=False)
"""


def test_a_study_killed_again_and_again_ends_with_the_records_of_one_that_was_not(folder: Path, tmp_path: Path) -> None:
    small_archive(folder)
    arguments = [sys.executable, "-c", DRIVER, str(folder)]
    place = {"cwd": Path(__file__).parents[2], "env": {**os.environ, "PYTHONPATH": "."}}
    subprocess.run([*arguments, str(tmp_path / "whole.db")], check=True, **place)
    random = np.random.default_rng(0)
    store = tmp_path / "killed.db"
    kills, before = 0, {}
    while kills < 10:
        process = subprocess.Popen([*arguments, str(store)], **place)
        _wait_for_a_record(store, len(before), process)
        time.sleep(random.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        finished = process.wait() == 0
        now = contents(store) if store.exists() else {}
        assert before.items() <= now.items()
        before, kills = now, kills + 1
        if finished:
            for file in tmp_path.glob("killed.db*"):
                file.unlink()
            before = {}
    subprocess.run([*arguments, str(store)], check=True, **place)
    assert contents(store) == contents(tmp_path / "whole.db")
    assert not Path(f"{store}.states").exists()


def _wait_for_a_record(store: Path, more_than: int, process: subprocess.Popen) -> None:
    """Wait until the store has more records than before, or the process is over."""
    while process.poll() is None:
        if store.exists():
            with closing(sqlite3.connect(store)) as connection, suppress(sqlite3.OperationalError):
                if connection.execute("SELECT count(*) FROM records").fetchone()[0] > more_than:
                    return
        time.sleep(0.01)


def test_workers_do_not_mind_the_ctrl_c_a_terminal_sends_them(folder: Path, tmp_path: Path) -> None:
    from skeleton_cgl.engine.schedule import Driver
    from skeleton_cgl.engine.workers import DaskWorkers

    plan = make_plan(small_study(folder, methods=["bare"]))
    with Store(tmp_path / "x.db") as store, DaskWorkers(plan, 2) as workers:

        def pids() -> list[int]:
            return [worker.pid for worker in workers._cluster.workers.values()]

        first = pids()
        for pid in first:
            os.kill(pid, signal.SIGINT)
        assert Driver(plan, store, workers).run().learned == 8
        assert pids() == first


def test_two_drivers_on_one_store_do_not_disturb_each_other(folder: Path, tmp_path: Path) -> None:
    small_archive(folder)
    arguments = [sys.executable, "-c", DRIVER, str(folder), str(tmp_path / "shared.db")]
    place = {"cwd": Path(__file__).parents[2], "env": {**os.environ, "PYTHONPATH": "."}}
    both = [subprocess.Popen(arguments, **place) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    study = small_study(folder, methods=["bare", "replay", "ewc"], training={"epochs": 6})
    run(study, tmp_path / "alone.db")
    assert contents(tmp_path / "shared.db") == contents(tmp_path / "alone.db")


def test_ctrl_c_finishes_what_is_in_flight_and_the_same_command_goes_on(folder: Path, tmp_path: Path) -> None:
    small_archive(folder)
    arguments = [sys.executable, "-c", DRIVER, str(folder), str(tmp_path / "x.db")]
    place = {"cwd": Path(__file__).parents[2], "env": {**os.environ, "PYTHONPATH": "."}}
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, **place)
    _wait_for_a_record(tmp_path / "x.db", 0, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 0
    assert "finishing what is in flight" in errors
    done = len(contents(tmp_path / "x.db"))
    assert 0 < done < 24
    study = small_study(folder, methods=["bare", "replay", "ewc"], training={"epochs": 6})
    assert run(study, tmp_path / "x.db").summary.learned == 24 - done


def test_the_bar_counts_long_stages_by_their_whole_time_and_shows_their_epochs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = make_plan(small_study(folder, methods=["bare"], training={"epochs": 100}))
    monkeypatch.setattr(engine_run, "_REDRAW_SECONDS", 0)
    with engine_run._Bar(8, plan, shown=True) as bar:
        bar._bar._time = lambda: now
        now = bar._bar.start_t
        for stage in list(plan.stages.values())[:3]:
            for epoch in range(100):
                now += 3
                bar.epoch(stage, epoch, 0.5)
            bar.finished(stage)
        assert bar._bar.format_dict["rate"] == pytest.approx(1 / 300)
    assert capsys.readouterr().err.count("step 2, epoch 50/100, loss 0.500") == 1


def test_a_stage_that_fails_is_kept_with_its_reason_and_the_rest_goes_on(folder: Path, tmp_path: Path) -> None:
    broken = {"name": "ewc", "strength": 1e60, "label": "broken"}
    study = small_study(folder, methods=["bare", broken], training={"epochs": 3, "learning_rate": 0.1})
    results = run(study, tmp_path / "x.db")
    assert results.summary.failures
    assert all(failure.reason.startswith("LearningFailed: ") for failure in results.summary.failures.values())
    assert results.summary.learned + len(results.summary.failures) + results.summary.skipped == 16
    assert set(results.runs()["method"]) == {"Bare"}
    (status,) = status_of(tmp_path / "x.db")
    assert len(status.failures) == len(results.summary.failures)
    assert "failed; `run --retry`" in describe_status([status])
    assert run(study, tmp_path / "x.db").summary.failures == {}
    again = run(study, tmp_path / "x.db", retry=True).summary.failures
    assert {stage: each.reason for stage, each in again.items()} == {
        stage: each.reason for stage, each in results.summary.failures.items()
    }


def test_going_on_with_records_that_come_out_otherwise_here_ends_with_a_message(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods=["bare"])
    run(study, tmp_path / "x.db")
    plan = make_plan(study)
    parent, other = [key for key, stage in plan.stages.items() if stage.parent is None][:2]
    missing = {parent, plan.children[parent][0]}
    with Store(tmp_path / "x.db") as made, Store(tmp_path / "y.db") as store:
        add_study(store, plan)
        store.add([(record.key, record) for record in made.records() if record.key not in missing])
        store.add([("another's", replace(made.record(other), key=parent))])
    with pytest.raises(InputError, match=r"y\.db: bare .*: learned again, .* use a store of its own"):
        run(study, tmp_path / "y.db")


def test_an_export_comes_back_as_the_same_study(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods=["bare", "ewc"], orders={"tasks": 3}, noise_floor=re_seeded(2), repeats=2)
    original = run(study, tmp_path / "x.db")
    with Store(tmp_path / "x.db") as store, Store(tmp_path / "y.db") as other:
        assert export(store, tmp_path / "x.csv.gz") == len(contents(tmp_path / "x.db"))
        import_export(tmp_path / "x.csv.gz", other)
        import_export(tmp_path / "x.csv.gz", other)
        export(other, tmp_path / "y.csv.gz")
    assert (tmp_path / "x.csv.gz").read_bytes() == (tmp_path / "y.csv.gz").read_bytes()
    assert socket.gethostname().encode() not in gzip.decompress((tmp_path / "x.csv.gz").read_bytes())
    imported = Results(tmp_path / "y.db")
    for level in ("task", "class"):
        assert imported.disparity(level).equals(original.disparity(level))
    assert imported.study.spec == original.study.spec


def test_results_are_tidy_and_leave_out_what_is_not_finished(folder: Path, tmp_path: Path) -> None:
    results = run(small_study(folder, noise_floor=re_seeded(3)), tmp_path / "x.db")
    assert len(results.runs()) == results.finished_runs == 2 * (3 + 2)
    accuracy = results.accuracy()
    assert set(accuracy["class"]) == set(range(10))
    assert accuracy.accuracy.between(0, 100).all()
    with pytest.raises(InputError, match="no study 'smal'; did you mean 'small'"):
        Results(tmp_path / "x.db", "smal")


def test_a_repeat_that_is_only_begun_is_left_out_and_named(folder: Path, tmp_path: Path) -> None:
    methods = ["bare"]
    alone = run(small_study(folder, methods=methods, noise_floor=re_seeded(2)), tmp_path / "x.db")
    one_order = {"given": [[[0, 1], [2, 3], [4, 5]]]}
    run(small_study(folder, methods=methods, repeats=2, orders=one_order, noise_floor=re_seeded(2)), tmp_path / "x.db")
    with Store(tmp_path / "x.db") as store:
        add_study(store, make_plan(small_study(folder, methods=methods, repeats=2, noise_floor=re_seeded(2))))
    both = Results(tmp_path / "x.db")
    assert both.finished_runs == 6
    assert both.left_out == [
        "GCN, Bare, repeat 1: 1 of 3 runs finished, left out",
        "GCN, Bare, repeat 1: 1 of 1 noise runs finished, left out",
    ]
    assert both.disparity("class").equals(alone.disparity("class"))


def test_too_many_orders_are_refused_with_the_time_they_would_take(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = small_study(folder, orders={"tasks": "all"})
    study = study.model_copy(update={"scenario": {**study.scenario, "classes_per_task": 1}})
    message = r"3,628,800, 9,864,100 stages.* such as tasks: 100\nall of them would take about \d+ [hd] .* s a stage"
    with pytest.raises(InputError, match=message):
        run(study, tmp_path / "x.db")
    failed = Outcome("", failure=Failure("out of memory", ""))
    monkeypatch.setattr("skeleton_cgl.engine.forecast.learn_branch", lambda *_: [failed])
    with pytest.raises(InputError, match=r"such as tasks: 100$"):
        run(study, tmp_path / "x.db")
    assert not (tmp_path / "x.db").exists()


def test_unfit_studies_are_refused_before_anything_runs(folder: Path, tmp_path: Path) -> None:
    def refuse(reason: str, **changes: object) -> None:
        with pytest.raises(ValueError, match=reason):
            run(small_study(folder, **changes), tmp_path / "x.db")
        assert not (tmp_path / "x.db").exists()

    refuse("unknown method 'ewcc'; did you mean 'ewc'", methods=["ewcc"])
    refuse(
        "method 'ewc': unknown parameter 'strenght'; did you mean 'strength'", methods=[{"name": "ewc", "strenght": 1}]
    )
    refuse("unknown backbone 'gnc'; did you mean 'gcn'", backbone="gnc")
    refuse("unknown field 'dta'; did you mean 'data'", scenario={"dta": "x"})
    refuse("10 classes are fewer than one task of 11", scenario={"data": "synthetic", "classes_per_task": 11})
    refuse("two components are the same", methods=["ewc", {"name": "ewc", "label": "again"}])
    refuse("two labels are the same", methods=["bare", {"name": "ewc", "label": "x"}, {"name": "mas", "label": "x"}])


def test_a_field_that_came_later_changes_no_key_at_the_value_that_means_as_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skeleton_cgl.learning.training import Training
    from skeleton_cgl.methods.ewc import EWC

    def keys() -> set[str]:
        return set(make_plan(small_study(folder, methods=["ewc"])).stages)

    before = keys()
    monkeypatch.setattr(Training, "younger", {**Training.younger, "optimizer": "sgd"})
    monkeypatch.setattr(EWC, "younger", {"strength": 5})
    assert keys() == before
    monkeypatch.setattr(Training, "younger", {**Training.younger, "optimizer": "adam"})
    without = keys()
    assert not without & before
    monkeypatch.setattr(EWC, "younger", {"strength": 1e6})
    assert not keys() & without
