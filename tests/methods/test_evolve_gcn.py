"""EvolveGCN as a method: every task is a snapshot more, kept where the backbone pools, told of again when restored."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from skeleton_cgl.engine.kept import kept_by
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.trial import refuse_forgetting
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.scenario import Scenario
from tests.learning.learners import seed_for, weights_of
from tests.scenarios.graphs import label_scenario, node_scenario

VARIANTS = ("o", "h")
SETTINGS: dict[str, dict[str, Any]] = {
    "time-il": {},
    "class-il": {"classes_per_task": 2},
    "task-il": {"classes_per_task": 2},
    "domain-il": {"domains": "domain"},
    "class-il, own graphs": {"setting": "class-il", "classes_per_task": 2, "inter_task_edges": False},
}


def scenario_in(setting: str) -> Scenario:
    return node_scenario(**{"setting": setting, **SETTINGS[setting]})


def learner_of(
    scenario: Scenario,
    variant: str = "h",
    method: str = "evolve-gcn",
    backbone: dict[str, Any] | None = None,
    **training: Any,
) -> Learner:
    recipe = Training(**{"epochs": 3, "learning_rate": 0.01, "device": "cpu"} | training)
    parameters = {"variant": variant, "width": 6, **(backbone or {})}
    return make_learner(scenario, "evolving-gcn", method, recipe, backbone_parameters=parameters)


def answers_of(learner: Learner, scenario: Scenario, first: int = 0) -> list[Tensor]:
    """Return the answers after every lesson of the default order, from the so manieth on."""
    lessons, found = scenario.lessons(scenario.default), []
    for stage in range(first, len(lessons)):
        learner.learn(scenario.experience(lessons[: stage + 1]), seed_for(stage))
        found.append(learner.answer(scenario.queries(lessons[: stage + 1])))
    return found


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_learner_goes_on_from_a_saved_state_as_if_it_had_never_stopped(variant: str, setting: str) -> None:
    scenario = scenario_in(setting)
    lessons = scenario.lessons(scenario.default)
    straight = answers_of(learner_of(scenario, variant), scenario)
    assert all(found.isfinite().any(dim=1).all() for found in straight)
    saved = to_bytes(learner_of(scenario, variant).state())
    for stage, expected in enumerate(straight):
        learner = learner_of(scenario, variant)
        learner.restore(from_bytes(saved))
        learner.learn(scenario.experience(lessons[: stage + 1]), seed_for(stage))
        saved = to_bytes(learner.state())
        again = learner_of(scenario, variant)
        again.restore(from_bytes(saved))
        for each in (learner, again):
            assert torch.equal(each.answer(scenario.queries(lessons[: stage + 1])), expected)
        assert to_bytes(again.state()) == saved


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_it_remembers_is_in_its_state(variant: str) -> None:
    scenario = scenario_in("time-il")
    lessons = scenario.lessons(scenario.default)
    first, second = (scenario.experience(lessons[: step + 1]) for step in range(2))
    refuse_forgetting(lambda: learner_of(scenario, variant), first, second)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_task_is_a_snapshot_more(variant: str) -> None:
    """The weights of lesson t are those that t snapshots make of W_0, told of by hand."""
    scenario = scenario_in("time-il")
    lessons = scenario.lessons(scenario.default)
    learner = learner_of(scenario, variant)
    by_hand: Any = None
    told = []
    for stage in range(len(lessons)):
        experience = scenario.experience(lessons[: stage + 1])
        learner.learn(experience, seed_for(stage))
        by_hand = copy.deepcopy(learner.backbone)
        told.append(by_hand.snapshot_of(experience.training.pool.whole()))
        by_hand.evolve(told)
        assert int(by_hand.evolved) == int(learner.backbone.evolved) == stage + 1
        weights: Any = learner.backbone
        for found, expected in zip(weights.weights(), by_hand.weights(), strict=True):
            assert torch.equal(found, expected)
    by_hand.evolve(told[:-1])
    assert not torch.allclose(by_hand.weights()[0], weights.weights()[0])


def test_with_another_method_it_learns_as_a_gcn_does() -> None:
    scenario = scenario_in("class-il")
    bare = answers_of(learner_of(scenario, "o", "bare"), scenario)
    recipe = Training(epochs=3, learning_rate=0.01, device="cpu")
    gcn = answers_of(make_learner(scenario, "gcn", "bare", recipe, backbone_parameters={"width": 6}), scenario)
    evolved = answers_of(learner_of(scenario, "o"), scenario)
    for one, other, third in zip(bare, gcn, evolved, strict=True):
        assert torch.equal(one, other)
        assert not torch.equal(one, third)


@pytest.mark.parametrize("setting", ["time-il", "class-il"])
def test_features_and_edges_of_past_snapshots_are_kept_and_counted_equal_ones_once(setting: str) -> None:
    scenario = scenario_in(setting)
    lessons = scenario.lessons(scenario.default)
    learner, nodes, floats = learner_of(scenario, "h"), 0, 0
    plain = learner_of(scenario, "o")
    for stage in range(len(lessons)):
        experience = scenario.experience(lessons[: stage + 1])
        for each in (learner, plain):
            each.learn(experience, seed_for(stage))
        graph = experience.training.pool.whole()
        if stage == 0 or setting == "time-il":
            nodes, floats = nodes + graph.links.nodes, floats + graph.features.numel()
        found = kept_by(learner.method, experience)
        assert (found.samples, found.floats) == (nodes, floats)
        assert kept_by(plain.method, experience).samples == 0
        assert kept_by(plain.method, experience).floats == 0


@pytest.mark.parametrize(
    "training", [{"batch_size": 16}, {"patience": 2}, {"fan_outs": (2, 2), "batch_size": 16}], ids=str
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_it_learns_in_batches_with_patience_and_on_samples_of_the_graph(variant: str, training: dict[str, Any]) -> None:
    scenario = scenario_in("time-il")
    learner = learner_of(scenario, variant, epochs=4, reset_optimizer=True, **training)
    first = weights_of(learner)
    assert all(found.isfinite().any(dim=1).all() for found in answers_of(learner, scenario))
    assert int(learner.backbone.evolved) == len(scenario.lessons(scenario.default))
    assert not torch.equal(weights_of(learner)[: len(first)], first)


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_learns_nodes_of_many_labels_and_dropout_is_off_when_it_answers(variant: str) -> None:
    scenario = label_scenario(setting="class-il", classes_per_task=2)
    lessons = scenario.lessons(scenario.default)
    learner = learner_of(scenario, variant, backbone={"dropout": 0.5})
    answers_of(learner, scenario)
    asked = [learner.answer(scenario.queries(lessons), seed=seed) for seed in (0, 1)]
    assert torch.equal(*asked)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_few_epochs_lower_the_loss_of_every_task(variant: str) -> None:
    scenario = scenario_in("time-il")
    lessons = scenario.lessons(scenario.default)
    learner = learner_of(scenario, variant, epochs=20)
    for stage in range(len(lessons)):
        experience, losses = scenario.experience(lessons[: stage + 1]), list[float]()
        learner.learn(experience, seed_for(stage), lambda _, loss, losses=losses: losses.append(loss))
        assert losses[-1] < losses[0]


def test_another_backbone_and_what_is_no_node_are_refused_in_one_sentence() -> None:
    scenario = scenario_in("time-il")
    with pytest.raises(InputError) as refused:
        make_learner(scenario, "gcn", "evolve-gcn")
    assert str(refused.value) == "method EvolveGCN needs a backbone with `evolve(snapshots)`; GCN has none"
    scenario.offers = scenario.offers - {"nodes"}
    with pytest.raises(InputError, match="EvolveGCN needs samples that are nodes of one graph"):
        make_learner(scenario, "evolving-gcn", "evolve-gcn")
