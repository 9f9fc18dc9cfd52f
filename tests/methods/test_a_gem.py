"""A-GEM takes from a gradient what is against that of the memory, and nothing else."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import LearningFailed
from skeleton_cgl.methods.a_gem import AGEM, project
from tests.learning.learners import ORDER, answers_after_every_stage, learn_tasks, small_learner
from tests.scenarios.small import SETTINGS, scenario_of


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), length=st.integers(2, 40), size=st.sampled_from([1e-3, 1.0, 1e6]))
def test_what_is_left_is_square_to_the_reference_and_the_rest_is_along_it(seed: int, length: int, size: float) -> None:
    random = np.random.default_rng(seed)
    g, reference = random.normal(size=length), random.normal(size=length) * size
    found = project(torch.from_numpy(g), torch.from_numpy(reference)).numpy()
    if g @ reference >= 0 or reference @ reference < 1e-8:
        np.testing.assert_array_equal(found, g)
        return
    lengths = np.linalg.norm(g) * np.linalg.norm(reference)
    assert abs(found @ reference) < 1e-12 * lengths
    assert (g - found) @ reference == pytest.approx(-np.linalg.norm(g - found) * np.linalg.norm(reference))


def test_a_gradient_that_agrees_or_has_no_reference_is_returned_itself() -> None:
    g = torch.tensor([1.0, -2.0])
    for reference in ([1.0, 0.0], [2.0, 1.0], [0.0, 0.0], [0.0, 0.99e-4]):
        assert project(g, torch.tensor(reference)) is g
    torch.testing.assert_close(project(g, torch.tensor([0.0, 1.01e-4])), torch.tensor([1.0, 0.0]))


class WatchedAGEM(AGEM):
    """A-GEM that writes down gradients before and after it acts, and that of what it drew."""

    def __init__(self, count: int = 10) -> None:
        super().__init__(count)
        self.gradients: list[tuple[Tensor, Tensor, Tensor]] = []

    def gradients_ready(self, learner: Learner) -> None:
        if self._drawn is None:
            return
        with learner.statistics_kept():
            reference = learner.gradient_of(learner.task_loss(learner.batch(self._drawn)))
        before = learner.gradient_vector().clone()
        super().gradients_ready(learner)
        self.gradients.append((reference, before, learner.gradient_vector().clone()))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("training", [{}, {"batch_size": 4}])
def test_no_step_is_against_the_memory_and_one_that_agrees_is_untouched_to_the_bit(
    small: Path, setting: str, training: dict
) -> None:
    scenario = scenario_of(small, setting)
    learner = small_learner(scenario, f"{__name__}:WatchedAGEM", epochs=6, **training)
    learn_tasks(learner, scenario, *ORDER)
    projected = 0
    for reference, before, after in learner.method.gradients:
        product = float(before.double() @ reference.double())
        if product >= 0 or reference.double().square().sum() < 1e-8:
            assert torch.equal(before, after)
        else:
            projected += 1
            lengths = before.double().norm() * reference.double().norm()
            assert abs(after.double() @ reference.double()) < 1e-6 * lengths
            assert product < 0
    assert 0 < projected < len(learner.method.gradients)


def test_what_is_drawn_leaves_no_trace_in_the_running_statistics(small: Path) -> None:
    """At a rate so small that weights stay where they are, BatchNorm is to see what Bare shows it."""
    scenario = scenario_of(small)
    learners = [small_learner(scenario, name, learning_rate=1e-30, optimizer="sgd") for name in ("a-gem", "bare")]
    found, bare = (learn_tasks(learner, scenario, *ORDER).backbone.state_dict() for learner in learners)
    assert learners[0].method.memory.seen
    torch.testing.assert_close(found, bare)


def test_a_gem_departs_from_bare(small: Path) -> None:
    scenario = scenario_of(small)
    found, bare = (answers_after_every_stage(small_learner(scenario, name), scenario) for name in ("a-gem", "bare"))
    assert not torch.equal(found[-1], bare[-1])


def test_a_gradient_of_the_memory_that_is_not_finite_fails_and_says_so(small: Path) -> None:
    scenario = scenario_of(small)
    learner = learn_tasks(small_learner(scenario, "a-gem", {"count": 4}), scenario, ORDER[0])
    learner.backbone.train()
    learner.method.step_samples(learner, scenario.experience(scenario.lessons(ORDER)[:1]).training)
    with torch.no_grad():
        learner.head.rows.fill_(torch.inf)
    with pytest.raises(LearningFailed, match=r"a gradient of lesson 1 .* or of its memory is not finite"):
        learner.method.gradients_ready(learner)
