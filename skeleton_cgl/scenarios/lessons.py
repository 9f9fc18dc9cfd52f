"""Lessons and orders as values: what curricula are made of."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from skeleton_cgl.errors import InputError

Task = tuple[int, ...]
"""The units learned together, ascending; `as_task` makes one."""

Order = tuple[Task, ...]
"""A sequence of tasks."""


UnitKind = Literal["class", "label", "domain", "period"]
"""What the units of a scenario are."""


@dataclass(frozen=True)
class Unit:
    """The smallest thing an order arranges, or an output of the head. key: for seeds and digests; name: for people."""

    key: str
    name: str


def units_named(names: Iterable[str]) -> tuple[Unit, ...]:
    """Return units whose keys are their names."""
    return tuple(Unit(name, name) for name in names)


class Lesson(Protocol):
    """One step of a curriculum. token: names it in keys; units: what it teaches; seed: where its randomness is from."""

    @property
    def token(self) -> str: ...

    @property
    def units(self) -> Task: ...

    @property
    def seed(self) -> tuple[int | str, ...]: ...


Prefix = tuple[Lesson, ...]
"""The lessons taught so far, the latest one last."""


@dataclass(frozen=True)
class TaskLesson:
    """The lesson of a task: all there is to learn of its units."""

    units: Task

    @property
    def token(self) -> str:
        return ",".join(map(str, self.units))

    @property
    def seed(self) -> tuple[int | str, ...]:
        return self.units


@dataclass(frozen=True)
class Segment:
    """The lesson of a piece of a stream: batches of samples, by number, in the sequence they arrive in.

    Its token is a digest of them, so that two streams share what they begin with, and no more. asked: the tasks in
    whose own surroundings queries are asked afterwards, where that makes a difference; the token is of them too.
    """

    units: Task
    batches: tuple[tuple[int, ...], ...]
    asked: Order = ()

    @cached_property
    def token(self) -> str:
        content = (self.units, self.batches, *([self.asked] if self.asked else []))
        return hashlib.sha256(repr(content).encode()).hexdigest()[:16]

    @property
    def samples(self) -> list[int]:
        """The samples of all batches, one batch after the other."""
        return [sample for batch in self.batches for sample in batch]

    @property
    def seed(self) -> tuple[int | str, ...]:
        return (self.token,)


@dataclass(frozen=True)
class Unnamed:
    """What a learner is told of the lesson it learns on a stream: a name that says nothing of what is taught."""

    token: str
    units: Task = ()

    @property
    def seed(self) -> tuple[int | str, ...]:
        return (self.token,)


def as_task(units: Iterable[int]) -> Task:
    """Return units given in any order as a task; refuse an empty one and a unit given twice."""
    task = tuple(sorted(int(unit) for unit in units))
    if not task:
        raise InputError("a task needs at least one class")
    if len(set(task)) != len(task):
        raise InputError(f"task {task}: a class is given twice")
    return task


def task_lessons(order: Order) -> Prefix:
    """Return the lessons of an order whose lessons are its tasks."""
    return tuple(TaskLesson(task) for task in order)


def lessons_of(order: Order, units: int, calendar: Order | None = None) -> Prefix:
    """Return the lessons of an order of so many units; refuse unknown ones, and another order than the calendar's."""
    for task in order:
        if as_task(task)[0] < 0 or max(task) >= units:
            raise InputError(f"task {task}: there are only 0–{units - 1}")
    if calendar is not None and tuple(order) != calendar[: len(order)]:
        raise InputError(f"order {describe(order)}: periods have one order, the calendar's")
    return task_lessons(tuple(as_task(task) for task in order))


def tokens(prefix: Prefix) -> str:
    """Return a prefix as text: `0,1 > 4,5 > 2,3` for tasks."""
    return " > ".join(lesson.token for lesson in prefix)


def describe(order: Order) -> str:
    """Return an order as text: `0,1 > 4,5 > 2,3`."""
    return tokens(task_lessons(order))


def parse(text: str) -> Order:
    """Return the order that `describe` gave this text for."""
    return tuple(as_task(int(unit) for unit in task.split(",")) for task in text.split(" > "))
