"""Who suffers from which order: what becomes of a unit by its position, and the kindest and cruellest orders.

Both compare orders, and so take those that arrange the same units, as the disparity of classes does.
"""

import pandas as pd

from skeleton_cgl.analysis.curves import orders_by_repeat
from skeleton_cgl.analysis.disparity import final_accuracies
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.errors import InputError

ONE_ORDER = "only one order was run; this compares orders"


def accuracy_by_position(scores: Scores) -> pd.DataFrame:
    """Return one row per learner, class and position: its final accuracy, the mean over orders and repeats.

    The position of a class is the step at which its task is learned. Orders are those of the class level (task and
    class orders, each once, noise 0); a position at which no order has the class has no row. Refused: one order only.
    """
    rows = []
    for finals in final_accuracies(scores.ordinary(), "class"):
        for repeat, order, values in zip(finals.repeat, finals.orders, finals.values, strict=True):
            position = {unit: step for step, task in enumerate(order, start=1) for unit in task}
            for (unit,), value in zip(finals.tasks, values, strict=True):
                rows.append((finals.learner, repeat, order, unit, position[unit], value))
    tidy = pd.DataFrame(rows, columns=["learner", "repeat", "order", "class", "position", "accuracy"])
    if tidy["order"].nunique() < 2:
        raise InputError(ONE_ORDER)
    groups = ["learner", "class", "position"]
    by_repeat = tidy.groupby([*groups, "repeat"], sort=False)["accuracy"].mean()
    return by_repeat.groupby(groups, sort=False).mean().reset_index()


def extreme_orders(scores: Scores, count: int = 10) -> pd.DataFrame:
    """Return so many of the kindest and of the cruellest orders by final AA, one row per position in each.

    The columns are learner, rank (1 has the highest AA), order, AA, position, accuracy: a[B, position]. All are means
    over repeats; orders that some repeats lack, and orders of other units than most, are left out. Of few orders none
    is shown at both ends. Refused: one order only.
    """
    if count < 1:
        raise InputError(f"count: expected at least 1 order, found {count}")
    scores = scores.ordinary()
    comparable = {finals.learner: set(finals.orders) for finals in final_accuracies(scores, "class")}
    rows = orders_by_repeat(scores.where(lambda run: run.order in comparable[run.learner]))
    if rows["order"].nunique() < 2:
        raise InputError(ONE_ORDER)
    found = []
    for learner, runs in rows.groupby("learner", sort=False):
        complete = runs.groupby("order")["repeat"].transform("nunique") == runs["repeat"].nunique()
        means = runs[complete].groupby(["order", "position"])[["AA", "accuracy"]].mean().reset_index()
        means = means.sort_values(["AA", "order", "position"], ascending=[False, True, True])
        rank = pd.factorize(means["order"])[0] + 1
        ends = (rank <= count) | (rank > means["order"].nunique() - count)
        found.append(means.assign(learner=learner, rank=rank)[ends])
    orders = pd.concat(found, ignore_index=True)
    if orders.empty:
        raise InputError("no order was learned in every repeat")
    return orders[["learner", "rank", "order", "AA", "position", "accuracy"]]
