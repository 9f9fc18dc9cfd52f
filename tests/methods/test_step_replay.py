"""Methods that remember step by step: on streams wherever they are cut, on every kind of problem, from every state."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from skeleton_cgl import Study
from skeleton_cgl.engine.plan import Plan, Stage, make_plan
from skeleton_cgl.engine.trial import saves_what_it_remembers
from skeleton_cgl.graphs.archive import write_archive
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import make_method, needs_of
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.reservoir import Reservoir
from skeleton_cgl.scenarios.scenario import Samples, Scenario
from tests.core.cases import CASES, STREAM, Case, study_of
from tests.engine.test_bits_of_links_and_graphs import CASES as SETS
from tests.engine.test_bits_of_links_and_graphs import Case as SetCase
from tests.graphs.made_sets import random_graph_set, random_link_set
from tests.learning.learners import ORDER, small_learner
from tests.scenarios.graphs import node_graph, write_npz
from tests.scenarios.small import lesson, scenario_of

METHODS = {
    "er": {"count": 7},
    "a-gem": {"count": 7},
    "der": {"count": 7},
    "der-pp": {"count": 7},
    "gss": {"count": 7, "replayed": 3, "directions": 2},
    "mas-star": {"recent": 7, "hard": 3, "window": 2, "mean": 9.0, "variance": 9.0, "strength": 20.0},
}
"""With memories that are full on small problems, and a loss that is always low."""
ON_NODES = {
    "ssm-stream": {"count": 28, "fan_outs": [2, 2]},
    "sem-stream": {"count": 28, "fan_outs": [2, 2]},
    "dmsg-stream": {"count": 7},
}
REPLAYING = tuple(name for name in METHODS if name != "mas-star")
NODES = Case("nodes", {"kind": "node", "data": ""}, 5)
RECIPES = [
    {"batch_size": 9, "recalibrate": True, "head_steps": "own"},
    {"patience": 1, "patience_on": "seen", "epochs": 4},
    {"plateau": {"patience": 0}, "batch_size": 9},
    {"reset_optimizer": True, "optimizer": "sgd", "weight_decay": 0.1},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cases")
    links = random_link_set(nodes=30, links=120, features="dense", published=False, negatives=False)
    write_archive(links, made / "links.h5")
    for name, many in (("graphs", False), ("labelled graphs", True)):
        write_archive(random_graph_set(graphs=150, many_labels=many, published=False, texts=False), made / f"{name}.h5")
    write_npz(node_graph(), made / "nodes.npz")
    return made


def study_with(case: Case | SetCase, folder: Path, method: str, **changes: Any) -> Study:
    asked = {"methods": [{"name": method, **{**METHODS, **ON_NODES}[method]}], **changes}
    if case is NODES:
        case = replace(case, scenario={**case.scenario, "data": str(folder / "nodes.npz")})
    return study_of(case, folder, **asked) if isinstance(case, Case) else case.study(folder, **asked)


def first_run(study: Study) -> tuple[Plan, Scenario, list[Stage]]:
    plan = make_plan(study)
    stages = [plan.stages[key] for key in plan.runs[0].keys]
    return plan, plan.setting(stages[0])[1], stages


def assert_goes_on_from_a_saved_state(study: Study) -> Learner:
    """Learn the last lesson of a run twice, going on and from what was saved as bytes; return the one that went on."""
    _, scenario, stages = first_run(study)
    *before, last = stages[:3]
    straight, restored = (stages[0].new_learner(study, scenario) for _ in range(2))
    for stage in before:
        straight.learn(scenario.experience(stage.prefix), stage.seed(study))
    restored.restore(from_bytes(to_bytes(straight.state())))
    for learner in (straight, restored):
        learner.learn(scenario.experience(last.prefix), last.seed(study))
    assert to_bytes(restored.state()) == to_bytes(straight.state())
    answers = straight.answer(scenario.queries(last.prefix))
    assert answers[:, straight.head.outputs].isfinite().all()
    return straight


@pytest.mark.parametrize(
    ("case", "method"),
    [
        *((case, method) for method in METHODS for case in (*CASES, *SETS)),
        *((case, method) for method in ON_NODES for case in (NODES, STREAM)),
    ],
    ids=str,
)
def test_every_problem_is_learned_and_gone_on_with_from_a_saved_state(
    case: Case | SetCase, method: str, folder: Path
) -> None:
    learner = assert_goes_on_from_a_saved_state(study_with(case, folder, method))
    assert learner.method.samples_kept() == 7
    assert learner.method.consolidations if method == "mas-star" else learner.method.memory.seen > 7


@pytest.mark.parametrize("method", [*METHODS, *ON_NODES])
def test_where_a_stream_is_cut_into_lessons_changes_nothing_to_the_bit(method: str, folder: Path) -> None:
    states = []
    for every in (1, 3, 18):
        case = replace(STREAM, scenario={**STREAM.scenario, "every": every})
        study = study_with(case, folder, method)
        _, scenario, stages = first_run(study)
        learner = stages[0].new_learner(study, scenario)
        for stage in stages:
            learner.learn(scenario.experience(stage.prefix), stage.seed(study))
        state = learner.state()
        assert len(state.pop("taught")) == -(-18 // every)
        states.append(to_bytes(state))
    assert states[0] == states[1] == states[2]
    if method == "mas-star":
        assert learner.method.consolidations > 2
    else:
        assert learner.method.memory.seen == (36 if method == "dmsg-stream" else 72)


@pytest.mark.parametrize("method", [*METHODS, *ON_NODES])
@pytest.mark.parametrize("training", RECIPES, ids=str)
def test_every_recipe_is_learned_and_gone_on_with_from_a_saved_state(method: str, training: dict, folder: Path) -> None:
    recipe = {"epochs": 2, "learning_rate": 0.01, "device": "cpu", **training}
    case = NODES if method in ON_NODES else CASES[0]
    assert_goes_on_from_a_saved_state(study_with(case, folder, method, training=recipe))


@pytest.mark.parametrize(
    ("method", "case"),
    [
        *((method, case) for method in METHODS for case in (CASES[1], STREAM)),
        *((method, case) for method in ON_NODES for case in (NODES, STREAM)),
    ],
    ids=str,
)
def test_nothing_that_is_kept_escapes_the_state(method: str, case: Case, folder: Path) -> None:
    study = study_with(case, folder, method)
    _, scenario, stages = first_run(study)
    assert saves_what_it_remembers(study, scenario, stages[0])


@pytest.mark.parametrize("method", METHODS)
def test_no_borders_are_needed(method: str) -> None:
    assert needs_of(make_method(method, {})) == frozenset()
    memory = make_method(method, {}).memory
    assert (memory.count if method in REPLAYING else memory.recent) == 100


@pytest.mark.parametrize("method", ON_NODES)
def test_no_borders_are_needed_on_nodes(method: str) -> None:
    assert needs_of(make_method(method, {})) == {"nodes", "one class"}
    assert make_method(method, {}).memory.count == (100 if method == "dmsg-stream" else 10)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_of_a_step_is_held_after_it(method: str, small: Path) -> None:
    """A copy of the method, as validation has it, and a state are then no larger than the memory."""
    scenario = scenario_of(small)
    learner = small_learner(scenario, method, METHODS[method])
    learner.learn(lesson(scenario, ORDER[0]), 0)
    held = [value for value in vars(learner.method).values() if isinstance(value, Samples | torch.Tensor)]
    assert not held


@pytest.mark.parametrize("method", ["er", "a-gem", "gss"])
@pytest.mark.parametrize("training", [{}, {"batch_size": 4}])
def test_epochs_do_not_count_a_sample_twice(method: str, training: dict, small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, method, {"count": 500}, epochs=3, **training)
    learner.learn(lesson(scenario, ORDER[0]), 0)
    ids = lesson(scenario, ORDER[0]).training.ids
    assert learner.method.memory["ids"].sort().values.tolist() == ids.sort().values.tolist()
    assert learner.method.memory.seen == len(ids)
    assert isinstance(learner.method.memory, Reservoir) == (method != "gss")
