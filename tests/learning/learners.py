"""Learners small enough for tests, and runs of them through an order."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.seeds import seed_of
from tests.scenarios.small import lesson

METHODS = {
    "bare": {},
    "joint": {},
    "replay": {"fraction": 0.3},
    "ewc": {"strength": 100.0, "importance": "sample"},
    "mas": {"strength": 10.0},
    "twp": {"lambda_l": 100.0, "lambda_t": 100.0, "beta": 0.01},
    "lwf": {},
    "gem": {"count": 4, "margin": 0.5},
}
"""All methods, with strengths that are felt on a small problem."""

ORDER = ((5, 2), (0,), (4, 1, 3))

FLAT_BACKBONE = """
from torch import nn
from skeleton_cgl.backbones.backbone import Backbone


class Flat(Backbone):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features * 5, 4)

    def forward(self, clips):
        return self.linear(clips.flatten(1))
"""
"""A backbone for the five joints of small clips that knows nothing of edges."""


def small_learner(
    scenario: Scenario,
    method: str = "bare",
    parameters: dict[str, Any] | None = None,
    backbone: str = "gcn",
    seed: int = 0,
    **training: Any,
) -> Learner:
    """Return a learner with a narrow backbone; `training` are fields of the recipe."""
    width = {"gcn": {"width": 6}, "stgcn": {"width": 5, "kernel": 3}}.get(backbone, {})
    recipe = Training(**{"epochs": 3, "learning_rate": 0.01, "device": "cpu"} | training)
    return make_learner(scenario, backbone, method, recipe, seed, width, parameters or {})


def seed_for(stage: int) -> int:
    return seed_of("a stage of a test", stage)


def learn_tasks(learner: Learner, scenario: Scenario, *order: tuple[int, ...]) -> Learner:
    """Learn the tasks of an order one after the other, and return the learner."""
    for stage in range(len(order)):
        learner.learn(lesson(scenario, *order[: stage + 1]), seed_for(stage))
    return learner


def answers_after_every_stage(
    learner: Learner, scenario: Scenario, order: Sequence[tuple[int, ...]] = ORDER
) -> list[Tensor]:
    """Learn the tasks of an order; return the answers to all queries after each."""
    prefix = scenario.lessons(tuple(order))
    answers = []
    for stage in range(len(order)):
        learner.learn(scenario.experience(prefix[: stage + 1]), seed_for(stage))
        answers.append(learner.answer(scenario.queries(prefix[: stage + 1])))
    return answers


def weights_of(learner: Learner) -> Tensor:
    return learner.parameter_vector().detach().clone()


def assert_same_to_the_bit(found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    assert len(found) == len(expected)
    for stage, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert torch.equal(one, other), f"stage {stage}: largest difference {(one - other).abs().nan_to_num().max()}"
