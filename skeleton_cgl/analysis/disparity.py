"""Order-normalized performance disparity: how far the order decides what is known in the end.

With a[B, t] the accuracy on unit t (a default task, or a class) after the last step of an order (Wei, De Schepper,
Mets 2024):  OPD_t = max over orders of a[B, t] − min over orders of a[B, t],  AOPD = mean_t OPD_t,  MOPD = max_t OPD_t.
Every OPD is taken inside one repeat; repeats are averaged afterwards. A unit without queries counts nowhere.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.performance import (
    RUN,
    Order,
    check_records,
    choose,
    stacked_class_accuracies,
    task_accuracies,
)
from skeleton_cgl.errors import InputError

LEVELS = ("task", "class")
ONE_ORDER = "records: one order, learned with one seed; disparity needs at least two orders"
FINAL_RUN = ("backbone", "method", "repeat", "noise", "order")


def final_accuracies(records: pd.DataFrame, level: str = "task") -> pd.DataFrame:
    """Return one row per run: the columns FINAL_RUN, then a[B, t] in one column per unit t.

    "task": units are the default tasks (tuples of classes), orders those of kind "task". "class": units are classes
    (numbers), and orders are the union of both kinds, an order of both taken once. Refused: records without a fitting
    last step, a last step recorded twice, and orders that do not all arrange the same units.
    """
    check_records(records)
    choose("level", level, LEVELS)
    last = records[records["step"].to_numpy() == records["order"].map(len).to_numpy()]
    if level == "task":
        last = last[last["kind"] == "task"]
    if last.empty:
        raise InputError(
            f"records: no {'order of kind task' if level == 'task' else 'order'} was learned to its last step"
        )
    if last.duplicated(list(RUN)).any():
        raise InputError(f"records: two for the last step of order {last['order'][last.duplicated(list(RUN))].iloc[0]}")
    last = last[~last.duplicated(list(FINAL_RUN))]
    units = _units(last["order"].iloc[0], level)
    for order in last["order"]:
        if _units(order, level) != units:
            raise InputError(f"records: every order must arrange the same {level} units {units}, found {order}")
    by_class = stacked_class_accuracies(last["test"])
    values = task_accuracies(by_class, [unit if level == "task" else (unit,) for unit in units])
    by_unit = pd.DataFrame(values, columns=pd.Index(units, dtype=object, tupleize_cols=False))
    return pd.concat([last[list(FINAL_RUN)].reset_index(drop=True), by_unit], axis=1)


def order_disparity(values: np.ndarray) -> np.ndarray:
    """Return OPD_t (..., units) of final accuracies (..., orders, units); NaN for a unit without queries."""
    return np.max(values, axis=-2) - np.min(values, axis=-2)


def expected_opd(values: np.ndarray, r: int | Sequence[int] | None = None) -> np.ndarray:
    """Return the exact expected OPD_t of r of the n orders drawn without replacement, from accuracies (n, units).

    With x_(1) ≤ … ≤ x_(n):  E[max] = Σ_i x_(i) C(i−1, r−1) / C(n, r),  and E[min] the same with x in falling order.
    The shape is (units,) for one r, else (len(r), units); None means r = 1 … n.
    """
    values = np.asarray(values, dtype=float)
    n = len(values)
    wanted = np.arange(1, n + 1) if r is None else np.atleast_1d(np.asarray(r, dtype=int))
    if wanted.min() < 1 or wanted.max() > n:
        raise InputError(f"r: expected between 1 and the number of orders {n}, found {wanted.min()} … {wanted.max()}")
    falling = -np.sort(-values, axis=0)
    spread = falling - falling[::-1]
    expected = np.empty((len(wanted), values.shape[1]))
    # The weight w_i = C(i−1, r−1)/C(n, r) starts with w_n = r/n and falls by w_(i−1)/w_i = (i−r)/(i−1), to 0 below
    # i = r, so that no factorial is ever formed. Blocks of r keep the weights within some 30 megabytes.
    i = np.arange(n, 1, -1)
    block = max(1, 4_000_000 // n)
    for start in range(0, len(wanted), block):
        some = wanted[start : start + block, None]
        ratios = np.concatenate([some / n, (i - some) / (i - 1)], axis=1)
        expected[start : start + block] = np.cumprod(ratios, axis=1) @ spread
    return expected[0] if np.ndim(r) == 0 and r is not None else expected


def mixed_opd(values: np.ndarray) -> np.ndarray:
    """Return the exact expected OPD_t if every order is learned in one of the repeats, drawn for that order alone.

    That is what a study finds whose split and first weights change from order to order, as far as the repeats at hand
    tell. From accuracies (repeats, orders, units): P(max ≤ x) = Π over orders of the share of its repeats that are ≤ x,
    and likewise for the minimum. NaN for a unit without queries.
    """
    return np.array([_mixed_range(unit) for unit in np.moveaxis(values, -1, 0)])


def _mixed_range(accuracies: np.ndarray) -> float:
    """Return E[max] − E[min] of (repeats, orders), every order's repeat drawn by itself."""
    if np.isnan(accuracies).any():
        return np.nan
    possible = np.unique(accuracies)
    at_most = (accuracies <= possible[:, None, None]).mean(axis=1).prod(axis=1)
    at_least = (accuracies >= possible[:, None, None]).mean(axis=1).prod(axis=1)
    return float(possible @ (np.diff(at_most, prepend=0) + np.diff(at_least, append=0)))


