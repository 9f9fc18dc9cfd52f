"""What it is about an order that matters: the share of a class's variance over orders that one property explains.

The properties (factors) of an order, seen from one class: `position`, the step at which the class is learned; `mates`,
the classes learned together with it; `last`, the last task of the order.
"""

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.finals import final_accuracies
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.scenarios.lessons import Order

FACTORS = ("position", "mates", "last")


def explained_share(values: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """Return η² and ω² of values (n,) divided into groups (n,), as in a one-way analysis of variance.

    With SS_b the sum of squares between the g group means, SS_t the total and MS_w = (SS_t − SS_b)/(n − g):
    η² = SS_b/SS_t,  ω² = (SS_b − (g − 1)·MS_w)/(SS_t + MS_w).
    η² grows by chance alone with the number of groups, to 1 when every order is a group of its own; ω² is corrected for
    that, lies around 0 (also below) for a factor that explains nothing, and is NaN if n = g. Both are NaN for constant
    values, and for a factor that takes one value only: neither was put to the test.
    """
    codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)[1:]
    n, g = len(values), len(sizes)
    if g < 2 or np.ptp(values) == 0:
        return np.nan, np.nan
    deviations = values - values.mean()
    total = np.sum(deviations**2)
    between = np.sum(np.bincount(codes, weights=deviations) ** 2 / sizes)
    if n == g:
        return float(between / total), np.nan
    within = max(total - between, 0.0) / (n - g)
    return float(between / total), float((between - (g - 1) * within) / (total + within))


def variance_explained(scores: Scores) -> pd.DataFrame:
    """Return one row per learner, repeat, class and factor: orders, groups, eta_squared, omega_squared.

    The orders are those of the class level (task and class orders, each once, noise 0). Shares of different factors
    overlap and do not add up to 1.
    """
    rows = []
    for finals in final_accuracies(scores.ordinary(), "class"):
        for repeat in dict.fromkeys(finals.repeat.tolist()):
            places = np.flatnonzero(finals.repeat == repeat)
            factors = _factors([finals.orders[place] for place in places], len(scores.units))
            for column, (unit,) in enumerate(finals.tasks_in[repeat]):
                values = finals.values[places, column]
                for factor in FACTORS:
                    groups = factors[factor][:, unit]
                    share = explained_share(values, groups)
                    row = (finals.learner, repeat, unit, factor, len(values), len(np.unique(groups)), *share)
                    rows.append(row)
    names = ("learner", "repeat", "class", "factor", "orders", "groups", "eta_squared", "omega_squared")
    return pd.DataFrame(rows, columns=names)


def mean_variance_explained(scores: Scores) -> pd.DataFrame:
    """Return one row per learner and factor: eta_squared and omega_squared, means over classes and repeats.

    Classes whose share is not defined are left out of its mean; NaN if none is left.
    """
    by = variance_explained(scores).groupby(["learner", "factor"], sort=False)
    return by[["eta_squared", "omega_squared"]].mean().reset_index()


def _factors(orders: list[Order], classes: int) -> dict[str, np.ndarray]:
    """Return (orders, K) numbers for every factor, equal where two orders agree in it for a class; 0: not learned."""
    numbers: dict[tuple[int, ...], int] = {}
    factors = {factor: np.zeros((len(orders), classes), dtype=int) for factor in FACTORS}
    for row, order in enumerate(orders):
        for step, task in enumerate(order, start=1):
            factors["position"][row, list(task)] = step
            factors["mates"][row, list(task)] = numbers.setdefault(task, len(numbers) + 1)
        factors["last"][row] = numbers[order[-1]]
    return factors
