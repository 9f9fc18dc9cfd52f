"""Dividing classes into tasks: every class is learned, or left out with a word; the same fields in every scenario."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skeleton_cgl import Study
from skeleton_cgl.config import check
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.lessons import Order
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.scenarios.settings import make_scenario
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from tests.graphs.planetoid_files import write_planetoid
from tests.scenarios.small import NAMES, lesson

SIX = NAMES


def divided(names: tuple[str, ...] = SIX, **fields: Any) -> Order:
    """Return the default tasks of fields as a file has them."""
    return check(fields, ClassTasks, "scenario").divide(names)


@given(classes=st.integers(1, 12), size=st.integers(1, 12))
def test_tasks_of_equal_size_take_the_classes_in_ascending_order_and_the_rest_is_its_own(
    classes: int, size: int
) -> None:
    names = tuple(map(str, range(classes)))
    if size > classes:
        with pytest.raises(InputError, match=f"classes_per_task: {classes} classes are fewer than one task of {size}"):
            divided(names, classes_per_task=size)
        return
    tasks = divided(names, classes_per_task=size)
    assert [label for task in tasks for label in task] == list(range(classes))
    assert [len(task) for task in tasks] == [size] * (classes // size) + [classes % size] * (classes % size > 0)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("own", ((0, 1, 2, 3), (4, 5))),
        ("join", ((0, 1, 2, 3, 4, 5),)),
        ("drop", ((0, 1, 2, 3),)),
    ],
)
def test_a_rest_is_a_task_of_its_own_or_joins_the_last_or_is_left_out(rest: str, expected: Order) -> None:
    assert divided(classes_per_task=4, rest=rest) == expected
    assert divided(classes_per_task=3, rest=rest) == ((0, 1, 2), (3, 4, 5))


def test_tasks_are_spelled_out_by_number_or_by_name() -> None:
    expected = ((1, 5), (0,), (2, 3, 4))
    assert divided(tasks=[[5, 1], [0], [4, 2, 3]]) == expected
    assert divided(tasks=[["shrug", "nod"], ["wave"], ["point", "bow", "clap"]]) == expected
    assert divided(tasks=[["shrug", 1], [0], ["point", 2, "clap"]]) == expected


def test_a_subset_of_the_classes_is_divided_in_ascending_order() -> None:
    assert divided(classes=["shrug", "wave", 3], classes_per_task=2) == ((0, 3), (5,))
    assert divided(classes=[5, 0, 3, 2]) == ((0, 2), (3, 5))
    assert divided(classes=[0, 3, 5], tasks=[[5], ["wave", 3]]) == ((5,), (0, 3))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"classes_per_task": 0}, "field 'classes_per_task': Input should be greater than or equal to 1"),
        ({"classes_per_task": 7}, "classes_per_task: 6 classes are fewer than one task of 7"),
        ({"classes": [0, 1], "classes_per_task": 3}, "classes_per_task: 2 classes are fewer than one task of 3"),
        ({"classes": []}, "classes_per_task: 0 classes are fewer than one task of 2"),
        ({"rest": "keep"}, "field 'rest': Input should be 'own', 'join' or 'drop'"),
        ({"setting": "domain-il"}, "field 'setting': Input should be 'class-il' or 'task-il'"),
        ({"class_per_task": 2}, "unknown field 'class_per_task'; did you mean 'classes_per_task'"),
        ({"classes": ["wvae", "nod"]}, "classes: no class 'wvae'; did you mean 'wave'?"),
        ({"classes": [0, 6]}, "classes: no class 6; classes are 0–5"),
        ({"classes": [0, -1]}, "classes: no class -1; classes are 0–5"),
        ({"classes": [0, "wave", 1]}, "classes: a class is given twice"),
        ({"tasks": []}, "tasks: at least one task is needed"),
        ({"tasks": [[0, 1], []]}, "a task needs at least one class"),
        ({"tasks": [[0, 1, 2], [3, 4, 9]]}, "tasks: no class 9; classes are 0–5"),
        ({"tasks": [["sit"]]}, "tasks: no class 'sit'; known: bow"),
        ({"tasks": [[0, 0], [1, 2, 3, 4, 5]]}, "tasks: a class is given twice"),
        ({"tasks": [[0, 1], [1, 2, 3, 4, 5]]}, "tasks: class 'nod' is in two tasks"),
        ({"tasks": [[0, 1], [2, 3]]}, "tasks: point, shrug: in no task; name the classes to be learned in `classes`"),
        ({"tasks": [[0], [1]], "classes": [0, 1, 4]}, "tasks: point: among `classes`, but in no task"),
        ({"tasks": [[0], [1]], "classes": [0, 2]}, "tasks: class 'nod' is not among the classes chosen"),
        ({"tasks": [[0, 1, 2, 3, 4, 5]], "classes_per_task": 2}, "tasks: spelled out, so that classes_per_task"),
        ({"tasks": [[0, 1, 2, 3, 4, 5]], "rest": "own"}, "tasks: spelled out, so that classes_per_task"),
    ],
)
def test_what_does_not_fit_is_refused_by_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        divided(**fields)
    assert message in str(refused.value)


@pytest.fixture(scope="module")
def citations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_planetoid(tmp_path_factory.mktemp("planetoid"), classes=6)


def fields_of(kind: str, small: Path, citations: Path) -> dict[str, Any]:
    return {"skeleton": {"data": str(small)}, "node": {"kind": "node", "data": str(citations)}}[kind]


@pytest.mark.parametrize("kind", ["skeleton", "node"])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"classes_per_task": 4}, ((0, 1, 2, 3), (4, 5))),
        ({"classes_per_task": 4, "rest": "join"}, ((0, 1, 2, 3, 4, 5),)),
        ({"classes_per_task": 5, "rest": "drop"}, ((0, 1, 2, 3, 4),)),
        ({"classes": [4, 0, 2]}, ((0, 2), (4,))),
        ({"tasks": [[3], [0, 1, 2], [4, 5]]}, ((3,), (0, 1, 2), (4, 5))),
    ],
)
def test_the_fields_of_a_study_reach_every_class_based_scenario(
    small: Path, citations: Path, kind: str, fields: dict[str, Any], expected: Order
) -> None:
    study = Study(scenario={**fields_of(kind, small, citations), **fields})
    scenario = study.make_scenario(0)
    assert scenario.default == expected
    assert [found.units for found in scenario.lessons(scenario.default)] == list(expected)


@pytest.mark.parametrize("kind", ["skeleton", "node"])
def test_the_setting_of_a_study_reaches_every_class_based_scenario(small: Path, citations: Path, kind: str) -> None:
    fields = fields_of(kind, small, citations)
    offers = [make_scenario({**fields, "setting": setting}, 0).offers for setting in ("class-il", "task-il")]
    of_kind = {"skeleton": {"one class"}, "node": {"one class", "graphs", "nodes"}}[kind]
    assert offers == [{"borders", "new classes", *of_kind}, {"borders", "new classes", "revealed task", *of_kind}]


def asked_about(scenario: Scenario) -> set[int]:
    """Return the classes that queries are asked about."""
    answers = torch.zeros(len(scenario.queries(())), len(scenario.outputs))
    measures = scenario.score(answers, scenario.lessons(scenario.default))
    return {int(label) for measure in measures for label in measure.asked.nonzero()[0]}


@pytest.mark.parametrize("kind", ["skeleton", "node"])
def test_classes_left_out_are_neither_learned_nor_asked_about(small: Path, citations: Path, kind: str) -> None:
    fields = fields_of(kind, small, citations)
    whole = make_scenario(fields, 0)
    for choice, learned in (
        ({"classes": [4, 0, 2]}, {0, 2, 4}),
        ({"classes_per_task": 4, "rest": "drop"}, {0, 1, 2, 3}),
    ):
        some = make_scenario({**fields, **choice}, 0)
        assert asked_about(whole) == set(range(6))
        assert asked_about(some) == learned
        assert set(some.queries(()).ids.tolist()) < set(whole.queries(()).ids.tolist())
        left_out = tuple(set(range(6)) - learned)
        assert not len(lesson(some, left_out).training)
        assert not len(lesson(some, left_out).validation)
        for label in learned:
            one, other = lesson(some, (label,)), lesson(whole, (label,))
            assert torch.equal(one.training.ids, other.training.ids)
            assert torch.equal(one.validation.ids, other.validation.ids)
        assert some.units == whole.units


def test_a_study_of_some_classes_asks_the_queries_that_a_study_of_all_asks_about_them(small: Path) -> None:
    some, whole = SkeletonScenario(small, ClassTasks(classes=(1, 5))), SkeletonScenario(small)
    answers = torch.zeros(len(whole.queries(())), 6)
    expected = whole.score(answers, whole.lessons(((1, 5),)))
    found = some.score(answers[: len(some.queries(()))], some.lessons(((1, 5),)))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.asked[[1, 5]], other.asked[[1, 5]])


def test_groups_are_those_that_begin_draws_for_its_seeds() -> None:
    """By the digits of its class orders for Cora; the last class is dropped."""
    published = ("4053261", "6043521", "5314620", "3401265", "3465012", "2314650", "5634201", "0624135", "5031624")
    names = [f"class {label}" for label in range(7)]
    for repeat, digits in enumerate(published):
        tasks = ClassTasks(grouping="random", rest="drop").of_repeat(repeat)
        classes = [int(digit) for digit in digits]
        assert tasks.divide(names) == tuple(tuple(sorted(classes[first : first + 2])) for first in (0, 2, 4))
    fixed = ClassTasks(grouping="random", rest="drop", grouping_seed=3000)
    assert fixed.of_repeat(7).divide(names) == ((3, 4), (0, 1), (2, 6))


def test_a_plan_has_the_orders_of_every_repeats_own_tasks_and_says_what_each_leaves_out(tmp_path: Path) -> None:
    study = Study(
        scenario={
            "kind": "node",
            "data": str(write_planetoid(tmp_path, classes=5)),
            "dataset": "cora",
            "grouping": "random",
            "rest": "drop",
        },
        backbone={"name": "gcn", "width": 4},
        orders={"tasks": "all"},
        repeats=3,
    )
    plan = make_plan(study)
    for repeat in range(3):
        default = plan.scenarios[0][repeat].default
        assert {run.order for run in plan.runs if run.repeat == repeat} == {default, default[::-1]}
    defaults = {scenarios.default for scenarios in plan.scenarios[0]}
    assert len(defaults) > 1
    notes = "\n".join(plan.row().notes)
    assert "in no task, neither learned nor asked about: class" in notes
    assert "repeat 1: tasks drawn from seed 1000" in notes
