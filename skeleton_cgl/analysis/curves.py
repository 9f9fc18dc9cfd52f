"""Along an order and over many: accuracy step by step, mean accuracy matrices, AA and AF of an order, growth of AOPD.

Re-seeded runs (noise > 0) count nowhere but in the growth of AOPD over seeds. What differs between orders is taken
inside one repeat and averaged over repeats afterwards.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.disparity import FINAL_RUN, ONE_ORDER, expected_opd, final_accuracies
from skeleton_cgl.analysis.performance import RUN, Order, accuracy_matrix, average_accuracy, check_records
from skeleton_cgl.errors import InputError

GROUP = ["backbone", "method"]


def accuracy_matrices(records: pd.DataFrame) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Yield every ordinary run, as the columns RUN, with its a (B, B); refuse a run without a record of each step."""
    runs: dict[tuple, list[tuple[int, np.ndarray]]] = {}
    chosen = _ordinary(records)
    for *run, step, test in zip(*(chosen[name] for name in (*RUN, "step", "test")), strict=True):
        runs.setdefault(tuple(run), []).append((step, test))
    for run, steps in runs.items():
        named = dict(zip(RUN, run, strict=True))
        found, confusions = zip(*sorted(steps, key=lambda pair: pair[0]), strict=True)
        if found != tuple(range(1, len(named["order"]) + 1)):
            raise InputError(f"records: expected steps 1–{len(named['order'])} of {named}, found {found}")
        yield named, accuracy_matrix(np.stack(confusions), named["order"])


def accuracy_by_step(records: pd.DataFrame) -> pd.DataFrame:
    """Return one row per backbone, method and step k: AA_k as mean, lowest, quartiles and highest over the orders.

    The columns are AA, lowest, lower_quartile, upper_quartile, highest; each is the mean over repeats.
    """
    rows = [
        {**run, "step": step, "AA": average}
        for run, matrix in accuracy_matrices(records)
        for step, average in enumerate(average_accuracy(matrix), start=1)
    ]
    by_repeat = pd.DataFrame(rows).groupby([*GROUP, "step", "repeat"], sort=False)["AA"]
    spread = {"lowest": 0, "lower_quartile": 0.25, "upper_quartile": 0.75, "highest": 1}
    inside = pd.DataFrame({"AA": by_repeat.mean(), **{name: by_repeat.quantile(q) for name, q in spread.items()}})
    return inside.groupby([*GROUP, "step"], sort=False).mean().reset_index()


def mean_accuracy_matrices(records: pd.DataFrame, order: Order | None = None) -> pd.DataFrame:
    """Return one row per backbone, method, step and position ≤ step: accuracy, the mean of a[step, position] over runs.

    The runs are those of all orders, or of one; refused is an order that was not run.
    """
    rows = [
        {**run, "step": step + 1, "position": position + 1, "accuracy": matrix[step, position]}
        for run, matrix in accuracy_matrices(records)
        if order is None or run["order"] == order
        for step, position in zip(*np.tril_indices(len(matrix)), strict=True)
    ]
    if not rows:
        raise InputError(f"records: order {order} was not run")
    return _means(pd.DataFrame(rows), [*GROUP, "step", "position"], ["accuracy"])


def mean_over_repeats(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per backbone, method, kind and order: AA and AF of its ordinary runs, averaged over repeats.

    `runs` is what `performance.runs` gives; a column "panel" is kept.
    """
    groups = [*(["panel"] if "panel" in runs else []), *GROUP, "kind", "order"]
    return _means(runs[runs["noise"] == 0], groups, ["AA", "AF"])


def aopd_growth(records: pd.DataFrame, level: str = "task") -> pd.DataFrame:
    """Return one row per backbone, method, varied and r: AOPD expected of r runs, exact, the mean over repeats.

    varied "order": r of the orders, up to as many as every repeat has. varied "seed": r of the runs of one order that
    differ by their seed alone, the noise floor; its rows are there if such runs are. Refused if r never exceeds 1.
    """
    rows = []
    for (backbone, method), runs in final_accuracies(records, level).groupby(GROUP, sort=False):
        for varied, samples in (("order", _by_order(runs)), ("seed", _by_seed(runs))):
            shortest = min(map(len, samples), default=0)
            curves = [pd.DataFrame(expected_opd(values)).mean(axis=1)[:shortest] for values in samples]
            for r, aopd in enumerate(np.mean(curves, axis=0) if curves else [], start=1):
                rows.append((backbone, method, varied, r, aopd))
    growth = pd.DataFrame(rows, columns=[*GROUP, "varied", "r", "AOPD"])
    if growth["r"].max() < 2:
        raise InputError(ONE_ORDER)
    return growth


def _ordinary(records: pd.DataFrame) -> pd.DataFrame:
    """Return the records of ordinary runs (noise 0); refuse if there is none."""
    check_records(records)
    found = records[records["noise"] == 0]
    if found.empty:
        raise InputError("records: no ordinary run (noise 0)")
    return found


def _by_order(runs: pd.DataFrame) -> list[np.ndarray]:
    """Return the final accuracies (orders, units) of every repeat."""
    return [_values(rows) for _, rows in runs[runs["noise"] == 0].groupby("repeat")]


def _by_seed(runs: pd.DataFrame) -> list[np.ndarray]:
    """Return the final accuracies (seeds, units) of every order of a repeat that was run with several seeds."""
    again = set(runs.loc[runs["noise"] > 0, "order"])
    seeded = runs[[order in again for order in runs["order"]]]
    return [_values(rows) for _, rows in seeded.groupby(["repeat", "order"]) if (rows["noise"] > 0).any()]


def _values(rows: pd.DataFrame) -> np.ndarray:
    return rows[rows.columns[len(FINAL_RUN) :]].to_numpy(dtype=float)


def _means(frame: pd.DataFrame, groups: list[str], columns: list[str]) -> pd.DataFrame:
    return frame.groupby(groups, sort=False)[columns].mean().reset_index()
