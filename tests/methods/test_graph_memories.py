"""What SSM, SEM and PDGNN-TEM share: memories of nodes by content, on every setting and view, saved to the last bit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.sparse import csr_array

from skeleton_cgl import Study
from skeleton_cgl.engine.trial import refuse_forgetting
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.learning.training import Plateau
from skeleton_cgl.scenarios.scenario import Scenario
from tests.core.cases import records_of
from tests.engine.studies import run, same_records
from tests.learning.learners import assert_same_to_the_bit, seed_for, small_learner
from tests.scenarios.graphs import label_scenario, node_graph, node_scenario, write_npz
from tests.scenarios.small import scenario_of

MEMORIES: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "ssm": ("gcn", "ssm", {"per_class": 3}),
    "ssm by degree, in all": ("gcn", "ssm", {"count": 10, "fan_outs": [2], "sampling": "degree"}),
    "sem": ("gcn", "sem", {"per_class": 3, "fan_outs": [2, 2], "largest": 4}),
    "sem by its surrogate": ("gcn", "sem", {"per_class": 3, "curvature": "surrogate"}),
    "pdgnn-tem": ("sgc", "pdgnn-tem", {"per_class": 3}),
}
BY_CLASS = [
    {"setting": setting, **view}
    for setting in ("class-il", "task-il")
    for view in ({}, {"view": "task"}, {"view": "task", "inter_task_edges": True})
]
SETTINGS = [*BY_CLASS, {"setting": "domain-il", "domains": "domain"}, {"setting": "time-il"}]


def learner_of(name: str, scenario: Scenario, seed: int = 0, **training: Any) -> Learner:
    backbone, method, parameters = MEMORIES[name]
    return small_learner(scenario, method, parameters, backbone, seed, **training)


def learn(learner: Learner, scenario: Scenario, start: int = 0, end: int | None = None) -> Learner:
    """Learn the default lessons from one to before another."""
    prefix = scenario.lessons(scenario.default)
    for stage in range(start, len(prefix) if end is None else end):
        learner.learn(scenario.experience(prefix[: stage + 1]), seed_for(stage))
    return learner


def with_zeros(sparse: bool) -> Graph:
    """Return the small graph with features of which many are zero."""
    graph = node_graph()
    table = graph.features * (graph.features > 0)
    return make_graph("zeros", graph.edges, csr_array(table) if sparse else table, graph.labels)


@pytest.mark.parametrize("fields", SETTINGS, ids=lambda fields: " ".join(map(str, fields.values())))
@pytest.mark.parametrize("name", MEMORIES)
def test_a_learner_goes_on_from_a_saved_state_as_if_it_had_never_stopped(name: str, fields: dict) -> None:
    scenario = node_scenario(**fields)
    straight = learn(learner_of(name, scenario), scenario, end=2)
    resumed = learner_of(name, scenario)
    resumed.restore(from_bytes(to_bytes(straight.state())))
    assert straight.method.samples_kept() == resumed.method.samples_kept() > 0
    saved = [to_bytes(learn(each, scenario, start=2).state()) for each in (straight, resumed)]
    assert saved[0] == saved[1]
    prefix = scenario.lessons(scenario.default)
    assert straight.answer(scenario.queries(prefix)).equal(resumed.answer(scenario.queries(prefix)))


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize(
    "training",
    [
        {"batch_size": 16},
        {"batch_size": 16, "fan_outs": (2, 2)},
        {"patience": 1},
        {"patience": 1, "patience_on": "seen", "recalibrate": True},
        {"plateau": Plateau(patience=0), "reset_optimizer": True, "batch_size": 30},
    ],
    ids=lambda training: " ".join(training),
)
@pytest.mark.parametrize("setting", ["class-il", "task-il"])
def test_every_recipe_of_training_is_served_and_saved(name: str, training: dict, setting: str) -> None:
    scenario = node_scenario(setting=setting)
    prefix = scenario.lessons(scenario.default)
    first, second = (scenario.experience(prefix[: stage + 1]) for stage in range(2))
    refuse_forgetting(lambda: learner_of(name, scenario, **training), first, second)


@pytest.mark.parametrize("name", MEMORIES)
def test_sparse_features_are_kept_and_restored(name: str) -> None:
    scenario = node_scenario(with_zeros(sparse=True), view="task", inter_task_edges=True)
    straight = learn(learner_of(name, scenario), scenario, end=2)
    resumed = learner_of(name, scenario)
    resumed.restore(from_bytes(to_bytes(straight.state())))
    saved = [to_bytes(learn(each, scenario, start=2).state()) for each in (straight, resumed)]
    assert saved[0] == saved[1]


@pytest.mark.parametrize("name", MEMORIES)
def test_sparse_features_come_to_what_dense_ones_do(name: str) -> None:
    answers = []
    for sparse in (True, False):
        scenario = node_scenario(with_zeros(sparse))
        learner = learn(learner_of(name, scenario), scenario)
        answers.append(learner.answer(scenario.queries(scenario.lessons(scenario.default))))
    torch.testing.assert_close(*answers, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", MEMORIES)
def test_sharing_beginnings_changes_no_bit(name: str, tmp_path: Path) -> None:
    backbone, method, parameters = MEMORIES[name]
    study = Study(
        name="graph memories",
        scenario={"kind": "node", "data": str(write_npz(node_graph(), tmp_path / "small.npz")), "classes_per_task": 1},
        backbone={"name": backbone, "width": 4},
        methods=[{"name": method, **parameters}],
        orders={"given": [[[0], [1], [2]], [[0], [2], [1]]]},
        training={"epochs": 2, "learning_rate": 0.01, "device": "cpu"},
    )
    tree, alone = run(study, tmp_path / "tree.db"), run(study, tmp_path / "alone.db", tree=False)
    assert same_records(tree, alone)
    assert len(records_of(tree)) == 5


@pytest.mark.parametrize("name", ["ssm", "sem", "sem by its surrogate"])
def test_the_first_lesson_is_that_of_bare(name: str) -> None:
    scenario = node_scenario()
    learners = learner_of(name, scenario), small_learner(scenario)
    assert_same_to_the_bit(*([learn(each, scenario, end=1).parameter_vector()] for each in learners))


@pytest.mark.parametrize("name", [name for name in MEMORIES if "in all" not in name])
def test_what_is_kept_depends_on_the_seed_and_the_lesson_and_not_on_what_came_before(name: str) -> None:
    scenario = node_scenario()
    kept = []
    for order, seed in ((((4, 5),), 0), (((0,), (4, 5)), 0), (((4, 5),), 1)):
        prefix, learner = scenario.lessons(order), learner_of(name, scenario, seed)
        for stage in range(len(order)):
            learner.learn(scenario.experience(prefix[: stage + 1]), 0)
        kept.append(to_bytes(learner.method.state()["tasks"][-1]))
    assert kept[0] == kept[1] != kept[2]


@pytest.mark.parametrize("name", ["ssm", "sem", "pdgnn-tem"])
def test_what_a_memory_is_not_defined_for_is_refused(name: str, small: Path) -> None:
    backbone, method, parameters = MEMORIES[name]
    with pytest.raises(InputError, match="needs samples of one class each"):
        small_learner(label_scenario(), method, parameters, backbone)
    with pytest.raises(InputError, match=r"needs (samples that are nodes of one graph|a backbone with `aggregated)"):
        small_learner(scenario_of(small), method, parameters)


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        *(
            (method, parameters, message)
            for method in ("ssm", "sem")
            for parameters, message in (
                ({"per_class": 0}, "per_class 0 is not a whole number of at least 1"),
                ({"per_class": 2.5}, "per_class 2.5 is not a whole number"),
                ({"count": -1}, "count -1 is not a whole number of at least 1"),
                ({"count": 3, "per_class": 3}, "give either per_class or count"),
                ({"fan_outs": [5, 0]}, r"fan_outs must be a list of whole numbers, at least 1, found \[5, 0\]"),
                ({"fan_outs": []}, "fan_outs must be a list"),
                ({"fan_outs": 5}, "fan_outs must be a list"),
            )
        ),
        ("ssm", {"sampling": "curvature"}, "sampling must be random or degree"),
        ("sem", {"curvature": "ricci"}, "curvature must be ollivier or surrogate"),
        ("sem", {"largest": 1}, "largest 1 is not a whole number of at least 2"),
        ("pdgnn-tem", {"per_class": 0}, "per_class 0 is not a whole number of at least 1"),
        ("pdgnn-tem", {"per_class": True}, "per_class True is not a whole number"),
        ("pdgnn-tem", {"task_losses": "mean"}, "task_losses must be sum or together"),
    ],
)
def test_wrong_parameters_are_refused(method: str, parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=f"method '{method}': {message}"):
        make_method(method, parameters)
