"""AA after each step, mean and spread over orders."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skeleton_cgl.analysis.curves import accuracy_by_step
from skeleton_cgl.analysis.figure import Kind, StudyFigure, names_in
from skeleton_cgl.analysis.names import LearnerName
from skeleton_cgl.analysis.plots.lines import panel_per_setting
from skeleton_cgl.analysis.plots.style import EDGE, label_outer, method_legend, styled
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.words import OF_SKELETONS, Wording

_TICKS = 20


@dataclass(frozen=True, eq=False)
class Steps:
    """What `curves.accuracy_by_step` gives, the names of its learners, and the words for its axes."""

    names: tuple[LearnerName, ...]
    steps: pd.DataFrame
    words: Wording = OF_SKELETONS
    counted: str = "tasks learned"


class LearningCurve(StudyFigure[Steps]):
    """A panel per setting; a thick bar spans the middle half of the orders, a thin one all. kind: which orders."""

    title = "Along the orders"
    meaning = "Average accuracy after each step: mean, the middle half of the orders (thick), all of them (thin)."

    def __init__(self, kind: Kind = "both") -> None:
        self.kind = kind

    def compute(self, results: Results) -> Steps:
        scores = results.scores.of_kind(self.kind)
        counted = "examinations" if scores.has_streams else "tasks learned"
        return Steps(names_in(scores), accuracy_by_step(scores), results.words, counted)

    @styled
    def draw(self, value: Steps) -> Figure:
        figure, axes = panel_per_setting(value.names, 2.6)
        for setting, panel in axes.items():
            here = [name for name in value.names if name.setting == setting]
            for shift, name in zip(_shifts(len(here)), here, strict=True):
                curve = value.steps[value.steps["learner"] == name.number]
                place = curve["step"] + shift
                panel.vlines(place, curve["lowest"], curve["highest"], color=name.colour, linewidth=0.5)
                panel.vlines(place, curve["lower_quartile"], curve["upper_quartile"], color=name.colour, linewidth=2)
                line: dict[str, Any] = {
                    "color": name.colour,
                    "marker": name.marker,
                    "linewidth": 0.5,
                    "label": name.method,
                }
                panel.plot(place, curve["AA"], **line, **EDGE)
            panel.set_xticks(_ticks(value.steps["step"].max()))
            panel.grid(visible=False, axis="x")
            panel.set_ylim(-0.02, 1.02)
            panel.set_xlabel(value.counted)
            panel.set_ylabel(f"average {value.words.measured}")
        label_outer(list(axes.values()))
        widths = {"middle half of orders": 2, "all orders": 0.5}
        bars = [Line2D([], [], color="#444444", linewidth=width, label=label) for label, width in widths.items()]
        method_legend(figure, value.names, bars)
        return figure


def _ticks(last: int) -> list[int]:
    """Return the steps that are named: all, or as many as there is room for, with the last."""
    apart = -(-last // _TICKS)
    return list(range(last, 0, -apart))[::-1]


def _shifts(number: int) -> np.ndarray:
    """Return where to put so many markers beside each other around a step."""
    return (np.arange(number) - (number - 1) / 2) * min(0.1, 0.8 / number)
