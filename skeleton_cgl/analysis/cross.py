"""Order disparity without the luck of the queries: extremes are chosen on one half of them and read on the other.

The highest of many accuracies is high also because its queries happened to suit it, and the lowest is low because they
did not: max − min is above 0 even where the order does nothing. Queries that had no part in the choice know nothing of
that luck.
"""

import numpy as np

_ROUNDING = 1e-9
"""Accuracies that differ by less are equal: they are means of the same fractions, summed in another sequence."""


def cross_opd(chosen_on: np.ndarray, read_on: np.ndarray) -> np.ndarray:
    """Return (..., T): by how much the best orders of t on one half beat its worst ones on the other half.

    Both halves are final accuracies (..., orders, T). Of orders that are equally good or bad all are taken, and their
    mean: a pick among them would be a draw. NaN where a half has no queries.
    """
    best = chosen_on >= np.max(chosen_on, axis=-2, keepdims=True) - _ROUNDING
    worst = chosen_on <= np.min(chosen_on, axis=-2, keepdims=True) + _ROUNDING
    return mean_of(read_on, best, axis=-2) - mean_of(read_on, worst, axis=-2)


def cross_disparity(halves: np.ndarray) -> np.ndarray:
    """Return (2, ...): AOPD and MOPD, chosen on one half and read on the other, both ways averaged.

    `halves` are final accuracies (2, ..., orders, T). AOPD: mean over t of `cross_opd`; MOPD: that of the t whose
    max − min is the largest on the half that chooses, the mean of all such t. NaN if no t has queries in both halves.
    """
    ways = np.stack([cross_opd(halves[0], halves[1]), cross_opd(halves[1], halves[0])])
    asked = ~np.isnan(ways).any(axis=0)
    spread = np.where(asked, np.max(halves, axis=-2) - np.min(halves, axis=-2), -np.inf)
    largest = asked & (spread >= np.max(spread, axis=-1, keepdims=True) - _ROUNDING)
    each_way = np.stack([mean_of(ways, np.broadcast_to(asked, ways.shape), axis=-1), mean_of(ways, largest, axis=-1)])
    return np.asarray(each_way.mean(axis=1))


def mean_of(values: np.ndarray, among: np.ndarray, axis: int) -> np.ndarray:
    """Return the mean along an axis of the values of which `among` is true; NaN where it is true of none."""
    count = among.sum(axis=axis)
    total = np.where(among, values, 0).sum(axis=axis)
    return np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)
