"""Streams that mistakes make: each is refused in one line that names the field, before anything is learned."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from skeleton_cgl import Study
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.errors import InputError
from tests.conftest import Run
from tests.refused import refused
from tests.scenarios.graphs import node_graph, write_npz

NODES = {"kind": "node"}
HARD = {"transition": "hard"}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = write_npz(node_graph(), tmp_path_factory.mktemp("streams") / "nodes.npz")
    return {"kind": "node", "data": str(path)}


def gaussian(sigma: object) -> dict[str, Any]:
    return {"transition": {"name": "gaussian", "sigma": sigma}}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (gaussian(0), "field 'transition.sigma': Input should be greater than 0"),
        (gaussian(-3), "field 'transition.sigma': Input should be greater than 0"),
        ({"transition": "gaussian"}, "field 'transition.sigma' is missing"),
        ({"transition": {"name": "global", "share": 1.5}}, "field 'transition.share': Input should be less than or eq"),
        ({"transition": {"name": "global", "share": -0.1}}, "field 'transition.share': Input should be greater than"),
        ({"transition": {"name": "boundary", "batches": 0}}, "field 'transition.batches': Input should be greater"),
        (
            {"transition": {"name": "boundary", "batches": 6}},
            "scenario: transition: batches: 6 on either side of a border are more than half a task, the shortest of "
            "which has 10",
        ),
        ({"transition": "gausian"}, "field 'transition.name': unknown 'gausian'; did you mean 'gaussian'?"),
        ({"transition": {"name": "soft"}}, "unknown 'soft'; known: boundary, gaussian, global, hard"),
        ({"transition": {"share": 0.1}}, "field 'transition.name' is missing"),
        (
            {"transition": {"name": "gaussian", "sigm": 3}},
            "unknown field 'transition.sigm'; did you mean 'sigma'?; field 'transition.sigma' is missing",
        ),
        ({"transition": {"name": "hard", "sigma": 3}}, "unknown field 'transition.sigma'; known: name"),
        (
            {"transition": {"name": "boundary", "batchs": 3, "batches": 1}},
            "'transition.batchs'; did you mean 'batches'",
        ),
        ({"transitions": "hard"}, "unknown field 'transitions'; did you mean 'transition'?"),
        ({**HARD, "batch": 97}, "scenario: batch: 97 samples are more than all 96 of the task"),
        ({**HARD, "batch": 1}, "field 'batch': Input should be greater than or equal to 2"),
        ({**HARD, "examinations": 4, "every": 3}, "give either examinations or every"),
        ({**HARD, "examinations": 31}, "scenario: examinations: 31 are more than the 30 batches of the stream"),
        ({**HARD, "every": 0}, "field 'every': Input should be greater than or equal to 1"),
        ({**HARD, "sampling": "with replacement"}, "field 'sampling': Input should be 'without-replacement' or"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_wrong_stream_is_refused_with_its_field(
    run: Run, tmp_path: Path, nodes: dict[str, Any], fields: dict[str, Any], reason: str
) -> None:
    assert reason in refused(run, tmp_path, {"kind": "stream", "of": nodes, **fields})


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        ({"kind": "multilabel"}, "field 'of': kind: multilabel is not of one class per sample"),
        ({"kind": "link-prediction"}, "field 'of': kind: link-prediction is not of one class per sample"),
        ({"kind": "stream", "of": NODES}, "field 'of': kind: stream is not of one class per sample"),
        ({"kind": "graph", "reader": {"labels": True}}, "scenario: of: samples have many labels each; streams are def"),
        (
            {**NODES, "setting": "task-il"},
            "field 'of': setting: expected class-il or domain-il; a stream has no task-il",
        ),
        (
            {**NODES, "setting": "time-il"},
            "field 'of': setting: expected class-il or domain-il; a stream has no time-il",
        ),
        (
            {"setting": "task-il"},
            "field 'of': setting: expected class-il or domain-il; a stream has no task-il lessons",
        ),
        ({**NODES, "view": "task", "inter_task_edges": True}, "field 'of': inter_task_edges: a stream has no tasks so"),
        ({**NODES, "settings": "class-il"}, "of: unknown field 'settings'; did you mean 'setting'?"),
        ({"kind": "nodes"}, "field 'of': unknown scenario 'nodes'; did you mean 'node'?"),
        ({"kind": ["node"]}, "field 'of': of: kind: expected a name, found ['node']"),
        ("node", "field 'of': Input should be a valid dictionary"),
        ({**NODES, "data": "nowhere.npz"}, "nowhere.npz"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_streamed_is_refused(run: Run, tmp_path: Path, of: Any, reason: str) -> None:
    assert reason in refused(run, tmp_path, {"kind": "stream", "of": of, **HARD})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"methods": ["bare", "ewc"]},
            "method EWC needs lessons with a beginning and an end; the scenario is a stream",
        ),
        ({"methods": ["packnet"]}, "method PackNet needs "),
        ({"orders": {"given": [[[0, 1], [2, 9]]]}}, "class 9 is unknown; classes are 0–5"),
        ({"orders": {"tasks": 7}}, "orders: tasks: 7 of 6 orders cannot be drawn"),
        ({"training": {"patience": 5}}, "training: patience: a stream passes once"),
        ({"training": {"plateau": {}}}, "training: plateau: a stream passes once"),
        ({"training": {"recalibrate": True}}, "training: recalibrate: a stream passes once"),
        ({"training": {"reset_optimizer": True}}, "training: reset_optimizer: a stream passes once"),
        ({"training": {"patience": 5}, "methods": ["joint"]}, "training: patience: a stream passes once"),
        (
            {"training": {"epochs": 5}},
            "training: epochs: a stream passes once, in batches of its own; this goes with a",
        ),
        ({"training": {"batch_size": 5}}, "training: batch_size: a stream passes once, in batches of its own"),
        (
            {"training": {"fan_outs": [2, 2], "epochs": 5}, "methods": ["bare", "joint"]},
            "training: fan_outs: give a batch_size as well; neighbours are drawn for batches of nodes",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_does_not_fit_a_stream_is_refused(
    run: Run, tmp_path: Path, nodes: dict[str, Any], fields: dict[str, Any], reason: str
) -> None:
    assert reason in refused(run, tmp_path, {"kind": "stream", "of": nodes, **HARD}, **fields)


def test_recipes_that_mean_something_on_a_stream_are_planned(nodes: dict[str, Any]) -> None:
    def planned(methods: list[str], **training: Any) -> int:
        scenario = {"kind": "stream", "of": nodes, **HARD, "examinations": 2}
        study = Study(scenario=scenario, methods=methods, orders={"tasks": "default"}, training=training)
        return len(make_plan(study).stages)

    assert planned(["bare", "joint"], epochs=5, batch_size=20) == 4
    assert planned(["bare"], epochs=100, learning_rate=0.5, weight_decay=0.1, head_steps="own") == 2
    assert planned(["bare"], fan_outs=[2, 2]) == 2
    assert planned(["joint"], fan_outs=[2, 2], batch_size=20) == 2


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (["scenario.transition=hard"], {"name": "hard"}),
        (["scenario.transition={name: global, share: 0.3}"], {"name": "global", "share": 0.3}),
        (["scenario.transition.sigma=3"], {"name": "gaussian", "sigma": 3}),
        (["scenario.transition=gaussian", "scenario.transition.sigma=3"], {"name": "gaussian", "sigma": 3}),
    ],
    ids=str,
)
@pytest.mark.parametrize("written", [None, "gaussian", {"name": "gaussian", "sigma": 20}], ids=str)
def test_a_transition_can_be_changed_on_the_command_line(
    tmp_path: Path, written: Any, changes: list[str], expected: dict[str, Any]
) -> None:
    scenario = {"kind": "stream", "of": NODES, **({} if written is None else {"transition": written})}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump({"scenario": scenario}))
    assert Study.from_file(tmp_path / "x.yaml", changes).scenario["transition"] == expected


def test_a_sweep_may_be_over_transitions_and_over_a_field_of_one(nodes: dict[str, Any]) -> None:
    whole = ["hard", {"name": "gaussian", "sigma": 3}, {"name": "global", "share": 0.3}]
    for path, values in (("scenario.transition", whole), ("scenario.transition.sigma", [3, 20])):
        scenario = {"kind": "stream", "of": nodes, "examinations": 2}
        study = Study(scenario=scenario, orders={"tasks": "default"}, sweep={path: values})
        plan = make_plan(study)
        assert len(plan.stages) == 2 * len(values)
        batches = {tuple(lesson.batches for lesson in each.lessons(each.default)) for (each,) in plan.scenarios}
        assert len(batches) == len(values)
    study = Study(scenario=scenario, sweep={"scenario.transition.sigma": [3, 0]})
    with pytest.raises(
        InputError, match=r"sweep: scenario\.transition\.sigma=0: .*'transition.sigma': Input should be gr"
    ):
        make_plan(study)


def test_every_point_of_a_sweep_tells_its_overlap(nodes: dict[str, Any]) -> None:
    """And of what all points have in common, nothing is told twice."""
    scenario = {"kind": "stream", "of": nodes, "examinations": 2}
    swept = {"scenario.transition.sigma": [1, 3, 20], "backbone.width": [4, 8]}
    study = Study(scenario=scenario, orders={"tasks": "default"}, sweep=swept, repeats=2)
    split, first, *others = make_plan(study).row().notes
    assert split.startswith("split by ")
    assert first.startswith("stream of 30 batches of 10, gaussian: overlap index O(0.9) = 0.")
    assert [note.partition(": ")[0] for note in others] == [
        f"scenario.transition.sigma={sigma}, backbone.width={width}" for sigma in (3, 20) for width in (4, 8)
    ]
    indices = [float(note.partition("= ")[2].split()[0]) for note in (first, others[0], others[2])]
    assert indices == sorted(set(indices))
