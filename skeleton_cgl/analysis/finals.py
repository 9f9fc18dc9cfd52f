"""What learners knew in the end of the orders that can be compared.

Orders are compared inside of a repeat, and only those that arrange the same: at the level "task" the same tasks, at the
level "class" the same units, in whatever tasks. Where a repeat has several such groups, the one of most orders is
taken, and the default tasks' or else the larger one of those that have equally many; the orders of the others are
counted as left out. Repeats may differ in what they arrange: a scenario can group its classes anew for every repeat.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from skeleton_cgl.analysis.performance import task_accuracies
from skeleton_cgl.analysis.scores import Scores, choose
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, Task
from skeleton_cgl.scenarios.measures import QUERIED

LEVELS = ("task", "class")
OWN_TASKS = "Every repeat has tasks of its own; orders are counted and compared inside of a repeat."
"""What a reader must be told where repeats do not share their orders."""


@dataclass(frozen=True, eq=False)
class Finals:
    """What one learner knew at the end of the orders that can be compared: a[B, t] as values (N, T) of N runs.

    tasks_in: what t stands for in each repeat, at the level "class" tasks of one unit; where a repeat has fewer than
    others, the values of the rest are NaN. repeat, noise (N,), floor and orders name the runs, each once. halves
    (2, N, T): a[B, t] on test and on validation, of the units that have queries in both. possible: how many orders of
    that kind there are; planned: how many of them the study asks for; left_out: how many were run and cannot be
    compared. Where repeats have orders of their own, all three are of a repeat, of the one that has most.
    """

    learner: int
    level: str
    tasks_in: dict[int, tuple[Task, ...]]
    repeat: np.ndarray
    noise: np.ndarray
    floor: tuple[str, ...]
    orders: tuple[Order, ...]
    values: np.ndarray
    halves: np.ndarray
    possible: int
    planned: int
    left_out: int

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What t stands for in all repeats; refused where they differ."""
        first, *others = self.tasks_in.values()
        if any(other != first for other in others):
            raise InputError("repeats differ in their tasks; this needs the same ones in all of them")
        return first

    @cached_property
    def orders_in(self) -> dict[int, frozenset[Order]]:
        """The orders that are compared in each repeat."""
        found: dict[int, set[Order]] = {}
        for repeat, order in zip(self.repeat.tolist(), self.orders, strict=True):
            found.setdefault(repeat, set()).add(order)
        return {repeat: frozenset(orders) for repeat, orders in found.items()}

    @cached_property
    def share_orders(self) -> bool:
        """Whether all repeats have orders of the same tasks, so that they are the same orders once all are finished.

        At the level of units, repeats can have the same units in tasks of their own; their orders are not shared.
        """
        return _share_tasks(self.orders_in.values())

    @property
    def order_count(self) -> int:
        """The number of orders compared; of a repeat, the one that has most, where repeats have their own."""
        if self.share_orders:
            return len(frozenset(self.orders))
        return max(map(len, self.orders_in.values()))

    @cached_property
    def ordinary(self) -> np.ndarray:
        """The places (repeats, orders) of the ordinary runs; the orders of a repeat are sorted, so that repeats that
        share them have them in one sequence.

        Refused: no ordinary run, repeats that share their tasks but not their orders, and others that differ in number.
        """
        places: dict[int, dict[Order, int]] = {}
        for place in np.flatnonzero(self.noise == 0):
            places.setdefault(int(self.repeat[place]), {})[self.orders[place]] = int(place)
        if not places:
            raise InputError("no ordinary run (noise 0)")
        first, *others = sorted(places)
        for repeat in others:
            counts = f"found {len(places[first])} in repeat {first} and {len(places[repeat])} in repeat {repeat}"
            if self.share_orders and places[repeat].keys() != places[first].keys():
                raise InputError(f"every repeat needs the same orders, {counts}, not the same")
            if len(places[repeat]) != len(places[first]):
                raise InputError(f"every repeat needs as many orders, {counts}")
        return np.array([[places[repeat][order] for order in sorted(places[repeat])] for repeat in sorted(places)])

    def floors(self, kind: str) -> dict[tuple[int, Order], np.ndarray]:
        """Return the places (R,) of the runs of every noise floor of a kind, by repeat and order.

        They are the runs that drew anew what the kind says, and the ordinary one. Refused: a floor without that.
        """
        named = list(zip(self.repeat.tolist(), self.orders, strict=True))
        ordinary = {named[place]: place for place in np.flatnonzero(self.noise == 0)}
        again: dict[tuple[int, Order], list[int]] = {}
        for place, floor in enumerate(self.floor):
            if floor == kind:
                again.setdefault(named[place], []).append(place)
        for repeat, order in again:
            if (repeat, order) not in ordinary:
                raise InputError(f"repeat {repeat}: the noise floor of order {order} lacks its ordinary run (noise 0)")
        return {name: np.array([ordinary[name], *again[name]]) for name in sorted(again)}


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
    found = []
    for number in dict.fromkeys(scores.learner.tolist()):
        if points[number] not in groups:
            raise InputError(f"learner {number}: no ordinary run (noise 0)")
        found.append(_of_learner(scores, level, number, groups[points[number]]))
    return tuple(found)


