"""Nodes, links or graphs of one class each as a scenario: classes, domains or periods arrive one by one."""

import hashlib
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.items import Items
from skeleton_cgl.parts import NAMES, TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.graph_settings import DataSettings
from skeleton_cgl.scenarios.graph_units import Periods, Units, classes_of, domains_of, periods_of
from skeleton_cgl.scenarios.item_split import ItemSplit, divide_items, refuse_empty_parts
from skeleton_cgl.scenarios.labelled import score_parts
from skeleton_cgl.scenarios.lessons import Order, Prefix, Task, lessons_of, units_named
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.problem import OneClass, Problem, Truth, scopes
from skeleton_cgl.scenarios.scenario import Experience, Facts, Need, Queries, Samples, offers_in
from skeleton_cgl.scenarios.views import ItemViews, ViewName, sequence_of

Score = Literal["accuracy", "micro_accuracy", "roc_auc"]
CLASS_FIELDS = ("classes_per_task", "rest", "tasks", "classes", "grouping", "grouping_seed")


class OneClassSettings(ClassTasks, DataSettings):
    """One class per item.

    setting: "class-il" and "task-il" as everywhere; "domain-il": the groups called `domains` arrive one by one, with
    all classes; "time-il": periods of the items' times, in their order, each on what has come so far. periods: so many
    with about equally many items, or the times at which a new one begins; by default every time is a period. score:
    what leads, accuracy with classes counting equally or queries ("micro_accuracy", as BeGin has it), or ROC-AUC where
    there are two classes in every domain or period. balanced: whether classes count equally in the loss.
    """

    offered: ClassVar[tuple[Need, ...]] = ("one class", "graphs")

    setting: Literal["class-il", "task-il", "domain-il", "time-il"] = "class-il"  # type: ignore[assignment]
    domains: str | None = None
    periods: Periods = None
    score: Score = "accuracy"
    balanced: bool = True

    def checked(self) -> Self:
        """Return these settings; refuse fields that mean nothing in the setting."""
        return self.idle(self.meaningless())

    def meaningless(self) -> dict[str, str]:
        """Return the fields that mean nothing in the setting, each with the reason."""
        idle: dict[str, str] = {}
        if self.setting in ("domain-il", "time-il"):
            idle |= dict.fromkeys(CLASS_FIELDS, f"all classes are learned in every lesson of {self.setting}")
        if self.setting != "domain-il":
            idle["domains"] = f"there are none in {self.setting}"
        if self.setting != "time-il":
            idle["periods"] = f"there are none in {self.setting}"
        return idle

    def units_of(self, items: Items) -> Units:
        """Return what arrives one by one."""
        if self.setting == "domain-il":
            return domains_of(items, self.domains)
        if self.setting == "time-il":
            return periods_of(items, self.periods)
        return classes_of(items, self)


