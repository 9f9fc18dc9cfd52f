"""Orders: sequences of tasks, all of them or a sample that is reproducible and grows.

A sample of 100 orders is the first 100 of a sample of 200, so that a study can be enlarged without losing what it has.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, field_validator

from skeleton_cgl.config import Checked
from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import shown
from skeleton_cgl.scenarios.lessons import Order, Task, UnitKind, as_task
from skeleton_cgl.seeds import seed_of

MOST_ORDERS = 50_000
"""More orders than this are not enumerated."""
_PLURAL: dict[UnitKind, str] = {"class": "classes", "label": "labels", "domain": "domains", "period": "periods"}


class Orders(Checked):
    """Which orders a study asks for; the union of all that is given, without repetition.

    tasks: "all" orders of the default tasks, or so many of them at random, or "default" for the ascending one; where
    domains are arranged, a task is a domain. classes: so many orders of the classes, or labels, at random, neighbours
    paired into tasks of the same size.
    class_sampling: "uniform"; "balanced", every class at every position as equally often as the number allows; or
    "antithetic", an order and its reverse in turn.
    given: orders spelled out, each a list of tasks, each a list of units by number.
    """

    tasks: Literal["all", "default"] | int | None = None
    classes: int = Field(default=0, ge=0)
    class_sampling: Literal["uniform", "balanced", "antithetic"] = "uniform"
    given: tuple[tuple[tuple[int, ...], ...], ...] = Field(default=(), max_length=MOST_ORDERS)
    seed: int = Field(default=0, ge=0)

    @field_validator("tasks", mode="wrap")
    @classmethod
    def _one_of_three(cls, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        try:
            return check(value)
        except ValidationError:
            raise ValueError(f"expected all, default or a number, found {shown(value)}") from None


class TooManyOrders(InputError):
    """All orders of so many tasks are asked for that they cannot be enumerated; `stages` is what they would take."""

    def __init__(self, tasks: int) -> None:
        self.stages = stages_of_all(tasks)
        super().__init__(
            f"orders: tasks: all orders of {tasks} tasks are {math.factorial(tasks):,}, {self.stages:,} stages, "
            "too many to enumerate; ask for a sample, such as tasks: 100"
        )


@dataclass(frozen=True)
class AskedOrder:
    """An order of a study: "task" of the default tasks, "class" where classes are mixed anew, "domain" of domains."""

    order: Order
    kind: Literal["task", "class", "domain"]


def make_orders(asked: Orders, default_tasks: Sequence[Task], unit_kind: UnitKind = "class") -> list[AskedOrder]:
    """Return the orders a study asks for, each once; refuse too many, none, and what does not fit the units.

    Refused too: any order of periods but the calendar's, and domains mixed anew into tasks.
    """
    default = tuple(default_tasks)
    if unit_kind == "period" and (asked.tasks not in (None, "default") or asked.classes or asked.given):
        raise InputError("orders: periods have one order, the calendar's; ask for it with tasks: default")
    if unit_kind == "domain" and asked.classes:
        raise InputError("orders: classes: there are domains to arrange, not classes; ask for their orders with tasks")
    found: dict[Order, None] = {}
    given = (_given(order, default, unit_kind) for order in asked.given)
    for order in itertools.chain(_task_orders(asked, default), _class_orders(asked, default), given):
        found.setdefault(order)
    if not found:
        raise InputError("orders: none is asked for; give tasks, classes or given")
    return [AskedOrder(order, _kind(order, default, unit_kind)) for order in found]


def _kind(order: Order, default: Order, unit_kind: UnitKind) -> Literal["task", "class", "domain"]:
    if unit_kind == "domain":
        return "domain"
    return "task" if set(order) == set(default) else "class"


def _task_orders(asked: Orders, default: Order) -> Iterator[Order]:
    if asked.tasks is None:
        return
    number = math.factorial(len(default))
    if asked.tasks == "default":
        yield default
    elif asked.tasks == "all":
        if number > MOST_ORDERS:
            raise TooManyOrders(len(default))
        yield from itertools.permutations(default)
    elif not 0 < asked.tasks <= number:
        raise InputError(f"orders: tasks: {asked.tasks} of {number:,} orders cannot be drawn")
    elif asked.tasks > MOST_ORDERS:
        raise _too_many("tasks", asked.tasks)
    elif asked.tasks == number:
        yield from itertools.permutations(default)
    else:
        random = np.random.default_rng(seed_of("task orders", asked.seed))
        drawn: dict[Order, None] = {}
        while len(drawn) < asked.tasks:
            drawn.setdefault(tuple(default[place] for place in random.permutation(len(default))))
        yield from drawn


def _too_many(field: str, asked: int) -> InputError:
    return InputError(f"orders: {field}: {asked:,} asked for, expected at most {MOST_ORDERS:,}")


def stages_of_all(tasks: int) -> int:
    """Return the number of stages of the tree of all orders: Σ_k n!/(n−k)! over k = 1 … n."""
    return sum(math.perm(tasks, length) for length in range(1, tasks + 1))


def _class_orders(asked: Orders, default: Order) -> Iterator[Order]:
    """Yield so many different class orders, cut into tasks of the default sizes."""
    classes = [label for task in default for label in task]
    sizes = [len(task) for task in default]
    random = np.random.default_rng(seed_of("class orders", asked.class_sampling, asked.seed))
    sample = {"uniform": _uniform, "balanced": _balanced, "antithetic": _antithetic}[asked.class_sampling]
    possible = math.factorial(len(classes))
    for size in sizes:
        possible //= math.factorial(size)
    if asked.classes > possible:
        raise InputError(f"orders: classes: {asked.classes} asked for, there are only {possible:,} class orders")
    if asked.classes > MOST_ORDERS:
        raise _too_many("classes", asked.classes)
    drawn: dict[Order, None] = {}
    draws = sample(len(classes), random)
    while len(drawn) < asked.classes:
        places = next(draws)
        ends = itertools.accumulate(sizes)
        cut = [places[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        drawn.setdefault(tuple(as_task(classes[place] for place in task) for task in cut))
    yield from drawn


def _uniform(number: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    while True:
        yield random.permutation(number)


def _balanced(number: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield blocks of `number` orders in which every class is at every position once: a shuffled Latin square."""
    while True:
        first = random.permutation(number)
        for shift in random.permutation(number):
            yield np.roll(first, shift)


def _antithetic(number: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    while True:
        order = random.permutation(number)
        yield order
        yield order[::-1]


def _given(tasks: Sequence[Sequence[int]], default: Order, word: UnitKind) -> Order:
    order = tuple(as_task(task) for task in tasks)
    known = sorted(label for task in default for label in task)
    flat = [label for task in order for label in task]
    for label in flat:
        if label not in known:
            raise InputError(
                f"orders: given {order}: {word} {label} is unknown; {_PLURAL[word]} are {known[0]}–{known[-1]}"
            )
    if len(set(flat)) != len(flat):
        raise InputError(f"orders: given {order}: a {word} is given twice")
    return order
