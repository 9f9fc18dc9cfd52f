"""A metric of records: columns of the tables, computed from the scores of a study.

To add one, derive from `Metric` in a file of its own, give a heading, and say what it is of one learner's scores:

    class Worst(Metric):
        heading = "worst"
        note = "Worst: the lowest final accuracy of any class, mean over orders."

        def measure(self, scores: Scores) -> Entry:  # noqa: ARG002
            return entry_of(scores, np.nanmin(scores.finals, axis=1))
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.disparity import Disparity, deviation, learner_disparity
from skeleton_cgl.analysis.finals import LEVELS, Finals, final_accuracies
from skeleton_cgl.analysis.names import LearnerName, name_learners
from skeleton_cgl.analysis.performance import runs
from skeleton_cgl.analysis.scores import Scores, choose
from skeleton_cgl.analysis.table import EMPTY, Cell, Column, number_and_spread, percent_and_spread
from skeleton_cgl.analysis.words import PLURAL, Wording, wording
from skeleton_cgl.engine.rows import LearnerRow, StudyRow
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.measures import QUERIED


@dataclass(frozen=True)
class Entry:
    """What a metric says of one learner: its value and the spread of that over repeats; or why it has none."""

    value: float = np.nan
    spread: float = np.nan
    reason: str = ""


@dataclass(frozen=True)
class MetricColumn:
    """A column of a table: a cell for every learner of the findings, in their sequence, and what a reader must know.

    optional: it is shown only if a cell is not empty, or if it is asked for by name.
    """

    column: Column
    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()
    optional: bool = False

    @property
    def is_empty(self) -> bool:
        return all(cell.is_empty for cell in self.cells)


@dataclass(frozen=True)
class Beside:
    """Published values to be set beside ours: of which data set, and whether also of unlike studies."""

    dataset: str
    anyway: bool = False


@dataclass(frozen=True, eq=False)
class Findings:
    """What columns are made of: the scores of a study, and what several of them share, computed once.

    level: whose disparity, of tasks or of classes. Only runs of orders that can be compared at that level, inside of
    their repeat, count.
    """

    scores: Scores
    level: str = "task"
    study: StudyRow | None = None
    beside: Beside | None = None

    def __post_init__(self) -> None:
        choose("level", self.level, LEVELS)

    @cached_property
    def names(self) -> tuple[LearnerName, ...]:
        """The learners that have ordinary runs, in the sequence of the rows."""
        there = set(self.scores.ordinary().learner.tolist())
        return tuple(name for name in name_learners(self.scores.learners) if name.number in there)

    @cached_property
    def learners(self) -> tuple[LearnerRow, ...]:
        """The rows of the learners, in the sequence of `names`."""
        rows = {learner.number: learner for learner in self.scores.learners}
        return tuple(rows[name.number] for name in self.names)

    @cached_property
    def finals(self) -> dict[int, Finals]:
        """What each learner knew in the end of the orders compared, by its number."""
        there = {name.number for name in self.names}
        found = final_accuracies(self.scores.where(lambda run: run.learner in there), self.level)
        return {finals.learner: finals for finals in found}

    @cached_property
    def compared(self) -> Scores:
        """The scores of the ordinary runs of the orders compared, each once."""
        seen = set()
        wanted = []
        for run in self.scores.runs:
            named = (run.learner, run.repeat, run.order)
            finals = self.finals.get(run.learner)
            orders = finals.orders_in.get(run.repeat, ()) if finals is not None else ()
            wanted.append(run.noise == 0 and run.order in orders and named not in seen)
            if run.noise == 0:
                seen.add(named)
        return self.scores.chosen(np.array(wanted, dtype=bool))

    @cached_property
    def runs(self) -> pd.DataFrame:
        """AA, AF and the rest of every run that is compared; see `performance.runs`."""
        return runs(self.compared)

    @cached_property
    def disparities(self) -> dict[int, Disparity | str]:
        """The disparity of each learner by its number; the reason where it has none."""
        found: dict[int, Disparity | str] = {}
        for number, finals in self.finals.items():
            try:
                found[number] = learner_disparity(finals)
            except InputError as error:
                found[number] = str(error)
        return found

    @property
    def what(self) -> str:
        """What disparity is of, in words."""
        return "task" if self.level == "task" else self.scores.unit

    @property
    def whats(self) -> str:
        """The same, of several."""
        return "tasks" if self.level == "task" else PLURAL[self.scores.unit]

    @property
    def words(self) -> Wording:
        """The words in which the study is spoken of."""
        return wording(self.study, self.scores.unit, self.scores.metric)

    @property
    def is_of_skeletons(self) -> bool:
        """Whether the study is one of skeletons, or not known; others are shown as graph benchmarks have it."""
        return self.words.average == "AA"

    @property
    def in_the_end(self) -> str:
        """When a run is over, in words."""
        return "at the end of the stream" if self.scores.has_streams else "after the last task"

    @cached_property
    def share_orders(self) -> bool:
        """Whether the repeats of every learner share their orders, and so their tasks."""
        return all(finals.share_orders for finals in self.finals.values())

    @cached_property
    def half_done(self) -> tuple[bool, ...]:
        """Of each learner, in the sequence of `names`, whether orders that the study asks for are not finished yet."""
        found = (self.finals[name.number] for name in self.names)
        return tuple(finals.order_count < finals.planned for finals in found)

    @cached_property
    def queries(self) -> str:
        """A note on how many queries are behind the accuracy of a task or class; "" where it is not known."""
        if self.compared.asked is None:
            return ""
        spans = []
        for place, part in enumerate(QUERIED):
            found = [
                self._asked_in(number, repeat, place)[:, list(task)].sum(axis=1)
                for number, finals in self.finals.items()
                for repeat, tasks in finals.tasks_in.items()
                for task in tasks
            ]
            lowest, highest = min(map(np.min, found)), max(map(np.max, found))
            spans.append(f"{lowest} {part}" if lowest == highest else f"{lowest}–{highest} {part}")
        return f"Queries per {self.what}: {', '.join(spans)}."

    def _asked_in(self, learner: int, repeat: int, part: int) -> np.ndarray:
        """Return the numbers of queries (n, U) of the compared runs of a learner in a repeat."""
        assert self.compared.asked is not None
        return self.compared.asked[(self.compared.learner == learner) & (self.compared.repeat == repeat), part]

    def disparity(self, of: Callable[[Disparity], Cell], empty: int = 1) -> tuple[Cell, ...]:
        """Return a cell for every learner made of its disparity; one without numbers, as many as said, for none."""
        none = Cell(EMPTY, (None,) * empty)
        found = [self.disparities[name.number] for name in self.names]
        return tuple(none if isinstance(each, str) else of(each) for each in found)

    def told(self, reasons: list[str]) -> tuple[str, ...]:
        """Return the reasons why cells are empty, one for every learner or "", as notes that say whose they are."""
        notes = []
        for reason in dict.fromkeys(filter(None, reasons)):
            whose = [
                f"{name.method}, {name.setting}" if len({each.setting for each in self.names}) > 1 else name.method
                for name, own in zip(self.names, reasons, strict=True)
                if own == reason
            ]
            of_all = f"{reason[0].upper()}{reason[1:]}."
            notes.append(of_all if len(whose) == len(self.names) else f"{'; '.join(whose)}: {reason}.")
        return tuple(notes)


class Metric:
    """Columns of the tables; see the head of this module for how to add one.

    heading: of its column. percent: whether its values are fractions, to be shown in percent. note: what a reader must
    know. A metric of several columns names them in `offers` and makes them in `columns`.
    """

    heading: ClassVar[str] = ""
    percent: ClassVar[bool] = True
    note: ClassVar[str] = ""
    offers: ClassVar[tuple[str, ...]] = ()

    def measure(self, scores: Scores) -> Entry:  # noqa: ARG002
        """Return the value of one learner from its scores: of the ordinary runs, with each order once."""
        name = type(self).__name__
        raise InputError(f"metric {name}: method `measure` is missing; expected measure(scores) -> Entry")

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        """Return the columns, with a cell for every learner of the findings."""
        entries = [self.measure(findings.compared.of_learner(name.number)) for name in findings.names]
        make = percent_and_spread if self.percent else number_and_spread
        cells = tuple(make(entry.value, entry.spread) for entry in entries)
        notes = (*([self.note] if self.note else []), *findings.told([entry.reason for entry in entries]))
        return (MetricColumn(Column(self.heading, (self.heading, f"{self.heading}_std")), cells, notes),)

    @classmethod
    def column_names(cls) -> tuple[str, ...]:
        """Return the headings of the columns that there may be."""
        return cls.offers or (cls.heading,)


def entry_of(scores: Scores, values: np.ndarray) -> Entry:
    """Return the mean of a value for every run (N,), orders first and then repeats, with its deviation over repeats."""
    by_repeat = np.array([np.mean(values[scores.repeat == repeat]) for repeat in np.unique(scores.repeat)])
    return Entry(float(by_repeat.mean()), deviation(by_repeat))
