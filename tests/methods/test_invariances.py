"""What a whole run must not depend on: how a task is written, and what number a class has."""

from pathlib import Path

import numpy as np
import pytest
import torch

from skeleton_cgl.learning.state import to_bytes
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from tests.learning.learners import METHODS, ORDER, answers_after_every_stage, assert_same_to_the_bit, small_learner
from tests.scenarios.small import NAMES, SETTINGS, scenario_of, write_small


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("method", METHODS)
def test_a_task_given_in_another_order_of_its_classes_is_the_same_task(small: Path, method: str, setting: str) -> None:
    scenario = scenario_of(small, setting)
    written = [((5, 2), (0,), (4, 1, 3)), ((2, 5), (0,), (3, 4, 1))]
    learners = [small_learner(scenario, method, METHODS[method], batch_size=9) for _ in written]
    answers = [
        answers_after_every_stage(learner, scenario, order) for learner, order in zip(learners, written, strict=True)
    ]
    assert_same_to_the_bit(*answers)
    assert to_bytes(learners[0].state()) == to_bytes(learners[1].state())
    for stage, answer in enumerate(answers[0], start=1):
        scores = [scenario.score(answer, scenario.lessons(order[:stage])) for order in written]
        assert all(one.same_as(other) for one, other in zip(*scores, strict=True))


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """The same recordings with the classes numbered otherwise; new[c] is the new number of class c."""
    new = [3, 5, 0, 4, 1, 2]
    names = [NAMES[new.index(number)] for number in range(len(NAMES))]
    return write_small(tmp_path_factory.mktemp("renamed") / "renamed.h5", names=names), new


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("method", METHODS)
def test_renaming_the_classes_renames_the_confusion_counts_and_nothing_else(
    small: Path, renamed: tuple, method: str, setting: str
) -> None:
    path, new = renamed
    scenarios = [scenario_of(small, setting), SkeletonScenario(path, ClassTasks(setting=setting))]
    orders = [ORDER, tuple(tuple(new[label] for label in task) for task in ORDER)]
    answers, scores = [], []
    for scenario, order in zip(scenarios, orders, strict=True):
        learner = small_learner(scenario, method, METHODS[method], epochs=4)
        answers.append(answers_after_every_stage(learner, scenario, order))
        prefix = scenario.lessons(order)
        scores.append([scenario.score(answer, prefix[: stage + 1]) for stage, answer in enumerate(answers[-1])])
    assert torch.equal(scenarios[0].queries(()).ids, scenarios[1].queries(()).ids)
    for stage in range(len(ORDER)):
        torch.testing.assert_close(answers[1][stage][:, new], answers[0][stage], atol=5e-3, rtol=5e-3)
        for before, after in zip(scores[0][stage], scores[1][stage], strict=True):
            assert before.part == after.part
            np.testing.assert_array_equal(after.counts[np.ix_(new, new)], before.counts)
            np.testing.assert_array_equal(after.values[new], before.values)


def test_the_renamed_classes_are_really_numbered_otherwise(small: Path, renamed: tuple) -> None:
    path, new = renamed
    before, after = scenario_of(small), SkeletonScenario(path)
    assert before.units != after.units
    assert all(after.units[number] == before.units[label] for label, number in enumerate(new))
    assert before.digest != after.digest
