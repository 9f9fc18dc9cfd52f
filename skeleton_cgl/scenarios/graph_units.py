"""What arrives one by one in scenarios on graphs: classes or labels, domains, periods."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.items import Items
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.lessons import Order, UnitKind

Periods = Annotated[int, Field(ge=1, le=10_000)] | tuple[int, ...] | None
"""So many of about equally many items; the times at which a new one begins; or None, every time is one."""


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a scenario and the order of its default tasks; of_items (I,): that of every item, −1 for none.

    notes: what a reader must know of them, in words.
    """

    kind: UnitKind
    names: tuple[str, ...]
    of_items: np.ndarray
    default: Order
    notes: tuple[str, ...] = ()


def classes_of(items: Items, tasks: ClassTasks) -> Units:
    """Return the classes; items of classes that are in no task belong to none."""
    default = tasks.divide(items.classes)
    learned = [label for task in default for label in task]
    of_items = np.where(np.isin(items.labels, learned), items.labels, -1)
    return Units("class", items.classes, of_items, default, notes_on_tasks(tasks, items.classes, default))


def notes_on_tasks(tasks: ClassTasks, names: tuple[str, ...], default: Order) -> tuple[str, ...]:
    """Return in words which classes were drawn into which tasks, and which are in none."""
    told = []
    if tasks.grouping == "random":
        drawn = " > ".join(", ".join(names[label] for label in task) for task in default)
        told.append(f"tasks drawn from seed {tasks.grouping_seed or 0}: {drawn}")
    learned = {label for task in default for label in task}
    left_out = [name for label, name in enumerate(names) if label not in learned]
    if left_out:
        told.append(f"in no task, neither learned nor asked about: {', '.join(left_out)}")
    return tuple(told)


def domains_of(items: Items, called: str | None) -> Units:
    """Return the groups of that name, or the only ones there are, as domains; items without a class belong to none."""
    if called is None and len(items.groups) != 1:
        known = ", ".join(sorted(items.groups)) or "none"
        raise InputError(f"scenario: domains: say which groups of {items.name} are the domains; there are: {known}")
    called = next(iter(items.groups)) if called is None else called
    if called not in items.groups:
        raise InputError(
            f"scenario: domains: {items.name} has no groups {called!r}{did_you_mean(called, items.groups)}"
        )
    groups = items.groups[called]
    return Units("domain", groups.names, _of_labelled(items, groups.numbers), _one_by_one(len(groups.names)))


def periods_of(items: Items, periods: Periods) -> Units:
    """Return the periods of the items' times; items without a class belong to none, and stay out of all snapshots."""
    if items.times is None:
        raise InputError(f"scenario: setting: time-il, but {items.name} does not tell the times of its {items.item}s")
    times = items.times
    if periods is None:
        starts = np.unique(times)
    elif isinstance(periods, int):
        # Items of one time are in one period.
        starts = np.unique(np.sort(times)[np.arange(periods) * len(times) // periods])
        if len(starts) < periods:
            raise InputError(
                f"scenario: periods: {len(np.unique(times))} different times do not make {periods} periods"
            )
    else:
        starts = np.array([times.min(), *periods])
        if (np.diff(starts) <= 0).any():
            raise InputError(
                f"scenario: periods: expected ascending times after the first, {times.min()}, found {list(periods)}"
            )
    numbers = np.searchsorted(starts, times, side="right") - 1
    ends = [*(start - 1 for start in starts[1:]), times.max()]
    names = tuple(str(start) if start == end else f"{start}–{end}" for start, end in zip(starts, ends, strict=True))
    empty = [name for number, name in enumerate(names) if not (numbers == number).any()]
    if empty:
        raise InputError(f"scenario: periods: no {items.item} in {empty[0]}")
    return Units("period", names, _of_labelled(items, numbers), _one_by_one(len(names)))


def _of_labelled(items: Items, numbers: np.ndarray) -> np.ndarray:
    return numbers.copy() if items.many_labels else np.where(items.labels >= 0, numbers, -1)


def _one_by_one(number: int) -> Order:
    return tuple((unit,) for unit in range(number))
