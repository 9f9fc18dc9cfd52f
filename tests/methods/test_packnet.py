"""PackNet: who owns which weight, what moves when, and that no task's answers ever change."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.trial import refuse_forgetting
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.packnet import PackNet
from skeleton_cgl.scenarios.scenario import Scenario
from tests.learning.learners import seed_for, small_learner
from tests.methods.isolated import (
    CASES,
    CLIPS,
    NODES,
    Case,
    answers_to_known_tasks,
    assert_old_answers_stay,
    learning,
    own_queries,
)
from tests.scenarios.graphs import node_scenario
from tests.scenarios.small import scenario_of

RECIPES: dict[str, dict[str, Any]] = {
    "weight decay": {"weight_decay": 0.1},
    "mini-batches": {"batch_size": 8, "weight_decay": 0.1},
    "plateau": {"epochs": 12, "plateau": {"patience": 1, "factor": 0.5}, "weight_decay": 0.1},
    "patience": {"epochs": 12, "patience": 2, "recalibrate": True},
    "sgd": {"optimizer": "sgd", "weight_decay": 0.1, "reset_optimizer": True},
    "rows with steps of their own": {"head_steps": "own"},
}


def owners_of(learner: Learner) -> dict[str, Tensor]:
    found: dict[str, Tensor] = learner.method.state()["owners"]
    return found


def weights_of(learner: Learner) -> dict[str, Tensor]:
    """Return the weights of the backbone that tasks share out."""
    named = learner.backbone.named_parameters()
    return {f"backbone.{name}": value.detach().clone() for name, value in named if value.ndim > 1}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_answers_to_a_task_stay_as_they_were_when_it_was_learned_to_the_bit(case: Case, small: Path) -> None:
    found = answers_to_known_tasks(case.learner(small, "packnet", weight_decay=0.1), case.scenario(small))
    assert_old_answers_stay(found)


@pytest.mark.parametrize("case", [CLIPS, NODES], ids=str)
@pytest.mark.parametrize("recipe", RECIPES)
def test_they_stay_by_every_recipe(case: Case, recipe: str, small: Path) -> None:
    learner = case.learner(small, "packnet", **RECIPES[recipe])
    assert_old_answers_stay(answers_to_known_tasks(learner, case.scenario(small)))


@pytest.mark.parametrize("prune", [None, 0.25])
def test_a_share_of_p_to_the_k_is_free_after_k_tasks_and_nothing_after_the_last(
    prune: float | None, small: Path
) -> None:
    learner = CLIPS.learner(small, "packnet", {} if prune is None else {"prune": prune})
    scenario = CLIPS.scenario(small)
    tasks = len(scenario.lessons(scenario.default))
    share = (1 / tasks) ** (1 / (tasks - 1)) if prune is None else prune
    for step in learning(learner, scenario):
        owners = owners_of(learner)
        assert owners.keys() == weights_of(learner).keys()
        for owner in owners.values():
            free = int((owner == 0).sum())
            expected = owner.numel() * share ** (step + 1) if step + 1 < tasks else 0
            assert abs(free - expected) <= 0.5
            last = int((owner == tasks).sum())
            if step + 1 == tasks and prune is None:
                assert abs(last - owner.numel() / tasks) <= 0.5


def test_biases_are_each_tasks_own_also_where_they_have_two_axes(small: Path) -> None:
    """ST-GCN has one row of them for every partition of the joints; Piggyback masks none of them either."""
    case = Case("clips", "stgcn", {"width": 5, "kernel": 3})
    learner, scenario = case.learner(small, "packnet"), case.scenario(small)
    learner.learn(scenario.experience(scenario.lessons(scenario.default)[:1]), 0)
    biases = {name for name in weights_of(learner) if name.endswith(".bias")}
    assert biases
    assert owners_of(learner).keys() == weights_of(learner).keys() - biases
    assert biases < learner.method.state()["own"][0].keys()


def test_what_is_owned_never_changes_hands_nor_value_and_what_is_free_is_zero(small: Path) -> None:
    learner, scenario = CLIPS.learner(small, "packnet", weight_decay=0.1, batch_size=8), CLIPS.scenario(small)
    before: tuple[dict[str, Tensor], dict[str, Tensor]] | None = None
    for step in learning(learner, scenario):
        owners = {name: owner.clone() for name, owner in owners_of(learner).items()}
        weights = weights_of(learner)
        for name, weight in weights.items():
            assert not weight[owners[name] == 0].any()
            if before is not None:
                settled = before[0][name] > 0
                assert torch.equal(owners[name][settled], before[0][name][settled])
                assert torch.equal(weight[settled], before[1][name][settled])
                assert (owners[name][~settled].unique() != 0).any()
                assert set(owners[name][~settled].unique().tolist()) <= {0, step + 1}
        before = owners, weights


def test_a_task_is_answered_with_the_weights_of_tasks_up_to_it_and_its_own_rest(small: Path) -> None:
    """By hand: a copy of the model into which that is written."""
    learner, scenario = CLIPS.learner(small, "packnet"), CLIPS.scenario(small)
    copies: list[dict[str, Tensor]] = []
    for _ in learning(learner, scenario):
        copies.append({name: value.clone() for name, value in learner.model.state_dict().items()})
    for task, queries in enumerate(own_queries(scenario)):
        found = learner.answer(queries)[:, list(learner.taught[task].outputs)]
        by_hand = CLIPS.learner(small, "bare")
        for outputs in (taught.outputs for taught in learner.taught[: task + 1]):
            by_hand.head.meet(outputs)
        by_hand.model.load_state_dict(copies[task])
        with torch.no_grad():
            wanted = by_hand.model.eval()(by_hand.inputs(queries))[:, by_hand.columns_of(learner.taught[task])]
        torch.testing.assert_close(found, wanted)


class Recorded(PackNet):
    """Notes the weights after every step, and how many steps the optimizer has counted."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[dict[str, Tensor]] = []
        self.counts: list[int] = []

    def step_done(self, learner: Any, batch: Any) -> None:
        super().step_done(learner, batch)
        self.steps.append(weights_of(learner))
        self.counts.append(max(int(memory["step"]) for memory in learner.optimizer.state.values()))


