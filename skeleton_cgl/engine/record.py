"""What one stage leaves in the store."""

from dataclasses import dataclass

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.measures import Measure

Facts = tuple[tuple[str, str], ...]
"""Names and what there is to say to each, such as packages and their versions."""


@dataclass(frozen=True)
class Kept:
    """What a method keeps between lessons: data samples, by number or by content, floating-point numbers, bytes.

    floats and bytes count the inputs of samples that are kept by number. samples and floats are None in records of an
    older release, whose bytes are without those inputs.
    """

    samples: int | None
    floats: int | None
    bytes: int


@dataclass(frozen=True)
class Made:
    """How a record came about: how long it took, where, with what, from which seed and when.

    created is empty until the record is kept. fingerprint: what of the machine decides the last bits of a sum; empty
    where it was not noted. kept: what the method keeps after the stage; None where it was not counted.
    """

    seconds: float
    host: str
    versions: Facts
    seed: int
    created: str = ""
    fingerprint: Facts = ()
    kept: Kept | None = None


@dataclass(frozen=True, eq=False)
class Record:
    """The scores of a stage, on test and on validation, and how they came about.

    answers (Q,): the class answered to every query, those of test first, in the sequence they are asked; None where
    queries have no single class, and in records of older releases.
    """

    key: str
    scores: tuple[Measure, ...]
    made: Made
    answers: np.ndarray | None = None

    def measure(self, part: str, metric: str) -> Measure:
        """Return one of the scores; refuse a metric that was not recorded."""
        for score in self.scores:
            if (score.part, score.metric) == (part, metric):
                return score
        known = ", ".join(sorted({score.metric for score in self.scores}))
        raise InputError(f"record {self.key}: no {metric!r} on {part}; recorded: {known}")


def same_content(one: Record, other: Record) -> bool:
    """Return whether two records say the same of the same stage, whenever and wherever they were made.

    Scores have names; in which sequence they stand means nothing. Answers count where both have them.
    """
    if one.answers is not None and other.answers is not None and not np.array_equal(one.answers, other.answers):
        return False
    mine, theirs = (sorted(each.scores, key=lambda score: (score.part, score.metric)) for each in (one, other))
    return len(mine) == len(theirs) and all(score.same_as(also) for score, also in zip(mine, theirs, strict=True))
