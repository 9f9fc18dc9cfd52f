"""Task-free streams: the samples of another scenario in small batches, its tasks mixed over time (DRIFT)."""

import hashlib
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, Prefix, Segment, Task, TaskLesson, Unnamed, as_task
from skeleton_cgl.scenarios.measures import SIZE, Measure
from skeleton_cgl.scenarios.problem import OneClass, Problem
from skeleton_cgl.scenarios.scenario import (
    Experience,
    GivenBatches,
    Need,
    Queries,
    Samples,
    Scenario,
    offers_on_stream,
)
from skeleton_cgl.scenarios.settings import ScenarioSettings, check_scenario
from skeleton_cgl.scenarios.transitions import (
    OVERLAP_BELOW,
    USUAL_BATCH,
    USUAL_TRANSITION,
    AnyTransition,
    Batches,
    Queue,
    examined_after,
    overlap_index,
    transition_fields,
)
from skeleton_cgl.seeds import seed_of

_SETTINGS = ("class-il", "domain-il")
"""Those in which nothing is revealed of a sample's task, and tasks may come in any order."""
_KEPT = 256
"""So many streams are kept, each of one order."""


class StreamSettings(ScenarioSettings):
    """Batches of samples, each seen once, drawn from tasks that the learner is told nothing of.

    of: the scenario whose samples are streamed, of one class each, class-il or domain-il; its tasks are the latent
    ones. Batches mix tasks, so that they are learned on the whole graph; with `view: task`, queries of nodes are
    answered in the subgraph of their task. transition: how tasks run into one another: hard, {name: gaussian, sigma:
    20}, {name: global, share: 0.1} or {name: boundary, batches: 5}. batch: samples in a batch. sampling: whether all
    samples of a task come before one comes again.

    examinations: how often all queries are asked along the stream, evenly, the last time at its end; every: instead,
    after so many batches each, and at the end. balanced: whether classes count equally in the loss of a batch, or
    samples. seed: of what is drawn, the same in all repeats; without one, each draws its own.
    """

    kind: Literal["stream"]
    of: dict[str, Any]
    transition: AnyTransition = USUAL_TRANSITION
    batch: int = Field(default=USUAL_BATCH, ge=2, le=1_000_000)
    sampling: Literal["without-replacement", "with-replacement"] = "without-replacement"
    examinations: int | None = Field(default=None, ge=1)
    every: int | None = Field(default=None, ge=1)
    balanced: bool = False
    seed: int | None = Field(default=None, ge=0, lt=2**63)

    @field_validator("transition", mode="before")
    @classmethod
    def _a_name_alone(cls, value: Any) -> Any:
        return transition_fields(value)

    @field_validator("of")
    @classmethod
    def _can_be_streamed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        inner = check_scenario(fields, where="of")
        if "one class" not in inner.offered:
            raise ValueError(
                f"kind: {fields.get('kind')} is not of one class per sample, and streams are defined for that"
            )
        setting = getattr(inner, "setting", "class-il")
        if setting not in _SETTINGS:
            raise ValueError(f"setting: expected {' or '.join(_SETTINGS)}; a stream has no {setting} lessons")
        if getattr(inner, "inter_task_edges", False):
            raise ValueError(
                "inter_task_edges: a stream has no tasks so far; it goes with view: whole, or task without"
            )
        return inner.model_dump(mode="json", exclude_unset=True)

    @model_validator(mode="after")
    def _examined_in_one_way(self) -> Self:
        if self.examinations is not None and self.every is not None:
            raise ValueError("give either examinations or every")
        return self

    def of_repeat(self, repeat: int) -> Self:
        of_repeat = check_scenario(self.of).of_repeat(repeat).model_dump(mode="json", exclude_unset=True)
        return self.model_copy(update={"of": of_repeat})

    def make(self, seed: int) -> "StreamScenario":
        inner = check_scenario(self.of)
        asked = taught = inner.make(seed)
        if getattr(inner, "view", "whole") == "task":
            taught = inner.model_copy(update={"view": "whole"}).make(seed)
        if not isinstance(taught.problem, OneClass):
            raise InputError(
                "scenario: of: samples have many labels each; streams are defined for one class per sample"
            )
        described = f"{self.of.get('kind', 'skeleton')} {inner.version}"
        return StreamScenario(taught, asked, self, seed if self.seed is None else self.seed, described)


