"""AA and AF against what a study sweeps, such as width or depth, mean and spread over repeats (Figs. 7, 8)."""

from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skeleton_cgl.analysis.figure import StudyFigure, names_in
from skeleton_cgl.analysis.names import LearnerName, methods_of, numbered, short
from skeleton_cgl.analysis.plots.lines import log_ticks
from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, EDGE, method_legend, panels, styled
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.sweeps import MEASURES, sweep_curves
from skeleton_cgl.analysis.words import OF_SKELETONS, Wording


@dataclass(frozen=True, eq=False)
class SweepRow:
    """The curves along one field, at one setting of the others, of one backbone; by method."""

    field: str
    title: str
    curves: tuple[tuple[LearnerName, pd.DataFrame], ...]
    words: Wording = OF_SKELETONS


class Architecture(StudyFigure[tuple[SweepRow, ...]]):
    """A row of panels for every swept field, setting of the other fields, and backbone."""

    title = "What was swept"
    meaning = (
        "Accuracy and forgetting against the values tried: mean over orders, then mean and standard deviation over "
        "repeats."
    )

    def applies(self, results: Results) -> bool:
        return any(learner.point for learner in results.scores.learners)

    def compute(self, results: Results) -> tuple[SweepRow, ...]:
        curves = sweep_curves(results.scores)
        names = numbered(names_in(results.scores))
        curves = curves.assign(
            backbone=[names[number].backbone for number in curves["learner"]],
            place=[names[number].place for number in curves["learner"]],
        )
        several = curves["backbone"].nunique() > 1
        rows = []
        for (field, others, backbone), here in curves.groupby(["field", "others", "backbone"], sort=False):
            methods = methods_of(names[number] for number in here["learner"])
            by_method = tuple((name, here[here["place"] == name.place]) for name in methods)
            title = ", ".join([*[backbone] * several, *[others] * bool(others)])
            rows.append(SweepRow(field, title, by_method, results.words))
        return tuple(rows)

    @styled
    def draw(self, value: tuple[SweepRow, ...]) -> Figure:
        figure, axes = panels(2 * len(value), 2, COLUMN_INCHES, 1.7)
        for number, row in enumerate(value):
            for panel, measure in zip(axes[2 * number : 2 * number + 2], MEASURES, strict=True):
                _draw_curves(panel, row, measure)
                panel.set_xlabel(short(row.field).replace("_", " "))
                panel.set_ylabel(row.words.measured if measure == "AA" else "forgetting (AF)")
                panel.set_title(row.title)
        method_legend(figure, [name for row in value for name, _ in row.curves])
        return figure


def _draw_curves(panel: Axes, row: SweepRow, measure: str) -> None:
    for name, curve in row.curves:
        panel.errorbar(
            curve["value"],
            curve[measure],
            yerr=curve[f"{measure}_std"].fillna(0),
            color=name.colour,
            marker=name.marker,
            elinewidth=0.6,
            capsize=1.5,
            label=name.method,
            **EDGE,
        )
    log_ticks(panel, sorted({value for _, curve in row.curves for value in curve["value"]}))
    lowest = min(0, *(curve[measure].min() for _, curve in row.curves))
    panel.set_ylim(lowest - 0.02, 1.02)