class OneClassScenario(ABC):
    """Incremental learning of items of one class each; what arrives are classes, domains or periods.

    A kind of data derives from this: it gives the views by `views_of`, after which all is settled.
    """

    def __init__(self, opened: Opened[Any], settings: OneClassSettings, split: ItemSplit, facts: Facts) -> None:
        items: Items = opened.data
        units = settings.units_of(items)
        self.units = units_named(units.names)
        self.unit_kind = units.kind
        self.outputs = units_named(items.classes)
        self.default = units.default
        self._reveals = settings.setting == "task-il"
        self.offers = offers_in(settings.setting, settings.offered)
        self.facts = facts
        self._unit = units.of_items
        self._parts = _parts(opened, units, split)
        self._labels = torch.from_numpy(items.labels)
        self.problem: Problem = OneClass(_metrics(settings, items, units, self._parts), settings.balanced)
        view: ViewName = "so far" if units.kind == "period" else "whole"
        self._views: ItemViews = self.views_of(opened, settings, view)
        described = settings.model_dump_json(include={"setting", "score", "balanced"})
        content = [items.digest, str(settings.self_loops), self._views.name, described, repr(self.problem)]
        content += [repr(units.names), *self.more_content(settings)]
        arrays = (self._unit, self._parts)
        self.digest = hashlib.sha256(
            "\n".join(content).encode() + b"".join(map(np.ndarray.tobytes, arrays))
        ).hexdigest()
        self.notes = (*getattr(items, "notes", ()), *units.notes, _note_on(split, self._parts, items.item))

    @abstractmethod
    def views_of(self, opened: Opened[Any], settings: Any, view: ViewName) -> ItemViews:
        """Return the views of what has come: "whole", or "so far" where periods follow one another."""

    def more_content(self, settings: Any) -> tuple[str, ...]:  # noqa: ARG002
        """Return what else decides what is handed out, asked and scored."""
        return ()

    def items_of(self, units: Task) -> np.ndarray:
        """Return the items of a lesson, ascending."""
        return np.flatnonzero(np.isin(self._unit, units))

    def training_of(self, units: Task) -> np.ndarray:
        """Return the items that a lesson is learned from, ascending."""
        return np.flatnonzero(np.isin(self._unit, units) & (self._parts == TRAINING))

    def lessons(self, order: Order) -> Prefix:
        """Return the tasks of an order; refuse unknown units, and periods in another order than the calendar's."""
        return lessons_of(order, len(self.units), self.default if self.unit_kind == "period" else None)

    def experience(self, prefix: Prefix) -> Experience:
        """Return what a learner may see of the last lesson of a prefix."""
        own = prefix[-1].units
        return Experience(
            lesson=prefix[-1],
            keys=tuple(self.units[unit].key for unit in own),
            outputs=self._outputs_of(own),
            training=self._samples(prefix, TRAINING),
            validation=self._samples(prefix, VALIDATION),
        )

    def _outputs_of(self, units: Task) -> Task:
        return units if self.unit_kind == "class" else tuple(range(len(self.outputs)))

    def _samples(self, prefix: Prefix, part: int) -> Samples:
        items = np.flatnonzero(np.isin(self._unit, prefix[-1].units) & (self._parts == part))
        ids = self._views.numbers(prefix, items)
        step = torch.full((len(items),), len(prefix) - 1 if self._reveals else -1)
        return Samples(self._views.pool(prefix), ids, self._labels[items], step)

    def queries(self, prefix: Prefix) -> Queries:
        """Return all queries; on a view of lessons, those of the lessons so far."""
        steps, items = self._pairs(prefix)
        asked = self._views.asked(prefix, steps, items)
        return Queries(asked.pool, asked.ids, self._revealed(steps[asked.sequence]))

    def _revealed(self, steps: np.ndarray) -> Tensor:
        return torch.from_numpy(steps if self._reveals else np.full(len(steps), -1))

    def _pairs(self, prefix: Prefix) -> tuple[np.ndarray, np.ndarray]:
        """Return the items (Q,) to be asked about, before them which lesson (Q,) each is of, −1 for one to come."""
        step_of = np.full(len(self.units) + 1, -1)
        for step, lesson in enumerate(prefix):
            step_of[list(lesson.units)] = step
        steps = step_of[self._unit]
        asked = (self._parts == TEST) | (self._parts == VALIDATION)
        items = np.flatnonzero(asked if self._views.name == "whole" else asked & (steps >= 0))
        return steps[items], items

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:
        """Return the metrics of the answers after a prefix, of test and of validation."""
        steps, items = self._pairs(prefix)
        sequence = sequence_of(len(items))
        steps, items = steps[sequence], items[sequence]
        lessons = [self._outputs_of(lesson.units) for lesson in prefix]
        among = scopes(lessons, len(self.outputs))[self._revealed(steps)]
        truth = self._truth(items)
        return score_parts(self.problem, answers, truth, among, torch.from_numpy(self._parts[items]))

    def _truth(self, items: np.ndarray) -> Truth:
        """Return the truth about items; a query is judged in its class, or in its class within its domain or period."""
        labels, classes, units = self._labels[items], len(self.outputs), len(self.units)
        unit = torch.from_numpy(self._unit[items])
        group = unit if self.unit_kind == "class" else unit * classes + labels
        belongs = torch.arange(units) if self.unit_kind == "class" else torch.arange(units).repeat_interleave(classes)
        # Not as `one_hot`, which has eight bytes for each of queries × periods × classes.
        return Truth(labels, group[:, None] == torch.arange(len(belongs)), belongs, units)


def _parts(opened: Opened[Any], units: Units, split: ItemSplit) -> np.ndarray:
    """Return (I,) the parts of the items; those of no unit are in none."""
    items: Items = opened.data
    cells, names = units.of_items, units.names
    if units.kind != "class":
        cells = np.where(units.of_items >= 0, units.of_items * len(items.classes) + items.labels, -1)
        names = tuple(f"{unit}, {label}" for unit in units.names for label in items.classes)
    parts = divide_items(split, opened, cells, names)
    refuse_empty_parts(units, parts, items.item)
    return parts


def _metrics(settings: OneClassSettings, items: Items, units: Units, parts: np.ndarray) -> tuple[str, ...]:
    """Return the metrics, the leading one first; refuse ROC-AUC where it leads and is not defined."""
    two = len(items.classes) == 2 and units.kind != "class"
    if settings.score == "roc_auc" and not two:
        raise InputError("scenario: score: roc_auc needs two classes in every lesson: domain-il or time-il")
    for part in (TEST, VALIDATION) if two else ():
        for unit in np.unique(units.of_items[units.of_items >= 0]):
            found = np.unique(items.labels[(units.of_items == unit) & (parts == part)])
            if len(found) < 2 and settings.score == "roc_auc":
                raise InputError(
                    f"scenario: score: roc_auc is undefined: all {NAMES[part]} {items.item}s of {units.kind} "
                    f"{units.names[unit]!r} are {items.classes[found[0]]!r}"
                )
    known = ("accuracy", "micro_accuracy", *(("roc_auc",) if two else ()))
    return (settings.score, *(metric for metric in known if metric != settings.score))


def _note_on(split: ItemSplit, parts: np.ndarray, item: str) -> str:
    counts = ", ".join(f"{int((parts == part).sum())} {name}" for part, name in enumerate(NAMES))
    unused = int((parts == UNUSED).sum())
    return f"split by {split.by}: {counts} {item}s" + (f", {unused} in none" if unused else "")
