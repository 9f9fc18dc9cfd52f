import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f_oneway

from skeleton_cgl.analysis import explained_share, mean_variance_explained, variance_explained
from tests.analysis.made_scores import CLASS_ORDER, ORDERS, as_scores, random_scores, run


def test_the_explained_share_by_hand() -> None:
    values, groups = np.array([1.0, 3.0, 5.0, 7.0]), np.array(["a", "a", "b", "b"])
    # means 2 and 6 around 4: between 16, total 20, within 4 with 2 degrees of freedom
    assert explained_share(values, groups) == pytest.approx((16 / 20, (16 - 2) / (20 + 2)))


@given(st.integers(0, 2**32 - 1))
def test_the_explained_share_is_that_of_the_f_statistic(seed: int) -> None:
    generator = np.random.default_rng(seed)
    groups = np.repeat(np.arange(4), generator.integers(2, 9, size=4))
    values = generator.random(len(groups)) + 0.2 * groups
    n, g = len(values), 4
    f = f_oneway(*(values[groups == group] for group in range(g))).statistic
    eta = f * (g - 1) / (f * (g - 1) + n - g)
    omega = (g - 1) * (f - 1) / ((g - 1) * (f - 1) + n)
    assert explained_share(values, groups) == pytest.approx((eta, omega))


def test_the_correction_takes_away_what_chance_explains() -> None:
    generator = np.random.default_rng(0)
    shares = [explained_share(generator.random(60), np.arange(60) % 20) for _ in range(300)]
    eta, omega = np.mean(shares, axis=0)
    assert eta == pytest.approx(19 / 59, abs=0.02)
    assert omega == pytest.approx(0, abs=0.02)


def test_what_was_not_put_to_the_test_has_no_share() -> None:
    assert np.isnan(explained_share(np.full(6, 0.1), np.arange(6) % 2)).all()
    assert np.isnan(explained_share(np.full(6, np.nan), np.arange(6) % 2)).all()
    assert np.isnan(explained_share(np.arange(6.0), np.zeros(6))).all()
    eta, omega = explained_share(np.arange(6.0), np.arange(6))
    assert eta == pytest.approx(1)
    assert np.isnan(omega)


def test_accuracies_made_of_the_position_are_explained_by_it() -> None:
    runs = []
    for order in ORDERS:
        position = {label: step for step, task in enumerate(order) for label in task}
        runs.append(run([30 * position[label] for label in range(6)], order))
    shares = variance_explained(as_scores(runs)).set_index(["class", "factor"])
    assert shares.xs("position", level="factor")["eta_squared"].to_numpy() == pytest.approx(1)
    assert shares.xs("position", level="factor")["omega_squared"].to_numpy() == pytest.approx(1)
    # A class whose task comes last has position 2, else 0 or 1: means 2, ½, ½ around 1, so 3 of the 4 are between.
    assert shares.xs("last", level="factor")["eta_squared"].to_numpy() == pytest.approx(3 / 4)
    assert shares.xs("mates", level="factor")["eta_squared"].isna().all()


def test_accuracies_made_of_the_last_task_are_explained_by_it() -> None:
    runs = [run([20 * order[-1][0]] * 6, order) for order in ORDERS]
    means = mean_variance_explained(as_scores(runs)).set_index("factor")
    assert means.loc["last", "eta_squared"] == pytest.approx(1)
    assert means.loc["position", "eta_squared"] < 0.6


def test_accuracies_made_of_the_mates_are_explained_by_them() -> None:
    orders = [*ORDERS, *[tuple(CLASS_ORDER[i] for i in turn) for turn in ((0, 1, 2), (2, 0, 1), (1, 2, 0))]]
    runs = [run([80 if (0, 1) in order else 20] * 6, order, "class") for order in orders]
    means = mean_variance_explained(as_scores(runs)).set_index("factor")
    assert means.loc["mates", "eta_squared"] == pytest.approx(1)
    assert means.loc["position", "eta_squared"] == pytest.approx(0, abs=1e-12)
    assert means.loc["position", "omega_squared"] < 0


def test_every_class_repeat_and_factor_has_its_row_and_the_means_are_theirs() -> None:
    shares = variance_explained(random_scores())
    assert len(shares) == 2 * 2 * 6 * 3
    assert (shares["orders"] == 8).all()
    assert (shares.query("factor == 'position'")["groups"] == 3).all()
    means = mean_variance_explained(random_scores()).set_index(["learner", "factor"])
    of_replay = shares.query("learner == 1 and factor == 'last'")
    assert means.loc[(1, "last"), "eta_squared"] == pytest.approx(of_replay["eta_squared"].mean())
