"""What analysis computes on: the values of one metric for every run, step and unit, as arrays.

Values are fractions here and nowhere else; whoever shows them makes percent of them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.engine.draws import FLOORS
from skeleton_cgl.engine.rows import LearnerRow
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, UnitKind
from skeleton_cgl.scenarios.measures import QUERIED

KINDS = ("task", "class", "domain")
"""What an order can arrange: the default tasks, classes mixed anew, domains."""


def choose(what: str, word: str, known: Sequence[str]) -> str:
    """Return `word` if it is known; refuse it with the nearest known word otherwise."""
    if word not in known:
        raise InputError(f"unknown {what} {word!r}{did_you_mean(str(word), known)}")
    return word


@dataclass(frozen=True)
class ScoredRun:
    """One order learned to its end: by which learner, in which repeat. noise 0 is the ordinary run.

    examinations: how often a stream was examined along its way; None where every task of the order is followed by one.
    floor: what was drawn anew for a run of a noise floor, one of FLOORS; "" for the ordinary one.
    """

    learner: int
    repeat: int
    noise: int
    kind: str
    order: Order
    examinations: int | None = None
    floor: str = ""

    @property
    def steps(self) -> int:
        """The number of times the learner was asked."""
        return len(self.order) if self.examinations is None else self.examinations

    def __str__(self) -> str:
        noise = f"noise {self.noise}{f' of {self.floor}' if self.floor else ''}"
        return f"learner {self.learner}, repeat {self.repeat}, {noise}, {self.kind} order {self.order}"


@dataclass(frozen=True, eq=False)
class Costs:
    """What runs cost, all (N,): seconds to learn an order, and what is kept after it; NaN where it is not known."""

    seconds: np.ndarray
    samples: np.ndarray
    floats: np.ndarray
    bytes: np.ndarray

    def __len__(self) -> int:
        return len(self.seconds)

    def chosen(self, places: np.ndarray) -> "Costs":
        return Costs(*(getattr(self, field.name)[places] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Scores:
    """The values of a metric: test and validation (N, S, U) of N runs after each of S steps on every unit.

    NaN where nothing was asked, and after the last step of an order of fewer than S tasks. A run names its learner by
    number; units are the names of what orders arrange. asked (N, 2, U): the number of test and of validation queries
    behind the values of every run; None where it is not known. missing: ordinary runs that are planned, not finished.
    unit: what the units are. untrained (N, U): the test values of a learner that has not learned yet; NaN where it was
    not asked, None where nobody was. costs: what every run cost; None where nothing is known of it. trained (N, U): the
    number of training samples of every unit, which streams tell; None for others.

    Refused: arrays of another shape, a run given twice, a learner or a unit that is not there, an unknown kind of
    order, a run of a noise floor that does not say of which, a micro metric without the numbers of queries.
    """

    learners: tuple[LearnerRow, ...]
    units: tuple[str, ...]
    runs: tuple[ScoredRun, ...]
    test: np.ndarray
    validation: np.ndarray
    metric: str = "accuracy"
    asked: np.ndarray | None = None
    missing: tuple[ScoredRun, ...] = ()
    unit: UnitKind = "class"
    untrained: np.ndarray | None = None
    costs: Costs | None = None
    trained: np.ndarray | None = None

    def __post_init__(self) -> None:
        steps = max((run.steps for run in self.runs), default=0)
        for part, values in (("test", self.test), ("validation", self.validation)):
            if values.ndim != 3 or values.shape[::2] != (len(self.runs), len(self.units)) or values.shape[1] < steps:
                wanted = (len(self.runs), steps, len(self.units))
                raise InputError(f"scores: {part}: expected (runs, steps, units) {wanted}, found {values.shape}")
        if self.asked is not None and self.asked.shape != (len(self.runs), 2, len(self.units)):
            wanted = (len(self.runs), 2, len(self.units))
            raise InputError(f"scores: asked: expected (runs, parts, units) {wanted}, found {self.asked.shape}")
        for name, of_units in (("untrained", self.untrained), ("trained", self.trained)):
            if of_units is not None and of_units.shape != (len(self.runs), len(self.units)):
                each = (len(self.runs), len(self.units))
                raise InputError(f"scores: {name}: expected (runs, units) {each}, found {of_units.shape}")
        if self.costs is not None and len(self.costs) != len(self.runs):
            raise InputError(f"scores: costs: expected those of {len(self.runs)} runs, found {len(self.costs)}")
        if self.is_micro and self.asked is None:
            raise InputError(f"scores: {self.metric}: tasks weigh units by their queries, whose numbers are missing")
        numbers = {learner.number for learner in self.learners}
        seen: set[ScoredRun] = set()
        for run in self.runs:
            choose("kind of order", run.kind, KINDS)
            if run.floor not in (FLOORS if run.noise else ("",)):
                known = " or ".join(FLOORS)
                raise InputError(f"scores: {run}: expected a floor, {known}, for runs of noise and for no others")
            if run.learner not in numbers:
                raise InputError(f"scores: {run}: there is no such learner")
            if max(unit for task in run.order for unit in task) >= len(self.units):
                raise InputError(f"scores: {run}: there are only units 0–{len(self.units) - 1}")
            if run in seen:
                raise InputError(f"scores: {run}: given twice")
            seen.add(run)

    @property
    def is_micro(self) -> bool:
        """Whether a task's value is the share of its queries answered rightly, and not the mean of its units'."""
        return self.metric.startswith("micro")

    @property
    def has_streams(self) -> bool:
        """Whether there are runs of streams, examined at other times than after each task."""
        return any(run.examinations is not None for run in self.runs)

    def weights(self, queries: str = "test") -> np.ndarray | None:
        """Return what every unit weighs (N, U) in the value of its task: its number of queries; None for all alike."""
        place = QUERIED.index(choose("queries", queries, QUERIED))
        return self.asked[:, place] if self.is_micro and self.asked is not None else None

    @cached_property
    def learner(self) -> np.ndarray:
        """The number of every run's learner (N,)."""
        return np.array([run.learner for run in self.runs], dtype=int)

    @cached_property
    def repeat(self) -> np.ndarray:
        """The repeat of every run (N,)."""
        return np.array([run.repeat for run in self.runs], dtype=int)

    @cached_property
    def noise(self) -> np.ndarray:
        """Which of the re-seeded runs of one order every run is (N,), 0 for the ordinary one."""
        return np.array([run.noise for run in self.runs], dtype=int)

    @cached_property
    def steps(self) -> np.ndarray:
        """The number of steps of every run (N,): the tasks of its order, or the examinations of a stream."""
        return np.array([run.steps for run in self.runs], dtype=int)

    @property
    def finals(self) -> np.ndarray:
        """The test values (N, U) after the last step of every run."""
        return self.test[np.arange(len(self.runs)), self.steps - 1]

    @property
    def final_halves(self) -> np.ndarray:
        """The values (2, N, U) after the last step, on test and on validation, of units that have queries in both."""
        last = np.arange(len(self.runs)), self.steps - 1
        halves = np.stack([self.test[last], self.validation[last]])
        return np.where(np.isnan(halves).any(axis=0), np.nan, halves)

    def chosen(self, wanted: Iterable[bool] | np.ndarray) -> "Scores":
        """Return the scores of some runs, told by a truth for each; the learners and what is missing stay."""
        places = np.flatnonzero(np.fromiter(wanted, dtype=bool, count=len(self.runs)))
        runs = tuple(self.runs[place] for place in places)
        asked = None if self.asked is None else self.asked[places]
        untrained = None if self.untrained is None else self.untrained[places]
        return replace(
            self,
            runs=runs,
            test=self.test[places],
            validation=self.validation[places],
            asked=asked,
            untrained=untrained,
            costs=None if self.costs is None else self.costs.chosen(places),
            trained=None if self.trained is None else self.trained[places],
        )

    def where(self, wanted: Callable[[ScoredRun], bool]) -> "Scores":
        """Return the scores of the runs of which `wanted` is true."""
        return self.chosen(np.array([wanted(run) for run in self.runs], dtype=bool))

    def of_learner(self, number: int) -> "Scores":
        """Return the scores of one learner, who alone remains."""
        learners = tuple(learner for learner in self.learners if learner.number == number)
        missing = tuple(run for run in self.missing if run.learner == number)
        return replace(self.chosen(self.learner == number), learners=learners, missing=missing)

    def ordinary(self) -> "Scores":
        """Return the scores of the ordinary runs (noise 0); refuse if there is none."""
        found = self.chosen(self.noise == 0)
        if not found.runs:
            raise InputError("scores: no ordinary run (noise 0)")
        return found

    def of_kind(self, kind: str) -> "Scores":
        """Return the scores of orders of one kind, or of "both", whatever kinds there are; refuse if there is none."""
        choose("kind of order", kind, ("both", *KINDS))
        if kind == "both":
            found = self
        else:
            missing = tuple(run for run in self.missing if run.kind == kind)
            found = replace(self.where(lambda run: run.kind == kind), missing=missing)
        if not found.runs:
            there = ", ".join(sorted({run.kind for run in self.runs}))
            raise InputError(f"no {kind} order is finished{f'; there are orders of kind {there}' if there else ''}")
        return found


