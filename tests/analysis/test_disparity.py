from dataclasses import replace
from itertools import combinations, permutations, product
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skeleton_cgl.analysis import (
    disparity,
    expected_mopd,
    expected_opd,
    final_accuracies,
    mixed_opd,
    order_disparity,
)
from skeleton_cgl.errors import InputError
from tests.analysis.made_scores import (
    CLASS_ORDER,
    ORDERS,
    TASKS,
    UNEVEN,
    as_scores,
    in_sequence,
    learner,
    random_runs,
    random_scores,
    renamed,
    run,
    without_queries,
)

tables = st.tuples(st.integers(1, 7), st.integers(1, 3)).flatmap(
    lambda shape: arrays(float, shape, elements=st.floats(0, 1))
)


def test_task_disparity_by_hand() -> None:
    finals = [[100, 80, 0, 0, 50, 50], [60, 40, 0, 20, 50, 50], [90, 70, 10, 10, 50, 50]]
    table = disparity(as_scores(run(final, order) for final, order in zip(finals, ORDERS, strict=False)))
    row = table.iloc[0]
    assert (row["orders"], row["repeats"], row["level"]) == (3, 1, "task")
    assert row["AOPD"] == pytest.approx((0.4 + 0.1 + 0) / 3)
    assert row["MOPD"] == pytest.approx(0.4)
    assert (
        row[["AOPD_std", "MOPD_std", "R", "AOPD_floor", "MOPD_floor", "expected_AOPD_at_R", "AOPD_mixed"]].isna().all()
    )
    assert (row["planned"], row["possible"]) == (3, 6)


def test_disparity_is_taken_inside_a_repeat_and_then_averaged() -> None:
    scores = as_scores(
        run([percent] * 6, order, repeat=repeat)
        for repeat, finals in enumerate([(0, 30), (40, 50), (50, 100)])
        for percent, order in zip(finals, ORDERS, strict=False)
    )
    row = disparity(scores).iloc[0]
    assert row["AOPD"] == row["MOPD"] == pytest.approx(0.3)
    assert row["AOPD_std"] == row["MOPD_std"] == pytest.approx(0.2)
    finals = [(0, 40, 50), (30, 50, 100)]
    assert row["AOPD_mixed"] == pytest.approx(np.mean([abs(one - other) for one, other in product(*finals)]) / 100)


def test_one_order_has_a_floor_and_no_disparity() -> None:
    ordinary = [run([50] * 6, ORDERS[0], repeat=repeat) for repeat in (0, 1)]
    with pytest.raises(InputError, match="one order, learned with one seed; disparity needs at least two orders"):
        disparity(as_scores(ordinary))
    noisy = [run([70] * 6, ORDERS[0], repeat=repeat, noise=1) for repeat in (0, 1)]
    row = disparity(as_scores([*ordinary, *noisy])).iloc[0]
    assert (row["orders"], row["R"], row["AOPD_floor"]) == (1, 2, pytest.approx(0.2))
    assert row[["AOPD", "AOPD_std", "AOPD_cross", "MOPD", "AOPD_mixed", "expected_AOPD_at_R"]].isna().all()


def test_the_class_level_takes_every_order_once() -> None:
    twice = [run([10, 20, 30, 40, 50, 60], ORDERS[0], kind) for kind in ("task", "class")]
    other = run([60, 20, 30, 40, 50, 0], CLASS_ORDER, "class")
    row = disparity(as_scores([*twice, other]), "class").iloc[0]
    assert row["orders"] == 2
    assert row["AOPD"] == pytest.approx((0.5 + 0.6) / 6)
    assert row["MOPD"] == pytest.approx(0.6)


def test_the_task_level_leaves_class_orders_out_and_counts_them() -> None:
    only_tasks = random_runs(kinds=["task"])
    both = as_scores([*only_tasks, *random_runs(seed=1, kinds=["class"], noise_runs=0)])
    found, expected = disparity(both), disparity(as_scores(only_tasks))
    assert list(found["left_out"]) == [2, 2]
    pd.testing.assert_frame_equal(found.drop(columns="left_out"), expected.drop(columns="left_out"))
    assert (disparity(both, "class")["orders"] == 8).all()
    assert (disparity(both, "class")["left_out"] == 0).all()


