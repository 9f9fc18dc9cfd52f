"""The optimizers of a recipe: Adam whose head rows count their own steps."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from skeleton_cgl.backbones.head import Head
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import Method
from skeleton_cgl.learning.optimizers import grow, make_optimizer
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.lessons import units_named
from tests.learning.learners import ORDER, answers_after_every_stage, assert_same_to_the_bit, small_learner
from tests.scenarios.small import scenario_of

RATE = 0.001


def step_length(head_steps: str, before: int) -> float:
    """Return, in learning rates, the tenth step of a row met after so many steps, gradients being 1 all the time."""
    head = Head(3, 0, units_named("ab"))
    head.meet([0])
    optimizer = make_optimizer(Training(learning_rate=RATE, head_steps=head_steps), [head.rows], head)

    def step() -> None:
        head.rows.grad = torch.ones_like(head.rows)
        optimizer.step()

    for _ in range(before):
        step()
    rows = head.rows
    head.meet([1])
    grow(optimizer, rows, head.rows)
    for _ in range(9):
        step()
    start = head.rows.detach().clone()
    step()
    lengths = (start - head.rows.detach()) / RATE
    torch.testing.assert_close(lengths[0], torch.ones(4), rtol=1e-3, atol=1e-3)
    return float(lengths[1].mean())


@pytest.mark.parametrize(("before", "shared"), [(100, 2.1), (400, 3.8)])
def test_a_late_row_steps_like_any_other_where_it_counts_its_own_steps(before: int, shared: float) -> None:
    assert step_length("shared", before) == pytest.approx(shared, abs=0.05)
    assert step_length("own", before) == pytest.approx(1, abs=1e-3)


class Noting(Method):
    """Bare that notes the rows of the head and their gradient before every step."""

    def __init__(self) -> None:
        self.rows: list[Tensor] = []
        self.gradients: list[Tensor] = []

    def gradients_ready(self, learner: Learner) -> None:
        assert learner.head.rows.grad is not None
        self.rows.append(learner.head.rows.detach().clone())
        self.gradients.append(learner.head.rows.grad.clone())


@pytest.mark.parametrize("reset", [False, True])
def test_the_rows_of_a_learner_follow_adam_counted_row_by_row(small: Path, reset: bool) -> None:
    scenario = scenario_of(small)
    recipe = {"head_steps": "own", "weight_decay": 0.1, "reset_optimizer": reset}
    learner = small_learner(scenario, f"{__name__}:Noting", **recipe)
    answers_after_every_stage(learner, scenario)
    notes = learner.method
    met = [len(gradient) for gradient in notes.gradients]
    assert sorted(set(met)) == [2, 3, 6]
    for row in range(6):
        weights, mean, square, count = None, 0, 0, 0
        for step, (rows, gradients) in enumerate(zip(notes.rows, notes.gradients, strict=True)):
            if len(rows) <= row:
                continue
            if reset and met[step] != met[step - 1]:
                mean, square, count = 0, 0, 0
            weights = rows[row].double() if weights is None else weights
            torch.testing.assert_close(rows[row].double(), weights, atol=1e-6, rtol=1e-5)
            gradient = gradients[row].double() + 0.1 * weights
            count += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            scale = (square / (1 - 0.999**count)).sqrt() + 1e-8
            weights = weights - 0.01 * mean / (1 - 0.9**count) / scale
        torch.testing.assert_close(learner.head.rows.detach()[row].double(), weights, atol=1e-6, rtol=1e-5)
    steps = learner.optimizer.state[learner.head.rows]["step"].flatten().tolist()
    assert steps == [3] * 6 if reset else [9, 9, 6, 3, 3, 3]


def test_own_steps_change_nothing_before_the_head_grows_and_something_after(small: Path) -> None:
    scenario = scenario_of(small)
    shared, own = (
        answers_after_every_stage(small_learner(scenario, head_steps=kind), scenario, ORDER[:2])
        for kind in ("shared", "own")
    )
    torch.testing.assert_close(own[0], shared[0])
    assert not torch.allclose(own[1], shared[1], atol=1e-4)


def test_own_steps_have_no_effect_on_sgd(small: Path) -> None:
    scenario = scenario_of(small)
    shared, own = (
        answers_after_every_stage(small_learner(scenario, head_steps=kind, optimizer="sgd"), scenario)
        for kind in ("shared", "own")
    )
    assert_same_to_the_bit(own, shared)


def digested(**fields: object) -> set[str]:
    """Return the fields of a recipe that keys have."""
    training = Training.model_validate(fields)
    return training.model_dump(exclude=training.as_before).keys() - {"epochs", "learning_rate", "device", "precision"}


OLD = {"weight_decay", "batch_size", "optimizer", "reset_optimizer", "patience"}


def test_keys_know_own_steps_and_what_patience_is_on_where_they_have_an_effect() -> None:
    """And patience itself by another name than when it watched another loss."""
    assert digested() == digested(patience_on="seen") == digested(optimizer="sgd", head_steps="own") == OLD
    assert digested(head_steps="own") == OLD | {"head_steps"}
    assert digested(patience=3) == digested(patience=3, patience_on="seen") == OLD | {"patience_on"}
