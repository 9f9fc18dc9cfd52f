"""What answers were worth: named values per unit. Knows nothing of data or of learning, and loads fast."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

QUERIED = ("test", "validation")
"""The parts whose samples are asked about."""
SIZE = "size"
"""The measure of part "training" that streams have: the share of samples that are of a unit, and their number."""


@dataclass(frozen=True, eq=False)
class Measure:
    """The values (U,) of one metric on one part, a number from 0 to 1 per unit, NaN where nothing was asked.

    The larger, the better: an error is recorded as what it leaves of 1.

    asked (U,): the number of queries behind each. counts (K, K): how often each class was answered for each true one,
    where a query has one class; None elsewhere. answered (Q,): the class answered to every query of the part, in the
    sequence they are asked, where a query has one class; records keep it apart from the scores.
    """

    part: str
    metric: str
    values: np.ndarray
    asked: np.ndarray
    counts: np.ndarray | None = None
    answered: np.ndarray | None = None

    def same_as(self, other: "Measure") -> bool:
        """Return whether both say the same, to the bit."""
        alike = (self.part, self.metric) == (other.part, other.metric)
        arrays = ((self.values, other.values), (self.asked, other.asked), (self.counts, other.counts))
        return alike and all(_same(one, another) for one, another in arrays)


def untrained(metric: str) -> str:
    """Return what a metric is called of a learner that has not learned yet."""
    return f"untrained {metric}"


def answers_of(scores: Iterable[Measure]) -> np.ndarray | None:
    """Return the answers behind scores, those to one part's queries after those to another's; None where unknown.

    They are whole numbers of the narrowest type that holds them.
    """
    by_part = {score.part: score.answered for score in scores if score.answered is not None}
    if not by_part:
        return None
    answers = np.concatenate(list(by_part.values()))
    return answers.astype(np.min_scalar_type(int(answers.max(initial=0))))


def accuracy_measure(part: str, counts: np.ndarray) -> Measure:
    """Return the accuracy of every class: the share of its queries answered rightly, from counts (K, K)."""
    asked = counts.sum(axis=1)
    right = np.diagonal(counts)
    values = np.divide(right, asked, out=np.full(len(counts), np.nan), where=asked > 0)
    return Measure(part, "accuracy", values, asked.astype(np.int64), counts.astype(np.int64))


def _same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
