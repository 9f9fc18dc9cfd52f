"""Node classification as a scenario: nodes of one class each, whose classes, domains or periods arrive one by one."""

import hashlib
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.parts import NAMES, TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.graph_settings import GraphSettings
from skeleton_cgl.scenarios.graph_units import Periods, Units, classes_of, domains_of, periods_of
from skeleton_cgl.scenarios.labelled import score_parts
from skeleton_cgl.scenarios.lessons import Order, Prefix, Task, as_task, describe, task_lessons, units_named
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.node_split import NodeSplit, divide_nodes, refuse_empty_parts
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.problem import OneClass, Problem, Truth, scopes
from skeleton_cgl.scenarios.scenario import Experience, Facts, Need, Queries, Samples
from skeleton_cgl.scenarios.views import ViewName, Views, sequence_of

Score = Literal["accuracy", "micro_accuracy", "roc_auc"]
_CLASS_FIELDS = ("classes_per_task", "rest", "tasks", "classes", "grouping", "grouping_seed")


class NodeSettings(ClassTasks, GraphSettings):
    """One class per node.

    setting: "class-il" and "task-il" as everywhere; "domain-il": the groups called `domains` arrive one by one, with
    all classes; "time-il": periods of the nodes' times, in their order, each on the graph as far as it has come.
    periods: so many with about equally many nodes, or the times at which a new one begins; by default every time is a
    period. score: what leads, accuracy with classes counting equally or queries ("micro_accuracy", as BeGin has it), or
    ROC-AUC where there are two classes in every domain or period. balanced: whether classes count equally in the loss.
    """

    version: ClassVar[int] = 2

    kind: Literal["node"]
    data: str = "synthetic"
    setting: Literal["class-il", "task-il", "domain-il", "time-il"] = "class-il"  # type: ignore[assignment]
    domains: str | None = None
    periods: Periods = None
    score: Score = "accuracy"
    balanced: bool = True

    def make(self, seed: int) -> "NodeScenario":
        opened = self.checked().opened()
        return NodeScenario(opened, self, self.split_for(opened.graph, seed))

    def checked(self) -> "NodeSettings":
        """Return these settings; refuse fields that mean nothing in the setting."""
        idle: dict[str, str] = {}
        if self.setting in ("domain-il", "time-il"):
            idle |= dict.fromkeys(_CLASS_FIELDS, f"all classes are learned in every lesson of {self.setting}")
        if self.setting != "domain-il":
            idle["domains"] = f"there are none in {self.setting}"
        if self.setting != "time-il":
            idle["periods"] = f"there are none in {self.setting}"
        else:
            reason = "in time-il a lesson sees the graph as far as it has come, and no other view"
            idle |= dict.fromkeys(("view", "inter_task_edges"), reason)
        return self.idle(idle)

    def units_of(self, graph: Graph) -> Units:
        """Return what arrives one by one."""
        if self.setting == "domain-il":
            return domains_of(graph, self.domains)
        if self.setting == "time-il":
            return periods_of(graph, self.periods)
        return classes_of(graph, self)


