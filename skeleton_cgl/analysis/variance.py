"""What it is about an order that matters: the share of a class's variance over orders that one property explains.

The properties (factors) of an order, seen from one class: `position`, the step at which the class is learned; `mates`,
the classes learned together with it; `last`, the last task of the order.
"""

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.disparity import FINAL_RUN, final_accuracies
from skeleton_cgl.analysis.performance import Order

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


def variance_explained(records: pd.DataFrame) -> pd.DataFrame:
    """Return one row per backbone, method, repeat, class and factor: orders, groups, eta_squared, omega_squared.

    The orders are those of the class level (task and class orders, each once, noise 0). Shares of different factors
    overlap and do not add up to 1.
    """
    table = final_accuracies(records, "class")
    classes = list(table.columns[len(FINAL_RUN) :])
    rows = []
    for run, orders in table[table["noise"] == 0].groupby(["backbone", "method", "repeat"], sort=False):
        factors = _factors(list(orders["order"]), max(classes) + 1)
        for label in classes:
            values = orders[label].to_numpy(dtype=float)
            for factor in FACTORS:
                groups = factors[factor][:, label]
                share = explained_share(values, groups)
                rows.append((*run, label, factor, len(values), len(np.unique(groups)), *share))
    names = ("backbone", "method", "repeat", "class", "factor", "orders", "groups", "eta_squared", "omega_squared")
    return pd.DataFrame(rows, columns=names)


def mean_variance_explained(records: pd.DataFrame) -> pd.DataFrame:
    """Return one row per backbone, method and factor: eta_squared and omega_squared, means over classes and repeats.

    Classes whose share is not defined are left out of its mean; NaN if none is left.
    """
    shares = variance_explained(records)
    by = shares.groupby(["backbone", "method", "factor"], sort=False)
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
