"""Many labels per node or graph as a scenario: labels arrive task by task, or domains with all labels."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.items import Items
from skeleton_cgl.parts import NAMES, TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.graph_settings import DataSettings
from skeleton_cgl.scenarios.graph_units import Units, domains_of, notes_on_tasks
from skeleton_cgl.scenarios.item_split import ItemSplit, divide_items, refuse_named_groups
from skeleton_cgl.scenarios.label_split import divide_labels
from skeleton_cgl.scenarios.labelled import check_shape
from skeleton_cgl.scenarios.lessons import Order, Prefix, Task, lessons_of, units_named
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.problem import ManyLabels, Problem, Truth, scopes
from skeleton_cgl.scenarios.scenario import Experience, Facts, Need, Queries, Samples, offers_in
from skeleton_cgl.scenarios.views import ItemViews, sequence_of
from skeleton_cgl.seeds import seed_of

SO_FAR = "average_precision_so_far"
Score = Literal["average_precision", "roc_auc", "average_precision_so_far"]
_CLASS_FIELDS = ("classes_per_task", "rest", "tasks", "classes", "grouping", "grouping_seed", "fewest_nodes")

_MOST_DIVIDED = 1 << 26
"""So many nodes of divided lessons are kept, a byte for each."""


class LabelSplit(ItemSplit):
    """How items of many labels are divided.

    by: "task" divides the items of every task anew, the rarest label first (AGALE): an item may be learned from in one
    task and asked about in another. "node" divides all items once, in the same way over all labels. Otherwise as for
    items of one class. "auto" is published where there is a published split, otherwise task; in domain-il, each domain
    is a task.
    """

    by: str = "auto"
    ratios: tuple[float, float, float] = (6, 1, 3)

    def settled(self, items: Items) -> "LabelSplit":
        """Return the split with `by` as what "auto" comes to."""
        if self.by == "class":
            raise InputError(f"scenario: split: by: {items.item}s have many labels; take by: task or by: node")
        if self.by != "auto":
            return self
        return self.model_copy(update={"by": "task" if items.split is None else "published"})


class ManyLabelsSettings(ClassTasks, DataSettings):
    """Many labels per item.

    setting: "class-il", the items of a task show all labels met so far, and a query asks for all of them; "task-il",
    those of the task alone; "domain-il", the groups called `domains` arrive one by one with all labels. A task has the
    items with a label among its own; where labels may be unknown, those of which one of its own is known. fewest_nodes:
    labels of fewer items are in no task. score: what leads; in class-il also "average_precision_so_far", of a task the
    mean over all labels met up to it, on its queries (AGALE). leaking_labels: as AGALE, an item that is learned from in
    a task shows its labels of earlier tasks also where these are asked about; by default it does not.
    """

    offered: ClassVar[tuple[Need, ...]] = ("graphs",)

    setting: Literal["class-il", "task-il", "domain-il"] = "class-il"  # type: ignore[assignment]
    rest: Literal["own", "join", "drop"] = "join"
    split: LabelSplit = LabelSplit()
    domains: str | None = None
    fewest_nodes: int = Field(default=0, ge=0)
    score: Score = "average_precision"
    leaking_labels: bool = False

    def checked(self) -> Self:
        """Return these settings; refuse fields that mean nothing in the setting."""
        idle: dict[str, str] = {}
        if self.setting == "domain-il":
            idle |= dict.fromkeys((*_CLASS_FIELDS, "leaking_labels"), "all labels are learned in every domain")
        else:
            idle["domains"] = f"there are none in {self.setting}"
        return self.idle(idle)

    def units_of(self, items: Items) -> Units:
        """Return what arrives one by one."""
        if self.setting == "domain-il":
            return domains_of(items, self.domains)
        counts = (items.labels == 1).sum(axis=0, dtype=np.int64)
        kept = [label for label, count in enumerate(counts) if count >= self.fewest_nodes]
        tasks = self if self.classes is not None or len(kept) == len(counts) else self._without(items, kept)
        default = tasks.divide(items.classes)
        rare = [label for task in default for label in task if label not in kept]
        if rare:
            found = f"{items.classes[rare[0]]!r} is among `classes` and has {counts[rare[0]]} {items.item}s"
            raise InputError(f"scenario: fewest_nodes: {found}, fewer than {self.fewest_nodes}")
        notes = notes_on_tasks(tasks, items.classes, default)
        return Units("label", items.classes, np.full(len(items), -1), default, notes)

    def _without(self, items: Items, kept: Sequence[int]) -> Self:
        if not kept:
            raise InputError(f"scenario: fewest_nodes: no label of {items.name} has {self.fewest_nodes} {items.item}s")
        return self.model_copy(update={"classes": tuple(kept)})


class ManyLabelsScenario(ABC):
    """Incremental learning of items with many labels: what arrives are labels, or domains.

    A kind of data derives from this: it gives the views by `views_of`. Labels (I, L) of 0 and 1, as floating-point
    numbers where some are not known: NaN.
    """

    def __init__(self, opened: Opened[Any], settings: ManyLabelsSettings, split: ItemSplit, facts: Facts) -> None:
        items: Items = opened.data
        units = settings.units_of(items)
        self.units = units_named(units.names)
        self.unit_kind = units.kind
        self.outputs = units_named(items.classes)
        self.default = units.default
        self._reveals = settings.setting == "task-il"
        self.offers = offers_in(settings.setting, settings.offered)
        self.facts = facts
        self._item = items.item
        self._labels = items.labels
        self._domain = units.of_items
        self._split = split
        self._leaks = settings.leaking_labels
        given = split.by not in ("task", "node", "graph")
        self._given = divide_items(split, opened, np.zeros(len(items), dtype=np.int64), ("all",)) if given else None
        self._once = self._given if given else self._divided_once()
        self.problem: Problem = self.problem_of(settings)
        self._judged = ManyLabels(tuple(metric for metric in self.problem.metrics if metric != SO_FAR))
        self._views: ItemViews = self.views_of(opened, settings)
        self._divided: dict[Task, np.ndarray] = {}
        described = settings.model_dump_json(include={"setting", "score", "leaking_labels", *self.described})
        # Where a split is given, its seed and the place of its file decide nothing.
        divided = split.model_dump_json() if self._given is None else self._given.tobytes().hex()
        content = [items.digest, str(settings.self_loops), described, divided, repr(units.names)]
        content += [self._domain.tobytes().hex()]
        self.digest = hashlib.sha256("\n".join(content).encode()).hexdigest()
        self.notes = (*getattr(items, "notes", ()), *units.notes, self._note_on_split())
        self.lessons(self.default)

    described: ClassVar[tuple[str, ...]] = ()
    """Further fields of the settings that decide what is handed out, asked and scored."""

    def problem_of(self, settings: Any) -> ManyLabels:
        """Return the problem: its metrics, and how labels count in the loss."""
        return ManyLabels(metrics_of(settings))

    @abstractmethod
    def views_of(self, opened: Opened[Any], settings: Any) -> ItemViews:
        """Return the views of what has come."""

    def _note_on_split(self) -> str:
        counts = dict.fromkeys(NAMES, 0)
        for task in self.default:
            for part, name in enumerate(NAMES):
                counts[name] += int((self._parts_of(task) == part).sum())
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        return f"split by {self._split.by}: over all default tasks {told} {self._item}s"

    def items_of(self, units: Task) -> np.ndarray:
        """Return the items of a lesson, ascending: of its domains, or with a label, or one known, among its own."""
        if self.unit_kind == "domain":
            return np.flatnonzero(np.isin(self._domain, units))
        own = self._labels[:, list(units)]
        return np.flatnonzero((own if own.dtype.kind == "u" else ~np.isnan(own)).any(axis=1))

    def training_of(self, units: Task) -> np.ndarray:
        return np.flatnonzero(self._parts_of(units) == TRAINING)

    def _parts_of(self, units: Task) -> np.ndarray:
        """Return (N,) the part of every node of a lesson, UNUSED for the others."""
        if units not in self._divided:
            # Class orders mix tasks that never come again.
            if len(self._divided) * len(self._labels) >= _MOST_DIVIDED:
                self._divided.clear()
            self._divided[units] = self._divide(units)
        return self._divided[units]

    def _divided_once(self) -> np.ndarray | None:
        """Return (N,) the part of every node in all lessons; None where every lesson is divided by itself."""
        refuse_named_groups(self._split)
        if self._split.by == "task":
            return None
        random = np.random.default_rng(seed_of("split", self._split.seed))
        return divide_labels(self._labels == 1, self._split.ratios, random)

    def _divide(self, units: Task) -> np.ndarray:
        parts = np.full(len(self._labels), UNUSED, dtype=np.int8)
        nodes = self.items_of(units)
        if self._once is not None:
            parts[nodes] = self._once[nodes]
        else:
            keys = sorted(self.units[unit].key for unit in units)
            random = np.random.default_rng(seed_of("split", self._split.seed, *keys))
            parts[nodes] = divide_labels(self._labels[nodes][:, self._about(units)] == 1, self._split.ratios, random)
        return parts

    def _about(self, units: Task) -> list[int]:
        """Return the labels that a lesson is about."""
        return list(range(len(self.outputs)) if self.unit_kind == "domain" else units)

    def lessons(self, order: Order) -> Prefix:
        """Return the tasks of an order; refuse unknown units, and a task in which a score is not defined."""
        lessons = lessons_of(order, len(self.units))
        for lesson in lessons:
            self._refuse_undefined(lesson.units)
        return lessons

    def _refuse_undefined(self, task: Task) -> None:
        """Refuse a task without nodes in a part, and one all or none of whose queries have one of its labels.

        In a domain, it is refused where that is so of every label.
        """
        parts = self._parts_of(task)
        named = ", ".join(self.units[unit].name for unit in task)
        if not (parts == TRAINING).any():
            raise InputError(f"scenario: split: task ({named}) has no training {self._item}")
        for part in (TEST, VALIDATION):
            if not (parts == part).any():
                raise InputError(f"scenario: split: task ({named}) has no {NAMES[part]} {self._item}")
            share = _share(self._labels[parts == part][:, self._about(task)])
            if self.unit_kind == "domain":
                # Labels that are all alike in a domain are left out of its score; one has to be left.
                if not ((share > 0) & (share < 1)).any():
                    raise InputError(
                        f"scenario: split: domain ({named}): every label is that of all or of none of its "
                        f"{NAMES[part]} {self._item}s, so that its average precision is not defined"
                    )
                continue
            for label, found in zip(task, share.tolist(), strict=True):
                if not 0 < found < 1:
                    has = "no" if found == 0 else "every"
                    raise InputError(
                        f"scenario: split: task ({named}): {has} {NAMES[part]} {self._item} has "
                        f"{self.units[label].name!r}, so that its average precision is not defined"
                    )

    def experience(self, prefix: Prefix) -> Experience:
        """Return what a learner may see of the last lesson of a prefix."""
        own = prefix[-1].units
        return Experience(
            lesson=prefix[-1],
            keys=tuple(self.units[unit].key for unit in own),
            outputs=tuple(self._about(own)),
            training=self._samples(prefix, TRAINING),
            validation=self._samples(prefix, VALIDATION),
        )

    def _samples(self, prefix: Prefix, part: int) -> Samples:
        nodes = np.flatnonzero(self._parts_of(prefix[-1].units) == part)
        step = torch.full((len(nodes),), len(prefix) - 1 if self._reveals else -1)
        return Samples(self._views.pool(prefix), self._views.numbers(prefix, nodes), self._shown(prefix, nodes), step)

    def _shown(self, prefix: Prefix, nodes: np.ndarray) -> Tensor:
        """Return (N, L) the labels that nodes of the last lesson show, NaN for those they do not."""
        shown = np.full((len(nodes), len(self.outputs)), np.nan, dtype=np.float32)
        for lesson in prefix[-1:] if self._reveals or self.unit_kind == "domain" else prefix:
            about = self._about(lesson.units)
            told = np.ones(len(nodes), dtype=bool)
            if lesson is not prefix[-1] and not self._leaks:
                told = ~np.isin(self._parts_of(lesson.units)[nodes], (TEST, VALIDATION))
            shown[told[:, None] & np.isin(np.arange(len(self.outputs)), about)] = self._labels[nodes[told]][
                :, about
            ].flat
        return torch.from_numpy(shown)

    def queries(self, prefix: Prefix) -> Queries:
        """Return the queries of all lessons so far; in domain-il on the whole graph, of all domains."""
        steps, nodes, _ = self._asked(prefix)
        asked = self._views.asked(prefix, steps, nodes)
        return Queries(asked.pool, asked.ids, self._revealed(steps[asked.sequence]))

    def _revealed(self, steps: np.ndarray) -> Tensor:
        return torch.from_numpy(steps if self._reveals else np.full(len(steps), -1))

    def _asked(self, prefix: Prefix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return lesson and node (Q,) of every query, and by which of these (P,) each of the pairs is asked about."""
        steps, _, nodes = self._pairs(prefix)
        if self._reveals or self._views.name == "own":
            return steps, nodes, np.arange(len(nodes))
        # Once, however many lessons a node is in: it would tell in how many of them it has labels.
        distinct, place = np.unique(nodes, return_inverse=True)
        return np.full(len(distinct), -1), distinct, place

    def _lessons_asked(self, prefix: Prefix) -> list[Task]:
        taught = [lesson.units for lesson in prefix]
        if self.unit_kind != "domain" or self._views.name != "whole":
            return taught
        met = {unit for units in taught for unit in units}
        return [*taught, *(task for task in self.default if met.isdisjoint(task))]

    def _pairs(self, prefix: Prefix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the so manieth lesson, the part and the node (P,) of all that is asked about."""
        found = []
        for step, units in enumerate(self._lessons_asked(prefix)):
            parts = self._parts_of(units)
            nodes = np.flatnonzero((parts == TEST) | (parts == VALIDATION))
            found.append((np.full(len(nodes), step), parts[nodes], nodes))
        steps, parts, nodes = (np.concatenate(columns) for columns in zip(*found, strict=True))
        return steps, parts, nodes

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:
        """Return the metrics of the answers after a prefix, of test and of validation.

        A label is judged on the queries of its own task; in class-il, all labels of a task also have the mean over the
        labels met up to that task, on its queries (AGALE).
        """
        steps, parts, nodes = self._pairs(prefix)
        _, queries, place = self._asked(prefix)
        check_shape(answers, len(queries), len(self.outputs))
        answers = answers[torch.from_numpy(np.argsort(sequence_of(len(queries)))[place])]
        among = scopes([self._about(lesson.units) for lesson in prefix], len(self.outputs))[self._revealed(steps)]
        measures: list[Measure] = []
        for part in (TEST, VALIDATION):
            here = parts == part
            rows = torch.from_numpy(here)
            truth = self._truth(steps[here], nodes[here], prefix)
            measures += self._judged.measure(answers[rows], truth, among[rows], NAMES[part])
            if SO_FAR in self.problem.metrics:
                measures.append(self._so_far(answers[rows], among[rows], steps[here], nodes[here], prefix, NAMES[part]))
        return tuple(measures)

    def _truth(self, steps: np.ndarray, nodes: np.ndarray, prefix: Prefix) -> Truth:
        labels = torch.from_numpy(self._labels[nodes].astype(np.float32))
        count = len(self.outputs)
        if self.unit_kind == "domain":
            domain = torch.from_numpy(self._domain[nodes])
            there = torch.nn.functional.one_hot(domain, len(self.units)).bool().repeat_interleave(count, dim=1)
            unit = torch.arange(len(self.units)).repeat_interleave(count)
            there &= ~labels.isnan().repeat(1, len(self.units))
            return Truth(labels, there, unit, len(self.units), torch.arange(count).repeat(len(self.units)))
        about = scopes([lesson.units for lesson in prefix], count)[torch.from_numpy(steps)]
        return Truth(labels, about & ~labels.isnan(), torch.arange(count), count)

    def _so_far(
        self, answers: Tensor, among: Tensor, steps: np.ndarray, nodes: np.ndarray, prefix: Prefix, part: str
    ) -> Measure:
        """Return, for every label, the mean over all labels met up to its task on the queries of that task."""
        labels = torch.from_numpy(self._labels[nodes].astype(np.float32))
        groups = [
            (step, label)
            for step in range(len(prefix))
            for lesson in prefix[: step + 1]
            for label in self._about(lesson.units)
        ]
        step_of, label_of = (torch.tensor(column) for column in zip(*groups, strict=True))
        asked = (torch.from_numpy(steps)[:, None] == step_of) & ~labels[:, label_of].isnan()
        truth = Truth(labels, asked, step_of, len(prefix), label_of)
        by_step = ManyLabels(("average_precision",)).measure(answers, truth, among, part)[0]
        values = np.full(len(self.units), np.nan)
        counted = np.zeros(len(self.units), dtype=np.int64)
        for step, lesson in enumerate(prefix):
            values[list(lesson.units)] = by_step.values[step]
            counted[list(lesson.units)] = int((steps == step).sum())
        return Measure(part, SO_FAR, values, counted)


def _share(labels: np.ndarray) -> np.ndarray:
    """Return (L,) the share of those that have each label, of those (N, L) of which it is known."""
    known = np.ones(labels.shape) if labels.dtype.kind == "u" else ~np.isnan(labels)
    found: np.ndarray = (labels == 1).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return found


def metrics_of(settings: ManyLabelsSettings) -> tuple[str, ...]:
    """Return the metrics, the leading one first; refuse one that the setting does not have."""
    known = ("average_precision", "roc_auc", *((SO_FAR,) if settings.setting == "class-il" else ()))
    if settings.score not in known:
        raise InputError(f"scenario: score: {settings.score} is of class-il, not of {settings.setting}")
    return (settings.score, *(metric for metric in known if metric != settings.score))
