"""The performance matrix of every method: accuracy on each task after each step, for one order or averaged."""

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from skeleton_cgl.analysis.curves import mean_accuracy_matrices
from skeleton_cgl.analysis.figure import Kind, StudyFigure, names_in, order_of
from skeleton_cgl.analysis.names import LearnerName
from skeleton_cgl.analysis.plots.heatmap import heatmap, percent_text, task_text
from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, NORMAL, panel_titles, panels, panels_per_row, styled
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.scenarios.lessons import Order


@dataclass(frozen=True, eq=False)
class Matrices:
    """What `curves.mean_accuracy_matrices` gives, the names of its learners, and the order, if they are of one."""

    names: tuple[LearnerName, ...]
    matrices: pd.DataFrame
    order: Order | None


class AccuracyMatrix(StudyFigure[Matrices]):
    """A panel per learner. kind: which orders; order: one alone, such as `0,1 > 4,5 > 2,3`."""

    title = "Accuracy matrices"
    meaning = "Percent on the task at each position after each step, mean over all orders and repeats."

    def __init__(self, kind: Kind = "both", order: str | None = None) -> None:
        self.kind = kind
        self.order = order_of(order)

    def applies(self, results: Results) -> bool:
        return not results.scores.has_streams

    def compute(self, results: Results) -> Matrices:
        scores = results.scores.of_kind(self.kind)
        matrices = mean_accuracy_matrices(scores, self.order)
        there = set(matrices["learner"])
        return Matrices(tuple(name for name in names_in(scores) if name.number in there), matrices, self.order)

    @styled
    def draw(self, value: Matrices) -> Figure:
        titles = panel_titles(value.names)
        columns = min(panels_per_row(titles.values(), letters=54, most=3), len(titles))
        rows = -(-len(titles) // columns)
        # The label below takes its room once, however many rows there are.
        figure, axes = panels(len(titles), columns, COLUMN_INCHES / 3 * columns, 1.25 + 0.2 / rows)
        for panel, (number, title) in zip(axes, titles.items(), strict=True):
            of_learner = value.matrices[value.matrices["learner"] == number]
            grid = of_learner.pivot(index="step", columns="position", values="accuracy")
            heatmap(panel, grid, grid.map(percent_text), square=True)
            panel.set_title(title)
            if value.order is not None:
                panel.set_xticklabels([task_text(task) for task in value.order])
        figure.supxlabel("task", fontsize=NORMAL)
        figure.supylabel("tasks learned", fontsize=NORMAL)
        return figure
