import numpy as np
import pandas as pd
import pytest

from skeleton_cgl.analysis.fate import accuracy_by_position, extreme_orders
from skeleton_cgl.errors import InputError
from tests.analysis.made_scores import CLASS_ORDER, ORDERS, as_scores, random_runs, random_scores, run, with_halves


def test_a_class_is_found_at_the_position_of_its_task() -> None:
    position = [{label: step for step, task in enumerate(order) for label in task} for order in (*ORDERS, CLASS_ORDER)]
    runs = [
        run([10 * label + 20 * where[label] for label in range(6)], order, kind="task" if order in ORDERS else "class")
        for where, order in zip(position, (*ORDERS, CLASS_ORDER), strict=True)
    ]
    fate = accuracy_by_position(as_scores(runs))
    assert len(fate) == 6 * 3
    expected = (10 * fate["class"] + 20 * (fate["position"] - 1)) / 100
    assert fate["accuracy"].tolist() == pytest.approx(expected.tolist())


def test_the_fate_of_a_class_is_the_mean_over_orders_then_repeats() -> None:
    finals = [(0, 0, 10), (0, 1, 30), (1, 0, 80), (1, 1, 70)]
    scores = as_scores(run([percent] * 6, ORDERS[order], repeat=repeat) for repeat, order, percent in finals)
    fate = accuracy_by_position(scores).set_index(["class", "position"])["accuracy"]
    # Both orders begin with (0, 1); (2, 3) comes second in one and third in the other.
    assert fate[0, 1] == pytest.approx((0.2 + 0.75) / 2)
    assert [fate[2, 2], fate[2, 3]] == pytest.approx([(0.1 + 0.8) / 2, (0.3 + 0.7) / 2])
    assert (2, 1) not in fate.index


def test_re_seeded_runs_are_no_fate() -> None:
    plain = random_runs(noise_runs=0)
    noisy = run([0] * 6, ORDERS[0], noise=1)
    found = accuracy_by_position(as_scores([*plain, noisy]))
    pd.testing.assert_frame_equal(found, accuracy_by_position(as_scores(plain)))


def test_extreme_orders_are_ranked_by_final_aa_with_the_accuracies_of_their_tasks() -> None:
    finals = [40, 90, 10, 60, 30, 70]
    scores = as_scores(
        run([percent, percent, 0, 20, 50, 50], order) for percent, order in zip(finals, ORDERS, strict=True)
    )
    found = extreme_orders(scores, count=2)
    rows = found.drop_duplicates("rank")
    assert list(rows["rank"]) == [1, 2, 5, 6]
    assert list(rows["order"]) == [ORDERS[1], ORDERS[5], ORDERS[4], ORDERS[2]]
    accuracy = {(0, 1): 0.9, (2, 3): 0.1, (4, 5): 0.5}
    kindest = found[found["rank"] == 1]
    assert kindest["accuracy"].tolist() == pytest.approx([accuracy[task] for task in ORDERS[1]])
    assert kindest["AA"].tolist() == pytest.approx([0.5] * 3)


def test_few_orders_are_shown_once_each() -> None:
    found = extreme_orders(random_scores(methods=["bare"], repeats=1), count=10)
    assert list(found["rank"]) == [rank for rank in range(1, 9) for _ in range(3)]
    assert found.drop_duplicates("rank")["AA"].is_monotonic_decreasing


def test_an_order_counts_by_its_mean_over_repeats_if_all_have_it() -> None:
    runs = [run([percent] * 6, ORDERS[0], repeat=repeat) for repeat, percent in enumerate((10, 50))]
    runs += [run([20] * 6, ORDERS[1], repeat=repeat) for repeat in (0, 1)]
    found = extreme_orders(as_scores([*runs, run([100] * 6, ORDERS[2])])).drop_duplicates("rank")
    assert found["AA"].tolist() == pytest.approx([0.3, 0.2])
    apart = [run([10] * 6, order, repeat=repeat) for repeat, order in enumerate(ORDERS[:2])]
    with pytest.raises(InputError, match="no order was learned in every repeat"):
        extreme_orders(as_scores(apart))


def test_one_order_has_no_fate() -> None:
    scores = as_scores([run([50] * 6, ORDERS[0], repeat=repeat) for repeat in (0, 1)])
    for of_orders in (accuracy_by_position, extreme_orders):
        with pytest.raises(InputError, match="only one order was run"):
            of_orders(scores)


def test_orders_of_other_units_are_not_ranked_among_the_others() -> None:
    runs = [run([percent] * 6, order) for percent, order in zip((40, 90, 10), ORDERS, strict=False)]
    shorter = run([100] * 6, ((0, 1), (2, 3)), "class")
    found = extreme_orders(as_scores([*runs, shorter])).drop_duplicates("rank")
    assert list(found["order"]) == [ORDERS[1], ORDERS[0], ORDERS[2]]
    fate = accuracy_by_position(as_scores([*runs, shorter]))
    assert fate["accuracy"].max() == pytest.approx(0.9)


def test_best_and_worst_positions_that_are_not_so_on_validation_do_not_hold() -> None:
    scores = as_scores([run([0] * 6, order) for order in ORDERS])
    position = np.array(
        [[next(step for step, task in enumerate(order) if unit in task) for unit in range(6)] for order in ORDERS]
    )
    test = position / 2
    # As on test, the other way round, all alike, the best and the middle alike; 4 is nowhere better, 5 has no queries.
    test[:, 4] = 0.5
    validation = np.stack([position[:, 0] / 2, 1 - position[:, 1] / 2, *np.full((4, 6), 0.5)], axis=1)
    validation[:, 3] = np.minimum(position[:, 3], 1)
    validation[:, 5] = np.nan
    fate = accuracy_by_position(with_halves(scores, test, validation)).set_index(["class", "position"])["holds"]
    for unit, holds in enumerate([(1, 1, 1), (0, 1, 0), (0, 1, 0), (1, 1, 1), (1, 1, 1), (1, 1, 1)]):
        assert [fate[unit, place] for place in (1, 2, 3)] == [bool(each) for each in holds], unit


def test_orders_beyond_the_median_on_validation_do_not_hold() -> None:
    scores = as_scores([run([0] * 6, order) for order in ORDERS[:5]])
    test, validation = (
        np.tile(np.array(finals)[:, None] / 100, 6) for finals in ([90, 80, 70, 60, 50], [70, 50, 90, 50, 20])
    )
    found = extreme_orders(with_halves(scores, test, validation)).drop_duplicates("rank")
    assert found["validation_AA"].tolist() == pytest.approx([0.7, 0.5, 0.9, 0.5, 0.2])
    # The second and the fourth are the median; the third has no side.
    assert found["holds"].tolist() == [True, False, True, False, True]
    assert extreme_orders(with_halves(scores, test, test))["holds"].all()
    unknown = extreme_orders(with_halves(scores, test, np.full((5, 6), np.nan)))
    assert unknown["holds"].all(), "nothing speaks against it"