def _of_learner(scores: Scores, level: str, number: int, groups: "_Groups") -> Finals:
    """Return a[B, t] of one learner; groups: by repeat, those to be compared first."""
    tasks_in = {repeat: next(iter(of_repeat)) for repeat, of_repeat in groups.items()}
    # A floor without its ordinary run is told of where floors are looked at.
    usual = next(iter(tasks_in.values()))
    kept: dict[tuple[int, int, str, Order], int] = {}
    for place in np.flatnonzero(scores.learner == number):
        run = scores.runs[place]
        if arranged(run.order, level) == tasks_in.get(run.repeat, usual):
            kept.setdefault((run.repeat, run.noise, run.floor, run.order), int(place))
    if not kept:
        raise InputError(f"learner {number}: none of its orders can be compared with those of the others")
    places = np.array(list(kept.values()))
    repeats = scores.repeat[places]
    own_tasks = {repeat: tasks_in.get(repeat, usual) for repeat in dict.fromkeys(repeats.tolist())}
    finals = Finals(
        learner=number,
        level=level,
        tasks_in=own_tasks,
        repeat=repeats,
        noise=scores.noise[places],
        floor=tuple(scores.runs[place].floor for place in places),
        orders=tuple(scores.runs[place].order for place in places),
        values=_by_task(scores.finals, scores.weights(), places, repeats, own_tasks),
        halves=np.stack(
            [
                _by_task(half, scores.weights(queries), places, repeats, own_tasks)
                for half, queries in zip(scores.final_halves, QUERIED, strict=True)
            ]
        ),
        possible=0,
        planned=0,
        left_out=0,
    )
    return _counted(finals, scores, {repeat: groups[repeat] for repeat in own_tasks if repeat in groups} or groups)


def _by_task(
    by_unit: np.ndarray,
    weights: np.ndarray | None,
    places: np.ndarray,
    repeats: np.ndarray,
    tasks_in: dict[int, tuple[Task, ...]],
) -> np.ndarray:
    """Return (n, T) the values of the runs at some places on the tasks of their repeats, from values (N, U)."""
    found = np.full((len(places), max(map(len, tasks_in.values()))), np.nan)
    for repeat, tasks in tasks_in.items():
        rows = repeats == repeat
        weighing = None if weights is None else weights[places[rows]]
        found[rows, : len(tasks)] = task_accuracies(by_unit[places[rows]], tasks, weighing)
    return found


def _counted(finals: Finals, scores: Scores, groups: "_Groups") -> Finals:
    """Return the finals with the numbers of orders that there are, that are planned and that are left out."""
    planned = {repeat: set(orders) for repeat, orders in finals.orders_in.items()}
    for run in scores.missing:
        tasks = finals.tasks_in.get(run.repeat)
        if run.learner == finals.learner and arranged(run.order, finals.level) == tasks:
            planned[run.repeat].add(run.order)
    compared = [next(iter(of_repeat.values())) for of_repeat in groups.values()]
    others = [set(chain(*list(of_repeat.values())[1:])) for of_repeat in groups.values()]
    if finals.share_orders:
        compared, others = [set(chain(*compared))], [set(chain(*others))]
        asked = len(set(chain(*planned.values())))
    else:
        asked = max(map(len, planned.values()))
    return replace(
        finals,
        possible=max(_possible_orders(orders, finals.level) for orders in compared),
        planned=asked,
        left_out=max(map(len, others)),
    )


def repeats_share_orders(scores: Scores) -> bool:
    """Return whether the repeats of every learner have orders of the same tasks."""
    orders: dict[int, dict[int, set[Order]]] = {}
    for run in scores.runs:
        orders.setdefault(run.learner, {}).setdefault(run.repeat, set()).add(run.order)
    return all(_share_tasks(by_repeat.values()) for by_repeat in orders.values())


def _share_tasks(orders_in: Iterable[Iterable[Order]]) -> bool:
    """Return whether repeats have orders of the same tasks, as far as they go."""
    first, *others = (frozenset(map(frozenset, orders)) for orders in orders_in)
    return all(each <= first or first <= each for each in others)


def arranged(order: Order, level: str) -> tuple[Task, ...]:
    """Return what an order arranges, whatever the sequence: its tasks, or its units as tasks of one."""
    return tuple(sorted(order)) if level == "task" else tuple((unit,) for unit in sorted(chain(*order)))


_Groups = dict[int, dict[tuple[Task, ...], set[Order]]]
"""By repeat, the orders by what they arrange."""


def _groups(scores: Scores, level: str, points: dict[int, str]) -> dict[str, _Groups]:
    """Return, for every point of a sweep and repeat, the orders by what they arrange; those to be compared first."""
    orders: dict[str, _Groups] = {}
    default = set()
    for run in scores.runs:
        if run.noise == 0:
            tasks = arranged(run.order, level)
            of_repeat = orders.setdefault(points[run.learner], {}).setdefault(run.repeat, {})
            of_repeat.setdefault(tasks, set()).add(run.order)
            if run.kind == "task":
                default.add((run.repeat, tasks))

    def ranked(repeat: int, groups: dict[tuple[Task, ...], set[Order]]) -> dict[tuple[Task, ...], set[Order]]:
        def rank(tasks: tuple[Task, ...]) -> tuple[int, bool, int]:
            return len(groups[tasks]), (repeat, tasks) in default, sum(map(len, tasks))

        return {tasks: groups[tasks] for tasks in sorted(groups, key=rank, reverse=True)}

    return {
        point: {repeat: ranked(repeat, groups) for repeat, groups in by_repeat.items()}
        for point, by_repeat in orders.items()
    }


def _possible_orders(orders: Iterable[Order], level: str) -> int:
    """Return how many orders there are of the kind of these: of their tasks, or of units if orders mix them.

    Orders of units are cut into tasks of the sizes that were seen, in each sequence of sizes that was seen.
    """
    orders = list(orders)
    if level == "task" or len({frozenset(order) for order in orders}) == 1:
        return math.factorial(len(orders[0]))
    sizes = {tuple(len(task) for task in order) for order in orders}
    return sum(math.factorial(sum(each)) // math.prod(map(math.factorial, each)) for each in sizes)
