from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from skeleton_cgl import Results, Study
from skeleton_cgl.engine.exchange import export, import_file
from skeleton_cgl.engine.forecast import _expected_seconds
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.engine.record import same_content
from skeleton_cgl.engine.run import run_study
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.scenarios.problem import ManyLabels, Truth
from tests.core.cases import (
    AT_BORDERS,
    CASES,
    DOMAINS,
    LABELS,
    LINKS,
    MADE_UP,
    PERIODS,
    RESERVOIR,
    STREAM,
    Case,
    records_of,
    study_of,
)
from tests.core.community import CLASSES
from tests.core.scores_by_hand import expected_scores

# Dask's scheduler leaves closing some of its sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cases")


@pytest.fixture(scope="session", params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(scope="session")
def store(case: Case, folder: Path) -> Path:
    """A store with all of a case, run as a tree."""
    path = folder / f"{case}.db"
    _, summary = run_study(study_of(case, folder), path, progress=False)
    assert not summary.failures
    return path


def same_records(one: Path, other: Path) -> bool:
    mine, others = records_of(one), records_of(other)
    return mine.keys() == others.keys() and all(same_content(mine[key], others[key]) for key in mine)


def test_the_tree_gives_the_records_of_every_order_run_alone(case: Case, folder: Path, store: Path) -> None:
    alone = folder / f"{case} alone.db"
    run_study(study_of(case, folder), alone, tree=False, progress=False)
    assert same_records(store, alone)
    assert len(records_of(store)) == case.stages * len(case.methods)


def test_scores_are_what_a_learner_run_by_hand_and_judged_by_hand_comes_to(
    case: Case, folder: Path, store: Path
) -> None:
    study = study_of(case, folder, methods=case.methods[:2])
    plan, records = make_plan(study), records_of(store)
    for run in plan.runs[::3]:
        learner = None
        for key in run.keys:
            stage = plan.stages[key]
            scenario = plan.setting(stage)[1]
            learner = learner or stage.new_learner(study, scenario)
            learner.learn(scenario.experience(stage.prefix), stage.seed(study))
            queries = scenario.queries(stage.prefix)
            expected = expected_scores(case, scenario, learner.answer(queries), queries, stage.prefix)
            if scenario.unit_kind == "domain" and len(stage.prefix) == 1:
                untaught = stage.new_learner(study, scenario)
                untaught.head.meet(range(len(scenario.outputs)))
                before = expected_scores(case, scenario, untaught.answer(queries), queries, stage.prefix)
                expected |= {(part, f"untrained {metric}"): values for (part, metric), values in before.items()}
            assert {score.metric for score in records[key].scores} == {metric for _, metric in expected}
            for score in records[key].scores:
                np.testing.assert_allclose(score.values, expected[score.part, score.metric], err_msg=str(stage))


def test_forward_transfer_is_counted_from_what_the_untrained_learner_knew(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "domains.db"
    run_study(study_of(DOMAINS, folder, methods=["bare", "joint"]), path, progress=False)
    results, records = Results(path), records_of(path)
    with Store(path, must_exist=True) as store:
        runs = store.runs(results.study.number)
        assert not store.verify().damages
        export(store, tmp_path / "domains.csv.gz")
    for run, transfer in zip(runs, results.runs()["FWT"], strict=True):
        first, then, _ = (records[key].measure("test", "accuracy").values for key in run.keys)
        before = records[run.keys[0]].measure("test", "untrained accuracy").values
        _, (second,), (third,) = run.order
        by_hand = np.mean([first[second] - before[second], then[third] - before[third]])
        assert transfer == pytest.approx(100 * by_hand)
        assert {score.metric for key in run.keys[1:] for score in records[key].scores} == {"accuracy"}
    import_file(tmp_path / "domains.csv.gz", tmp_path / "again.db")
    assert Results(tmp_path / "again.db").runs().equals(results.runs())


def test_an_export_of_labels_that_are_divided_task_by_task_can_be_read_again(tmp_path: Path) -> None:
    study = Study(
        name="labels",
        scenario={"kind": "multilabel", "setting": "task-il", "grouping": "random"},
        backbone={"name": "gcn", "width": 8},
        methods=["bare"],
        orders={"tasks": 2, "classes": 2},
        training={"epochs": 1, "device": "cpu"},
    )
    path = tmp_path / "labels.db"
    run_study(study, path, progress=False)
    with Store(path, must_exist=True) as store:
        export(store, tmp_path / "labels.csv.gz")
    import_file(tmp_path / "labels.csv.gz", tmp_path / "again.db")
    assert same_records(path, tmp_path / "again.db")
    results, records = Results(path), records_of(path)
    with Store(path, must_exist=True) as store:
        for place, run in enumerate(store.runs(results.study.number)):
            asked = records[run.keys[-1]].measure("test", results.study.metrics[0]).asked
            assert results.scores.asked[place, 0].tolist() == asked.tolist()
    assert len({tuple(asked) for asked in results.scores.asked[:, 0].tolist()}) > 1


def test_records_come_back_from_an_export(case: Case, store: Path, tmp_path: Path) -> None:
    with Store(store, must_exist=True) as opened:
        export(opened, tmp_path / "case.csv.gz")
    import_file(tmp_path / "case.csv.gz", tmp_path / "again.db")
    assert same_records(store, tmp_path / "again.db"), case


def test_disparity_is_that_of_the_final_scores(case: Case, folder: Path, store: Path) -> None:
    results = Results(store)
    if case is PERIODS:
        assert len(results.runs()) == len(case.methods)
        with pytest.raises(InputError, match="disparity needs at least two orders"):
            results.disparity()
        return
    plan, records = make_plan(study_of(case, folder)), records_of(store)
    metric = plan.row().metrics[0]
    level = "class" if case.name.endswith("class-il") else "task"
    table = results.disparity(level).set_index("learner")
    for learner in plan.learners:
        runs = [run for run in plan.runs if run.learner == learner.number]
        final = np.array([records[run.keys[-1]].measure("test", metric).values for run in runs])
        arranged = [list(task) if level == "task" else [unit] for task in runs[0].order for unit in task]
        final = np.stack([final[:, units].mean(axis=1) for units in arranged], axis=1)
        spread = 100 * (final.max(axis=0) - final.min(axis=0))
        assert table.loc[learner.number, "AOPD"] == pytest.approx(spread.mean())
        assert table.loc[learner.number, "MOPD"] == pytest.approx(spread.max())


@pytest.mark.parametrize("lessons_of", [case for case in CASES if case is not STREAM], ids=str)
def test_a_lesson_is_learned(lessons_of: Case, folder: Path) -> None:
    study = study_of(
        lessons_of, folder, methods=["bare"], training={"epochs": 60, "learning_rate": 0.02, "device": "cpu"}
    )
    plan = make_plan(study)
    stage = plan.stages[plan.runs[0].keys[0]]
    scenario = plan.scenarios[0][0]
    losses = []
    learner = stage.new_learner(study, scenario)
    learner.learn(scenario.experience(stage.prefix), stage.seed(study), lambda _epoch, loss: losses.append(loss))
    assert losses[-1] < 0.5 * losses[0]


def test_two_workers_give_the_records_of_one(folder: Path, tmp_path: Path) -> None:
    study = study_of(STREAM, folder)
    for workers in (1, 2):
        run_study(study, tmp_path / f"{workers}.db", workers=workers, progress=False)
    assert same_records(tmp_path / "1.db", tmp_path / "2.db")


@pytest.mark.parametrize("method", AT_BORDERS)
def test_what_needs_borders_is_refused_on_a_stream(folder: Path, tmp_path: Path, method: str) -> None:
    with pytest.raises(InputError, match="needs lessons with a beginning and an end; the scenario is a stream"):
        run_study(study_of(STREAM, folder, methods=[method]), tmp_path / "x.db", progress=False)
    assert not (tmp_path / "x.db").exists()


def test_what_needs_the_task_is_refused_where_queries_do_not_reveal_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "telling.py").write_text(
        "from skeleton_cgl.learning.method import Method\n\n\n"
        "class Telling(Method):\n    needs = frozenset(['revealed task'])\n"
    )
    for case in CASES:
        study = study_of(case, folder, methods=[str(tmp_path / "telling.py")])
        if case.name.endswith("task-il"):
            make_plan(study)
        else:
            with pytest.raises(InputError, match="method Telling needs queries that reveal their task"):
                make_plan(study)


@pytest.mark.parametrize(
    ("case_asked", "orders", "reason"),
    [
        (PERIODS, {"tasks": "all"}, "periods have one order, the calendar's"),
        (PERIODS, {"given": [[[1], [0]]]}, "periods have one order, the calendar's"),
        (DOMAINS, {"classes": 3}, "there are domains to arrange, not classes"),
        (LINKS, {"given": [[[0], [7]]]}, "domain 7 is unknown; domains are 0–3"),
    ],
)
def test_orders_that_do_not_fit_the_units_are_refused(
    folder: Path, case_asked: Case, orders: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        make_plan(study_of(case_asked, folder, orders=orders))


def test_orders_are_of_the_kind_of_their_units(folder: Path) -> None:
    kinds = {case.name: {run.kind for run in make_plan(study_of(case, folder)).runs} for case in CASES}
    assert kinds == {case.name: {"domain"} if case in (DOMAINS, LINKS) else {"task"} for case in CASES}
    plan = make_plan(study_of(LABELS[0], folder, methods=["bare"], orders={"tasks": "all", "classes": 4}))
    assert [run.kind for run in plan.runs].count("class") >= 3


def test_two_streams_share_what_they_begin_with_and_no_more(folder: Path) -> None:
    plan = make_plan(study_of(STREAM, folder, methods=["bare"]))
    one, other = (run.keys for run in plan.runs)
    # The last sample of the first task is exchanged with the first one of the task after.
    assert [mine == yours for mine, yours in zip(one, other, strict=True)] == [True, *[False] * 5]


def streamed(study: Study) -> Learner:
    """Return the learner that the first stream of a study leaves."""
    plan = make_plan(study)
    scenario = plan.scenarios[0][0]
    stages = [plan.stages[key] for key in plan.runs[0].keys]
    learner = stages[0].new_learner(study, scenario)
    for stage in stages:
        learner.learn(scenario.experience(stage.prefix), stage.seed(study))
    return learner


def test_where_a_stream_is_cut_does_not_matter_to_what_is_learned(folder: Path) -> None:
    first, *others = (
        streamed(
            study_of(replace(STREAM, scenario={**STREAM.scenario, "every": every}), folder, methods=["bare"])
        ).state()
        for every in (1, 3, 18)
    )
    assert [len(state["taught"]) for state in (first, *others)] == [18, 6, 1]
    for other in others:
        assert other["outputs"] == first["outputs"]
        assert other["rows"].equal(first["rows"])
        assert all(value.equal(first["backbone"][name]) for name, value in other["backbone"].items())


def test_on_a_stream_the_head_knows_no_class_before_it_appears(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "watching.py").write_text(
        "from skeleton_cgl.learning.method import Method\n\n\n"
        "class Watching(Method):\n"
        "    met = frozenset()\n\n"
        "    def step_samples(self, learner, samples):\n"
        "        self.met = self.met | set(samples.labels.tolist())\n"
        "        assert set(learner.head.outputs) == self.met\n"
        "        return samples\n"
    )
    learner = streamed(study_of(STREAM, folder, methods=[str(tmp_path / "watching.py")]))
    assert sorted(learner.head.outputs) == [0, 1, 2, 3, 4, 5]


def test_a_reservoir_remembers_through_steps_alone(folder: Path) -> None:
    kept = streamed(study_of(STREAM, folder, methods=[RESERVOIR])).method.state()
    assert kept["seen"] == 72
    assert len(kept["ids"].unique()) == len(kept["labels"]) == 8


def test_a_stream_is_forecast_as_passed_through_once_unless_it_is_learned_offline(folder: Path) -> None:
    study = study_of(STREAM, folder, methods=["bare", "joint"], training={"epochs": 1_000_000, "device": "cpu"})
    plan = make_plan(study)
    bare, joint = (
        _expected_seconds(plan, {key for key, stage in plan.stages.items() if stage.learner != learner})
        for learner in (0, 1)
    )
    assert bare is not None
    assert joint is not None
    assert bare < 600 < joint


def test_the_strength_of_lwf_does_not_grow_with_the_number_of_domains(folder: Path) -> None:
    """A model that has just begun is near its teacher: distilled once, L ≈ CE + λ H with H ≤ log K."""
    study = study_of(
        DOMAINS, folder, methods=[{"name": "lwf", "strength": 1000}], training={"epochs": 1, "device": "cpu"}
    )
    plan = make_plan(study)
    scenario = plan.scenarios[0][0]
    stages = [plan.stages[key] for key in plan.runs[0].keys]
    learner = stages[0].new_learner(study, scenario)
    for stage in stages:
        told: list[float] = []
        learner.learn(
            scenario.experience(stage.prefix), stage.seed(study), lambda _epoch, loss, told=told: told.append(loss)
        )
        assert told[0] < 1.5 * 1000 * np.log(CLASSES)


def test_many_labels_are_judged_in_every_domain_by_itself() -> None:
    random = np.random.default_rng(0)
    labels, answers = random.integers(2, size=(60, 3)), random.normal(size=(60, 3))
    domains = random.integers(4, size=60)
    groups = [(domain, label) for domain in range(4) for label in range(3)]
    truth = Truth(
        labels=torch.from_numpy(labels).float(),
        asked=torch.from_numpy(np.stack([domains == domain for domain, _ in groups], axis=1)),
        unit=torch.tensor([domain for domain, _ in groups]),
        units=4,
        output=torch.tensor([label for _, label in groups]),
    )
    everything = torch.ones(60, 3, dtype=torch.bool)
    for measure in ManyLabels().measure(torch.from_numpy(answers), truth, everything, "test"):
        score = {"average_precision": average_precision_score, "roc_auc": roc_auc_score}[measure.metric]
        expected = [
            score(labels[domains == domain], answers[domains == domain], average="macro") for domain in range(4)
        ]
        np.testing.assert_allclose(measure.values, expected)
        assert measure.asked.tolist() == [3 * int((domains == domain).sum()) for domain in range(4)]


def test_every_made_up_file_is_one_case_or_a_method() -> None:
    kinds = {Path(case.scenario["kind"]).name for case in CASES if "kind" in case.scenario}
    assert kinds | {"reservoir.py"} == {path.name for path in MADE_UP.glob("*.py")}
