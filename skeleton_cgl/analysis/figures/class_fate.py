"""Final accuracy of every class by its position in the order: which classes suffer, and when."""

import textwrap
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from skeleton_cgl.analysis.fate import accuracy_by_position
from skeleton_cgl.analysis.figure import Kind, StudyFigure, names_in
from skeleton_cgl.analysis.names import LearnerName
from skeleton_cgl.analysis.plots.heatmap import heatmap, letter_colour
from skeleton_cgl.analysis.plots.style import (
    COLUMN_INCHES,
    HOLLOW,
    NORMAL,
    TICKS,
    panel_titles,
    panels,
    panels_per_row,
    styled,
)
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.words import OF_SKELETONS, Wording


@dataclass(frozen=True, eq=False)
class Fate:
    """What `fate.accuracy_by_position` gives, the names of its learners and classes, and the words for its colours."""

    names: tuple[LearnerName, ...]
    units: tuple[str, ...]
    fate: pd.DataFrame
    words: Wording = OF_SKELETONS


class ClassFate(StudyFigure[Fate]):
    """A panel per learner. kind: which orders."""

    title = "The fate of a class"
    meaning = (
        "Final accuracy of every class by its position in the order, mean over orders and repeats. ○: best and worst "
        "position of a class, where the best is not better than the worst on the validation queries."
    )

    def __init__(self, kind: Kind = "both") -> None:
        self.kind = kind

    def compute(self, results: Results) -> Fate:
        scores = results.scores.of_kind(self.kind)
        return Fate(names_in(scores), results.units, accuracy_by_position(scores), results.words)

    @styled
    def draw(self, value: Fate) -> Figure:
        titles = panel_titles(value.names, between="\n")
        columns = panels_per_row(titles.values(), letters=36, most=4)
        height = 0.5 + 0.13 * value.fate["class"].nunique()
        figure, axes = panels(len(titles), columns, COLUMN_INCHES, height, sharey=True)
        for panel, (number, title) in zip(axes, titles.items(), strict=True):
            of_learner = value.fate[value.fate["learner"] == number]
            grid = of_learner.pivot(index="class", columns="position", values="accuracy")
            heatmap(panel, grid)
            panel.set_yticklabels([value.units[unit] for unit in grid.index])
            panel.set_title(title)
            for failing in of_learner[~of_learner["holds"]].itertuples():
                row, column = list(grid.index).index(failing[2]), list(grid.columns).index(failing.position)
                panel.plot(column + 0.5, row + 0.5, **HOLLOW | {"markeredgecolor": letter_colour(failing.accuracy)})
        not_so = "" if value.fate["holds"].all() else "\n○ best and worst: not so on the validation queries"
        figure.supxlabel(f"position in the order{not_so}", fontsize=NORMAL)
        bar = figure.colorbar(axes[0].collections[0], ax=axes, aspect=40, pad=0.02)
        # Of few classes the panels are low, and a longer line would be cut.
        bar.set_label(textwrap.fill(f"final {value.words.score}", width=14), labelpad=4)
        bar.outline.set_visible(False)
        bar.ax.tick_params(**TICKS)
        return figure
