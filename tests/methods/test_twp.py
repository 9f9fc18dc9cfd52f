"""TWP on backbones beyond GCN: which weights matter to topology, and that this is felt on every kind of problem."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.scenario import Scenario
from tests.learning.learners import seed_for, small_learner, weights_of
from tests.scenarios.graphs import label_scenario, node_scenario
from tests.scenarios.sets import graph_set, link_set
from tests.scenarios.small import scenario_of
from tests.scenarios.test_graph import graph_scenario
from tests.scenarios.test_link import link_scenario
from tests.scenarios.test_link_prediction import pair_scenario

SPLIT = {"setting": "class-il", "classes_per_task": 2}
ON_GRAPHS: dict[str, Callable[[], Scenario]] = {
    "nodes": lambda: node_scenario(**SPLIT),
    "nodes of many labels": lambda: label_scenario(**SPLIT),
    "links": lambda: link_scenario(link_set(), **SPLIT),
    "pairs": lambda: pair_scenario(setting="domain-il"),
    "graphs": lambda: graph_scenario(graph_set(), **SPLIT),
}
BACKBONES: dict[str, dict[str, Any]] = {
    "gcn": {"width": 6},
    "gat": {"width": 6, "heads": 2},
    "gin": {"width": 6},
    "skeleton-gcn": {"width": 6},
}


def learned(
    scenario: Scenario, backbone: str, parameters: dict[str, Any], lessons: int = 1, **method: float
) -> Learner:
    """Return a learner of the first lessons."""
    training = Training(epochs=3, learning_rate=0.01, device="cpu")
    learner = make_learner(
        scenario, backbone, "twp", training, backbone_parameters=parameters, method_parameters=method
    )
    return _taught(learner, scenario, lessons)


def _taught(learner: Learner, scenario: Scenario, lessons: int) -> Learner:
    prefix = scenario.lessons(scenario.default)
    for stage in range(lessons):
        learner.learn(scenario.experience(prefix[: stage + 1]), seed_for(stage))
    return learner


def topology(learner: Learner, scenario: Scenario) -> dict[str, Tensor]:
    """Return F_topology of the first lesson, by the names of the weights."""
    method: Any = learner.method
    method.lambda_l, method.lambda_t = 0, 1
    samples = scenario.experience(scenario.lessons(scenario.default)[:1]).training
    names, parameters = zip(*learner.model.named_parameters(), strict=True)
    parts = method.loss_and_topology(learner, samples).split([each.numel() for each in parameters])
    return {name: part.view_as(each) for name, part, each in zip(names, parts, parameters, strict=True)}


def felt(found: dict[str, Tensor]) -> set[str]:
    return {name.removeprefix("backbone.") for name, importance in found.items() if importance.any()}


@pytest.mark.parametrize("kind", ON_GRAPHS)
def test_of_gat_the_attention_of_the_first_layer_matters_to_topology_in_every_head(kind: str) -> None:
    scenario = ON_GRAPHS[kind]()
    found = topology(learned(scenario, "gat", BACKBONES["gat"]), scenario)
    assert felt(found) == {"layers.0.weight", "layers.0.of_source", "layers.0.of_target"}
    for of in ("of_source", "of_target"):
        assert found[f"backbone.layers.0.{of}"].any(dim=1).all()


@pytest.mark.parametrize("kind", ON_GRAPHS)
def test_of_gin_no_weight_of_the_second_layer_matters_to_topology(kind: str) -> None:
    scenario = ON_GRAPHS[kind]()
    learner = learned(scenario, "gin", BACKBONES["gin"])
    found = felt(topology(learner, scenario))
    first = {"layers.0.epsilon", "layers.0.first", "layers.0.second.weight", "norms.0.weight", "norms.0.bias"}
    # Not the shifts: BatchNorm takes them away again, but for the rounding.
    assert first <= found
    assert all(name.startswith(("layers.0.", "norms.0.")) for name in found)
    assert {name for name, _ in learner.backbone.named_parameters() if name.startswith("layers.1.")}


@pytest.mark.parametrize("kind", ON_GRAPHS)
@pytest.mark.parametrize("backbone", ["gcn", "skeleton-gcn"])
def test_of_the_gcns_the_weights_of_every_layer_matter_to_topology(backbone: str, kind: str) -> None:
    scenario = ON_GRAPHS[kind]()
    found = felt(topology(learned(scenario, backbone, BACKBONES[backbone]), scenario))
    part = "neighbours.weight" if backbone == "skeleton-gcn" else "weight"
    assert {f"layers.0.{part}", f"layers.1.{part}"} <= found
    assert "head.rows" not in found


def test_of_stgcn_the_weights_of_every_partition_matter_to_topology(small: Path) -> None:
    scenario = scenario_of(small)
    learner = _taught(small_learner(scenario, "twp", backbone="stgcn"), scenario, 1)
    found = topology(learner, scenario)
    for block in range(2):
        partitions = found[f"backbone.blocks.{block}.spatial.weight"].chunk(3, dim=1)
        assert all(partition.any() for partition in partitions)


@pytest.mark.parametrize("kind", ON_GRAPHS)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_topology_is_felt_on_every_kind_of_graph_problem(backbone: str, kind: str) -> None:
    scenario = ON_GRAPHS[kind]()
    without, with_it = (
        learned(scenario, backbone, BACKBONES[backbone], 2, lambda_l=1, lambda_t=strength) for strength in (0, 1e4)
    )
    _assert_felt(without, with_it, scenario)


@pytest.mark.parametrize("backbone", ["gcn", "stgcn"])
def test_topology_is_felt_on_clips(small: Path, backbone: str) -> None:
    scenario = scenario_of(small)
    without, with_it = (
        _taught(small_learner(scenario, "twp", {"lambda_l": 1, "lambda_t": strength}, backbone), scenario, 2)
        for strength in (0, 1e4)
    )
    _assert_felt(without, with_it, scenario)


def _assert_felt(without: Learner, with_it: Learner, scenario: Scenario) -> None:
    assert not torch.equal(weights_of(without), weights_of(with_it))
    prefix = scenario.lessons(scenario.default)[:2]
    answers = [learner.answer(scenario.queries(prefix)) for learner in (without, with_it)]
    assert all(found.isfinite().any(dim=1).all() for found in answers)
    assert not torch.equal(*answers)
