"""Disparity chosen on one half of the queries and read on the other: what is luck vanishes, what is planted stays."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skeleton_cgl.analysis import cross_disparity, cross_opd, disparity
from skeleton_cgl.analysis.scores import Scores
from tests.analysis.made_scores import ORDERS, as_scores, run, with_halves, without_queries

ORDERS_OF_FIVE = list(permutations((2 * task, 2 * task + 1) for task in range(5)))
QUERIES = 15
fractions = st.integers(0, 4).map(lambda right: right / 4)
halves_of_few = st.tuples(st.integers(1, 5), st.integers(1, 4)).flatmap(
    lambda shape: arrays(float, (2, *shape), elements=fractions)
)


def answered(right: np.ndarray, repeats: int, seed: int = 0) -> Scores:
    """Return all orders of five tasks of two units: 15 queries per unit and half, right with a chance (orders, 10)."""
    runs = [run([0] * 10, order, repeat=repeat) for repeat in range(repeats) for order in ORDERS_OF_FIVE]
    generator = np.random.default_rng(seed)
    chances = np.tile(right, (repeats, 1))
    test, validation = (generator.binomial(QUERIES, chances) / QUERIES for _ in range(2))
    return with_halves(as_scores(runs, [f"class {unit}" for unit in range(10)]), test, validation)


def by_hand(chosen_on: list[list[float]], read_on: list[list[float]]) -> tuple[float, float]:
    """Return AOPD and MOPD one way: loops over tasks, then over the orders that tie for the best and the worst."""
    apart, spread = [], []
    for task in range(len(chosen_on[0])):
        own, other = [row[task] for row in chosen_on], [row[task] for row in read_on]
        best = [there for here, there in zip(own, other, strict=True) if here == max(own)]
        worst = [there for here, there in zip(own, other, strict=True) if here == min(own)]
        apart.append(sum(best) / len(best) - sum(worst) / len(worst))
        spread.append(max(own) - min(own))
    widest = [found for found, wide in zip(apart, spread, strict=True) if wide == max(spread)]
    return sum(apart) / len(apart), sum(widest) / len(widest)


@given(halves_of_few)
def test_both_ways_by_hand_with_ties(halves: np.ndarray) -> None:
    ways = [by_hand(one.tolist(), other.tolist()) for one, other in ((halves[0], halves[1]), (halves[1], halves[0]))]
    np.testing.assert_allclose(cross_disparity(halves), np.mean(ways, axis=0), atol=1e-12)
    np.testing.assert_allclose(cross_disparity(halves[::-1]), cross_disparity(halves), atol=1e-12)


def test_equal_halves_give_the_disparity_itself() -> None:
    values = np.random.default_rng(0).random((6, 3))
    opd = values.max(axis=0) - values.min(axis=0)
    np.testing.assert_allclose(cross_disparity(np.stack([values, values])), [opd.mean(), opd.max()])


def test_repeats_are_evaluated_each_by_itself() -> None:
    halves = np.random.default_rng(0).integers(0, 5, size=(2, 3, 6, 4)) / 4
    together = cross_disparity(halves)
    assert together.shape == (2, 3)
    for repeat in range(3):
        np.testing.assert_allclose(together[:, repeat], cross_disparity(halves[:, repeat]))


def test_orders_that_differ_by_rounding_alone_are_tied() -> None:
    chosen_on = np.array([[0.1 + 0.2], [0.3], [0.0]])
    assert chosen_on[0] != chosen_on[1]
    assert cross_opd(chosen_on, np.array([[0.2], [0.8], [0.1]]))[0] == pytest.approx(0.4)


@pytest.mark.parametrize("level", ["task", "class"])
def test_without_an_order_effect_it_is_0_within_its_error_where_aopd_is_not(level: str) -> None:
    right = np.random.default_rng(1).uniform(0.2, 0.8, size=10)
    row = disparity(answered(np.tile(right, (120, 1)), repeats=40), level).iloc[0]
    assert row["AOPD"] > 0.3
    for measure in ("AOPD", "MOPD"):
        error = row[f"{measure}_cross_std"] / np.sqrt(row["repeats"])
        assert error < 0.03
        assert abs(row[f"{measure}_cross"]) < 3 * error


def test_a_planted_effect_is_found_within_its_error_where_aopd_finds_more() -> None:
    right = np.array([[0.8 if unit in order[-1] else 0.3 for unit in range(10)] for order in ORDERS_OF_FIVE])
    row = disparity(answered(right, repeats=40)).iloc[0]
    for measure in ("AOPD", "MOPD"):
        error = row[f"{measure}_cross_std"] / np.sqrt(row["repeats"])
        assert row[f"{measure}_cross"] == pytest.approx(0.5, abs=3 * error)
        assert row[measure] > 0.7


def test_what_has_queries_in_one_half_only_counts_nowhere() -> None:
    scores = as_scores([run([0] * 6, ORDERS[0]), run([30, 50, 0, 0, 10, 90], ORDERS[1])])
    whole = disparity(scores, "class").iloc[0]
    assert whole["AOPD_cross"] == pytest.approx(1.8 / 6)
    assert whole["MOPD_cross"] == pytest.approx(0.9)
    lacking = with_halves(scores, scores.finals, np.where(np.arange(6) == 5, np.nan, scores.finals))
    by_class, by_task = (disparity(lacking, level).iloc[0] for level in ("class", "task"))
    assert [by_class["AOPD_cross"], by_class["MOPD_cross"]] == pytest.approx([0.9 / 5, 0.5])
    # Of the last task only the class that has both is compared.
    assert [by_task["AOPD_cross"], by_task["MOPD_cross"]] == pytest.approx([0.5 / 3, 0.4])
    assert by_task["AOPD"] == pytest.approx((0.4 + 0.5) / 3)
    nowhere = with_halves(scores, scores.finals, np.full((2, 6), np.nan))
    assert np.isnan(disparity(nowhere)[["AOPD_cross", "MOPD_cross"]]).all(axis=None)
    some = disparity(without_queries(scores, 5), "class").iloc[0]
    assert some["AOPD_cross"] == some["AOPD"]