def bootstrap_interval(
    values: np.ndarray, generator: np.random.Generator, resamples: int = 1000, confidence: float = 0.95
) -> np.ndarray:
    """Return ((low, high) of AOPD, (low, high) of MOPD), both averaged over repeats: percentiles over resampled orders.

    `values` is (repeats, orders, units), the same orders in every repeat; a resample draws as many orders with
    replacement. Caveat: max − min of a resample never exceeds that of the sample, so the interval is biased downwards.
    It shows how much rests on a few extreme orders; it does not cover the value over all possible orders.
    """
    orders = values.shape[1]
    draws = np.empty((resamples, 2))
    for resample in range(resamples):
        chosen = generator.integers(orders, size=orders)
        draws[resample] = _aopd_and_mopd(order_disparity(values[:, chosen])).mean(axis=1)
    tail = 50 * (1 - confidence)
    return np.percentile(draws, [tail, 100 - tail], axis=0).T


def disparity(records: pd.DataFrame, level: str = "task", bootstrap: np.random.Generator | None = None) -> pd.DataFrame:
    """Return one row per backbone and method, all disparities as fractions:

    - backbone, method, level, orders, repeats;
    - AOPD, AOPD_std, MOPD, MOPD_std: mean and standard deviation (ddof = 1, NaN for one repeat) over repeats; NaN for
      one order;
    - AOPD_low, AOPD_high, MOPD_low, MOPD_high: `bootstrap_interval` drawn by the generator `bootstrap`, if the orders
      are a sample. NaN without a generator, and if all possible orders were run: the values then are exact;
    - R, AOPD_floor, MOPD_floor: the noise floor, the same max − min over R runs of one order that differ by their seed
      (the ordinary run among them), mean over the repeats that have such runs; NaN without them;
    - expected_AOPD_at_R: AOPD expected of R of the orders. The floor's peer, since max − min grows with the number of
      runs; NaN without a floor or with fewer than R orders;
    - AOPD_mixed: AOPD expected if the split and the first weights change from order to order, by `mixed_opd`; NaN for
      one repeat.

    Refused: one order without noise runs, repeats that differ in their orders or in R, and noise runs of more than one
    order or of an order that has no ordinary run.
    """
    table = final_accuracies(records, level)
    # One seed for all methods: they are resampled alike, and a method's interval does not depend on its neighbours.
    seed = None if bootstrap is None else bootstrap.integers(2**63)
    rows = []
    for (backbone, method), runs in table.groupby(["backbone", "method"], sort=False):
        where = f"records: backbone {backbone}, method {method}"
        values = _by_repeat(runs[runs["noise"] == 0], where)
        orders = values.shape[1]
        aopd, mopd = _aopd_and_mopd(order_disparity(values)) if orders > 1 else np.full((2, len(values)), np.nan)
        interval = np.full((2, 2), np.nan)
        if seed is not None and 1 < orders < _possible_orders(records[records["backbone"] == backbone], level):
            interval = bootstrap_interval(values, np.random.default_rng(seed))
        count, floor = _noise_floor(runs, where)
        comparable = count <= orders
        rows.append(
            {
                "backbone": backbone,
                "method": method,
                "level": level,
                "orders": orders,
                "repeats": len(values),
                **{"AOPD": aopd.mean(), "AOPD_std": _std(aopd), "MOPD": mopd.mean(), "MOPD_std": _std(mopd)},
                **dict(zip(("AOPD_low", "AOPD_high", "MOPD_low", "MOPD_high"), interval.flat, strict=True)),
                **{"R": count, "AOPD_floor": floor[0], "MOPD_floor": floor[1]},
                "expected_AOPD_at_R": _expected_aopd(values, int(count)) if comparable else np.nan,
                "AOPD_mixed": np.nanmean(mixed_opd(values)) if len(values) > 1 and orders > 1 else np.nan,
            }
        )
    found = pd.DataFrame(rows)
    if found[["AOPD", "AOPD_floor"]].isna().all(axis=None):
        raise InputError(ONE_ORDER)
    return found


