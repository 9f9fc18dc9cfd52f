"""What one stage leaves in the store."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Record:
    """What a stage leaves: confusion counts (K, K) of test and validation, how long it took, where, with what and when.

    created is empty until the record is kept.
    """

    key: str
    test: np.ndarray
    validation: np.ndarray
    seconds: float
    host: str
    versions: dict[str, str]
    seed: int
    created: str = ""


def same_content(one: Record, other: Record) -> bool:
    """Return whether two records say the same of the same stage, whenever and wherever they were made."""
    return np.array_equal(one.test, other.test) and np.array_equal(one.validation, other.validation)
