"""How classes are divided into tasks: the fields that every class-based scenario has."""

from collections.abc import Sequence
from typing import Literal, Self

import torch
from pydantic import Field

from skeleton_cgl.config import Checked, did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, as_task

ClassName = int | str
"""A class by number or by name."""
_BETWEEN_REPEATS = 1000
"""BeGin's ten runs have the seeds 0, 1000, …, 9000."""


class ClassTasks(Checked):
    """Which classes are learned, and in which tasks by default.

    setting: "class-il", a query reveals nothing; "task-il", it reveals its task, and is answered among that task's
    classes. classes: a subset of the data set's, by number or name; the others are neither learned nor asked about.
    classes_per_task: so many in ascending order make a task; rest: what becomes of a last task with fewer, a task of
    its "own", "join" the one before, or "drop" its classes. tasks: the default tasks spelled out instead.

    grouping: "random" draws the classes in another sequence first, and so which of them make a task, which task comes
    first by default and which are dropped: BeGin's own draw, `torch.randperm` from the seed. grouping_seed: the same
    groups in all repeats; without one, repeat r draws its own from the seed 1000·r, as the runs of BeGin have it.
    """

    setting: Literal["class-il", "task-il"] = "class-il"
    classes_per_task: int = Field(default=2, ge=1)
    rest: Literal["own", "join", "drop"] = "own"
    tasks: tuple[tuple[ClassName, ...], ...] | None = None
    classes: tuple[ClassName, ...] | None = None
    grouping: Literal["ascending", "random"] = "ascending"
    grouping_seed: int | None = Field(default=None, ge=0, lt=2**63)

    def of_repeat(self, repeat: int) -> Self:
        """Return the fields as a repeat has them: with the seed of its groups, where they are drawn."""
        if self.grouping == "ascending" or self.grouping_seed is not None:
            return self
        return self.model_copy(update={"grouping_seed": _BETWEEN_REPEATS * repeat})

    def divide(self, names: Sequence[str]) -> Order:
        """Return the default tasks of classes of these names; refuse what does not fit them."""
        chosen = list(range(len(names))) if self.classes is None else _numbers("classes", self.classes, names)
        if self.grouping == "ascending" and self.grouping_seed is not None:
            raise InputError("scenario: grouping_seed: nothing is drawn; it goes with grouping: random")
        if self.tasks is not None:
            return self._given(chosen, names)
        if self.grouping == "random":
            generator = torch.Generator().manual_seed(self.grouping_seed or 0)
            chosen = [chosen[place] for place in torch.randperm(len(chosen), generator=generator).tolist()]
        size = self.classes_per_task
        if not size <= len(chosen):
            raise InputError(f"scenario: classes_per_task: {len(chosen)} classes are fewer than one task of {size}")
        tasks = [chosen[first : first + size] for first in range(0, len(chosen), size)]
        if len(tasks[-1]) < size and self.rest != "own":
            last = tasks.pop()
            tasks[-1] += last if self.rest == "join" else []
        return tuple(as_task(task) for task in tasks)

    def _given(self, chosen: list[int], names: Sequence[str]) -> Order:
        if not self.model_fields_set.isdisjoint({"classes_per_task", "rest", "grouping"}):
            raise InputError(
                "scenario: tasks: spelled out, so that classes_per_task, rest and grouping mean nothing; drop them"
            )
        if not self.tasks:
            raise InputError("scenario: tasks: at least one task is needed")
        order = tuple(as_task(_numbers("tasks", task, names)) for task in self.tasks)
        flat = [label for task in order for label in task]
        for label in flat:
            if flat.count(label) > 1:
                raise InputError(f"scenario: tasks: class {names[label]!r} is in two tasks")
            if label not in chosen:
                raise InputError(f"scenario: tasks: class {names[label]!r} is not among the classes chosen")
        left = [names[label] for label in chosen if label not in flat]
        if left and self.classes is None:
            raise InputError(
                f"scenario: tasks: {', '.join(left)}: in no task; name the classes to be learned in `classes` to leave "
                "the others out"
            )
        if left:
            raise InputError(f"scenario: tasks: {', '.join(left)}: among `classes`, but in no task")
        return order


def _numbers(field: str, classes: Sequence[ClassName], names: Sequence[str]) -> list[int]:
    """Return classes given by number or name as ascending numbers; refuse unknown ones and one given twice."""
    found = []
    for label in classes:
        if isinstance(label, str):
            if label not in names:
                raise InputError(f"scenario: {field}: no class {label!r}{did_you_mean(label, names)}")
            label = list(names).index(label)
        if not 0 <= label < len(names):
            raise InputError(f"scenario: {field}: no class {label}; classes are 0–{len(names) - 1}")
        found.append(label)
    if len(set(found)) < len(found):
        raise InputError(f"scenario: {field}: a class is given twice in {list(classes)}")
    return sorted(found)
