"""LwF: the teacher is the model as the last task left it, and stays so; the loss is the one of the paper."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.methods.lwf import LwF
from skeleton_cgl.scenarios.problem import OneClass
from tests.learning.by_hand import HandMade, balanced_cross_entropy
from tests.learning.learners import ORDER, seed_for, small_learner
from tests.scenarios.small import SETTINGS, lesson, scenario_of


def distillation_by_hand(teacher: Tensor, student: Tensor, temperature: float) -> Tensor:
    total = 0
    for wanted, found in zip(teacher, student, strict=True):
        likely = torch.exp(wanted / temperature) / torch.exp(wanted / temperature).sum()
        log = found / temperature - torch.log(torch.exp(found / temperature).sum())
        total = total - (likely * log).sum()
    return total / len(teacher)


@pytest.mark.parametrize("temperature", [0.5, 1, 2])
def test_distillation_is_the_cross_entropy_of_softened_answers(temperature: float) -> None:
    random = torch.Generator().manual_seed(0)
    teacher, student = torch.randn(2, 5, 3, generator=random)
    student.requires_grad_()
    found = OneClass().distillation(teacher, student, temperature)
    expected = distillation_by_hand(teacher, student, temperature)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, student), torch.autograd.grad(expected, student))


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_whole_run_is_as_done_by_hand(small: Path, setting: str) -> None:
    """Cross-entropy among the current classes; for every past task, the answers of the model the last task left.

    By hand the teacher's answers are computed once per task, before the first step: nothing can move them.
    """
    scenario = scenario_of(small, setting)
    parameters = {"strength": 3.0, "temperature": 1.5}
    learner = small_learner(scenario, "lwf", parameters, optimizer="sgd", learning_rate=0.05, epochs=4)
    hand = HandMade(scenario)
    for stage, task in enumerate(ORDER):
        learner.learn(lesson(scenario, *ORDER[: stage + 1]), seed_for(stage))
        samples = lesson(scenario, task).training
        past = ORDER[:stage]
        with torch.no_grad():
            teacher = {part: hand.outputs(samples, list(part)) for part in past}
        hand.meet(task)

        def loss(hand=hand, samples=samples, task=task, teacher=teacher) -> Tensor:
            # One pass for all outputs: BatchNorm's running statistics count passes.
            seen = list(hand.rows)
            outputs = hand.outputs(samples, seen)
            of = {part: outputs[:, [seen.index(label) for label in part]] for part in (*teacher, task)}
            total = balanced_cross_entropy(of[task], samples.labels, list(task))
            return total + 3 * sum(distillation_by_hand(teacher[part], of[part], 1.5) for part in teacher)

        hand.train(loss, epochs=4)
    hand.assert_same_as(learner)


def test_the_teacher_answers_every_batch_of_its_own(small: Path) -> None:
    """In mini-batches the wanted answers belong to the batch at hand."""
    scenario = scenario_of(small)
    learner = small_learner(scenario, "lwf", batch_size=5)
    learner.learn(lesson(scenario, (0, 1)), 0)
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    seen: list[Tensor] = []

    class Watching(OneClass):
        def distillation(self, wanted: Tensor, found: Tensor, temperature: float) -> Tensor:
            seen.append(wanted)
            return super().distillation(wanted, found, temperature)

    class Watched(LwF):
        def loss(self, learner: Learner, batch: Batch) -> Tensor:
            loss = super().loss(learner, batch)
            now = {name: value.clone() for name, value in learner.model.state_dict().items()}
            grown = now["head.rows"]
            learner.model.load_state_dict({**before, "head.rows": torch.cat([before["head.rows"], grown[2:]])})
            with learner.answering(), torch.no_grad():
                expected = learner.outputs(batch.inputs)[:, :2]
            torch.testing.assert_close(seen[-1], expected)
            learner.model.load_state_dict(now)
            return loss.detach().requires_grad_()

    learner.method, learner.problem = Watched(), Watching()
    learner.learn(lesson(scenario, (0, 1), (2, 3)), 1)
    assert len(seen) > 6


def test_wrong_parameters_are_refused() -> None:
    for parameters in ({"strength": -1}, {"temperature": 0}, {"temperature": -2}):
        with pytest.raises(InputError, match="'lwf': strength must not be negative, and temperature must be positive"):
            make_method("lwf", parameters)
