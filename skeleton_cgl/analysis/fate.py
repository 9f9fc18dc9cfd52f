"""Who suffers from which order: what becomes of a unit by its position, and the kindest and cruellest orders.

Both compare orders, and so take those that arrange the same units, as the disparity of classes does. Where repeats have
tasks of their own, a unit's fate is the mean over the repeats that have it, and there are no kindest orders. What is
best and worst is so on the test queries; where it is not so on the validation queries, which had no part in the choice,
it does not hold.
"""

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.cross import cross_opd
from skeleton_cgl.analysis.curves import orders_by_repeat
from skeleton_cgl.analysis.finals import final_accuracies
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.errors import InputError

ONE_ORDER = "only one order was run; this compares orders"


def accuracy_by_position(scores: Scores) -> pd.DataFrame:
    """Return one row per learner, class and position: its final accuracy, the mean over orders and repeats.

    The position of a class is the step at which its task is learned. Orders are those of the class level (task and
    class orders, each once, noise 0); a position at which no order has the class has no row. validation: the accuracy
    on validation. holds: False for the best and the worst position of a class if the best is not better than the worst
    on validation. Refused: one order only.
    """
    rows = []
    for finals in final_accuracies(scores.ordinary(), "class"):
        named = zip(finals.repeat, finals.orders, finals.values, finals.halves[1], strict=True)
        for repeat, order, values, on_validation in named:
            position = {unit: step for step, task in enumerate(order, start=1) for unit in task}
            # Of a repeat of fewer classes, what stands beyond them is empty.
            for (unit,), value, other in zip(finals.tasks_in[int(repeat)], values, on_validation, strict=False):
                rows.append((finals.learner, repeat, order, unit, position[unit], value, other))
    tidy = pd.DataFrame(rows, columns=["learner", "repeat", "order", "class", "position", "accuracy", "validation"])
    if tidy.groupby(["learner", "repeat"])["order"].nunique().max() < 2:
        raise InputError(ONE_ORDER)
    groups = ["learner", "class", "position"]
    by_repeat = tidy.groupby([*groups, "repeat"], sort=False)[["accuracy", "validation"]].mean()
    fate = by_repeat.groupby(groups, sort=False).mean().reset_index()
    holds = np.ones(len(fate), dtype=bool)
    for places in fate.groupby(["learner", "class"]).indices.values():
        here = fate.iloc[places]
        accuracy = here["accuracy"].to_numpy()
        ends = np.isclose(accuracy, accuracy.max()) | np.isclose(accuracy, accuracy.min())
        apart = cross_opd(accuracy[:, None], here["validation"].to_numpy()[:, None])[0]
        # Where all positions are equally good, none is said to be better than another.
        holds[places] = ~(ends & (apart <= 0) & ~ends.all())
    return fate.assign(holds=holds)


def extreme_orders(scores: Scores, count: int = 10) -> pd.DataFrame:
    """Return so many of the kindest and of the cruellest orders by final AA, one row per position in each.

    The columns are learner, rank (1 has the highest AA), order, AA, validation_AA, holds, position, accuracy:
    a[B, position]. All are means over repeats; orders that some repeats lack, and orders of other units than most, are
    left out. Of few orders none is shown at both ends. holds: False for an order of the kinder half whose AA on
    validation is no higher than the median of all there, and for one of the crueller half whose AA is no lower.
    Refused: one order only.
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
        if not complete.any():
            continue
        measures = ["AA", "validation_AA", "accuracy"]
        means = runs[complete].groupby(["order", "position"])[measures].mean().reset_index()
        means = means.sort_values(["AA", "order", "position"], ascending=[False, True, True])
        place, orders = pd.factorize(means["order"])
        ends = (place < count) | (place >= len(orders) - count)
        holds = _on_their_side(means.drop_duplicates("order")["validation_AA"].to_numpy())[place]
        found.append(means.assign(learner=learner, rank=place + 1, holds=holds)[ends])
    if not found:
        raise InputError("no order was learned in every repeat, as where repeats have tasks of their own")
    return pd.concat(found, ignore_index=True)[
        ["learner", "rank", "order", "AA", "validation_AA", "holds", "position", "accuracy"]
    ]


def _on_their_side(on_validation: np.ndarray) -> np.ndarray:
    """Return whether orders, from kind to cruel, are on their side of the median of these values of theirs (n,).

    The order in the middle has no side.
    """
    from_middle = np.arange(len(on_validation)) - (len(on_validation) - 1) / 2
    above = on_validation - np.median(on_validation)
    return ~(((from_middle < 0) & (above <= 0)) | ((from_middle > 0) & (above >= 0)))
