from collections.abc import Callable

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
    class_accuracies,
    forgetting_bound,
    runs,
    task_accuracies,
)
from skeleton_cgl.errors import InputError
from tests.analysis.made_scores import ORDERS, as_scores, confusion_of, random_scores, run

matrices = st.integers(1, 6).flatmap(lambda size: arrays(float, (size, size), elements=st.floats(0, 1)))


def test_a_class_accuracy_is_the_share_of_right_answers_and_nan_without_queries() -> None:
    confusion = np.array([[3, 1, 0], [0, 0, 0], [2, 2, 4]])
    np.testing.assert_array_equal(class_accuracies(confusion), [0.75, np.nan, 0.5])
    np.testing.assert_array_equal(class_accuracies(np.stack([confusion] * 2))[1], class_accuracies(confusion))


def test_a_task_accuracy_is_the_mean_of_its_classes_not_of_its_queries() -> None:
    confusion = np.array([[1, 1, 0, 0], [0, 98, 0, 0], [0, 0, 0, 0], [0, 0, 1, 3]])
    by_task = task_accuracies(class_accuracies(confusion), [(0, 1), (2, 3), (2,)])
    np.testing.assert_array_equal(by_task, [0.75, 0.75, np.nan])


def test_the_accuracy_matrix_is_by_position_in_the_order() -> None:
    order = ((2, 3), (0, 1))
    confusions = np.stack([confusion_of([0, 0, 80, 60]), confusion_of([50, 70, 20, 0])])
    np.testing.assert_allclose(accuracy_matrix(confusions, order), [[0.7, 0.0], [0.1, 0.6]])


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
    assert len(table) == scores[scores["step"] == 1].shape[0]
    for row in table.itertuples():
        of_run = scores.query(
            "backbone == @row.backbone and method == @row.method and repeat == @row.repeat and noise == @row.noise "
            "and kind == @row.kind"
        )
        of_run = of_run[of_run["order"].map(lambda order, wanted=row.order: order == wanted)]
        matrix = accuracy_matrix(np.stack(list(of_run["test"])), row.order)
        average, forgetting = average_accuracy(matrix)[-1], average_forgetting(matrix)[-1]
        bound = forgetting_bound(average, 3, matrix[-1, -1])
        assert (row.AA, row.AF, row.bound) == pytest.approx((average, forgetting, bound))


def test_runs_are_the_same_whatever_the_sequence_of_scores() -> None:
    scores = random_scores()
    shuffled = runs(scores.sample(frac=1, random_state=0))
    by = ["method", "repeat", "noise", "kind", "order"]
    pd.testing.assert_frame_equal(
        runs(scores).sort_values(by, ignore_index=True), shuffled.sort_values(by, ignore_index=True)
    )


def test_validation_is_kept_apart_from_test_and_the_cglb_sign_negates_forgetting_and_bound() -> None:
    scores = random_scores()
    scores["validation"] = [np.diag(np.full(6, 2))] * len(scores)
    forgetting, negated = runs(scores), runs(scores, definition="diagonal", sign="cglb")
    assert (forgetting["validation_AA"] == 1).all()
    assert not np.isclose(forgetting["AA"], 1).any()
    np.testing.assert_allclose(negated["bound"], -forgetting["bound"])
    assert (negated["AF"] >= negated["bound"] - 1e-12).all()


def test_orders_of_different_lengths_and_of_one_task_are_told_apart() -> None:
    one, three = run([60, 80], ((0, 1),)), run([10, 20, 30, 40, 50, 60], ORDERS[0])
    widened = [(*row[:-2], np.diag([3, 4, 0, 0, 0, 0]), np.diag([3, 4, 0, 0, 0, 0])) for row in one]
    table = runs(as_scores([three, widened]))
    np.testing.assert_allclose(table["AA"], [0.35, 1.0])
    assert np.isnan(table["AF"][1])
    assert np.isnan(table["bound"][1])


def test_accuracies_has_one_row_per_record_and_class() -> None:
    scores = random_scores()
    tidy = accuracies(scores)
    assert list(tidy.columns) == [*scores.columns[:7], "class", "accuracy"]
    assert len(tidy) == 6 * len(scores)
    pick = tidy.iloc[6 * 17 : 6 * 18]
    assert (pick["order"].map(str) == str(scores["order"][17])).all()
    np.testing.assert_array_equal(pick["accuracy"], class_accuracies(scores["test"][17]))
    assert list(pick["class"]) == list(range(6))


@pytest.mark.parametrize("compute", [runs, accuracies])
def test_wrong_scores_are_refused(compute: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    scores = random_scores()
    with pytest.raises(InputError, match="missing columns: order, test; found: backbone, "):
        compute(scores.drop(columns=["order", "test"]))
    with pytest.raises(InputError, match="scores: no rows"):
        compute(scores.iloc[:0])
    with pytest.raises(InputError, match="unknown kind of order 'tasks'; did you mean 'task'"):
        compute(scores.replace({"kind": {"task": "tasks"}}))
    mixed = scores.copy()
    mixed.at[3, "test"] = np.eye(4)
    with pytest.raises(InputError, match=r"test: expected confusions of one shape .* \[\(4, 4\), \(6, 6\)\]"):
        compute(mixed)


def test_runs_that_are_not_complete_are_refused() -> None:
    scores = random_scores()
    with pytest.raises(InputError, match=r"expected steps 1–3 of backbone gcn, method bare, .*found \[1, 3\]"):
        runs(scores.drop(index=1))
    with pytest.raises(InputError, match="two for step 2 of backbone gcn"):
        runs(pd.concat([scores, scores.iloc[[1]]]))
    with pytest.raises(InputError, match=r"task \(6, 7\): the confusions count only classes 0–5"):
        runs(scores.assign(order=[((0, 1), (2, 3), (6, 7))] * len(scores)).iloc[:3])
    with pytest.raises(InputError, match=r"for each of 3 steps, found \(2, 6, 6\)"):
        accuracy_matrix(np.zeros((2, 6, 6)), ORDERS[0])


def test_an_unknown_choice_is_refused_with_the_nearest_known_one() -> None:
    scores = random_scores(methods=["bare"], repeats=1)
    with pytest.raises(InputError, match="unknown definition of forgetting 'diagnal'; did you mean 'diagonal'"):
        runs(scores, definition="diagnal")
    with pytest.raises(InputError, match="unknown sign of forgetting 'CGLB'"):
        runs(scores, sign="CGLB")
    with pytest.raises(InputError, match="unknown queries 'tset'; did you mean 'test'"):
        accuracies(scores, queries="tset")
