"""What learners knew in the end of the orders that can be compared.

Only orders that arrange the same are compared: at the level "task" the same tasks, at the level "class" the same units,
in whatever tasks. Where a study has several such groups, the one of most orders is taken, and the default tasks' or
else the larger one of those that have equally many; the orders of the others are counted as left out.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from skeleton_cgl.analysis.performance import task_accuracies
from skeleton_cgl.analysis.scores import Scores, choose
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, Task

LEVELS = ("task", "class")


@dataclass(frozen=True, eq=False)
class Finals:
    """What one learner knew at the end of the orders that can be compared: a[B, t] as values (N, T) of N runs.

    tasks: what t stands for, at the level "class" tasks of one unit. repeat, noise (N,), floor and orders name the
    runs, each once. halves (2, N, T): a[B, t] on test and on validation, of the units that have queries in both.
    possible: how many orders of that kind there are; planned: how many of them the study asks for; left_out: how many
    were run and cannot be compared.
    """

    learner: int
    level: str
    tasks: tuple[Task, ...]
    repeat: np.ndarray
    noise: np.ndarray
    floor: tuple[str, ...]
    orders: tuple[Order, ...]
    values: np.ndarray
    halves: np.ndarray
    possible: int
    planned: int
    left_out: int

    @cached_property
    def ordered(self) -> frozenset[Order]:
        """The orders that are compared."""
        return frozenset(self.orders)

    @cached_property
    def ordinary(self) -> np.ndarray:
        """The places (repeats, orders) of the ordinary runs, the orders of all repeats in one sequence.

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
        return np.array([[places[repeat][order] for order in sequence] for repeat in sorted(places)])

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
    finals, halves = scores.finals, scores.final_halves
    found = []
    for number in dict.fromkeys(scores.learner.tolist()):
        if points[number] not in groups:
            raise InputError(f"learner {number}: no ordinary run (noise 0)")
        (tasks, comparable), *others = groups[points[number]].items()
        kept: dict[tuple[int, int, str, Order], int] = {}
        for place in np.flatnonzero(scores.learner == number):
            run = scores.runs[place]
            if arranged(run.order, level) == tasks:
                kept.setdefault((run.repeat, run.noise, run.floor, run.order), int(place))
        if not kept:
            raise InputError(f"learner {number}: none of its orders can be compared with those of the others")
        places = list(kept.values())
        orders = tuple(scores.runs[place].order for place in places)
        missing = {run.order for run in scores.missing if run.learner == number}
        found.append(
            Finals(
                learner=number,
                level=level,
                tasks=tasks,
                repeat=scores.repeat[places],
                noise=scores.noise[places],
                floor=tuple(scores.runs[place].floor for place in places),
                orders=orders,
                values=task_accuracies(finals[places], tasks),
                halves=task_accuracies(halves[:, places], tasks),
                possible=_possible_orders(comparable, level),
                planned=len({*orders, *(order for order in missing if arranged(order, level) == tasks)}),
                left_out=sum(len(orders) for _, orders in others),
            )
        )
    return tuple(found)


def arranged(order: Order, level: str) -> tuple[Task, ...]:
    """Return what an order arranges, whatever the sequence: its tasks, or its units as tasks of one."""
    return tuple(sorted(order)) if level == "task" else tuple((unit,) for unit in sorted(chain(*order)))


def _groups(scores: Scores, level: str, points: dict[int, str]) -> dict[str, dict[tuple[Task, ...], set[Order]]]:
    """Return, for every point of a sweep, the orders by what they arrange; those to be compared come first."""
    orders: dict[str, dict[tuple[Task, ...], set[Order]]] = {}
    default = set()
    for run in scores.runs:
        if run.noise == 0:
            tasks = arranged(run.order, level)
            orders.setdefault(points[run.learner], {}).setdefault(tasks, set()).add(run.order)
            if run.kind == "task":
                default.add(tasks)

    def rank(group: tuple[tuple[Task, ...], set[Order]]) -> tuple[int, bool, int]:
        tasks, alike = group
        return len(alike), tasks in default, sum(map(len, tasks))

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