@pytest.mark.parametrize("level", ["task", "class"])
def test_disparity_does_not_depend_on_names_or_on_the_sequence_of_runs(level: str) -> None:
    scores = random_scores()
    expected = disparity(scores, level)
    pd.testing.assert_frame_equal(disparity(renamed(scores, [3, 5, 0, 4, 2, 1]), level), expected)
    places = np.random.default_rng(3).permutation(len(scores.runs)).tolist()
    shuffled = disparity(in_sequence(scores, places), level).sort_values("learner", ignore_index=True)
    pd.testing.assert_frame_equal(shuffled, expected)


@given(st.permutations(range(6)), st.integers(0, 2**32 - 1))
def test_uneven_tasks_have_a_disparity_that_does_not_depend_on_names(renaming: list, seed: int) -> None:
    generator = np.random.default_rng(seed)
    finals = {order: generator.integers(0, 101, size=6) for order in permutations(UNEVEN)}
    scores = as_scores([run(final.tolist(), order) for order, final in finals.items()])
    for level in ("task", "class"):
        found = disparity(scores, level)
        # Sorted by their new names, units are summed up in another sequence.
        pd.testing.assert_frame_equal(disparity(renamed(scores, renaming), level), found, rtol=1e-12)
        units = [list(task) for task in UNEVEN] if level == "task" else [[unit] for unit in range(6)]
        by_unit = np.array([[final[unit].mean() / 100 for unit in units] for final in finals.values()])
        assert found["AOPD"][0] == pytest.approx(np.mean(by_unit.max(axis=0) - by_unit.min(axis=0)))
        assert found["orders"][0] == found["possible"][0] == 6, "all orders of three tasks were run"


def test_given_orders_of_tasks_of_their_own_are_compared() -> None:
    orders = list(permutations(((0, 5), (1, 2, 3, 4))))
    scores = as_scores([run([10 * place] * 6, order, "class") for place, order in enumerate(orders)])
    row = disparity(scores, "task").iloc[0]
    assert (row["orders"], row["AOPD"]) == (2, pytest.approx(0.1))


def test_only_orders_of_the_same_units_are_compared_and_the_rest_is_counted() -> None:
    whole = [run([percent] * 6, order) for percent, order in zip((10, 40, 30), ORDERS, strict=False)]
    part = [run([100] * 6, order, "class") for order in (((0, 1), (2, 3)), ((2, 3), (0, 1)))]
    for level in ("task", "class"):
        row = disparity(as_scores([*whole, *part]), level).iloc[0]
        assert (row["orders"], row["left_out"], row["AOPD"]) == (3, 2, pytest.approx(0.3))
    few = disparity(as_scores([*whole[:1], *part]), "class").iloc[0]
    assert (few["orders"], few["left_out"], few["AOPD"]) == (2, 1, 0)
    tie = final_accuracies(as_scores([whole[0], part[0]]), "class")[0]
    assert tie.tasks == tuple((unit,) for unit in range(6))


def test_learners_at_other_points_of_a_sweep_may_have_other_tasks() -> None:
    halves = list(permutations(((0, 1, 2), (3, 4, 5))))
    runs = [run([10 * place] * 6, order) for place, order in enumerate(ORDERS)]
    runs += [run([30 * place] * 6, order, backbone="stgcn") for place, order in enumerate(halves)]
    learners = (learner(0, point=(("size", 2),)), learner(1, backbone="stgcn", point=(("size", [3]),)))
    found = disparity(replace(as_scores(runs), learners=learners))
    assert found["AOPD"].tolist() == pytest.approx([0.5, 0.3])
    assert found["orders"].tolist() == [6, 2]
    assert found["left_out"].tolist() == [0, 0]


