"""Nothing that a method or backbone can write decides what is asked, what is scored, or what others learn from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from skeleton_cgl import Study
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.engine.stage import Branch, Outcome, learn_branch
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner, Taught
from skeleton_cgl.learning.method import Method
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.lessons import TaskLesson, units_named
from skeleton_cgl.scenarios.measures import Measure, accuracy_measure
from skeleton_cgl.scenarios.problem import OneClass, Truth
from skeleton_cgl.scenarios.scenario import Experience, Queries, Scenario
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from tests.learning.learners import answers_after_every_stage, assert_same_to_the_bit, small_learner
from tests.scenarios.small import SETTINGS

ORDER = ((4, 1), (0, 5), (2, 3))


class Flattering(OneClass):
    """Finds every answer right."""

    def measure(self, answers: Tensor, truth: Truth, among: Tensor, part: str) -> tuple[Measure, ...]:  # noqa: ARG002
        return (accuracy_measure(part, np.diag(truth.asked.sum(dim=0).numpy())),)


def pretend_one_task(learner: Learner, _: Experience) -> None:
    learner.taught[:] = [Taught(("anything",), (learner.head.outputs[0],))]


def pretend_nothing(learner: Learner, _: Experience) -> None:
    learner.taught.clear()


def score_oneself(learner: Learner, _: Experience) -> None:
    learner.problem = Flattering()


def rewrite_lesson(_: Learner, experience: Experience) -> None:
    object.__setattr__(experience, "lesson", TaskLesson((0,)))
    object.__setattr__(experience, "outputs", (0,))


def rewrite_samples(_: Learner, experience: Experience) -> None:
    for samples in (experience.training, experience.validation):
        for column in (samples.ids, samples.labels, samples.step):
            column.zero_()


def rewrite_queries(learner: Learner, _: Experience) -> None:
    """Give the right answers, and then change the questions."""
    answer = Learner.answer

    def answer_and_rewrite(queries: Queries, seed: int = 0) -> Tensor:
        found = answer(learner, queries, seed)
        queries.ids.zero_()
        queries.step.zero_()
        return found

    learner.answer = answer_and_rewrite  # type: ignore[method-assign]


def forget_outputs(learner: Learner, _: Experience) -> None:
    learner.head.outputs.reverse()


def know_other_outputs(learner: Learner, _: Experience) -> None:
    learner.head.known = units_named("zyxwvu")


HARMLESS: dict[str, Callable[[Learner, Experience], None]] = {
    function.__name__: function
    for function in (pretend_one_task, pretend_nothing, score_oneself, rewrite_lesson, rewrite_samples, rewrite_queries)
}
"""What leaves a learner's own answers as they are, if it is put right before the next lesson."""

TAMPERING = {**HARMLESS, forget_outputs.__name__: forget_outputs, know_other_outputs.__name__: know_other_outputs}


class Tampering(Method):
    """Bare that rewrites, whenever a lesson ends, what it can reach; and puts right before the next what it needs."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.taught: list[Taught] = []

    def begin_lesson(self, learner: Learner, experience: Experience) -> None:  # noqa: ARG002
        learner.taught[:] = [*self.taught, learner.taught[-1]]
        learner.problem = OneClass()

    def end_lesson(self, learner: Learner, experience: Experience) -> None:
        self.taught = list(learner.taught)
        TAMPERING[self.how](learner, experience)


def outcomes(small: Path, setting: str, method: Any) -> tuple[Scenario, list[Outcome]]:
    """Return what an order leaves, learned and scored as the engine does."""
    study = Study(
        scenario={"data": str(small), "setting": setting, "tasks": [list(task) for task in ORDER]},
        backbone={"name": "gcn", "width": 6},
        methods=[method],
        orders={"given": [[list(task) for task in ORDER]]},
        training={"epochs": 3, "learning_rate": 0.01, "device": "cpu"},
    )
    plan = make_plan(study)
    scenario = plan.scenarios[0][0]
    stages = tuple(plan.stages[key] for key in plan.runs[0].keys)
    return scenario, learn_branch(plan.variants[0], scenario, Branch(stages, None))


def scores_of(found: list[Outcome]) -> list[Measure]:
    return [measure for outcome in found if outcome.record for measure in outcome.record.scores]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("how", HARMLESS)
def test_a_method_that_rewrites_what_it_can_reach_is_scored_as_if_it_had_not(
    small: Path, setting: str, how: str
) -> None:
    _, expected = outcomes(small, setting, "bare")
    _, found = outcomes(small, setting, {"name": f"{__name__}:Tampering", "how": how})
    assert [outcome.failure for outcome in found] == [None] * 3
    assert len(scores_of(found)) == 6
    for one, other in zip(scores_of(found), scores_of(expected), strict=True):
        assert one.same_as(other)


def everything_of(scenario: Scenario) -> list[Tensor]:
    """Return all that a scenario hands out in an order, and what it makes of fixed answers."""
    prefix, found = scenario.lessons(ORDER), []
    for stage in range(1, len(prefix) + 1):
        experience, queries = scenario.experience(prefix[:stage]), scenario.queries(prefix[:stage])
        for samples in (experience.training, experience.validation):
            found += [samples.ids, samples.labels, samples.step]
        found += [queries.ids, queries.step, queries.pool.whole().content]
        answers = torch.randn(len(queries), len(scenario.outputs), generator=torch.Generator().manual_seed(stage))
        found += [torch.from_numpy(measure.counts) for measure in scenario.score(answers, prefix[:stage])]
    return found


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("how", TAMPERING)
def test_what_a_method_rewrites_changes_neither_the_scenario_nor_what_later_learners_find(
    small: Path, setting: str, how: str
) -> None:
    fresh = SkeletonScenario(small, ClassTasks(setting=setting, tasks=ORDER))
    expected = everything_of(fresh)
    scenario, _ = outcomes(small, setting, {"name": f"{__name__}:Tampering", "how": how})
    assert_same_to_the_bit(everything_of(scenario), expected)
    assert_same_to_the_bit(
        answers_after_every_stage(small_learner(scenario), scenario, ORDER),
        answers_after_every_stage(small_learner(fresh), fresh, ORDER),
    )


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_query_is_asked_and_counted_whatever_a_method_says_it_learned(small: Path, setting: str) -> None:
    """Outputs told in another order are other answers, and worse for it; what they are scored among is the prefix."""
    _, honest = outcomes(small, setting, "bare")
    _, found = outcomes(small, setting, {"name": f"{__name__}:Tampering", "how": "forget_outputs"})
    first = found[0].record
    assert first is not None
    assert honest[0].record is not None
    for one, other in zip(first.scores, honest[0].record.scores, strict=True):
        np.testing.assert_array_equal(one.asked, other.asked)
        assert one.counts is not None
        assert one.counts[:, [0, 2, 3, 5]].sum() == 0


def test_answers_for_other_outputs_than_the_scenario_has_are_refused(small: Path) -> None:
    scenario = SkeletonScenario(small)
    learner = small_learner(scenario)
    prefix = scenario.lessons(((0, 1),))
    learner.learn(scenario.experience(prefix), 0)
    learner.head.known = units_named("ab")
    with pytest.raises(InputError, match=r"expected floating-point numbers of shape \(\d+, 6\)"):
        scenario.score(learner.answer(scenario.queries(prefix)), prefix)
