"""A stream and what was known along it: its tasks mixed over time, and below the accuracy of every method."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from skeleton_cgl.analysis.figure import StudyFigure, names_in, order_of
from skeleton_cgl.analysis.names import LearnerName, settings_of
from skeleton_cgl.analysis.plots.style import (
    COLUMN_INCHES,
    columns_below,
    legend_below,
    method_legend,
    panels,
    styled,
)
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.streams import (
    Course,
    check_stream,
    courses,
    examined_at,
    is_known_stream,
    mixture,
    of_settings,
)
from skeleton_cgl.analysis.words import OF_SKELETONS, Wording
from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import value_text
from skeleton_cgl.scenarios.lessons import Order, describe

_MOST_PANELS = 4
_NAME_LINES = 6
"""Tasks whose names take more lines than these are told apart by their sequence alone."""
_LONGEST_NAME, _TITLE_LETTERS = 56, 26


@dataclass(frozen=True, eq=False)
class StreamPanel:
    """The stream of one order at one setting, and what its learners knew along it.

    tasks: what those of the order are called; mixture (T, K): the share of each that is expected in every batch;
    examined (S,): after how many batches all was asked.
    """

    title: str
    tasks: tuple[str, ...]
    mixture: np.ndarray
    examined: np.ndarray
    courses: tuple[Course, ...]
    words: Wording = OF_SKELETONS


class StreamOverTime(StudyFigure[tuple[StreamPanel, ...]]):
    """Two panels per setting. order: the one shown, such as `0,1 > 4,5 > 2,3`; by default that of the default tasks.

    only: settings with this text in them, such as "gaussian".
    """

    title = "Along a stream"
    meaning = (
        "Above, the share of every task that is expected in each batch of one order; below, the mean accuracy over "
        "all its tasks at each examination: mean over repeats, the band being their deviation."
    )

    def __init__(self, order: str | None = None, only: str = "") -> None:
        self.order = order_of(order)
        self.only = only

    def applies(self, results: Results) -> bool:
        return is_known_stream(results)

    def compute(self, results: Results) -> tuple[StreamPanel, ...]:
        check_stream(results)
        names = of_settings(names_in(results.scores), self.only)
        settings = settings_of(names)
        if len(settings) > _MOST_PANELS:
            raise InputError(
                f"the study has {len(settings)} settings of backbone and sweep; there is room for {_MOST_PANELS}: "
                "choose some with the option `only`"
            )
        order = self._order_of(results)
        found = []
        for setting in settings:
            here = [name for name in names if name.setting == setting]
            if (panel := _panel(results, here, order, _title(here[0], names))) is not None:
                found.append(panel)
        return tuple(found)

    def _order_of(self, results: Results) -> Order:
        """Return the order that is shown: the one asked for, else the default one, else the first that was run."""
        run = [run.order for run in results.scores.ordinary().runs]
        if self.order is not None and self.order not in run:
            raise InputError(f"order {describe(self.order)} was not run")
        return self.order or (results.study.default if results.study.default in run else run[0])

    @styled
    def draw(self, value: tuple[StreamPanel, ...]) -> Figure:
        columns = len(value)
        figure, axes = panels(
            2 * columns,
            columns,
            COLUMN_INCHES * min(2, columns),
            1.65,
            sharex="col",
            sharey="row",
            height_ratios=[1, 2],
        )
        for column, panel in enumerate(value):
            above, below = axes[column], axes[columns + column]
            _draw_mixture(above, panel)
            _draw_courses(below, panel)
            above.set_title(panel.title)
            for axis in (above, below):
                axis.tick_params(labelleft=column == 0)
        axes[0].set_ylabel("share")
        axes[columns].set_ylabel(f"mean {value[0].words.score}")
        method_legend(figure, [course.name for panel in value for course in panel.courses])
        _name_tasks(figure, value[0])
        return figure


def _panel(results: Results, names: list[LearnerName], order: Order, title: str) -> StreamPanel | None:
    """Return what there is of some learners on an order; None if none of them learned it."""
    scores, numbers = results.scores, {name.number for name in names}
    places = [
        place
        for place, run in enumerate(scores.runs)
        if run.learner in numbers and run.order == order and run.noise == 0
    ]
    if not places:
        return None
    first = places[0]
    return StreamPanel(
        title=title,
        tasks=tuple(_called([results.units[unit] for unit in task]) for task in order),
        mixture=mixture(scores, results.study, first),
        examined=examined_at(scores, results.study, first),
        courses=courses(scores, names, order, scores.runs[first].steps),
        words=results.words,
    )


def _called(units: list[str]) -> str:
    """Return the name of a task by its units; of many, the first and how many more."""
    name = ", ".join(units)
    return name if len(name) <= _LONGEST_NAME else f"{units[0]} and {len(units) - 1} more"


def _title(name: LearnerName, names: Sequence[LearnerName]) -> str:
    """Return what tells the setting of a learner from the others, in as few letters as can be."""
    fields = [_short(field, value_text(value)) for field, value in name.swept]
    several = len({each.backbone for each in names}) > 1
    return textwrap.fill(", ".join([*[name.backbone] * several, *fields]), _TITLE_LETTERS)


def _short(field: str, value: str) -> str:
    """Return a swept field and its value; of a transition, its name says what it is."""
    own = field.rpartition(".")[2]
    return value if own == "transition" else f"{own}={value}"


def _colours(tasks: int) -> list[Any]:
    """Return a colour for every task, from the first to the last."""
    return list(sns.color_palette("viridis", tasks))


def _draw_mixture(axis: Axes, panel: StreamPanel) -> None:
    batches = np.arange(len(panel.mixture) + 1)
    # A batch is as wide as the step from one to the next.
    shares = np.concatenate([panel.mixture, panel.mixture[-1:]])
    levels = np.concatenate([np.zeros((len(shares), 1)), np.cumsum(shares, axis=1)], axis=1).T
    for (lower, upper), colour, name in zip(pairwise(levels), _colours(len(panel.tasks)), panel.tasks, strict=True):
        axis.fill_between(batches, lower, upper, step="post", color=colour, linewidth=0, label=name)
    axis.set(xlim=(0, len(panel.mixture)), ylim=(0, 1), yticks=[0, 0.5, 1])
    axis.grid(visible=False)


def _draw_courses(axis: Axes, panel: StreamPanel) -> None:
    for course in panel.courses:
        name = course.name
        low, high = course.accuracy - course.spread, course.accuracy + course.spread
        axis.fill_between(panel.examined, low, high, color=name.colour, alpha=0.15, linewidth=0)
        look: dict[str, Any] = {"color": name.colour, "marker": name.marker, "linewidth": 0.8}
        # Without edges: the smaller a marker, the less is left of it inside of one.
        axis.plot(panel.examined, course.accuracy, label=name.method, clip_on=False, markersize=3, mew=0, **look)
    axis.set(xlabel="batches", ylim=(0, 1))


def _name_tasks(figure: Figure, panel: StreamPanel) -> None:
    """Put the names of the tasks below, in the sequence of the order; of many, no more than how colours run."""
    colours = _colours(len(panel.tasks))
    named = list(zip(colours, panel.tasks, strict=True))
    if len(named) > _NAME_LINES * columns_below(figure, panel.tasks):
        named = [
            (colours[0], f"first of {len(colours)} tasks: {panel.tasks[0]}"),
            (colours[-1], f"last: {panel.tasks[-1]}"),
        ]
    legend_below(figure, [Patch(color=colour, label=name) for colour, name in named])
