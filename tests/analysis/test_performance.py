import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skeleton_cgl.analysis import (
    accuracies,
    accuracy_matrix,
    average_accuracy,
    average_forgetting,
    forgetting_bound,
    runs,
    task_accuracies,
)
from skeleton_cgl.errors import InputError
from tests.analysis.made_scores import (
    ORDERS,
    UNEVEN,
    as_scores,
    in_sequence,
    random_scores,
    renamed,
    run,
    without_queries,
)

matrices = st.integers(1, 6).flatmap(lambda size: arrays(float, (size, size), elements=st.floats(0, 1)))


def test_a_task_accuracy_is_the_mean_of_its_units_that_have_queries() -> None:
    by_unit = np.array([0.5, 1, np.nan, 0.75])
    by_task = task_accuracies(by_unit, [(0, 1), (2, 3), (2,)])
    np.testing.assert_array_equal(by_task, [0.75, 0.75, np.nan])


def test_the_accuracy_matrix_is_by_position_in_the_order() -> None:
    order = ((2, 3), (0, 1))
    values = np.array([[0, 0, 0.8, 0.6], [0.5, 0.7, 0.2, 0]])
    np.testing.assert_allclose(accuracy_matrix(values, order), [[0.7, 0.0], [0.1, 0.6]])
    with pytest.raises(InputError, match=r"for each of 3 steps, found \(2, 4\)"):
        accuracy_matrix(values, ORDERS[0])


@given(matrices)
def test_average_accuracy_and_forgetting_agree_with_their_definitions(matrix: np.ndarray) -> None:
    for k in range(1, len(matrix) + 1):
        a = {(step, task): matrix[step - 1, task - 1] for step in range(1, k + 1) for task in range(1, step + 1)}
        assert average_accuracy(matrix)[k - 1] == pytest.approx(sum(a[k, j] for j in range(1, k + 1)) / k)
        for definition in ("max", "diagonal"):
            found = average_forgetting(matrix, definition)[k - 1]
            if k == 1:
                assert np.isnan(found)
                continue
            losses = []
            for j in range(1, k):
                best = max(a[step, j] for step in range(j, k)) if definition == "max" else a[j, j]
                losses.append(best - a[k, j])
            assert found == pytest.approx(sum(losses) / (k - 1), abs=1e-12)
            assert average_forgetting(matrix, definition, sign="cglb")[k - 1] == -found


@given(matrices, st.sampled_from(["max", "diagonal"]))
def test_the_bound_of_theorem_1_holds_for_any_matrix(matrix: np.ndarray, definition: str) -> None:
    k = np.arange(1, len(matrix) + 1)
    average, forgetting = average_accuracy(matrix), average_forgetting(matrix, definition)
    own = forgetting_bound(average, k, np.diagonal(matrix))
    line = forgetting_bound(average, k)
    assert np.isnan(own[0])
    assert (forgetting[1:] <= own[1:] + 1e-12).all()
    assert (own[1:] <= line[1:] + 1e-12).all()


def test_the_bound_is_reached_when_all_was_known_before_the_last_task() -> None:
    matrix = np.array([[1, 0, 0], [1, 1, 0], [0.25, 0.5, 0.75]])
    bound = forgetting_bound(average_accuracy(matrix)[-1], 3, matrix[-1, -1])
    assert average_forgetting(matrix)[-1] == pytest.approx(bound)


def test_runs_has_one_row_per_run_agreeing_with_its_matrix() -> None:
    scores = random_scores()
    table = runs(scores)
    assert [(row.learner, row.repeat, row.noise, row.kind, row.order) for row in table.itertuples()] == [
        (each.learner, each.repeat, each.noise, each.kind, each.order) for each in scores.runs
    ]
    for row, values in zip(table.itertuples(), scores.test, strict=True):
        matrix = accuracy_matrix(values, row.order)
        average, forgetting = average_accuracy(matrix)[-1], average_forgetting(matrix)[-1]
        bound = forgetting_bound(average, 3, matrix[-1, -1])
        assert (row.AA, row.AF, row.bound) == pytest.approx((average, forgetting, bound))


def test_runs_are_the_same_whatever_their_sequence() -> None:
    scores = random_scores()
    places = np.random.default_rng(0).permutation(len(scores.runs)).tolist()
    expected = runs(scores).iloc[places].reset_index(drop=True)
    pd.testing.assert_frame_equal(runs(in_sequence(scores, places)), expected)


def test_validation_is_kept_apart_from_test_and_the_cglb_sign_negates_forgetting_and_bound() -> None:
    scores = random_scores()
    scores.validation[:] = 1
    forgetting, negated = runs(scores), runs(scores, definition="diagonal", sign="cglb")
    assert (forgetting["validation_AA"] == 1).all()
    assert not np.isclose(forgetting["AA"], 1).any()
    np.testing.assert_allclose(negated["bound"], -forgetting["bound"])
    assert (negated["AF"] >= negated["bound"] - 1e-12).all()


def test_orders_of_different_lengths_and_of_one_task_are_told_apart() -> None:
    one, three = run([100] * 6, ((0, 1),), "class"), run([10, 20, 30, 40, 50, 60], ORDERS[0])
    table = runs(as_scores([three, one]))
    np.testing.assert_allclose(table["AA"], [0.35, 1.0])
    assert np.isnan(table["AF"][1])
    assert np.isnan(table["bound"][1])


@given(st.permutations(range(6)), st.permutations(UNEVEN), st.integers(0, 2**32 - 1))
def test_uneven_tasks_give_the_same_whatever_units_are_called(renaming: list, order: list, seed: int) -> None:
    final = np.random.default_rng(seed).integers(0, 101, size=6).tolist()
    scores = as_scores([run(final, tuple(order)), run(final[::-1], ((5, 3), (0, 1)), "class")])
    columns = ["AA", "AF", "bound", "validation_AA"]
    np.testing.assert_allclose(runs(renamed(scores, renaming))[columns], runs(scores)[columns])
    by_task = [np.mean([final[unit] for unit in task]) / 100 for task in order]
    assert runs(scores)["AA"][0] == pytest.approx(np.mean(by_task))


def test_accuracies_has_one_row_per_run_step_and_unit() -> None:
    scores = as_scores([run([10, 20, 30, 40, 50, 60], ORDERS[0]), run([70] * 6, ORDERS[1][:2], "class")])
    tidy = accuracies(without_queries(scores, 5))
    assert list(tidy.columns) == ["learner", "repeat", "noise", "floor", "kind", "order", "step", "class", "accuracy"]
    assert len(tidy) == 6 * (3 + 2)
    assert list(tidy["step"]) == [step for step in (1, 2, 3, 1, 2) for _ in range(6)]
    assert list(tidy["class"]) == [*range(6)] * 5
    np.testing.assert_array_equal(tidy["accuracy"][12:18], [0.1, 0.2, 0.3, 0.4, 0.5, np.nan])
    assert set(tidy["order"][18:]) == {ORDERS[1][:2]}


def test_an_unknown_choice_is_refused_with_the_nearest_known_one() -> None:
    scores = random_scores(methods=["bare"], repeats=1)
    with pytest.raises(InputError, match="unknown definition of forgetting 'diagnal'; did you mean 'diagonal'"):
        runs(scores, definition="diagnal")
    with pytest.raises(InputError, match="unknown sign of forgetting 'CGLB'"):
        runs(scores, sign="CGLB")
    with pytest.raises(InputError, match="unknown queries 'tset'; did you mean 'test'"):
        accuracies(scores, queries="tset")
