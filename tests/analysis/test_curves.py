from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from skeleton_cgl.analysis import disparity, runs
from skeleton_cgl.analysis.curves import accuracy_by_step, aopd_growth, mean_accuracy_matrices, mean_over_repeats
from skeleton_cgl.errors import InputError
from tests.analysis.made_scores import (
    ORDERS,
    UNEVEN,
    MadeRun,
    as_scores,
    in_sequence,
    random_runs,
    random_scores,
    run,
)


def constant(percent: int, order: int, repeat: int = 0, noise: int = 0) -> MadeRun:
    """Return a run of one of the ORDERS in which all classes end at so many percent, after +74 and +37 (mod 101)."""
    return run([percent] * 6, ORDERS[order], repeat=repeat, noise=noise)


def test_the_spread_of_aa_is_inside_a_repeat_and_then_averaged() -> None:
    finals = {0: [10, 20, 30, 60], 1: [50, 50, 50, 50]}
    scores = as_scores(
        constant(percent, order, repeat) for repeat, all_of in finals.items() for order, percent in enumerate(all_of)
    )
    last = accuracy_by_step(scores).set_index("step").loc[3]
    assert last["AA"] == pytest.approx((0.3 + 0.5) / 2)
    assert [last["lowest"], last["highest"]] == pytest.approx([(0.1 + 0.5) / 2, (0.6 + 0.5) / 2])
    assert [last["lower_quartile"], last["upper_quartile"]] == pytest.approx([(0.175 + 0.5) / 2, (0.375 + 0.5) / 2])


def test_aa_of_the_last_step_is_that_of_the_runs() -> None:
    scores = random_scores()
    steps = accuracy_by_step(scores)
    expected = runs(scores).query("noise == 0").groupby("learner")["AA"].mean()
    np.testing.assert_allclose(steps[steps["step"] == 3].set_index("learner")["AA"], expected)
    assert list(steps["step"]) == [1, 2, 3] * 2


def test_a_mean_matrix_is_by_position_and_ends_at_the_diagonal() -> None:
    by_class = [[10, 30, 50, 70, 90, 100], [20, 40, 0, 0, 60, 60]]
    scores = as_scores(run(final, order) for final, order in zip(by_class, (ORDERS[0], ORDERS[5]), strict=True))
    matrix = mean_accuracy_matrices(scores).set_index(["step", "position"])["accuracy"]
    assert list(matrix.index) == [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]
    # ORDERS[5] is ORDERS[0] reversed, so that its first task is (4, 5).
    assert matrix[3].tolist() == pytest.approx([(0.2 + 0.6) / 2, (0.6 + 0) / 2, (0.95 + 0.3) / 2])
    alone = mean_accuracy_matrices(scores, ORDERS[5]).set_index(["step", "position"])["accuracy"]
    assert alone[3].tolist() == pytest.approx([0.6, 0, 0.3])
    with pytest.raises(InputError, match="was not run"):
        mean_accuracy_matrices(scores, ORDERS[1])


def test_re_seeded_runs_and_the_sequence_of_runs_change_nothing() -> None:
    plain = random_runs(noise_runs=0)
    noisy = [constant(0, 0, noise=noise) for noise in (1, 2)]
    shuffled = as_scores([*plain, *noisy])
    mixed = in_sequence(shuffled, np.random.default_rng(0).permutation(len(shuffled.runs)).tolist())
    computed = {
        accuracy_by_step: ["learner", "step"],
        mean_accuracy_matrices: ["learner", "step", "position"],
        mean_over_repeats: ["learner", "order"],
    }
    for compute, key in computed.items():
        found, expected = (compute(scores).sort_values(key, ignore_index=True) for scores in (mixed, as_scores(plain)))
        pd.testing.assert_frame_equal(found, expected)
    with pytest.raises(InputError, match="no ordinary run"):
        accuracy_by_step(as_scores(noisy))


def test_an_order_is_one_point_the_mean_of_its_repeats() -> None:
    scores = as_scores([constant(20, 0, repeat=0), constant(60, 0, repeat=1), constant(90, 1)])
    points = mean_over_repeats(scores).set_index("order")
    assert points["AA"].tolist() == pytest.approx([0.4, 0.9])
    assert set(points["kind"]) == {"task"}


