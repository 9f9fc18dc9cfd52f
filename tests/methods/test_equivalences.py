"""Where two methods must meet: a method without its strength is Bare, Replay of all is Joint, both as done by hand."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.gem import GEM
from skeleton_cgl.scenarios.scenario import join
from tests.learning.by_hand import HandMade, balanced_cross_entropy
from tests.learning.learners import (
    METHODS,
    ORDER,
    answers_after_every_stage,
    assert_same_to_the_bit,
    seed_for,
    small_learner,
)
from tests.scenarios.small import SETTINGS, lesson, scenario_of


class BareOnCurrentClasses(Method):
    """Cross-entropy with the outputs of the current task's classes cut out, the others not computed with."""

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        columns = [learner.head.outputs.index(label) for label in learner.taught[-1].outputs]
        outputs = learner.outputs(batch.inputs)[:, columns]
        targets = torch.tensor([columns.index(column) for column in batch.targets.tolist()])
        counts = torch.bincount(targets)
        return torch.nn.functional.cross_entropy(outputs, targets, weight=1 / counts)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("ewc", {"strength": 0}),
        ("ewc", {"strength": 0, "importance": "sample"}),
        ("mas", {"strength": 0}),
        ("mas-star", {"strength": 0, "window": 1, "mean": 9.0}),
        ("twp", {"lambda_l": 0, "lambda_t": 0, "beta": 0}),
    ],
)
def test_without_strength_a_method_is_bare_to_the_bit(small: Path, method: str, parameters: dict, setting: str) -> None:
    scenario = scenario_of(small, setting)
    bare = answers_after_every_stage(small_learner(scenario), scenario)
    assert_same_to_the_bit(
        answers_after_every_stage(small_learner(scenario, method, parameters), scenario),
        bare,
    )


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"bare"}))
def test_with_strength_a_method_departs_from_bare_and_not_before_there_is_a_past(small: Path, method: str) -> None:
    scenario = scenario_of(small)
    bare = answers_after_every_stage(small_learner(scenario), scenario)
    found = answers_after_every_stage(small_learner(scenario, method, METHODS[method]), scenario)
    # TWP's β‖∇L‖₁ is felt from the first task on.
    assert torch.equal(found[0], bare[0]) == (method != "twp")
    assert not torch.equal(found[-1], bare[-1])


@pytest.mark.parametrize("setting", SETTINGS)
def test_lwf_without_strength_is_bare_on_the_current_classes(small: Path, setting: str) -> None:
    scenario = scenario_of(small, setting)
    found = answers_after_every_stage(small_learner(scenario, "lwf", {"strength": 0}), scenario)
    name = f"{__name__}:{BareOnCurrentClasses.__name__}"
    expected = answers_after_every_stage(small_learner(scenario, name), scenario)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_in_task_il_lwf_without_strength_is_bare(small: Path) -> None:
    scenario = scenario_of(small, "task-il")
    found = answers_after_every_stage(small_learner(scenario, "lwf", {"strength": 0}), scenario)
    assert_same_to_the_bit(found, answers_after_every_stage(small_learner(scenario), scenario))


@pytest.mark.parametrize("margin", [0, 5])
def test_gem_whose_constraints_never_bind_is_bare_to_the_bit(small: Path, margin: float) -> None:
    """The same task over and over, all of it remembered: the gradient and those of the memories are one."""
    scenario = scenario_of(small)
    again = [(0, 1, 4)] * 3
    found = small_learner(scenario, "gem", {"fraction": 1, "margin": margin})
    bare = answers_after_every_stage(small_learner(scenario), scenario, again)
    assert_same_to_the_bit(answers_after_every_stage(found, scenario, again), bare)


class WatchedGEM(GEM):
    """GEM that writes down, at every step, the inner products with the memories before and after it acts."""

    def __init__(self) -> None:
        super().__init__(margin=0, fraction=0.5)
        self.products: list[tuple[Tensor, Tensor]] = []

    def gradients_ready(self, learner: Learner) -> None:
        if not self._remembered:
            return
        with learner.statistics_kept():
            gradients = [learner.gradient_of(learner.task_loss(batch)) for batch in self._remembered]
        memories = torch.nn.functional.normalize(torch.stack(gradients).double())
        before = learner.gradient_vector().double()
        super().gradients_ready(learner)
        after = learner.gradient_vector().double()
        # A task-il task of one class has no gradient.
        length = before.norm().clamp(min=1e-30)
        self.products.append((memories @ before / length, memories @ after / length))


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_step_of_gem_increases_a_memory_loss_to_first_order(small: Path, setting: str) -> None:
    scenario = scenario_of(small, setting)
    learner = small_learner(scenario, f"{__name__}:{WatchedGEM.__name__}", epochs=6)
    answers_after_every_stage(learner, scenario)
    before, after = (torch.cat(products) for products in zip(*learner.method.products, strict=True))
    assert (before < -0.01).any()
    assert after.min() > -1e-5


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("training", [{}, {"batch_size": 7}, {"optimizer": "sgd"}])
def test_replay_of_everything_is_joint_to_the_bit(small: Path, setting: str, training: dict) -> None:
    scenario = scenario_of(small, setting)
    replay = small_learner(scenario, "replay", {"fraction": 1}, **training)
    joint = answers_after_every_stage(small_learner(scenario, "joint", **training), scenario)
    assert_same_to_the_bit(answers_after_every_stage(replay, scenario), joint)


@pytest.mark.parametrize("backbone", ["gcn", "stgcn"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_bare_and_joint_are_as_done_by_hand(small: Path, setting: str, backbone: str) -> None:
    """Bare on each task, Joint on all experiences put together; in task-il each sample among its task's classes."""
    scenario = scenario_of(small, setting)
    for method in ("bare", "joint"):
        learner = small_learner(scenario, method, backbone=backbone, optimizer="sgd", learning_rate=0.05)
        hand = HandMade(scenario, backbone)
        for stage, task in enumerate(ORDER):
            learner.learn(lesson(scenario, *ORDER[: stage + 1]), seed_for(stage))
            hand.meet(task, learner.head.width)
            learned = [task] if method == "bare" else ORDER[: stage + 1]
            everything = join([lesson(scenario, part).training for part in learned])
            seen = list(hand.rows)

            def loss(hand=hand, everything=everything, seen=seen) -> Tensor:
                outputs = hand.outputs(everything, seen)
                if setting == "class-il":
                    return balanced_cross_entropy(outputs, everything.labels, seen)
                total = 0
                for part in ORDER:
                    rows = torch.isin(everything.labels, torch.tensor(part))
                    if rows.any():
                        own = outputs[rows][:, [seen.index(label) for label in part]]
                        within = balanced_cross_entropy(own, everything.labels[rows], list(part))
                        total = total + within * len(part)
                return total / len(everything.labels.unique())

            hand.train(loss)
        hand.assert_same_as(learner)