def _units(order: Order, level: str) -> list[Any]:
    return sorted(order) if level == "task" else sorted(label for task in order for label in task)


def _possible_orders(records: pd.DataFrame, level: str) -> int:
    """Return how many orders there are, of the default tasks, or of the classes if orders of them were run."""
    order: Order = records["order"].iloc[0]
    if level == "task" or set(records["kind"]) == {"task"}:
        return math.factorial(len(order))
    sizes = [len(task) for task in order]
    return math.factorial(sum(sizes)) // math.prod(math.factorial(size) for size in sizes)


def _by_repeat(runs: pd.DataFrame, where: str) -> np.ndarray:
    """Return final accuracies (repeats, orders, units), the orders of every repeat in the same sequence."""
    if runs.empty:
        raise InputError(f"{where}: no ordinary run (noise 0)")
    units = runs.columns[len(FINAL_RUN) :]
    repeats = {repeat: rows.sort_values("order") for repeat, rows in runs.groupby("repeat")}
    first, *others = repeats
    for repeat in others:
        if list(repeats[repeat]["order"]) != list(repeats[first]["order"]):
            raise InputError(
                f"{where}: every repeat needs the same orders, found {len(repeats[first])} in repeat {first} "
                f"and {len(repeats[repeat])} in repeat {repeat}, not the same"
            )
    return np.array([rows[units].to_numpy(dtype=float) for rows in repeats.values()])


def _noise_floor(runs: pd.DataFrame, where: str) -> tuple[float, np.ndarray]:
    """Return R and (AOPD, MOPD) of the runs of one order that differ by their seed; NaN where there are none."""
    units = runs.columns[len(FINAL_RUN) :]
    disparities = {}
    for repeat, seeded in runs[runs["noise"] > 0].groupby("repeat"):
        orders = set(seeded["order"])
        same = runs[(runs["repeat"] == repeat) & runs["order"].map(lambda order, chosen=orders: order in chosen)]
        if len(orders) > 1 or not (same["noise"] == 0).any():
            raise InputError(
                f"{where}, repeat {repeat}: expected noise runs of one order that also has an ordinary run (noise 0), "
                f"found {sorted(orders)}"
            )
        disparities[repeat] = (len(same), *_aopd_and_mopd(order_disparity(same[units].to_numpy(dtype=float))))
    if not disparities:
        return np.nan, np.full(2, np.nan)
    counts, *floor = zip(*disparities.values(), strict=True)
    if len(set(counts)) > 1:
        raise InputError(f"{where}: every repeat needs the same number of noise runs, found {sorted(set(counts))}")
    return float(counts[0]), np.mean(floor, axis=1)


def _expected_aopd(values: np.ndarray, r: int) -> float:
    return float(np.mean([_aopd_and_mopd(expected_opd(repeat, r))[0] for repeat in values]))


def _aopd_and_mopd(opd: np.ndarray) -> np.ndarray:
    """Return (2, ...): mean and maximum over the units (..., units) that have queries; refuse if none has."""
    asked = ~np.isnan(opd)
    if not asked.any(axis=-1).all():
        raise InputError("records: test: no class has a query")
    return np.stack([np.nanmean(opd, axis=-1), np.nanmax(opd, axis=-1)])


def _std(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
