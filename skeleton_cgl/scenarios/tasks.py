"""A task as a value: what orders are made of."""

from collections.abc import Iterable

from skeleton_cgl.errors import InputError

Task = tuple[int, ...]
"""The classes learned together, ascending; `as_task` makes one."""


def as_task(classes: Iterable[int]) -> Task:
    """Return classes given in any order as a task; refuse an empty one and a class given twice."""
    task = tuple(sorted(int(label) for label in classes))
    if not task:
        raise InputError("a task needs at least one class")
    if len(set(task)) != len(task):
        raise InputError(f"task {task}: a class is given twice")
    return task
