"""ER minimises the loss of the batch and that of what it draws, each weighted by itself, as computed by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.methods.er import ER
from skeleton_cgl.scenarios.scenario import Samples
from tests.learning.learners import (
    ORDER,
    answers_after_every_stage,
    assert_same_to_the_bit,
    learn_tasks,
    small_learner,
)
from tests.scenarios.small import SETTINGS, lesson, scenario_of


class WatchedER(ER):
    """ER that writes down of every step: what came, what was replayed, and the loss with the outputs it is of."""

    def __init__(self, count: int = 10) -> None:
        super().__init__(count)
        self.steps: list[tuple[int, Samples, bool]] = []
        self.losses: list[tuple[Batch, np.ndarray, float]] = []

    def step_samples(self, learner: Learner, samples: Samples) -> Samples:
        chosen = super().step_samples(learner, samples)
        self.steps.append((len(samples), chosen, learner.first_pass))
        return chosen

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        with learner.statistics_kept(), torch.no_grad():
            outputs = learner.outputs(batch.inputs).numpy()
        loss = super().loss(learner, batch)
        self.losses.append((batch, outputs, loss.item()))
        return loss


WATCHED = f"{__name__}:WatchedER"


def cross_entropy(outputs: np.ndarray, targets: np.ndarray, among: np.ndarray) -> float:
    """Return the mean over the classes of the targets of the mean loss of each class's samples."""
    exps = np.where(among, np.exp(outputs.astype(float)), 0)
    each = -np.log(exps[np.arange(len(targets)), targets] / exps.sum(axis=1))
    return float(np.mean([each[targets == target].mean() for target in np.unique(targets)]))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("training", [{}, {"batch_size": 4}])
def test_a_step_minimises_the_loss_of_the_batch_and_that_of_the_draws(
    small: Path, setting: str, training: dict
) -> None:
    learner = small_learner(scenario_of(small, setting), WATCHED, **training)
    learn_tasks(learner, scenario_of(small, setting), *ORDER)
    replayed = 0
    for batch, outputs, found in learner.method.losses:
        parts = np.split(np.arange(len(batch)), np.cumsum(batch.sizes)[:-1].astype(int))
        replayed += len(parts) == 2
        tables = outputs, batch.targets.numpy(), batch.among.numpy()
        expected = sum(cross_entropy(*(table[rows] for table in tables)) for rows in parts)
        assert found == pytest.approx(expected, rel=1e-4)
    assert replayed == len(learner.method.losses) - 1


@pytest.mark.parametrize(("training", "count"), [({}, 10), ({}, 500), ({"batch_size": 4}, 10)])
def test_as_many_as_came_are_replayed_of_what_passed_before(small: Path, training: dict, count: int) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, WATCHED, {"count": count}, **training)
    learn_tasks(learner, scenario, *ORDER)
    seen: dict[int, int] = {}
    number = 0
    for size, chosen, first in learner.method.steps:
        own, again = chosen.ids[:size].tolist(), chosen.ids[size:].tolist()
        assert len(again) == len(set(again)) == min(size, count, len(seen))
        assert set(again) <= set(seen)
        assert all(seen[sample] == label for sample, label in zip(again, chosen.labels[size:].tolist(), strict=True))
        if first:
            seen |= dict(zip(own, chosen.labels[:size].tolist(), strict=True))
            number += size
    assert number == len(seen) == learner.method.memory.seen
    assert learner.method.samples_kept() == min(count, len(seen))


def test_before_anything_has_passed_er_is_bare_to_the_bit(small: Path) -> None:
    scenario = scenario_of(small)
    found, bare = (
        answers_after_every_stage(small_learner(scenario, name, epochs=1), scenario) for name in ("er", "bare")
    )
    assert_same_to_the_bit(found[:1], bare[:1])
    assert not torch.equal(found[1], bare[1])


def test_a_step_of_er_tells_of_samples_in_the_terms_of_their_own_lesson(small: Path) -> None:
    """In task-il a sample replayed is answered among the classes of its own task."""
    scenario = scenario_of(small, "task-il")
    learner = small_learner(scenario, WATCHED, epochs=2)
    learn_tasks(learner, scenario, *ORDER)
    size, chosen, _ = learner.method.steps[-1]
    tasks = [next(place for place, task in enumerate(ORDER) if label in task) for label in chosen.labels.tolist()]
    assert chosen.step.tolist() == tasks
    assert len(set(tasks[size:])) > 1
    assert size == len(lesson(scenario, *ORDER).training)
