import pytest

from skeleton_cgl.durations import duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (3 * 3600 + 299, "3 h 04 min"),
        (50 * 3600, "2 d 2 h"),
        (5000 * 365 * 24 * 3600, "5,000 years"),
    ],
)
def test_a_time_is_told_in_the_units_that_tell_most_of_it(seconds: float, words: str) -> None:
    assert duration(seconds) == words
