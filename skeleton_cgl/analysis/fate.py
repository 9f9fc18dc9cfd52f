"""Who suffers from which order: what becomes of a class by its position, and the kindest and cruellest orders."""

from collections.abc import Iterable

import pandas as pd

from skeleton_cgl.analysis.curves import GROUP, accuracy_matrices
from skeleton_cgl.analysis.disparity import FINAL_RUN, final_accuracies
from skeleton_cgl.analysis.performance import Order, average_accuracy
from skeleton_cgl.errors import InputError


def accuracy_by_position(records: pd.DataFrame) -> pd.DataFrame:
    """Return one row per backbone, method, class and position: its final accuracy, the mean over orders and repeats.

    The position of a class is the step at which its task is learned. Orders are those of the class level (task and
    class orders, each once, noise 0); a position at which no order has the class has no row. Refused: one order only.
    """
    table = final_accuracies(records, "class")
    ordinary = table[table["noise"] == 0]
    _refuse_one_order(ordinary["order"])
    tidy = ordinary.melt(id_vars=list(FINAL_RUN), var_name="class", value_name="accuracy")
    tidy["position"] = [
        next(step for step, task in enumerate(order, start=1) if label in task)
        for order, label in zip(tidy["order"], tidy["class"], strict=True)
    ]
    by_repeat = tidy.groupby([*GROUP, "class", "position", "repeat"], sort=False)["accuracy"].mean()
    return by_repeat.groupby([*GROUP, "class", "position"], sort=False).mean().reset_index()


def extreme_orders(records: pd.DataFrame, count: int = 10) -> pd.DataFrame:
    """Return so many of the kindest and of the cruellest orders by final AA, one row per position in each.

    The columns are backbone, method, rank (1 has the highest AA), order, AA, position, accuracy: a[B, position]. All
    are means over repeats; orders that some repeats lack are left out. Of few orders none is shown at both ends.
    Refused: one order only.
    """
    if count < 1:
        raise InputError(f"count: expected at least 1 order, found {count}")
    rows = [
        {**run, "AA": average_accuracy(matrix)[-1], "position": position, "accuracy": accuracy}
        for run, matrix in accuracy_matrices(records)
        for position, accuracy in enumerate(matrix[-1], start=1)
    ]
    _refuse_one_order(row["order"] for row in rows)
    found = []
    for (backbone, method), runs in pd.DataFrame(rows).groupby(GROUP, sort=False):
        complete = runs.groupby("order")["repeat"].transform("nunique") == runs["repeat"].nunique()
        means = runs[complete].groupby(["order", "position"])[["AA", "accuracy"]].mean().reset_index()
        means = means.sort_values(["AA", "order", "position"], ascending=[False, True, True])
        rank = pd.factorize(means["order"])[0] + 1
        ends = (rank <= count) | (rank > means["order"].nunique() - count)
        found.append(means.assign(backbone=backbone, method=method, rank=rank)[ends])
    orders = pd.concat(found, ignore_index=True)
    if orders.empty:
        raise InputError("records: no order was learned in every repeat")
    return orders[[*GROUP, "rank", "order", "AA", "position", "accuracy"]]


def _refuse_one_order(orders: Iterable[Order]) -> None:
    if len(set(orders)) < 2:
        raise InputError("records: only one order was run; this compares orders")
