"""Plateaus of a row of losses are found once each, with a peak between them, against a search over the whole row."""

import random
from collections.abc import Sequence
from statistics import mean, pvariance

import pytest

from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.plateaus import PlateauDetector


def plateaus(detector: PlateauDetector, losses: Sequence[float]) -> list[int]:
    """Return the places in a row of losses at which plateaus are found."""
    return [place for place, loss in enumerate(losses) if detector.finds_plateau(loss)]


def searched(losses: Sequence[float], window: int, most: float, spread: float) -> list[int]:
    """Return the same, by looking for plateau and peak in turn among all windows of the row."""
    windows = [losses[end - window + 1 : end + 1] for end in range(window - 1, len(losses))]
    means, variances = ([of(each) for each in windows] for of in (mean, pvariance))
    found, place = [], 0
    while True:
        low = (k for k in range(place, len(windows)) if means[k] < most and variances[k] < spread)
        plateau = next(low, None)
        if plateau is None:
            return found
        found.append(plateau + window - 1)
        bound = means[plateau] + variances[plateau] ** 0.5
        peak = next((k for k in range(plateau + 1, len(windows)) if means[k] > bound), None)
        if peak is None:
            return found
        place = peak + 1


def test_a_low_loss_that_stays_is_one_plateau_found_when_the_window_is_full() -> None:
    assert plateaus(PlateauDetector(), [0.1] * 1000) == [4]


@pytest.mark.parametrize("loss", [0.2, 0.3, 2.0])
def test_a_mean_that_does_not_fall_below_the_threshold_is_no_plateau(loss: float) -> None:
    assert plateaus(PlateauDetector(), [loss] * 1000) == []


def test_losses_that_differ_too_much_are_no_plateau_however_low_their_mean() -> None:
    """Of 0, 0, 0, 0, .9 the mean is .18 and the variance .1296; over four instead of five it would be .162."""
    row = [0.0, 0.0, 0.0, 0.0, 0.9] * 20
    assert plateaus(PlateauDetector(), row) == []
    assert plateaus(PlateauDetector(variance=0.13), row) == [4]


def test_the_next_plateau_is_found_after_a_peak_and_not_before() -> None:
    """μ₀ = .1, v₀ = .0064 (.02, .18, .1 ± .08): a mean of up to .18 is no peak."""
    detector = PlateauDetector(window=4)
    first = [0.02, 0.18, 0.02, 0.18]
    assert plateaus(detector, first) == [3]
    assert not detector.armed
    assert plateaus(detector, [0.175] * 20) == []
    assert not detector.armed
    assert plateaus(detector, [0.19] * 2) == []
    assert detector.armed
    assert plateaus(detector, [0.19]) == [0]


def test_a_peak_arms_and_finds_nothing_by_itself() -> None:
    detector = PlateauDetector(window=2)
    assert plateaus(detector, [0.0, 0.0, 0.1]) == [1]
    assert detector.armed
    assert plateaus(detector, [0.1]) == [0]


@pytest.mark.parametrize("window", [1, 2, 5])
def test_plateaus_of_any_row_are_those_of_a_search_over_all_windows(window: int) -> None:
    draw = random.Random(window)
    found = []
    for _ in range(100):
        level = [draw.choice([0.05, 0.15, 0.3, 1.0]) for _ in range(12)]
        row = [draw.uniform(0.2, 1.8) * each for each in level for _ in range(7)]
        found.append(plateaus(PlateauDetector(window, 0.25, 0.01), row))
        assert found[-1] == searched(row, window, 0.25, 0.01)
    assert max(map(len, found)) > 2


def test_going_on_from_a_saved_state_is_going_on_wherever_it_was_saved() -> None:
    draw = random.Random(0)
    row = [draw.uniform(0, 0.3) for _ in range(60)]
    whole = plateaus(PlateauDetector(), row)
    assert len(whole) > 1
    for cut in range(len(row)):
        before, after = PlateauDetector(), PlateauDetector()
        found = plateaus(before, row[:cut])
        after.restore(from_bytes(to_bytes(before.state())))
        assert after.armed == before.armed
        assert [*found, *(cut + place for place in plateaus(after, row[cut:]))] == whole