def test_orders_of_different_lengths_are_averaged_at_the_steps_they_reach() -> None:
    scores = as_scores([run([60] * 6, ORDERS[0]), run([20] * 6, ((0, 1, 2), (3, 4, 5)), "class")])
    steps = accuracy_by_step(scores).set_index("step")["AA"]
    assert steps[3] == pytest.approx(0.6)
    # 60 and 20 percent in the end, 37 more (mod 101) a step before.
    assert steps[2] == pytest.approx((0.97 + 0.2) / 2)
    matrix = mean_accuracy_matrices(scores).set_index(["step", "position"])["accuracy"]
    assert matrix[3, 1] == pytest.approx(0.6)
    assert matrix[2, 2] == pytest.approx((0.97 + 0.2) / 2)


def test_uneven_tasks_count_alike_whatever_their_size() -> None:
    steps = accuracy_by_step(as_scores([run([30, 30, 30, 60, 60, 90], UNEVEN)])).set_index("step")
    assert steps.loc[3, "AA"] == pytest.approx((0.3 + 0.6 + 0.9) / 3)


def test_the_growth_of_aopd_is_the_mean_over_all_choices_of_orders_inside_a_repeat() -> None:
    finals = {0: [0, 20, 70, 100], 1: [10, 10, 20, 50]}
    scores = as_scores(
        constant(percent, order, repeat) for repeat, all_of in finals.items() for order, percent in enumerate(all_of)
    )
    growth = aopd_growth(scores)
    assert list(growth["r"]) == [1, 2, 3, 4]
    assert set(growth["varied"]) == {"order"}
    for r, aopd in zip(growth["r"], growth["AOPD"], strict=True):
        means = [np.mean([max(few) - min(few) for few in combinations(values, r)]) for values in finals.values()]
        assert aopd == pytest.approx(np.mean(means) / 100)


@pytest.mark.parametrize("level", ["task", "class"])
def test_the_growth_ends_at_aopd_and_its_seeds_at_the_floor(level: str) -> None:
    scores = random_scores()
    expected = disparity(scores, level).set_index("learner")
    ends = aopd_growth(scores, level).groupby(["varied", "learner"]).last()
    np.testing.assert_allclose(ends.loc["order", "AOPD"], expected["AOPD"])
    np.testing.assert_allclose(ends.loc["seeds", "AOPD"], expected["AOPD_floor"])
    assert ends.loc["order", "r"].tolist() == expected["orders"].tolist()
    assert ends.loc["seeds", "r"].tolist() == expected["R"].tolist()


def test_the_growth_goes_as_far_as_every_repeat_does() -> None:
    scores = as_scores([*(constant(20 * order, order) for order in range(4)), constant(0, 0, 1), constant(50, 1, 1)])
    growth = aopd_growth(scores)
    assert list(growth["r"]) == [1, 2]
    # Two of 0, 20, 40, 60 differ by 33.3 on average.
    assert growth["AOPD"].tolist() == pytest.approx([0, (1 / 3 + 0.5) / 2])


def test_one_order_does_not_grow() -> None:
    with pytest.raises(InputError, match="disparity needs at least two orders"):
        aopd_growth(as_scores([constant(50, 0), constant(70, 0, repeat=1)]))
    growth = aopd_growth(as_scores([constant(50, 0), constant(70, 0, noise=1)]))
    assert growth[growth["varied"] == "seeds"]["AOPD"].tolist() == [0, pytest.approx(0.2)]


def test_the_growth_of_each_kind_of_floor_is_over_its_own_runs_and_the_ordinary_one() -> None:
    floors = [run([percent] * 6, ORDERS[0], noise=1, floor=floor) for floor, percent in (("seeds", 60), ("both", 90))]
    growth = aopd_growth(as_scores([constant(50, 0), constant(70, 1), *floors])).set_index(["varied", "r"])["AOPD"]
    assert growth.to_dict() == {
        **{("order", 1): 0, ("order", 2): pytest.approx(0.2)},
        **{("seeds", 1): 0, ("seeds", 2): pytest.approx(0.1), ("both", 1): 0, ("both", 2): pytest.approx(0.4)},
    }
