"""Order-normalized performance disparity: how far the order decides what is known in the end.

With a[B, t] the accuracy on t (a task, or a single unit such as a class) after the last step of an order (Wei, De
Schepper, Mets 2024):  OPD_t = max over orders of a[B, t] − min over orders of a[B, t],  AOPD = mean_t OPD_t,
MOPD = max_t OPD_t. Every OPD is taken inside one repeat, over the tasks of that repeat; repeats are averaged
afterwards. What has no queries counts nowhere.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import chain, combinations

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.cross import cross_disparity
from skeleton_cgl.analysis.finals import Finals, final_accuracies
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order

ONE_ORDER = "one order, learned with one seed; disparity needs at least two orders"
_SUBSETS = 5000
"""So many subsets of the orders are looked at where there are more."""


@dataclass(frozen=True)
class Disparity:
    """The order disparity of one learner, as fractions; NaN where there is nothing to compute it from.

    orders, planned, possible: how many orders are compared, how many the study asks for, and how many there are; where
    the orders are a sample of all there are, AOPD and MOPD of all can only be higher. left_out: orders run that cannot
    be compared.

    AOPD, MOPD, and both chosen on one half of the queries and read on the other (AOPD_cross, MOPD_cross): mean and
    standard deviation (ddof = 1) over repeats.

    R, floor_orders: the noise floors are over R runs of one order, the ordinary one among them; mean over so many
    orders and over the repeats that have them. AOPD_floor, MOPD_floor: the same max − min over runs that differ by
    their seed; …_floor_splits: by their split; …_floor_both: by both. expected_AOPD_at_R, expected_MOPD_at_R: of R of
    the orders, the floors' peers, since max − min grows with the number of runs.

    AOPD_mixed: AOPD expected if the split and the first weights change from order to order, by `mixed_opd`; NaN where
    repeats do not share their orders.
    """

    learner: int
    level: str
    orders: int
    planned: int
    possible: int
    repeats: int
    AOPD: float
    AOPD_std: float
    MOPD: float
    MOPD_std: float
    AOPD_cross: float
    AOPD_cross_std: float
    MOPD_cross: float
    MOPD_cross_std: float
    R: float
    floor_orders: float
    AOPD_floor: float
    AOPD_floor_splits: float
    AOPD_floor_both: float
    MOPD_floor: float
    MOPD_floor_splits: float
    MOPD_floor_both: float
    expected_AOPD_at_R: float
    expected_MOPD_at_R: float
    AOPD_mixed: float
    left_out: int

    @property
    def is_sample(self) -> bool:
        """Whether there are more orders than those compared."""
        return self.orders < self.possible


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
    return expected[0] if isinstance(r, int | np.integer) else expected


def expected_mopd(values: np.ndarray, r: int) -> float:
    """Return the expected MOPD of r of the n orders drawn without replacement, from accuracies (n, units).

    The mean over all subsets of r orders; where they are many, over 5000 of them, the same ones for all learners.
    """
    highest = np.full((len(_subsets(len(values), r)), values.shape[1]), -np.inf)
    lowest = -highest
    for place in _subsets(len(values), r).T:
        np.maximum(highest, values[place], out=highest)
        np.minimum(lowest, values[place], out=lowest)
    return float(_aopd_and_mopd(highest - lowest)[1].mean())


@cache
def _subsets(n: int, r: int) -> np.ndarray:
    """Return (subsets, r): r of n places, in every way or in so many ways drawn with a seed of their own."""
    if math.comb(n, r) <= _SUBSETS:
        return np.array(list(combinations(range(n), r)))
    generator = np.random.default_rng(0)
    return np.array([generator.choice(n, r, replace=False, shuffle=False) for _ in range(_SUBSETS)])


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


def disparity(scores: Scores, level: str = "task") -> pd.DataFrame:
    """Return one row per learner, the fields of `Disparity` as columns.

    Refused: one order without noise runs, and what `learner_disparity` refuses.
    """
    rows = []
    for finals in final_accuracies(scores, level):
        try:
            rows.append(asdict(learner_disparity(finals)))
        except InputError as error:
            raise InputError(f"learner {finals.learner}: {error}") from error
    found = pd.DataFrame(rows)
    if found[["AOPD", *(f"AOPD{floor}" for floor in _FLOOR_FIELDS.values())]].isna().all(axis=None):
        raise InputError(ONE_ORDER)
    return found


def learner_disparity(finals: Finals) -> Disparity:
    """Return the disparity of one learner.

    Refused: repeats that differ in the number of their orders, or in their orders although they share their tasks;
    noise floors of different numbers of runs, and those of an order that has no ordinary run.
    """
    values = finals.values[finals.ordinary]
    repeats, orders = finals.ordinary.shape
    nothing = np.full((2, repeats), np.nan)
    aopd, mopd = _aopd_and_mopd(order_disparity(values)) if orders > 1 else nothing
    aopd_cross, mopd_cross = cross_disparity(finals.halves[:, finals.ordinary]) if orders > 1 else nothing
    floors = _noise_floors(finals)
    at_r = _expected_at(values, int(floors["R"])) if floors["R"] <= orders else np.full(2, np.nan)
    return Disparity(
        learner=finals.learner,
        level=finals.level,
        orders=orders,
        planned=finals.planned,
        possible=finals.possible,
        repeats=repeats,
        AOPD=float(aopd.mean()),
        AOPD_std=deviation(aopd),
        MOPD=float(mopd.mean()),
        MOPD_std=deviation(mopd),
        AOPD_cross=float(aopd_cross.mean()),
        AOPD_cross_std=deviation(aopd_cross),
        MOPD_cross=float(mopd_cross.mean()),
        MOPD_cross_std=deviation(mopd_cross),
        **floors,
        expected_AOPD_at_R=float(at_r[0]),
        expected_MOPD_at_R=float(at_r[1]),
        AOPD_mixed=float(np.nanmean(mixed_opd(values))) if finals.share_orders and repeats > 1 < orders else np.nan,
        left_out=finals.left_out,
    )


_FLOOR_FIELDS = {"seeds": "_floor", "splits": "_floor_splits", "both": "_floor_both"}
"""How the fields of a noise floor end, by what was drawn anew."""


def _noise_floors(finals: Finals) -> dict[str, float]:
    """Return the fields of the noise floors; AOPD and MOPD are means over the orders of a repeat, then over repeats."""
    fields: dict[str, float] = {}
    runs: set[int] = set()
    orders_in: dict[int, set[Order]] = {}
    for kind, end in _FLOOR_FIELDS.items():
        by_repeat: dict[int, list[np.ndarray]] = {}
        for (repeat, order), places in finals.floors(kind).items():
            by_repeat.setdefault(repeat, []).append(_aopd_and_mopd(order_disparity(finals.values[places])))
            runs.add(len(places))
            orders_in.setdefault(repeat, set()).add(order)
        means = [np.mean(each, axis=0) for each in by_repeat.values()]
        aopd, mopd = np.mean(means, axis=0) if means else (np.nan, np.nan)
        fields |= {f"AOPD{end}": float(aopd), f"MOPD{end}": float(mopd)}
    if len(runs) > 1:
        raise InputError(f"every noise floor needs the same number of runs, found {sorted(runs)}")
    orders = (
        len(set(chain(*orders_in.values()))) if finals.share_orders else max(map(len, orders_in.values()), default=0)
    )
    return {"R": float(max(runs, default=np.nan)), "floor_orders": orders, **fields}


def _expected_at(values: np.ndarray, r: int) -> np.ndarray:
    """Return AOPD and MOPD expected of r orders, means over the repeats, from accuracies (repeats, orders, T)."""
    each = [(_aopd_and_mopd(expected_opd(repeat, r))[0], expected_mopd(repeat, r)) for repeat in values]
    return np.asarray(np.mean(each, axis=0))


def _aopd_and_mopd(opd: np.ndarray) -> np.ndarray:
    """Return (2, ...): mean and maximum over those of (..., T) that have queries; refuse if none has."""
    asked = ~np.isnan(opd)
    if not asked.any(axis=-1).all():
        raise InputError("scores: test: no class has a query")
    return np.stack([np.nanmean(opd, axis=-1), np.nanmax(opd, axis=-1)])


def deviation(values: np.ndarray) -> float:
    """Return the standard deviation (ddof = 1) over repeats; NaN for one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
