"""What arrives one by one in scenarios on graphs: classes or labels, domains, periods."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.lessons import Order, UnitKind

Periods = Annotated[int, Field(ge=1, le=10_000)] | tuple[int, ...] | None
"""So many of about equally many nodes; the times at which a new one begins; or None, every time is one."""


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a scenario and the order of its default tasks; of_nodes (N,): that of every node, −1 for none.

    notes: what a reader must know of them, in words.
    """

    kind: UnitKind
    names: tuple[str, ...]
    of_nodes: np.ndarray
    default: Order
    notes: tuple[str, ...] = ()


def classes_of(graph: Graph, tasks: ClassTasks) -> Units:
    """Return the classes; nodes of classes that are in no task belong to none."""
    default = tasks.divide(graph.classes)
    learned = [label for task in default for label in task]
    of_nodes = np.where(np.isin(graph.labels, learned), graph.labels, -1)
    return Units("class", graph.classes, of_nodes, default, notes_on_tasks(tasks, graph.classes, default))


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


def domains_of(graph: Graph, called: str | None) -> Units:
    """Return the groups of that name, or the only ones there are, as domains; nodes without a class belong to none."""
    if called is None and len(graph.groups) != 1:
        known = ", ".join(sorted(graph.groups)) or "none"
        raise InputError(f"scenario: domains: say which groups of {graph.name} are the domains; there are: {known}")
    called = next(iter(graph.groups)) if called is None else called
    if called not in graph.groups:
        raise InputError(
            f"scenario: domains: {graph.name} has no groups {called!r}{did_you_mean(called, graph.groups)}"
        )
    groups = graph.groups[called]
    return Units("domain", groups.names, _of_labelled(graph, groups.numbers), _one_by_one(len(groups.names)))


def periods_of(graph: Graph, periods: Periods) -> Units:
    """Return the periods of the nodes' times; nodes without a class belong to none, and stay out of all snapshots."""
    if graph.times is None:
        raise InputError(f"scenario: setting: time-il, but {graph.name} does not tell the times of its nodes")
    times = graph.times
    if periods is None:
        starts = np.unique(times)
    elif isinstance(periods, int):
        # Nodes of one time are in one period.
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
        raise InputError(f"scenario: periods: no node in {empty[0]}")
    return Units("period", names, _of_labelled(graph, numbers), _one_by_one(len(names)))


def _of_labelled(graph: Graph, numbers: np.ndarray) -> np.ndarray:
    return numbers.copy() if graph.many_labels else np.where(graph.labels >= 0, numbers, -1)


def _one_by_one(number: int) -> Order:
    return tuple((unit,) for unit in range(number))