class NodeScenario:
    """Incremental learning of the nodes of a graph; what arrives are classes, domains or periods."""

    def __init__(self, opened: Opened, settings: NodeSettings, split: NodeSplit) -> None:
        graph = opened.graph
        if graph.many_labels:
            raise InputError(f"scenario: data: {graph.name} has many labels per node; that is kind: multilabel")
        units = settings.units_of(graph)
        self.units = units_named(units.names)
        self.unit_kind = units.kind
        self.outputs = units_named(graph.classes)
        self.default = units.default
        self._reveals = settings.setting == "task-il"
        offered: list[Need] = ["borders", "revealed task"] if self._reveals else ["borders"]
        self.offers = frozenset(offered)
        self.facts = Facts("graph", {"features": graph.features.shape[1]})
        self._unit = units.of_nodes
        self._parts = _parts(opened, units, split)
        self._labels = torch.from_numpy(graph.labels)
        self.problem: Problem = OneClass(_metrics(settings, graph, units, self._parts), settings.balanced)
        view: ViewName = "so far" if units.kind == "period" else settings.view_name
        surroundings = settings.surroundings(graph)
        self._views = Views(surroundings, view, self._nodes_of, self._training_of)
        described = settings.model_dump_json(include={"setting", "score", "balanced"})
        content = [graph.digest, str(settings.self_loops), view, described, repr(self.problem), repr(units.names)]
        arrays = (self._unit, self._parts)
        self.digest = hashlib.sha256(
            "\n".join(content).encode() + b"".join(map(np.ndarray.tobytes, arrays))
        ).hexdigest()
        self.notes = (*units.notes, *_notes_on(split, self._parts))

    def _nodes_of(self, units: Task) -> np.ndarray:
        """Return the nodes of a lesson, ascending."""
        return np.flatnonzero(np.isin(self._unit, units))

    def _training_of(self, units: Task) -> np.ndarray:
        return np.flatnonzero(np.isin(self._unit, units) & (self._parts == TRAINING))

    def lessons(self, order: Order) -> Prefix:
        """Return the tasks of an order; refuse unknown units, and periods in another order than the calendar's."""
        for task in order:
            if as_task(task)[0] < 0 or max(task) >= len(self.units):
                raise InputError(f"task {task}: there are only 0–{len(self.units) - 1}")
        if self.unit_kind == "period" and tuple(order) != self.default[: len(order)]:
            raise InputError(f"order {describe(order)}: periods have one order, the calendar's")
        return task_lessons(tuple(as_task(task) for task in order))

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
        nodes = np.flatnonzero(np.isin(self._unit, prefix[-1].units) & (self._parts == part))
        ids = self._views.numbers(prefix, nodes)
        step = torch.full((len(nodes),), len(prefix) - 1 if self._reveals else -1)
        return Samples(self._views.pool(prefix), ids, self._labels[nodes], step)

    def queries(self, prefix: Prefix) -> Queries:
        """Return all queries; on a view of lessons, those of the lessons so far."""
        steps, nodes = self._pairs(prefix)
        asked = self._views.asked(prefix, steps, nodes)
        return Queries(asked.pool, asked.ids, self._revealed(steps[asked.sequence]))

    def _revealed(self, steps: np.ndarray) -> Tensor:
        return torch.from_numpy(steps if self._reveals else np.full(len(steps), -1))

    def _pairs(self, prefix: Prefix) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes (Q,) to be asked about, before them which lesson (Q,) each is of, −1 for one to come."""
        step_of = np.full(len(self.units) + 1, -1)
        for step, lesson in enumerate(prefix):
            step_of[list(lesson.units)] = step
        steps = step_of[self._unit]
        asked = (self._parts == TEST) | (self._parts == VALIDATION)
        nodes = np.flatnonzero(asked if self._views.name == "whole" else asked & (steps >= 0))
        return steps[nodes], nodes

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:
        """Return the metrics of the answers after a prefix, of test and of validation."""
        steps, nodes = self._pairs(prefix)
        sequence = sequence_of(len(nodes))
        steps, nodes = steps[sequence], nodes[sequence]
        lessons = [self._outputs_of(lesson.units) for lesson in prefix]
        among = scopes(lessons, len(self.outputs))[self._revealed(steps)]
        truth = self._truth(nodes)
        return score_parts(self.problem, answers, truth, among, torch.from_numpy(self._parts[nodes]))

    def _truth(self, nodes: np.ndarray) -> Truth:
        """Return the truth about nodes; a query is judged in its class, or in its class within its domain or period."""
        labels, classes, units = self._labels[nodes], len(self.outputs), len(self.units)
        unit = torch.from_numpy(self._unit[nodes])
        group = unit if self.unit_kind == "class" else unit * classes + labels
        belongs = torch.arange(units) if self.unit_kind == "class" else torch.arange(units).repeat_interleave(classes)
        # Not as `one_hot`, which has eight bytes for each of queries × periods × classes.
        return Truth(labels, group[:, None] == torch.arange(len(belongs)), belongs, units)


def _parts(opened: Opened, units: Units, split: NodeSplit) -> np.ndarray:
    """Return (N,) the parts of the nodes; those of no unit are in none."""
    graph = opened.graph
    classes = len(graph.classes)
    cells = (
        units.of_nodes
        if units.kind == "class"
        else np.where(units.of_nodes >= 0, units.of_nodes * classes + graph.labels, -1)
    )
    names = (
        units.names
        if units.kind == "class"
        else tuple(f"{unit}, {label}" for unit in units.names for label in graph.classes)
    )
    parts = divide_nodes(split, opened, cells, names)
    refuse_empty_parts(units.of_nodes, parts, units.names, units.kind)
    return parts


def _metrics(settings: NodeSettings, graph: Graph, units: Units, parts: np.ndarray) -> tuple[str, ...]:
    """Return the metrics, the leading one first; refuse ROC-AUC where it leads and is not defined."""
    two = len(graph.classes) == 2 and units.kind != "class"
    if settings.score == "roc_auc" and not two:
        raise InputError("scenario: score: roc_auc needs two classes in every lesson: domain-il or time-il")
    for part in (TEST, VALIDATION) if two else ():
        for unit in np.unique(units.of_nodes[units.of_nodes >= 0]):
            found = np.unique(graph.labels[(units.of_nodes == unit) & (parts == part)])
            if len(found) < 2 and settings.score == "roc_auc":
                raise InputError(
                    f"scenario: score: roc_auc is undefined: all {NAMES[part]} nodes of {units.kind} "
                    f"{units.names[unit]!r} are {graph.classes[found[0]]!r}"
                )
    known = ("accuracy", "micro_accuracy", *(("roc_auc",) if two else ()))
    return (settings.score, *(metric for metric in known if metric != settings.score))


def _notes_on(split: NodeSplit, parts: np.ndarray) -> tuple[str, ...]:
    counts = ", ".join(f"{int((parts == part).sum())} {name}" for part, name in enumerate(NAMES))
    unused = int((parts == UNUSED).sum())
    return (f"split by {split.by}: {counts} nodes" + (f", {unused} in none" if unused else ""),)