class StreamScenario:
    """The samples of one scenario as a stream, examined by the queries of the same, or of one with other views.

    Orders are of the latent tasks. A lesson is what comes between two examinations.
    """

    def __init__(self, taught: Scenario, asked: Scenario, settings: StreamSettings, seed: int, described: str) -> None:
        assert isinstance(taught.problem, OneClass)
        self.units, self.unit_kind, self.outputs = asked.units, asked.unit_kind, asked.outputs
        self.default = asked.default
        self.facts = taught.facts
        self.problem: Problem = replace(taught.problem, balanced=settings.balanced)
        self.offers: frozenset[Need] = offers_on_stream(taught.offers)
        self._asked = asked
        self._settings = settings
        self._seed = seed
        # Whether what queries see depends on which classes make a task.
        self._own_views = asked is not taught
        self._samples_of = {unit: self._of_unit(taught, unit) for task in self.default for unit in task}
        first = next(iter(self._samples_of.values()))
        self._pool = first.pool
        self._label, self._unit = self._tables()
        self._sizes = self._size()
        self._streams: dict[Order, Batches] = {}
        self._queried: dict[Prefix, Queries] = {}
        drawn = settings.model_dump_json(include={"transition", "batch", "sampling", "balanced"})
        # Not how often it is examined: a lesson names its own batches.
        content = (described, taught.digest, asked.digest, drawn, str(seed))
        self.digest = hashlib.sha256("\n".join(content).encode()).hexdigest()
        self._refuse_large_batches(self.default)
        self.notes = (*getattr(taught, "notes", ()), self._note())

    def __getstate__(self) -> dict[str, Any]:
        # Workers are sent a scenario, and what is quickly made again need not travel.
        return {**vars(self), "_streams": {}, "_queried": {}}

    @staticmethod
    def _of_unit(taught: Scenario, unit: int) -> Samples:
        return taught.experience((TaskLesson((unit,)),)).training

    def _tables(self) -> tuple[Tensor, Tensor]:
        """Return the label and the unit of every sample, by its number."""
        number = 1 + max(int(samples.ids.max()) for samples in self._samples_of.values())
        label, of_unit = torch.full((2, number), -1)
        for unit, samples in self._samples_of.items():
            label[samples.ids], of_unit[samples.ids] = samples.labels, unit
        return label, of_unit

    def _note(self) -> str:
        mixture = self.mixture(self.default)
        return (
            f"stream of {len(mixture)} batches of {self._settings.batch}, {self._settings.transition.name}: overlap "
            f"index O({OVERLAP_BELOW}) = {overlap_index(mixture):.3f} in the default order"
        )

    def mixture(self, order: Order) -> np.ndarray:
        """Return (T, K) the share of every task of an order that is expected in every batch."""
        lengths = [len(self._numbers(task)) for task in order]
        return self._settings.transition.mixture(order, lengths, self._settings.batch)

    def _batches(self, order: Order) -> Batches:
        """Return the batches of an order; every learner of a study asks for them again."""
        if order not in self._streams:
            while len(self._streams) >= _KEPT:
                del self._streams[next(iter(self._streams))]
            self._streams[order] = self._drawn(order)
        return self._streams[order]

    def _drawn(self, order: Order) -> Batches:
        """Draw the batches of an order; refuse unknown units, and batches larger than a task."""
        for task in order:
            for unit in task:
                if unit not in self._samples_of:
                    raise InputError(f"task {task}: there is no {self.unit_kind} {unit} in the stream")
        self._refuse_large_batches(order)
        seed = seed_of("stream", self._seed)
        replacement = self._settings.sampling == "with-replacement"
        queues = [Queue(task, self._numbers(task), seed, replacement) for task in order]
        return self._settings.transition.batches_of(queues, self._settings.batch, seed)

    def _refuse_large_batches(self, order: Order) -> None:
        for task in order:
            if self._settings.batch > (number := len(self._numbers(task))):
                names = ", ".join(self.units[unit].name for unit in task)
                raise InputError(
                    f"scenario: batch: {self._settings.batch} samples are more than all {number} of the task {names}"
                )

    def _numbers(self, task: Task) -> np.ndarray:
        """Return the samples of a task, ascending."""
        return np.sort(np.concatenate([self._samples_of[unit].ids.numpy() for unit in task]))

    def lessons(self, order: Order) -> Prefix:
        """Return the pieces of the stream of an order, an examination after each; refuse more of them than batches."""
        order = tuple(as_task(task) for task in order)
        batches = self._batches(order)
        asked = tuple(sorted(order)) if self._own_views else ()
        after = examined_after(len(batches), self._settings.examinations, self._settings.every)
        pieces = np.split(np.arange(len(batches)), after[:-1])
        return tuple(self._segment([batches[place] for place in piece], asked) for piece in pieces)

    def _segment(self, batches: Batches, asked: Order) -> Segment:
        by_number = tuple(tuple(batch.tolist()) for batch in batches)
        units = self._unit[np.concatenate(batches)]
        return Segment(as_task(units.unique().tolist()), by_number, asked)

    def experience(self, prefix: Prefix) -> Experience:
        """Return the batches of the last piece of a prefix; neither a task nor what is to come is told with them."""
        segment = _piece(prefix[-1])
        ids = torch.tensor(segment.samples)
        rows = torch.arange(len(ids)).split([len(batch) for batch in segment.batches])
        lesson, pace = Unnamed(segment.token), GivenBatches(rows)
        return Experience(lesson, (segment.token,), (), self._samples(ids), self._samples(ids[:0]), pace)

    def _samples(self, ids: Tensor) -> Samples:
        return Samples(self._pool, ids, self._label[ids], torch.full((len(ids),), -1))

    def queries(self, prefix: Prefix) -> Queries:
        """Return all queries of all latent tasks, whatever has come of them."""
        tasks = self._tasks(prefix)
        if tasks not in self._queried:
            # The same at every examination; subgraphs take a while to be cut out.
            self._queried = {tasks: self._asked.queries(tasks)}
        queries = self._queried[tasks]
        # Copies: whoever is asked may write into them.
        return Queries(queries.pool, queries.ids.clone(), queries.step.clone())

    def _tasks(self, prefix: Prefix) -> Prefix:
        """Return the latent tasks as lessons of the scenario that asks."""
        return self._asked.lessons(_piece(prefix[-1]).asked or self.default)

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:
        """Return the metrics of the answers, among all classes met so far; and of every unit, what there is to learn.

        That is called SIZE: the share of the training samples that are of a unit, and their number.
        """
        met = torch.zeros(len(self.outputs), dtype=torch.bool)
        for lesson in prefix:
            met[self._label[_piece(lesson).samples]] = True
        scores = self._asked.score(answers.masked_fill(~met, -torch.inf), self._tasks(prefix))
        return (*scores, self._sizes)

    def _size(self) -> Measure:
        sizes = np.array([len(self._samples_of.get(unit, ())) for unit in range(len(self.units))])
        return Measure("training", SIZE, np.where(sizes > 0, sizes / sizes.sum(), np.nan), sizes)


def _piece(lesson: Any) -> Segment:
    if not isinstance(lesson, Segment):
        raise InputError(f"lesson {lesson.token}: expected a piece of a stream")
    return lesson