def test_class_orders_of_uneven_tasks_are_a_sample_of_all_there_are() -> None:
    orders = [UNEVEN, ((3, 4), (0, 1, 2), (5,)), ((1, 4), (0, 2, 5), (3,))]
    finals = final_accuracies(as_scores([run([0] * 6, order, "class") for order in orders]), "class")[0]
    # 6!/(3!·2!·1!) orders for each of the two sequences of sizes.
    assert finals.possible == 2 * 60


def test_final_accuracies_are_by_unit_not_by_position() -> None:
    scores = as_scores([run([10, 30, 50, 70, 90, 100], order) for order in ORDERS])
    (by_task,) = final_accuracies(scores)
    assert by_task.tasks == TASKS
    np.testing.assert_allclose(by_task.values, [[0.2, 0.6, 0.95]] * 6)
    (by_class,) = final_accuracies(scores, "class")
    assert by_class.tasks == tuple((unit,) for unit in range(6))
    np.testing.assert_allclose(by_class.values, [[0.1, 0.3, 0.5, 0.7, 0.9, 1.0]] * 6)


def test_a_unit_without_queries_counts_nowhere() -> None:
    scores = as_scores([run([0] * 6, ORDERS[0]), run([30, 50, 0, 0, 0, 0], ORDERS[1])])
    some = without_queries(scores, 1, 5)
    assert disparity(some, "class")["AOPD"][0] == pytest.approx(0.3 / 4)
    assert disparity(some, "task")["AOPD"][0] == pytest.approx(0.3 / 3)
    with pytest.raises(InputError, match="no class has a query"):
        disparity(without_queries(scores, *range(6)))


def test_the_noise_floor_is_over_the_runs_drawn_anew_and_the_ordinary_run_of_that_order() -> None:
    runs = [run([percent] * 6, order) for percent, order in zip([0, 40, 100], ORDERS, strict=False)]
    runs += [run([50] * 6, ORDERS[1], noise=1), run([45, 60, 45, 45, 45, 45], ORDERS[1], noise=2)]
    floors = {"task": [0.125, 0.1, 0.1], "class": [0.1, 0.2, 0.1, 0.1, 0.1, 0.1]}
    for level, opd in floors.items():
        row = disparity(as_scores(runs), level).iloc[0]
        assert (row["orders"], row["R"]) == (3, 3)
        assert row["AOPD"] == row["expected_AOPD_at_R"] == pytest.approx(1)
        assert row["AOPD_floor"] == pytest.approx(np.mean(opd))
        assert row["MOPD_floor"] == pytest.approx(max(opd))


def test_disparity_is_expected_at_the_number_of_noise_runs() -> None:
    finals = [0, 20, 70, 100]
    runs = [run([percent] * 6, order) for percent, order in zip(finals, ORDERS, strict=False)]
    row = disparity(as_scores([*runs, run([0] * 6, ORDERS[0], noise=1)])).iloc[0]
    pairs = [abs(one - other) / 100 for one, other in combinations(finals, 2)]
    assert row["R"] == 2
    assert row["expected_AOPD_at_R"] == pytest.approx(np.mean(pairs))
    more = [run([0] * 6, ORDERS[0], noise=noise) for noise in range(1, 5)]
    row = disparity(as_scores([*runs, *more])).iloc[0]
    assert row["R"] == 5
    assert row["AOPD_floor"] == 0
    assert np.isnan(row["expected_AOPD_at_R"])


def test_floors_of_several_orders_and_kinds_are_apart_and_the_mean_over_orders_then_repeats() -> None:
    runs = [run([50] * 6, order, repeat=repeat) for repeat in (0, 1) for order in ORDERS[:3]]
    ends = {"seeds": [(0, 0, 60), (0, 1, 80), (1, 0, 90)], "splits": [(0, 0, 10)], "both": [(1, 2, 100)]}
    for floor, named in ends.items():
        for repeat, order, percent in named:
            runs.append(run([percent, percent, 50, 50, 50, 50], ORDERS[order], repeat=repeat, noise=1, floor=floor))
    row = disparity(as_scores(runs)).iloc[0]
    assert (row["R"], row["floor_orders"]) == (2, 3)
    assert row["MOPD_floor"] == pytest.approx(((0.1 + 0.3) / 2 + 0.4) / 2)
    assert row["AOPD_floor"] == pytest.approx(((0.1 + 0.3) / 2 + 0.4) / 2 / 3)
    assert [row["MOPD_floor_splits"], row["MOPD_floor_both"]] == pytest.approx([0.4, 0.5])
    assert [row["AOPD_floor_splits"], row["AOPD_floor_both"]] == pytest.approx([0.4 / 3, 0.5 / 3])


