from dataclasses import replace

import numpy as np
import pytest

from skeleton_cgl.analysis.scores import joined
from skeleton_cgl.errors import InputError
from tests.analysis.made_scores import ORDERS, as_scores, random_scores, run


def test_scores_of_another_shape_are_refused() -> None:
    scores = random_scores()
    with pytest.raises(InputError, match=r"test: expected \(runs, steps, units\) \(40, 3, 6\), found \(40, 3, 4\)"):
        replace(scores, test=scores.test[..., :4])
    with pytest.raises(InputError, match=r"validation: expected .*found \(40, 2, 6\)"):
        replace(scores, validation=scores.validation[:, :2])


def test_queries_of_another_shape_are_refused_and_stay_with_their_runs() -> None:
    scores = random_scores()
    with pytest.raises(InputError, match=r"asked: expected \(runs, parts, units\) \(40, 2, 6\), found \(40, 6\)"):
        replace(scores, asked=np.zeros((40, 6), dtype=int))
    asked = replace(scores, asked=np.arange(40 * 2 * 6).reshape(40, 2, 6))
    some = asked.of_learner(1)
    np.testing.assert_array_equal(some.asked, asked.asked[scores.learner == 1])
    assert joined([some, some.where(lambda _: False)]).asked.shape == some.asked.shape
    assert joined([asked, scores.where(lambda _: False)]).asked is None


def test_what_is_missing_is_of_its_learner_and_kind() -> None:
    scores = random_scores(noise_runs=0)
    task, by_class = (next(each for each in scores.runs if each.kind == kind) for kind in ("task", "class"))
    half = replace(scores, missing=(task, by_class, replace(task, learner=1)))
    assert half.of_kind("task").missing == (task, replace(task, learner=1))
    assert half.of_learner(0).missing == (task, by_class)
    assert half.ordinary().missing == half.missing


def test_the_halves_have_the_units_with_queries_in_both() -> None:
    scores = as_scores([run([10, 20, 30, 40, 50, 60], ORDERS[0]), run([70, 80, 0, 0, 0, 0], ORDERS[0][:1])])
    validation = scores.validation.copy()
    validation[..., 1] = np.nan
    halves = replace(scores, validation=validation).final_halves
    np.testing.assert_allclose(halves[0], halves[1])
    np.testing.assert_allclose(halves[0, :, [0, 2]], [[0.1, 0.7], [0.3, 0.0]])
    assert np.isnan(halves[:, :, 1]).all()


def test_runs_that_cannot_be_are_refused() -> None:
    scores = random_scores(methods=["bare"], repeats=1)
    first = scores.runs[0]
    for wrong, reason in (
        (replace(first, kind="tasks"), "unknown kind of order 'tasks'; did you mean 'task'"),
        (replace(first, learner=7), "learner 7, .*there is no such learner"),
        (replace(first, order=((0, 1), (2, 3), (6, 7))), "there are only units 0–5"),
        (scores.runs[1], "given twice"),
        (replace(first, noise=3), "expected a floor, seeds or splits or both, for runs of noise and for no others"),
        (replace(first, floor="seeds"), "noise 0 of seeds, .*expected a floor"),
    ):
        with pytest.raises(InputError, match=reason):
            replace(scores, runs=(wrong, *scores.runs[1:]))


def test_the_final_values_are_those_of_the_last_step_of_each_order() -> None:
    scores = as_scores([run([10, 20, 30, 40, 50, 60], ORDERS[0]), run([70, 80, 0, 0, 0, 0], ORDERS[0][:1])])
    np.testing.assert_allclose(scores.finals, [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.7, 0.8, 0, 0, 0, 0]])
    assert np.isnan(scores.test[1, 1:]).all()


def test_parts_keep_learners_by_number() -> None:
    scores = random_scores()
    replay = scores.of_learner(1)
    assert {each.learner for each in replay.runs} == {1}
    assert [learner.method.name for learner in replay.learners] == ["replay"]
    np.testing.assert_array_equal(replay.test, scores.test[scores.learner == 1])
    assert {each.kind for each in scores.of_kind("class").runs} == {"class"}
    assert scores.of_kind("both") is scores


def test_what_is_not_there_is_refused() -> None:
    scores = random_scores(kinds=["task"])
    with pytest.raises(InputError, match="no class order is finished; there are orders of kind task"):
        scores.of_kind("class")
    with pytest.raises(InputError, match=r"no ordinary run \(noise 0\)"):
        scores.chosen(scores.noise > 0).ordinary()


def test_scores_of_the_same_learners_are_joined_and_others_refused() -> None:
    one, other = as_scores([run([10] * 6, ORDERS[0])]), as_scores([run([20] * 6, ORDERS[1][:2])])
    both = joined([one, other])
    assert [each.order for each in both.runs] == [ORDERS[0], ORDERS[1][:2]]
    np.testing.assert_allclose(both.finals, [[0.1] * 6, [0.2, 0.2, 0, 0, 0.2, 0.2]])
    with pytest.raises(InputError, match="only those of the same learners"):
        joined([one, as_scores([run([20] * 6, ORDERS[1], method="replay")])])