def joined(several: Sequence[Scores]) -> Scores:
    """Return the runs of several scores as one; refuse scores of other learners, units or metrics than the first's."""
    first, *others = several
    for other in others:
        if (other.learners, other.units, other.metric) != (first.learners, first.units, first.metric):
            raise InputError("scores: only those of the same learners, units and metric can be joined")
    steps = max(each.test.shape[1] for each in several)
    asked = [each.asked for each in several if each.asked is not None]
    untrained = [each.untrained for each in several if each.untrained is not None]
    costs = [each.costs for each in several if each.costs is not None]
    trained = [each.trained for each in several if each.trained is not None]
    return replace(
        first,
        runs=tuple(run for each in several for run in each.runs),
        test=np.concatenate([_padded(each.test, steps) for each in several]),
        validation=np.concatenate([_padded(each.validation, steps) for each in several]),
        asked=np.concatenate(asked) if len(asked) == len(several) else None,
        missing=tuple(run for each in several for run in each.missing),
        untrained=np.concatenate(untrained) if len(untrained) == len(several) else None,
        costs=_joined_costs(costs) if len(costs) == len(several) else None,
        trained=np.concatenate(trained) if len(trained) == len(several) else None,
    )


def _joined_costs(several: Sequence[Costs]) -> Costs:
    return Costs(*(np.concatenate([getattr(each, field.name) for each in several]) for field in fields(Costs)))


def _padded(values: np.ndarray, steps: int) -> np.ndarray:
    missing = steps - values.shape[1]
    return np.pad(values, ((0, 0), (0, missing), (0, 0)), constant_values=np.nan)