@given(tables)
def test_the_expected_mopd_is_the_mean_over_all_subsets(values: np.ndarray) -> None:
    for r in range(1, len(values) + 1):
        subsets = [order_disparity(values[list(chosen)]).max() for chosen in combinations(range(len(values)), r)]
        assert expected_mopd(values, r) == pytest.approx(np.mean(subsets), abs=1e-12)


def test_the_expected_mopd_of_many_orders_is_near_the_mean_over_all_subsets() -> None:
    values = np.random.default_rng(0).random((40, 3))
    subsets = np.array(list(combinations(range(40), 4)))
    opd = values[subsets].max(axis=1) - values[subsets].min(axis=1)
    exact = opd.max(axis=1)
    assert len(exact) > 90_000
    error = exact.std() / np.sqrt(5000)
    assert expected_mopd(values, 4) == pytest.approx(exact.mean(), abs=4 * error)
    assert expected_mopd(values, 4) == expected_mopd(values, 4)


def test_mopd_stands_beside_its_floor_at_the_number_of_runs_of_that() -> None:
    finals = [[0, 0, 30, 30, 0, 0], [20, 20, 0, 0, 0, 0], [70, 70, 0, 0, 0, 0], [100, 100, 0, 0, 0, 0]]
    runs = [run(final, order) for final, order in zip(finals, ORDERS, strict=False)]
    row = disparity(as_scores([*runs, run([0] * 6, ORDERS[0], noise=1)])).iloc[0]
    pairs = [max(abs(a[0] - b[0]), abs(a[2] - b[2])) / 100 for a, b in combinations(finals, 2)]
    assert row["MOPD"] == 1
    assert row["expected_MOPD_at_R"] == pytest.approx(np.mean(pairs))


def test_a_floor_of_some_repeats_only_is_the_mean_over_those() -> None:
    runs = [run([0] * 6, order, repeat=repeat) for repeat in (0, 1) for order in ORDERS[:2]]
    row = disparity(as_scores([*runs, run([30] * 6, ORDERS[0], repeat=1, noise=1)])).iloc[0]
    assert (row["repeats"], row["R"]) == (2, 2)
    assert row["AOPD_floor"] == pytest.approx(0.3)


@given(tables)
def test_expected_opd_agrees_with_all_subsets(values: np.ndarray) -> None:
    n = len(values)
    for r, found in enumerate(expected_opd(values), start=1):
        subsets = [order_disparity(values[list(chosen)]) for chosen in combinations(range(n), r)]
        np.testing.assert_allclose(found, np.mean(subsets, axis=0), atol=1e-12)


@given(tables)
def test_expected_opd_grows_from_0_to_opd(values: np.ndarray) -> None:
    curve = expected_opd(values)
    np.testing.assert_allclose(curve[0], 0, atol=1e-12)
    np.testing.assert_allclose(curve[-1], order_disparity(values), atol=1e-15)
    assert (np.diff(curve, axis=0) >= -1e-12).all()
    np.testing.assert_array_equal(expected_opd(values, len(values)), curve[-1])


def test_expected_opd_is_stable_for_all_orders_of_eight_tasks() -> None:
    n = 40320
    steps = [1, 2, 3, 100, 20000, n - 1, n]
    found = expected_opd(np.stack([np.arange(n) / n, np.eye(n, 1)[:, 0]], axis=1), steps)
    # E[max − min] of r of the numbers 0 … n−1 is (n+1)(r−1)/(r+1); one odd order out of n is drawn with chance r/n.
    r = np.array(steps)
    np.testing.assert_allclose(found[:, 0], (n + 1) * (r - 1) / (r + 1) / n, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found[1:, 1], r[1:] / n, rtol=1e-10)


