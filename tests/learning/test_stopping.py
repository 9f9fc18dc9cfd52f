"""Early stopping: what it watches, what it goes back to, and that looking leaves no trace."""

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import Method
from skeleton_cgl.learning.state import to_bytes
from skeleton_cgl.scenarios.scenario import Samples, Scenario, join
from tests.learning.by_hand import balanced_cross_entropy, inputs_of
from tests.learning.learners import METHODS, learn_tasks, small_learner
from tests.scenarios.small import lesson, scenario_of

TASKS = ((0, 1), (2, 3, 4))
CLASSES = [0, 1, 2, 3, 4]


def watchable(learner: Learner, scenario: Scenario) -> dict[str, Callable[[], float]]:
    """Return losses by hand of the learner as it is when they are called; before, it knows the first task.

    task: of the second task's validation samples; seen: of both tasks'; lwf: of the second task's among its classes,
    and how far the classes of the first are from what they are now; lwf, seen: that for three classes of five, and the
    loss of the first task's validation samples for two.
    """
    past, new = (lesson(scenario, *TASKS[:step]).validation for step in (1, 2))
    teacher = copy.deepcopy(learner.model)

    def outputs(model: torch.nn.Module, samples: Samples) -> Tensor:
        with torch.no_grad():
            found: Tensor = copy.deepcopy(model).eval()(inputs_of(samples, learner.backbone))
        return found

    def task_loss(samples: Samples) -> float:
        return float(balanced_cross_entropy(outputs(learner.model, samples), samples.labels, CLASSES))

    def lwf() -> float:
        found, wanted = outputs(learner.model, new), outputs(teacher, new)
        own = balanced_cross_entropy(found[:, 2:], new.labels, CLASSES[2:])
        likely = (wanted[:, :2] / 2).softmax(dim=1)
        return float(own - (likely * (found[:, :2] / 2).log_softmax(dim=1)).sum(dim=1).mean())

    return {
        "task": lambda: task_loss(new),
        "seen": lambda: task_loss(join([past, new])),
        "lwf": lwf,
        "lwf, seen": lambda: (3 * lwf() + 2 * task_loss(past)) / 5,
    }


@pytest.mark.parametrize(
    ("method", "on", "watched"),
    [("bare", "task", "task"), ("bare", "seen", "seen"), ("lwf", "task", "lwf"), ("lwf", "seen", "lwf, seen")],
)
def test_learning_goes_back_to_the_epoch_in_which_the_loss_watched_was_lowest(
    small: Path, method: str, on: str, watched: str
) -> None:
    """Weights and optimizer; the plain loss of the task would have chosen another epoch."""
    scenario = scenario_of(small)
    learner = small_learner(scenario, method, patience=3, patience_on=on, epochs=30, learning_rate=0.02)
    learn_tasks(learner, scenario, TASKS[0])
    losses = watchable(learner, scenario)
    found: dict[str, list[float]] = {name: [] for name in losses}
    states: list[bytes] = []

    def look(_: int, __: float) -> None:
        for name, loss in losses.items():
            found[name].append(loss())
        states.append(kept_of(learner))

    learner.learn(lesson(scenario, *TASKS), 1, look)
    lowest = {name: values.index(min(values)) for name, values in found.items()}
    best = lowest[watched]
    assert len(states) == min(30, best + 1 + 3)
    assert kept_of(learner) == states[best] != states[-1]
    assert watched == "task" or lowest["task"] != best


def kept_of(learner: Learner) -> bytes:
    """Return weights, statistics and the optimizer's memory."""
    state = learner.state()
    return to_bytes({name: state[name] for name in ("backbone", "rows", "optimizer")})


class Noting(Method):
    """Bare that draws, and writes down what it saw, in its loss."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.total = torch.zeros(1)

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        self.seen.append(len(batch))
        noise = float(torch.rand(())) + random.random() + np.random.random()  # noqa: NPY002
        self.total += noise
        loss = (1 + noise) * learner.task_loss(batch)
        loss.backward(retain_graph=True)
        return loss


TRACED = {**{name: METHODS[name] for name in ("bare", "ewc", "lwf", "gem", "twp")}, f"{__name__}:Noting": {}}


@pytest.mark.parametrize("method", TRACED)
@pytest.mark.parametrize("on", ["task", "seen"])
def test_looking_leaves_no_trace(small: Path, method: str, on: str) -> None:
    """Every epoch is learned as without patience, by methods that look at gradients, remember, draw or write down."""
    scenario = scenario_of(small)

    start = small_learner(scenario, method, TRACED[method])
    start.learn(lesson(scenario, TASKS[0]), 0)
    validation = lesson(scenario, TASKS[0]).validation
    state = {**start.state(), "validated": [[validation.ids, validation.labels, validation.step]]}

    def epochs(**recipe: Any) -> list[bytes]:
        learner = small_learner(scenario, method, TRACED[method], epochs=4, batch_size=9, **recipe)
        learner.restore(state)
        learned: list[bytes] = []

        def look(_: int, __: float) -> None:
            notes = vars(learner.method) if isinstance(learner.method, Noting) else {}
            learned.append(kept_of(learner) + to_bytes(notes))

        learner.learn(lesson(scenario, *TASKS), 1, look)
        return learned

    assert epochs(patience=50, patience_on=on) == epochs()


def test_patience_without_anything_to_watch_is_refused(small: Path) -> None:
    scenario = scenario_of(small)
    experience = lesson(scenario, (0, 1))
    nothing = experience.validation.select(torch.arange(0))
    with pytest.raises(InputError, match=r"patience: lesson 1 \(wave, nod\) has no validation samples to watch"):
        small_learner(scenario, patience=2).learn(replace(experience, validation=nothing), 0)


class Uncopied(Method):
    """Bare that holds on to something that cannot be copied."""

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        self.held = learner.outputs(batch.inputs)
        return learner.task_loss(batch)


def test_a_method_that_cannot_be_looked_at_without_a_trace_is_refused_in_a_line(small: Path) -> None:
    scenario = scenario_of(small)
    with pytest.raises(InputError, match=r"^method Uncopied: cannot be copied, which `training.patience` needs.*$"):
        small_learner(scenario, f"{__name__}:Uncopied", patience=2).learn(lesson(scenario, (0, 1)), 0)
