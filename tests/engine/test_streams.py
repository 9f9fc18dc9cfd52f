"""Studies over streams: trees, interruptions and workers change no bit, nor does where a stream is cut or examined."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from skeleton_cgl import Study
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.plan import Plan, Stage, make_plan
from skeleton_cgl.engine.schedule import Driver
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.trial import few
from skeleton_cgl.engine.workers import InProcess
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.state import to_bytes
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.lessons import TaskLesson, Unnamed
from skeleton_cgl.scenarios.measures import SIZE
from skeleton_cgl.scenarios.scenario import Experience, GivenBatches, Scenario, join
from skeleton_cgl.scenarios.settings import make_scenario
from tests.core.cases import TASK_ORDERS, records_of
from tests.engine.studies import run, same_records, small_archive
from tests.scenarios.graphs import node_graph, write_npz

# Dask's scheduler leaves closing some of its sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

GAUSSIAN = {"name": "gaussian", "sigma": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streams")


@pytest.fixture(scope="module")
def nodes(folder: Path) -> dict[str, Any]:
    """The fields of a scenario of nodes in three tasks of 96 samples, ten batches each."""
    return {"kind": "node", "data": str(write_npz(node_graph(), folder / "nodes.npz"))}


@pytest.fixture(scope="module")
def clips(folder: Path) -> dict[str, Any]:
    return {"data": str(small_archive(folder)), "preparation": {"frames": 8}}


def stream(of: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"kind": "stream", "of": of, "transition": "hard", **fields}


def study_of(scenario: dict[str, Any], **changes: Any) -> Study:
    fields = {
        "name": "streams",
        "scenario": scenario,
        "backbone": {"name": "gcn", "width": 6},
        "methods": ["bare", {"name": "er", "count": 9}, "joint"],
        "orders": {"given": TASK_ORDERS},
        "training": {"epochs": 2, "learning_rate": 0.01, "device": "cpu"},
    }
    return Study(**{**fields, **changes})


@pytest.fixture(scope="module")
def study(nodes: dict[str, Any]) -> Study:
    return study_of(stream(nodes, every=10), sweep={"scenario.transition": ["hard", GAUSSIAN]})


@pytest.fixture(scope="module")
def tree(study: Study, folder: Path) -> Path:
    return run(study, folder / "tree.db")


def test_the_tree_gives_the_records_of_every_order_run_alone(study: Study, tree: Path, tmp_path: Path) -> None:
    assert same_records(tree, run(study, tmp_path / "alone.db", tree=False))
    # Of hard streams the first of three pieces is shared; a gaussian one knows in its tenth batch what is to come.
    assert len(records_of(tree)) == 3 * (5 + 6)


def test_two_workers_give_the_records_of_one(study: Study, tree: Path, tmp_path: Path) -> None:
    assert same_records(tree, run(study, tmp_path / "two.db", workers=2))


@pytest.mark.parametrize("stopped_after", [1, 10])
def test_a_run_that_was_interrupted_goes_on_to_the_same_records(
    study: Study, tree: Path, tmp_path: Path, stopped_after: int
) -> None:
    plan = make_plan(study)
    with Store(tmp_path / "x.db") as store:
        store.add_study(plan.row(), plan.learners, plan.runs)
        learned: list[Stage] = []
        Driver(plan, store, InProcess(plan), lambda: len(learned) >= stopped_after, learned.append).run()
    assert stopped_after <= len(records_of(tmp_path / "x.db")) < len(plan.stages)
    assert same_records(tree, run(study, tmp_path / "x.db"))


def test_records_tell_the_size_of_every_unit_beside_its_scores(tree: Path) -> None:
    for record in records_of(tree).values():
        size = record.measure("training", SIZE)
        np.testing.assert_allclose(size.values, [1 / 6] * 6)
        assert size.asked.tolist() == [48] * 6


@pytest.mark.parametrize(("every", "stages", "alone"), [(5, 2 * (3 + 6 + 6), 36), (4, 3 * 2 + 6 * 3 + 6 * 3, 48)])
def test_all_orders_of_hard_streams_share_the_pieces_that_end_within_their_common_tasks(
    nodes: dict[str, Any], every: int, stages: int, alone: int
) -> None:
    plan = make_plan(study_of(stream(nodes, every=every), methods=["joint"], orders={"tasks": "all"}))
    assert (len(plan.stages), plan.alone) == (stages, alone)


def test_repeats_have_streams_of_their_own_unless_the_stream_has_a_seed(nodes: dict[str, Any]) -> None:
    """With another split the samples are others in any case."""
    fixed = {**nodes, "split": {"seed": 0}}

    def streams(plan: Plan) -> set[Any]:
        return {plan.stages[run.keys[-1]].prefix for run in plan.runs if run.order == plan.runs[0].order}

    for fields, different in (({}, 2), ({"seed": 3}, 1)):
        plan = make_plan(study_of(stream(fixed, examinations=2, **fields), repeats=2, methods=["joint"]))
        assert len(streams(plan)) == different


def after(scenario: Scenario, method: Any, training: dict[str, Any] | None = None) -> bytes:
    """Return what a learner is after all of a stream, but for the names of the pieces it came in."""
    fields = {"name": method, "count": 9} if method in ("er", "a-gem", "gss") else {"name": method}
    name = fields.pop("name")
    recipe = Training(**{"learning_rate": 0.01, "device": "cpu", **(training or {})})
    learner = make_learner(scenario, "gcn", name, recipe, 0, {"width": 6}, fields)
    lessons = scenario.lessons(scenario.default)
    for step in range(len(lessons)):
        learner.learn(scenario.experience(lessons[: step + 1]), seed=step)
    return to_bytes({**learner.state(), "taught": []})


@pytest.mark.parametrize("method", ["bare", "er", "a-gem", "gss"])
@pytest.mark.parametrize("kind", ["nodes", "clips"])
def test_where_a_stream_is_cut_changes_nothing_of_what_is_learned(
    request: pytest.FixtureRequest, kind: str, method: str
) -> None:
    of = request.getfixturevalue(kind)
    fields = {"transition": {"name": "gaussian", "sigma": 4}, "batch": 10}
    ends = [
        after(make_scenario(stream(of, **{**fields, **examined}), 0), method)
        for examined in ({"examinations": 4}, {"examinations": 9}, {"every": 3})
    ]
    assert ends[0] == ends[1] == ends[2]


def test_joint_learns_all_that_came_as_often_as_the_recipe_says(nodes: dict[str, Any]) -> None:
    """Beginning anew, it is a learner that was given all samples so far as one lesson."""
    scenario = make_scenario(stream(nodes, examinations=3), 0)
    recipe = Training(epochs=4, learning_rate=0.01, device="cpu")
    lessons = scenario.lessons(scenario.default)
    experiences = [scenario.experience(lessons[: step + 1]) for step in range(len(lessons))]
    joint = make_learner(scenario, "gcn", "joint", recipe, 0, {"width": 6}, {"restart": True})
    for step, experience in enumerate(experiences):
        told: list[int] = []
        joint.learn(experience, step, lambda epoch, _loss, told=told: told.append(epoch))
        assert told == [0, 1, 2, 3]
        assert joint.method.samples_kept() == sum(len(each.training) for each in experiences[: step + 1])
        by_hand = learned_by_hand(scenario, recipe, experiences[: step + 1])
        queries = scenario.queries(lessons[: step + 1])
        torch.testing.assert_close(joint.answer(queries), by_hand.answer(queries), rtol=1e-3, atol=1e-4)


def learned_by_hand(scenario: Scenario, recipe: Training, experiences: list[Experience]) -> Learner:
    """Return a learner that was given the samples of some experiences as one lesson."""
    learner = make_learner(scenario, "gcn", "bare", recipe, 0, {"width": 6})
    everything = join([experience.training for experience in experiences])
    outputs = tuple(everything.labels.unique().tolist())
    nothing = everything.select(torch.tensor([], dtype=torch.int64))
    learner.learn(Experience(TaskLesson(outputs), ("all",), outputs, everything, nothing), seed=0)
    return learner


def test_a_study_of_a_stream_says_who_learns_it_offline_whatever_the_label(nodes: dict[str, Any]) -> None:
    methods = ["bare", {"name": "joint", "label": "mine"}]
    offline = "mine: offline; learns every piece of the stream as a lesson"
    swept = study_of(stream(nodes), methods=methods, sweep={"scenario.transition": ["hard", GAUSSIAN]})
    assert make_plan(swept).row().notes.count(offline) == 1
    without_it = study_of(stream(nodes), methods=["bare"], training={"learning_rate": 0.01})
    for other in (without_it, study_of(nodes, methods=methods)):
        assert not any("offline" in note for note in make_plan(other).row().notes)


def test_notes_call_transitions_by_their_names(study: Study) -> None:
    notes = make_plan(study).row().notes
    assert any(note.startswith("scenario.transition=gaussian sigma=3: stream of ") for note in notes)
    assert not any("{" in note for note in notes)


def test_samples_of_a_stream_pass_once_but_for_who_learns_it_offline(study: Study, nodes: dict[str, Any]) -> None:
    for asked, expected in ((study, {"bare": 1, "er": 1, "joint": 2}), (study_of(nodes), {"bare": 2, "joint": 2})):
        plan = make_plan(asked)
        found = {stage.method.name: stage.epochs(*plan.setting(stage)) for stage in plan.stages.values()}
        assert expected.items() <= found.items()


def test_a_trial_is_of_the_first_batches_of_a_piece(nodes: dict[str, Any]) -> None:
    scenario = make_scenario(stream(nodes, every=12), 0)
    whole = scenario.experience(scenario.lessons(scenario.default)[:1])
    short = few(whole, 3)
    assert isinstance(short.pace, GivenBatches)
    assert [len(rows) for rows in short.pace.batches] == [10] * 8
    assert short.training.ids.equal(whole.training.ids[:80])
    assert short.training.labels.equal(whole.training.labels[:80])
    eight = make_scenario(stream(nodes, every=8), 0)
    (expected,) = eight.lessons(eight.default)[:1]
    came = [tuple(short.training.ids[rows].tolist()) for rows in short.pace.batches]
    assert came == list(expected.batches)


def test_a_trial_of_a_short_piece_is_of_all_of_it(nodes: dict[str, Any]) -> None:
    scenario = make_scenario(stream(nodes, every=5), 0)
    experience = scenario.experience(scenario.lessons(scenario.default)[:2])
    short = few(experience, 3)
    assert short.training.ids.equal(experience.training.ids)
    assert [rows.tolist() for rows in short.pace.batches] == [rows.tolist() for rows in experience.pace.batches]


class Backwards:
    """A pace of a user's own."""

    def epochs(self, samples: Any) -> Any:
        yield iter([torch.arange(len(samples)).flip(0)])


def test_a_pace_of_another_kind_is_left_as_it_is(nodes: dict[str, Any]) -> None:
    scenario = make_scenario(stream(nodes, every=5), 0)
    experience = replace(
        scenario.experience(scenario.lessons(scenario.default)[:1]), lesson=Unnamed("x"), pace=Backwards()
    )
    assert few(experience, 3) is experience
