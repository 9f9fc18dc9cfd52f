"""What is monitored: the plain task loss, or the score as the scenario would have it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.monitor import monitor_of, truth_of
from skeleton_cgl.scenarios.problem import LinkExists, ManyLabels, hits_at
from skeleton_cgl.scenarios.scenario import Scenario
from tests.learning.by_hand import balanced_cross_entropy, inputs_of
from tests.learning.learners import METHODS, learn_tasks, small_learner
from tests.learning.test_stopping import kept_of
from tests.scenarios.small import SETTINGS, lesson, scenario_of

TASKS = ((0, 1), (2, 3, 4))


def validation_score(scenario: Scenario, learner: Learner, units: tuple[int, ...]) -> float:
    """Return the mean over units of the scenario's own validation accuracy of the learner as it is."""
    prefix = scenario.lessons(TASKS)
    training = learner.backbone.training
    measures = scenario.score(learner.answer(scenario.queries(prefix)), prefix)
    learner.backbone.train(training)
    return float(np.mean([measure.values[list(units)] for measure in measures if measure.part == "validation"]))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("on", "units"), [("task", (2, 3, 4)), ("seen", (0, 1, 2, 3, 4))])
def test_the_score_is_the_scenarios_own_of_the_units_watched(
    small: Path, setting: str, on: str, units: tuple[int, ...]
) -> None:
    scenario = scenario_of(small, setting)
    learner = small_learner(scenario, patience=50, patience_on=on, monitor="score", epochs=6, learning_rate=0.02)
    learn_tasks(learner, scenario, *TASKS)
    past = [lesson(scenario, TASKS[0]).validation] if on == "seen" else []
    monitor = monitor_of(learner, lesson(scenario, *TASKS).validation, past)
    expected = 1 - validation_score(scenario, learner, units)
    assert 0 < expected < 1
    assert monitor.value() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("monitor", ["task", "score"])
@pytest.mark.parametrize("method", ["bare", "lwf"])
def test_a_lesson_goes_back_to_the_epoch_that_was_best_by_what_is_monitored(
    small: Path, method: str, monitor: str
) -> None:
    scenario = scenario_of(small)
    learner = small_learner(
        scenario, method, METHODS[method], patience=30, monitor=monitor, epochs=30, learning_rate=0.02
    )
    learn_tasks(learner, scenario, TASKS[0])
    validation = lesson(scenario, *TASKS).validation

    def task_loss() -> float:
        training = learner.backbone.training
        learner.backbone.eval()
        with torch.no_grad():
            found = learner.model(inputs_of(validation, learner.backbone))
        learner.backbone.train(training)
        return float(balanced_cross_entropy(found, validation.labels, [0, 1, 2, 3, 4]))

    watched: Callable[[], float] = {
        "task": task_loss,
        "score": lambda: 1 - validation_score(scenario, learner, (2, 3, 4)),
    }[monitor]
    found: list[tuple[float, bytes]] = []
    learner.learn(lesson(scenario, *TASKS), 1, lambda _, __: found.append((round(watched(), 6), kept_of(learner))))
    lowest = min(value for value, _ in found)
    assert kept_of(learner) == next(state for value, state in found if value == lowest)


def test_the_truth_of_many_labels_is_of_those_known() -> None:
    labels = torch.tensor([[1, 0, np.nan], [0, 1, np.nan], [1, np.nan, np.nan], [0, 0, np.nan]])
    answers = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.3, 0.5], [0.6, 0.0, 0.5], [0.2, 0.4, 0.5]])
    truth = truth_of(ManyLabels(), labels, 3)
    precision, _ = ManyLabels().measure(answers, truth, torch.ones(4, 3, dtype=torch.bool), "validation")
    expected = [
        average_precision_score([1, 0, 1, 0], [0.1, 0.7, 0.6, 0.2]),
        average_precision_score([0, 1, 0], [0.9, 0.3, 0.4]),
    ]
    assert precision.values[:2].tolist() == pytest.approx(expected)
    assert np.isnan(precision.values[2])


def test_the_truth_of_links_is_one_group_of_all() -> None:
    labels, answers = torch.tensor([1, 0, 1, 0, 0]), torch.tensor([[0.3], [0.5], [0.9], [0.2], [0.1]])
    problem = LinkExists(k=1)
    hits, _ = problem.measure(answers, truth_of(problem, labels, 1), torch.ones(5, 1, dtype=torch.bool), "validation")
    assert hits.values.tolist() == [hits_at(1, labels, answers[:, 0])] == [0.5]
