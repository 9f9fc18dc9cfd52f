"""The plateau schedule: the rate is cut as torch cuts it, a lesson ends at the floor, and the next starts anew."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import ReduceLROnPlateau

from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.scenarios.scenario import Experience, Samples, Scenario
from tests.learning.by_hand import inputs_of
from tests.learning.learners import METHODS, seed_for, small_learner
from tests.scenarios.small import lesson, scenario_of

TASKS = ((0, 1), (2, 3, 4))
RATE = 0.05
PLATEAU = {"factor": 0.1, "patience": 2, "floor": 0.002}
RECIPE = {"plateau": PLATEAU, "epochs": 200, "learning_rate": RATE}


def rates_of(learner: Learner, experience: Experience) -> list[float]:
    """Learn a lesson; return the learning rate of every epoch."""
    rates: list[float] = []
    learner.learn(experience, 1, lambda _, __: rates.append(learner.optimizer.param_groups[0]["lr"]))
    return rates


class PlainLoop:
    """A fresh Adam per task, all samples at once, and the best weights in the end: written with torch alone."""

    def __init__(self, scenario: Scenario, recalibrate: bool) -> None:
        start = small_learner(scenario)
        self.model, self.head = start.model, start.head
        self.recalibrate = recalibrate

    def learn(self, experience: Experience) -> int:
        """Learn a task; return the number of epochs."""
        self.head.meet(experience.outputs)
        optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE, fused=True)
        schedule = ReduceLROnPlateau(optimizer, factor=0.1, patience=2, min_lr=0.002 * RATE)
        lowest, best, epochs = float("inf"), {}, 0
        while epochs < 200 and optimizer.param_groups[0]["lr"] > 0.002 * RATE:
            self.model.backbone.train()
            optimizer.zero_grad()
            self.loss(experience.training).backward()
            optimizer.step()
            with torch.no_grad():
                if self.recalibrate:
                    self.take_statistics_of(experience.training)
                self.model.backbone.eval()
                value = self.loss(experience.validation).item()
            if value < lowest:
                lowest, best = value, copy.deepcopy(self.model.state_dict())
            schedule.step(value)
            epochs += 1
        self.model.load_state_dict(best)
        return epochs

    def loss(self, samples: Samples) -> Tensor:
        columns = torch.tensor([self.head.outputs.index(label) for label in samples.labels.tolist()])
        counts = torch.bincount(columns)
        weights = 1 / (counts[columns] * int((counts > 0).sum())).float()
        found = self.model(inputs_of(samples, self.model.backbone))
        return (functional.cross_entropy(found, columns, reduction="none") * weights).sum()

    def take_statistics_of(self, samples: Samples) -> None:
        """Let every BatchNorm keep the statistics of this batch and no others."""
        layers = [layer for layer in self.model.modules() if isinstance(layer, nn.BatchNorm1d)]
        counts = [layer.num_batches_tracked.clone() for layer in layers]
        for layer in layers:
            layer.momentum = 1.0
        self.loss(samples)
        for layer, count in zip(layers, counts, strict=True):
            layer.momentum = 0.1
            layer.num_batches_tracked.copy_(count)


@pytest.mark.parametrize("recalibrate", [False, True])
def test_a_lesson_is_learned_as_by_a_plain_loop_with_the_schedule_of_torch(small: Path, recalibrate: bool) -> None:
    """Two lessons, to the bit: the cuts, the epoch it ends after, and the best weights."""
    scenario = scenario_of(small)
    learner = small_learner(scenario, **RECIPE, monitor="task", reset_optimizer=True, recalibrate=recalibrate)
    plain = PlainLoop(scenario, recalibrate)
    for stage in (1, 2):
        experience = lesson(scenario, *TASKS[:stage])
        epochs = len(rates_of(learner, experience))
        assert epochs == plain.learn(experience) < 200
        found, expected = learner.model.state_dict(), plain.model.state_dict()
        assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize(("floor", "rates"), [(0.002, (RATE, 0.1 * RATE, 0.01 * RATE)), (0.02, (RATE, 0.1 * RATE))])
@pytest.mark.parametrize("reset_optimizer", [False, True])
def test_every_lesson_starts_with_the_full_rate_and_ends_at_the_cut_that_reaches_the_floor(
    small: Path, floor: float, rates: tuple[float, ...], reset_optimizer: bool
) -> None:
    """The third cut with a floor of 0.002, the second with 0.02; nothing is learned at the floor itself."""
    scenario = scenario_of(small)
    recipe = {**RECIPE, "plateau": {**PLATEAU, "floor": floor}, "reset_optimizer": reset_optimizer}
    learner = small_learner(scenario, **recipe)
    for stage in (1, 2):
        found = rates_of(learner, lesson(scenario, *TASKS[:stage]))
        assert tuple(dict.fromkeys(found)) == pytest.approx(rates)
        assert learner.optimizer.param_groups[0]["lr"] == RATE


def test_without_stop_a_lesson_goes_on_at_the_floor(small: Path) -> None:
    learner = small_learner(scenario_of(small), **{**RECIPE, "plateau": {**PLATEAU, "stop": False}})
    found = rates_of(learner, lesson(scenario_of(small), TASKS[0]))
    assert len(found) == 200
    assert found[-1] == 0.002 * RATE


def test_the_smallest_rates_are_cut_as_well(small: Path) -> None:
    """torch by default makes no cut below 1e-8, and a lesson would not end."""
    learner = small_learner(scenario_of(small), **{**RECIPE, "learning_rate": 1e-9}, recalibrate=True)
    found = rates_of(learner, lesson(scenario_of(small), TASKS[0]))
    assert tuple(dict.fromkeys(found)) == pytest.approx((1e-9, 1e-10, 1e-11))


def test_patience_may_end_a_lesson_before_the_floor_does(small: Path) -> None:
    experience = lesson(scenario_of(small), TASKS[0])
    alone = rates_of(small_learner(scenario_of(small), **RECIPE), experience)
    both = rates_of(small_learner(scenario_of(small), **RECIPE, patience=4), experience)
    assert both == alone[: len(both)]
    assert len(both) < len(alone)


@pytest.mark.parametrize("method", ["bare", "ewc", "lwf", "gem", "joint"])
@pytest.mark.parametrize(
    "recipe", [{"recalibrate": True}, {"monitor": "score", "patience_on": "seen"}, {"batch_size": 9, "patience": 3}]
)
def test_going_on_from_a_saved_state_is_going_on(small: Path, method: str, recipe: dict[str, Any]) -> None:
    """As in a tree, and as alone: of the cuts of a lesson nothing is left for the next."""
    scenario = scenario_of(small)

    def new() -> Learner:
        return small_learner(scenario, method, METHODS[method], **{**RECIPE, "epochs": 25}, **recipe)

    alone = new()
    alone.learn(lesson(scenario, TASKS[0]), seed_for(0))
    saved = to_bytes(alone.state())
    alone.learn(lesson(scenario, *TASKS), seed_for(1))
    restored = new()
    restored.restore(from_bytes(saved))
    restored.learn(lesson(scenario, *TASKS), seed_for(1))
    assert to_bytes(restored.state()) == to_bytes(alone.state())