def recorded(scenario: Scenario, small: Path, epochs: int) -> tuple[Learner, Recorded]:
    learner = CLIPS.learner(small, "packnet", epochs=epochs)
    learner.method = Recorded()
    prefix = scenario.lessons(scenario.default)
    for step in range(2):
        if step:
            learner.method.steps.clear()
            learner.method.counts.clear()
        learner.learn(scenario.experience(prefix[: step + 1]), seed_for(step))
    return learner, learner.method


@pytest.mark.parametrize(("epochs", "first"), [(3, 1), (30, 3)])
def test_free_weights_train_for_a_tenth_of_the_epochs_and_the_largest_of_them_for_all(
    small: Path, epochs: int, first: int
) -> None:
    scenario = CLIPS.scenario(small)
    learner, method = recorded(scenario, small, epochs)
    # By a new optimizer each.
    assert method.counts == [*range(1, first + 1), *range(1, epochs + 1)]
    before, pruned, last = method.steps[first - 1], method.steps[first], method.steps[-1]
    for name, owner in owners_of(learner).items():
        magnitude, own = before[name].abs(), owner == 2
        if own.any() and (owner == 0).any():
            # Those that the task did not take are the smallest.
            assert magnitude[own].min() >= magnitude[owner == 0].max()
        assert not pruned[name][owner == 0].any()
        assert torch.equal(before[name][owner == 1], last[name][owner == 1])
    moved = torch.cat([(before[name] != last[name])[owner == 2] for name, owner in owners_of(learner).items()])
    assert moved.float().mean() > 0.9


