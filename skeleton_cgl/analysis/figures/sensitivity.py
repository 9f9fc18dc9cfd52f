"""What methods know in the end against how far the order decides it: AA against AOPD, a point per method."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skeleton_cgl.analysis.figure import StudyFigure, study_names
from skeleton_cgl.analysis.metric import Findings
from skeleton_cgl.analysis.names import LearnerName, name_together
from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, EDGE, SMALL, method_legend, panels, styled
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.tables import default_level
from skeleton_cgl.analysis.words import OF_SKELETONS, Wording
from skeleton_cgl.errors import InputError

_COLUMNS = 3
_TITLE_LETTERS = 30
"""As many as fit above a panel of three."""
_ROOM = 1.05
"""Above the greatest disparity, so that its marker is clear of the frame."""


@dataclass(frozen=True)
class Point:
    """A learner: AA and AOPD as fractions, with their deviations over repeats, and the AOPD of runs of one order."""

    name: LearnerName
    AA: float
    AA_std: float
    AOPD: float
    AOPD_std: float
    floor: float


@dataclass(frozen=True)
class SensitivityPanel:
    """What the learners of one setting achieved, over so many orders at the most."""

    title: str
    points: tuple[Point, ...]
    orders: int
    words: Wording = OF_SKELETONS

    def with_those_of(self, other: "SensitivityPanel | None") -> "SensitivityPanel":
        """Return the panel with the points of one before it."""
        if other is None:
            return self
        return replace(self, points=(*other.points, *self.points), orders=max(self.orders, other.orders))


class Sensitivity(StudyFigure[tuple[SensitivityPanel, ...]]):
    """A panel per setting; several studies stand side by side, those of one scenario in one panel.

    Learners of several studies in one panel have the same lessons and queries, not the same seeds, or processor. A
    method may have other parameters in another panel.
    """

    title = "Accuracy and order sensitivity of every method"
    meaning = (
        "A point per method: mean final accuracy against its disparity over the orders, whiskers being deviations over "
        "repeats; −: the disparity of runs of one order that differ by their seed. Best is the lower right."
    )

    def applies(self, results: Results) -> bool:
        return len({run.order for run in results.scores.runs}) > 1

    def compute(self, results: Results) -> tuple[SensitivityPanel, ...]:
        return self.compute_several([results])

    def compute_several(self, several: Sequence[Results]) -> tuple[SensitivityPanel, ...]:
        scenarios = [json.dumps(results.spec.get("scenario", {}), sort_keys=True) for results in several]
        names = name_together([results.scores.learners for results in several], scenarios)
        first = dict(zip(reversed(scenarios), reversed(several), strict=True))
        titles = dict(zip(first, study_names(list(first.values())), strict=True))
        found: dict[str, SensitivityPanel] = {}
        for results, scenario, own in zip(several, scenarios, names, strict=True):
            for panel in _panels(results, own, f"{titles[scenario]}, " if len(first) > 1 else ""):
                found[panel.title] = panel.with_those_of(found.get(panel.title))
        if not found:
            raise InputError("no method was taught in two orders; there is no disparity to draw")
        return tuple(found.values())

    @styled
    def draw(self, value: tuple[SensitivityPanel, ...]) -> Figure:
        columns = min(_COLUMNS, len(value))
        figure, axes = panels(len(value), columns, COLUMN_INCHES * min(2, columns), 2.4)
        for axis, panel in zip(axes, value, strict=True):
            _draw_panel(axis, panel)
            axis.set_xlabel(f"average {panel.words.measured}")
            axis.set_ylabel(f"AOPD, {panel.orders} orders")
            if len(value) > 1:
                axis.set_title(textwrap.fill(panel.title, _TITLE_LETTERS))
        names = [point.name for panel in value for point in panel.points]
        method_legend(figure, names, line="")
        return figure


def _panels(results: Results, names: dict[int, LearnerName], study: str) -> list[SensitivityPanel]:
    findings = Findings(results.scores, default_level(results.scores), results.study)
    by_setting: dict[str, list[Point]] = {}
    orders: dict[str, int] = {}
    for learner, half_done in zip(findings.names, findings.half_done, strict=True):
        disparity = findings.disparities[learner.number]
        # Disparity grows with the number of orders: what has fewer than it will have would look better than it is.
        if isinstance(disparity, str) or np.isnan(disparity.AOPD) or half_done:
            continue
        runs = findings.runs[findings.runs["learner"] == learner.number]
        by_repeat = runs.groupby("repeat")["AA"].mean()
        name = names[learner.number]
        point = Point(name, by_repeat.mean(), by_repeat.std(), disparity.AOPD, disparity.AOPD_std, disparity.AOPD_floor)
        by_setting.setdefault(name.setting, []).append(point)
        orders[name.setting] = max(orders.get(name.setting, 0), disparity.orders)
    return [
        SensitivityPanel(f"{study}{setting}", tuple(points), orders[setting], results.words)
        for setting, points in by_setting.items()
    ]


def _draw_panel(axis: Axes, panel: SensitivityPanel) -> None:
    for point in panel.points:
        look: dict[str, Any] = {"color": point.name.colour, "marker": point.name.marker, "linestyle": ""}
        spread: dict[str, Any] = {"xerr": np.nan_to_num(point.AA_std), "yerr": np.nan_to_num(point.AOPD_std)}
        axis.errorbar(point.AA, point.AOPD, **spread, elinewidth=0.5, markersize=5, clip_on=False, **look, **EDGE)
        if not np.isnan(point.floor):
            axis.plot([point.AA], [point.floor], marker="_", color=point.name.colour, markersize=6, markeredgewidth=0.8)
    axis.set_ylim(0, _ROOM * axis.get_ylim()[1])
    axis.tick_params(labelsize=SMALL)
