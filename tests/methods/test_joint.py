"""Joint: where it begins every task, and what its early stopping watches."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.methods.joint import Joint
from skeleton_cgl.scenarios.scenario import Experience
from tests.learning.learners import learn_tasks, small_learner
from tests.scenarios.small import scenario_of

TASKS = ((0, 1), (2, 3), (4, 5))


class Noting(Joint):
    """Notes the weights that every task begins from."""

    def __init__(self, restart: bool) -> None:
        super().__init__(restart)
        self.begun: list[Tensor] = []

    def begin_lesson(self, learner: Learner, experience: Experience) -> None:
        super().begin_lesson(learner, experience)
        self.begun.append(learner.parameter_vector().detach().clone())


@pytest.mark.parametrize("restart", [True, False])
def test_every_task_begins_from_the_first_weights_or_goes_on(small: Path, restart: bool) -> None:
    scenario = scenario_of(small)
    learner, method = small_learner(scenario, "bare"), Noting(restart)
    learner.method = method
    learn_tasks(learner, scenario, *TASKS)
    for before, after in pairwise(method.begun):
        # Those of the head come last, and of outputs that were met before come first.
        assert torch.equal(after[: len(before)], before) == restart


@pytest.mark.parametrize(("method", "watched"), [("joint", 3), ("replay", 0)])
def test_early_stopping_watches_all_tasks_for_joint_alone(small: Path, method: str, watched: int) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, method, patience=1)
    learn_tasks(learner, scenario, *TASKS)
    assert len(learner.state().get("validated", [])) == watched
