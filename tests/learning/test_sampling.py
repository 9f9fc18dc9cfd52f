"""Neighbour sampling: training batches see a part drawn anew, from the lesson's randomness; all else sees the whole."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import Method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.inputs import Clips
from skeleton_cgl.scenarios.scenario import Experience, Queries, Samples
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from tests.learning.learners import seed_for, small_learner
from tests.scenarios.small import lesson, scenario_of

TASKS = ((0, 1), (2, 3, 4))
FAN_OUTS = (3, 2)


@dataclass(frozen=True)
class Parted(Clips):
    """Clips of which a part can be drawn, each number with the same chance. drawn: the fan-outs of every time."""

    drawn: tuple[tuple[int, ...], ...] = ()

    def sampled(self, fan_outs: tuple[int, ...], random: np.random.Generator) -> "Parted":
        parts = self.parts if isinstance(self.parts, tuple) else (self.parts,)
        kept = tuple(part * torch.from_numpy(random.random(part.shape) < 0.7) for part in parts)
        return replace(self, parts=kept, drawn=(*self.drawn, fan_outs))


class PartedPool:
    """A pool of clips as such inputs."""

    augmented = False

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.digest = f"parted {pool.digest}"

    def whole(self) -> Parted:
        return Parted(self._pool.whole().parts)

    def drawn(self, ids: Tensor, random: np.random.Generator) -> Parted:  # noqa: ARG002
        return self.whole().rows(ids)


class PartedScenario(SkeletonScenario):
    """The small scenario with a pool of which parts can be drawn."""

    def __init__(self, archive: Path) -> None:
        super().__init__(archive)
        self._parted = PartedPool(self._pool)

    def experience(self, prefix: Any) -> Experience:
        experience = super().experience(prefix)
        parts = (replace(samples, pool=self._parted) for samples in (experience.training, experience.validation))
        return replace(experience, **dict(zip(("training", "validation"), parts, strict=True)))

    def queries(self, prefix: Any) -> Queries:
        return replace(super().queries(prefix), pool=self._parted)


@pytest.fixture(scope="module")
def parted(small: Path) -> PartedScenario:
    return PartedScenario(small)


class Seeing(Method):
    """Bare that notes what it is given in every step, and when it is asked about validation samples."""

    def __init__(self) -> None:
        self.stepped: list[Parted] = []

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        assert batch.inputs.drawn == ((FAN_OUTS,) if learner.backbone.training else ())
        return learner.task_loss(batch)

    def step_done(self, learner: Learner, batch: Batch) -> None:  # noqa: ARG002
        self.stepped.append(batch.inputs)


@pytest.mark.parametrize("size", [9, 10_000])
def test_training_sees_parts_drawn_anew_for_every_batch_and_validation_sees_the_whole(
    parted: PartedScenario, size: int
) -> None:
    """With all samples in one batch as well: every epoch has another part."""
    learner = small_learner(
        parted, f"{__name__}:Seeing", epochs=3, batch_size=size, fan_outs=FAN_OUTS, patience=50, recalibrate=True
    )
    learner.learn(lesson(parted, TASKS[0]), 0)
    assert isinstance(learner.method, Seeing)
    seen = {inputs.parts[0].numpy().tobytes() for inputs in learner.method.stepped}
    assert len(seen) == len(learner.method.stepped) >= 3


@pytest.mark.parametrize("recipe", [{}, {"plateau": {"patience": 1}, "recalibrate": True}])
def test_what_is_drawn_is_decided_by_the_seed_of_the_lesson_in_a_tree_and_alone(
    parted: PartedScenario, recipe: dict[str, Any]
) -> None:
    def new() -> Learner:
        return small_learner(parted, epochs=6, batch_size=9, fan_outs=FAN_OUTS, **recipe)

    alone = new()
    alone.learn(lesson(parted, TASKS[0]), seed_for(0))
    saved = to_bytes(alone.state())
    alone.learn(lesson(parted, *TASKS), seed_for(1))
    ends = []
    for seed in (1, 1, 2):
        torch.rand(seed)
        np.random.random()  # noqa: NPY002
        restored = new()
        restored.restore(from_bytes(saved))
        restored.learn(lesson(parted, *TASKS), seed_for(seed))
        ends.append(to_bytes(restored.state()))
    assert ends[0] == ends[1] == to_bytes(alone.state()) != ends[2]


def test_what_is_drawn_for_recalibration_is_not_taken_from_the_lesson(parted: PartedScenario) -> None:
    """The steps of training are the same with and without."""
    found = []
    for recalibrate in (True, False):
        learner = small_learner(parted, epochs=4, batch_size=9, fan_outs=FAN_OUTS, patience=50, recalibrate=recalibrate)
        losses: list[float] = []
        learner.learn(lesson(parted, TASKS[0]), 0, lambda _, loss, told=losses: told.append(loss))
        found.append(losses)
    assert found[0] == found[1]


def test_what_cannot_be_sampled_is_refused_before_anything_is_learned(small: Path) -> None:
    with pytest.raises(InputError, match=r"^training: fan_outs: clips have no neighbours to be sampled; leave it out$"):
        small_learner(scenario_of(small), batch_size=9, fan_outs=FAN_OUTS)


def test_neighbours_of_all_samples_at_once_are_refused_before_anything_is_learned(parted: PartedScenario) -> None:
    with pytest.raises(InputError, match=r"^training: fan_outs: give a batch_size as well; neighbours are drawn for"):
        small_learner(parted, fan_outs=FAN_OUTS)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"fan_outs": (3, 0), "batch_size": 9}, "greater than or equal to 1"),
        ({"fan_outs": (), "batch_size": 9}, "at least 1 item"),
        ({"plateau": {"factor": 1}}, "less than 1"),
        ({"plateau": {"floor": 0}}, "greater than 0"),
        ({"monitor": "loss"}, "'method', 'task' or 'score'"),
    ],
)
def test_a_recipe_that_means_nothing_is_refused(recipe: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Training(**recipe)


class Past(PartedPool):
    """A pool of one lesson, with another one in which samples of all lessons stand; the numbers of both are apart."""

    def __init__(self, pool: Any, shift: float, whole: "Past | None" = None) -> None:
        super().__init__(pool)
        self.digest = f"{self.digest} {shift}"
        self._shift = shift
        if whole is not None:
            self.together = whole

    def whole(self) -> Parted:
        return Parted(self._pool.whole().parts + self._shift)


def test_past_samples_are_looked_at_where_they_stand_together(small: Path) -> None:
    """By Joint, which learns from them, and by early stopping on all lessons; Replay goes on in the lesson's own."""
    scenario = scenario_of(small)
    whole = Past(lesson(scenario, TASKS[0]).training.pool, 1.0)
    own = Past(lesson(scenario, TASKS[0]).training.pool, 2.0, whole)

    def taught(*tasks: tuple[int, ...]) -> Experience:
        experience = lesson(scenario, *tasks)
        moved: list[Samples] = [replace(part, pool=own) for part in (experience.training, experience.validation)]
        return replace(experience, training=moved[0], validation=moved[1])

    for method, pool in (("joint", whole), ("replay", own), ("bare", own)):
        learner = small_learner(scenario, method, epochs=2)
        learner.learn(taught(TASKS[0]), 0)
        assert learner.method.lesson_samples(learner, taught(*TASKS)).pool is pool
    learner = small_learner(scenario, epochs=2, patience=9, patience_on="seen")
    learner.learn(taught(TASKS[0]), 0)
    past = replace(taught(TASKS[0]).validation, pool=whole)
    best = learner._best_epoch(taught(TASKS[0]).validation)
    assert best._monitor._past is not None
    assert torch.equal(best._monitor._past.inputs.parts[0], learner.batch(past).inputs.parts[0])
    assert not torch.equal(learner.batch(past).inputs.parts[0], learner.batch(replace(past, pool=own)).inputs.parts[0])
