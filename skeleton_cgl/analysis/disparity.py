"""Order-normalized performance disparity: how far the order decides what is known in the end.

With a[B, t] the accuracy on t (a task, or a single unit such as a class) after the last step of an order (Wei, De
Schepper, Mets 2024):  OPD_t = max over orders of a[B, t] − min over orders of a[B, t],  AOPD = mean_t OPD_t,
MOPD = max_t OPD_t. Every OPD is taken inside one repeat; repeats are averaged afterwards. What has no queries counts
nowhere.

Only orders that arrange the same are compared: at the level "task" the same tasks, at the level "class" the same units,
in whatever tasks. Where a study has several such groups, the one of most orders is taken, and the default tasks' or
else the larger one of those that have equally many; the orders of the others are counted as left out.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.performance import task_accuracies
from skeleton_cgl.analysis.scores import Scores, choose
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, Task

LEVELS = ("task", "class")
ONE_ORDER = "one order, learned with one seed; disparity needs at least two orders"


@dataclass(frozen=True, eq=False)
class Finals:
    """What one learner knew at the end of the orders that can be compared: a[B, t] as values (N, T) of N runs.

    tasks: what t stands for, at the level "class" tasks of one unit. repeat, noise (N,) and orders name the runs, each
    once. possible: how many orders of that kind there are; left_out: how many were run and cannot be compared.
    """

    learner: int
    level: str
    tasks: tuple[Task, ...]
    repeat: np.ndarray
    noise: np.ndarray
    orders: tuple[Order, ...]
    values: np.ndarray
    possible: int
    left_out: int

    @cached_property
    def ordered(self) -> frozenset[Order]:
        """The orders that are compared."""
        return frozenset(self.orders)

    def by_repeat(self) -> np.ndarray:
        """Return the values (repeats, orders, T) of the ordinary runs, the orders of all repeats in one sequence.

        Refused: no ordinary run, and repeats that differ in their orders.
        """
        places: dict[int, dict[Order, int]] = {}
        for place in np.flatnonzero(self.noise == 0):
            places.setdefault(int(self.repeat[place]), {})[self.orders[place]] = int(place)
        if not places:
            raise InputError("no ordinary run (noise 0)")
        first, *others = sorted(places)
        for repeat in others:
            if places[repeat].keys() != places[first].keys():
                raise InputError(
                    f"every repeat needs the same orders, found {len(places[first])} in repeat {first} "
                    f"and {len(places[repeat])} in repeat {repeat}, not the same"
                )
        sequence = sorted(places[first])
        return np.array([self.values[[places[repeat][order] for order in sequence]] for repeat in sorted(places)])


@dataclass(frozen=True)
class Disparity:
    """The order disparity of one learner, as fractions; NaN where there is nothing to compute it from.

    AOPD, AOPD_std, MOPD, MOPD_std: mean and standard deviation (ddof = 1) over repeats. AOPD_low … MOPD_high: the
    `bootstrap_interval`, if the orders are a sample; where all possible orders were run, the values are exact. R,
    AOPD_floor, MOPD_floor: the noise floor, the same max − min over R runs of one order that differ by their seed (the
    ordinary run among them), mean over the repeats that have such runs. expected_AOPD_at_R: AOPD expected of R of the
    orders, the floor's peer, since max − min grows with the number of runs. AOPD_mixed: AOPD expected if the split and
    the first weights change from order to order, by `mixed_opd`. left_out: orders run that cannot be compared.
    """

    learner: int
    level: str
    orders: int
    repeats: int
    AOPD: float
    AOPD_std: float
    MOPD: float
    MOPD_std: float
    AOPD_low: float
    AOPD_high: float
    MOPD_low: float
    MOPD_high: float
    R: float
    AOPD_floor: float
    MOPD_floor: float
    expected_AOPD_at_R: float
    AOPD_mixed: float
    left_out: int


def final_accuracies(scores: Scores, level: str = "task") -> tuple[Finals, ...]:
    """Return a[B, t] of every learner that has runs, in the sequence of their first runs.

    Learners at one point of a sweep are compared over the same tasks or units. An order that is there as a task order
    and as a class order is taken once. Refused: an unknown level, and scores without a run.
    """
    choose("level", level, LEVELS)
    if not scores.runs:
        raise InputError("scores: no run is finished")
    points = {learner.number: repr(learner.point) for learner in scores.learners}
    groups = _groups(scores, level, points)
    finals = scores.finals
    found = []
    for number in dict.fromkeys(scores.learner.tolist()):
        if points[number] not in groups:
            raise InputError(f"learner {number}: no ordinary run (noise 0)")
        (tasks, comparable), *others = groups[points[number]].items()
        kept: dict[tuple[int, int, Order], int] = {}
        for place in np.flatnonzero(scores.learner == number):
            run = scores.runs[place]
            if _arranged(run.order, level) == tasks:
                kept.setdefault((run.repeat, run.noise, run.order), int(place))
        if not kept:
            raise InputError(f"learner {number}: none of its orders can be compared with those of the others")
        places = list(kept.values())
        found.append(
            Finals(
                learner=number,
                level=level,
                tasks=tasks,
                repeat=scores.repeat[places],
                noise=scores.noise[places],
                orders=tuple(scores.runs[place].order for place in places),
                values=task_accuracies(finals[places], tasks),
                possible=_possible_orders(comparable, level),
                left_out=sum(len(orders) for _, orders in others),
            )
        )
    return tuple(found)


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


def disparity(scores: Scores, level: str = "task", bootstrap: np.random.Generator | None = None) -> pd.DataFrame:
    """Return one row per learner, the fields of `Disparity` as columns; intervals are drawn by `bootstrap`, if given.

    Refused: one order without noise runs, and what `learner_disparity` refuses.
    """
    seed = None if bootstrap is None else interval_seed(bootstrap)
    rows = []
    for finals in final_accuracies(scores, level):
        try:
            rows.append(asdict(learner_disparity(finals, seed)))
        except InputError as error:
            raise InputError(f"learner {finals.learner}: {error}") from error
    found = pd.DataFrame(rows)
    if found[["AOPD", "AOPD_floor"]].isna().all(axis=None):
        raise InputError(ONE_ORDER)
    return found


def interval_seed(generator: np.random.Generator) -> int:
    """Return one seed for all learners: they are resampled alike, and no interval depends on its neighbours."""
    return int(generator.integers(2**63))


def learner_disparity(finals: Finals, seed: int | None = None) -> Disparity:
    """Return the disparity of one learner, with intervals if a seed is given.

    Refused: repeats that differ in their orders or in R, and noise runs of more than one order or of an order that has
    no ordinary run.
    """
    values = finals.by_repeat()
    orders = values.shape[1]
    aopd, mopd = _aopd_and_mopd(order_disparity(values)) if orders > 1 else np.full((2, len(values)), np.nan)
    interval = np.full((2, 2), np.nan)
    if seed is not None and 1 < orders < finals.possible:
        interval = bootstrap_interval(values, np.random.default_rng(seed))
    count, floor = _noise_floor(finals)
    return Disparity(
        learner=finals.learner,
        level=finals.level,
        orders=orders,
        repeats=len(values),
        AOPD=float(aopd.mean()),
        AOPD_std=deviation(aopd),
        MOPD=float(mopd.mean()),
        MOPD_std=deviation(mopd),
        AOPD_low=float(interval[0, 0]),
        AOPD_high=float(interval[0, 1]),
        MOPD_low=float(interval[1, 0]),
        MOPD_high=float(interval[1, 1]),
        R=count,
        AOPD_floor=float(floor[0]),
        MOPD_floor=float(floor[1]),
        expected_AOPD_at_R=_expected_aopd(values, int(count)) if count <= orders else np.nan,
        AOPD_mixed=float(np.nanmean(mixed_opd(values))) if len(values) > 1 and orders > 1 else np.nan,
        left_out=finals.left_out,
    )


def _arranged(order: Order, level: str) -> tuple[Task, ...]:
    """Return what an order arranges, whatever the sequence: its tasks, or its units as tasks of one."""
    return tuple(sorted(order)) if level == "task" else tuple((unit,) for unit in sorted(chain(*order)))


def _groups(scores: Scores, level: str, points: dict[int, str]) -> dict[str, dict[tuple[Task, ...], set[Order]]]:
    """Return, for every point of a sweep, the orders by what they arrange; those to be compared come first."""
    orders: dict[str, dict[tuple[Task, ...], set[Order]]] = {}
    default = set()
    for run in scores.runs:
        if run.noise == 0:
            arranged = _arranged(run.order, level)
            orders.setdefault(points[run.learner], {}).setdefault(arranged, set()).add(run.order)
            if run.kind == "task":
                default.add(arranged)

    def rank(group: tuple[tuple[Task, ...], set[Order]]) -> tuple[int, bool, int]:
        arranged, alike = group
        return len(alike), arranged in default, sum(map(len, arranged))

    return {point: dict(sorted(groups.items(), key=rank, reverse=True)) for point, groups in orders.items()}


def _possible_orders(orders: Iterable[Order], level: str) -> int:
    """Return how many orders there are of the kind of these: of their tasks, or of units if orders mix them.

    Orders of units are cut into tasks of the sizes that were seen, in each sequence of sizes that was seen.
    """
    orders = list(orders)
    if level == "task" or len({frozenset(order) for order in orders}) == 1:
        return math.factorial(len(orders[0]))
    sizes = {tuple(len(task) for task in order) for order in orders}
    return sum(math.factorial(sum(each)) // math.prod(map(math.factorial, each)) for each in sizes)


def _noise_floor(finals: Finals) -> tuple[float, np.ndarray]:
    """Return R and (AOPD, MOPD) of the runs of one order that differ by their seed; NaN where there are none."""
    disparities = {}
    for repeat in sorted(set(finals.repeat[finals.noise > 0].tolist())):
        of_repeat = [place for place in range(len(finals.orders)) if finals.repeat[place] == repeat]
        orders = {finals.orders[place] for place in of_repeat if finals.noise[place] > 0}
        same = [place for place in of_repeat if finals.orders[place] in orders]
        if len(orders) > 1 or not (finals.noise[same] == 0).any():
            raise InputError(
                f"repeat {repeat}: expected noise runs of one order that also has an ordinary run (noise 0), "
                f"found {sorted(orders)}"
            )
        disparities[repeat] = (len(same), *_aopd_and_mopd(order_disparity(finals.values[same])))
    if not disparities:
        return np.nan, np.full(2, np.nan)
    counts, *floor = zip(*disparities.values(), strict=True)
    if len(set(counts)) > 1:
        raise InputError(f"every repeat needs the same number of noise runs, found {sorted(set(counts))}")
    return float(counts[0]), np.mean(floor, axis=1)


def _expected_aopd(values: np.ndarray, r: int) -> float:
    return float(np.mean([_aopd_and_mopd(expected_opd(repeat, r))[0] for repeat in values]))


def _aopd_and_mopd(opd: np.ndarray) -> np.ndarray:
    """Return (2, ...): mean and maximum over those of (..., T) that have queries; refuse if none has."""
    asked = ~np.isnan(opd)
    if not asked.any(axis=-1).all():
        raise InputError("scores: test: no class has a query")
    return np.stack([np.nanmean(opd, axis=-1), np.nanmax(opd, axis=-1)])


def deviation(values: np.ndarray) -> float:
    """Return the standard deviation (ddof = 1) over repeats; NaN for one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