def test_expected_opd_agrees_with_binomials_where_weights_underflow() -> None:
    n, r = 3000, 1500
    values = np.random.default_rng(0).random((n, 1))
    rising = np.sort(values[:, 0])
    weights = np.array([comb(i - 1, r - 1) / comb(n, r) if i >= r else 0.0 for i in range(1, n + 1)])
    assert expected_opd(values, r)[0] == pytest.approx(weights @ (rising - rising[::-1]), rel=1e-10)


@pytest.mark.parametrize("r", [0, 4, [1, 9]])
def test_expected_opd_of_more_or_fewer_orders_than_there_are_is_refused(r: int | list[int]) -> None:
    with pytest.raises(InputError, match="expected between 1 and the number of orders 3"):
        expected_opd(np.zeros((3, 2)), r)


def test_planned_orders_are_those_run_and_those_missing_of_the_same_tasks() -> None:
    scores = as_scores(run([10 * place] * 6, order) for place, order in enumerate(ORDERS[:2]))
    missing = tuple(replace(scores.runs[0], order=order) for order in (*ORDERS[1:4], CLASS_ORDER))
    half = replace(scores, missing=missing)
    assert disparity(half)["planned"].tolist() == [4]
    assert disparity(half, "class")["planned"].tolist() == [5]
    assert disparity(half.of_kind("task"))["orders"].tolist() == [2]


def test_what_cannot_be_compared_is_refused() -> None:
    scores = random_scores()
    with pytest.raises(InputError, match="unknown level 'clas'; did you mean 'class'"):
        disparity(scores, "clas")
    with pytest.raises(InputError, match="disparity needs at least two orders"):
        disparity(random_scores(kinds=["class"], noise_runs=0))
    with pytest.raises(InputError, match="no run is finished"):
        disparity(scores.where(lambda _: False), "class")
    fewer = scores.where(lambda each: (each.learner, each.repeat, each.order, each.noise) != (0, 1, ORDERS[2], 0))
    with pytest.raises(InputError, match="learner 0: every repeat needs the same orders, found 6 in repeat 0 and 5 in"):
        disparity(fewer)
    with pytest.raises(InputError, match="no ordinary run"):
        disparity(scores.chosen(scores.noise > 0))


def test_floors_without_an_ordinary_run_or_of_different_numbers_of_runs_are_refused() -> None:
    ordinary = [run([0] * 6, order, repeat=repeat) for order in ORDERS[:2] for repeat in (0, 1)]
    with pytest.raises(InputError, match=r"repeat 0: the noise floor of order .* lacks its ordinary run"):
        disparity(as_scores([*ordinary, run([0] * 6, ORDERS[2], noise=1)]))
    one = run([0] * 6, ORDERS[0], noise=1)
    for two in ({"repeat": 1}, {"floor": "splits"}):
        more = [run([0] * 6, ORDERS[0], noise=noise, **two) for noise in (1, 2)]
        with pytest.raises(InputError, match=r"same number of runs, found \[2, 3\]"):
            disparity(as_scores([*ordinary, one, *more]))


@given(arrays(float, st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 2)), elements=st.floats(0, 1)))
def test_the_mixed_opd_is_the_mean_over_every_way_to_give_orders_a_repeat(values: np.ndarray) -> None:
    repeats, orders, _ = values.shape
    ways = [order_disparity(values[list(way), range(orders)]) for way in product(range(repeats), repeat=orders)]
    np.testing.assert_allclose(mixed_opd(values), np.mean(ways, axis=0), atol=1e-12)
    np.testing.assert_allclose(mixed_opd(values[:1]), order_disparity(values[0]), atol=1e-12)


def test_the_mixed_opd_of_a_unit_without_queries_is_not_a_number() -> None:
    values = np.array([[[0.1, np.nan], [0.4, np.nan]]])
    assert mixed_opd(values)[0] == pytest.approx(0.3)
    assert np.isnan(mixed_opd(values)[1])