def test_of_equal_weights_the_first_are_owned_and_never_all(small: Path) -> None:
    """As when all are 0, of which a threshold would take everything."""
    learner = NODES.learner(small, "packnet", {"prune": 0.5})
    method = learner.method
    assert isinstance(method, PackNet)
    with torch.no_grad():
        for value in learner.backbone.parameters():
            if value.ndim > 1:
                value.fill_(0)
                value.view(-1)[-1] = 1
    method._own_largest(learner, 1)
    for owner in owners_of(learner).values():
        owned = owner.flatten().nonzero()[:, 0].tolist()
        count = owner.numel() - round(owner.numel() / 2)
        assert owned == [*range(count - 1), owner.numel() - 1]


def test_tasks_not_yet_taught_are_answered_with_the_present_weights(small: Path) -> None:
    learner, scenario = CLIPS.learner(small, "packnet"), CLIPS.scenario(small)
    prefix = scenario.lessons(scenario.default)[:1]
    learner.learn(scenario.experience(prefix), 0)
    queries = scenario.queries(prefix)
    rows = queries.step == -1
    assert rows.any()
    found = learner.answer(queries)[rows][:, learner.head.outputs]
    with torch.no_grad():
        wanted = learner.outputs(learner.inputs(queries).rows(rows.nonzero()[:, 0]))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("case", [CLIPS, NODES, CASES[8], CASES[10]], ids=str)
def test_a_learner_goes_on_from_a_saved_state_as_if_it_had_never_stopped(case: Case, small: Path) -> None:
    scenario = case.scenario(small)
    prefix = scenario.lessons(scenario.default)
    straight, resumed = case.learner(small, "packnet"), case.learner(small, "packnet")
    saved = b""
    for step in learning(straight, scenario):
        if step == 1:
            saved = to_bytes(straight.state())
    resumed.restore(from_bytes(saved))
    resumed.learn(scenario.experience(prefix[:3]), seed_for(2))
    assert to_bytes(resumed.state()) == to_bytes(straight.state())
    queries = scenario.queries(prefix)
    assert torch.equal(straight.answer(queries), resumed.answer(queries))


def test_nothing_that_is_remembered_escapes_the_state(small: Path) -> None:
    scenario = CLIPS.scenario(small)
    prefix = scenario.lessons(scenario.default)
    refuse_forgetting(
        lambda: CLIPS.learner(small, "packnet"), *(scenario.experience(prefix[: step + 1]) for step in range(2))
    )


def test_it_learns(small: Path) -> None:
    """With enough epochs, tasks are known better than by chance, the last as well."""
    learner, scenario = CLIPS.learner(small, "packnet", epochs=40), CLIPS.scenario(small)
    for _ in learning(learner, scenario):
        pass
    prefix = scenario.lessons(scenario.default)
    measures = scenario.score(learner.answer(scenario.queries(prefix)), prefix)
    accuracy = next(measure for measure in measures if measure.part == "test" and measure.metric == "accuracy")
    assert np.nanmean(accuracy.values) > 0.7


@pytest.mark.parametrize("prune", [0, 1, -0.5, 1.5])
def test_a_share_outside_0_and_1_is_refused(prune: float) -> None:
    with pytest.raises(InputError, match=f"prune {prune} is not between 0 and 1"):
        make_method("packnet", {"prune": prune})


@pytest.mark.parametrize("prune", [True, "0.5"])
def test_a_share_that_is_no_number_is_refused(prune: Any) -> None:
    with pytest.raises(InputError, match=f"prune must be a finite number, found {prune!r}"):
        make_method("packnet", {"prune": prune})


def test_one_task_is_refused_when_a_learner_is_made() -> None:
    scenario = node_scenario(setting="task-il", classes_per_task=6)
    with pytest.raises(InputError, match=r"^PackNet needs at least two tasks$"):
        make_learner(scenario, "gcn", "packnet")


def test_queries_that_do_not_reveal_their_task_are_refused(small: Path) -> None:
    with pytest.raises(InputError, match="PackNet needs queries that reveal their task"):
        small_learner(scenario_of(small, "class-il"), "packnet")
