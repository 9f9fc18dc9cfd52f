"""The kindest and the cruellest orders by final AA, with the final accuracy of each of their tasks."""

import textwrap
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skeleton_cgl.analysis.fate import extreme_orders
from skeleton_cgl.analysis.figure import Kind, StudyFigure, names_in
from skeleton_cgl.analysis.names import LearnerName
from skeleton_cgl.analysis.plots.heatmap import heatmap, percent_text, task_text
from skeleton_cgl.analysis.plots.style import (
    COLUMN_INCHES,
    HOLLOW,
    SMALL,
    panel_titles,
    panels,
    styled,
)
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.scores import choose
from skeleton_cgl.analysis.words import OF_SKELETONS, Wording

_UNBROKEN = "\N{NO-BREAK SPACE}"
_NOT_SO = "○ not so on the validation queries: beyond the median order"


@dataclass(frozen=True, eq=False)
class Ends:
    """What `fate.extreme_orders` gives, the names of its learners and classes, and the words for its averages."""

    names: tuple[LearnerName, ...]
    units: tuple[str, ...]
    orders: pd.DataFrame
    words: Wording = OF_SKELETONS


class BestWorstOrders(StudyFigure[Ends]):
    """A panel per learner: the extreme orders, a row each; a cell names the task by its classes and says its percent.

    kind: which orders; method: one alone, by what it is or is called; count: orders at each end.
    """

    title = "The kindest and the cruellest orders"
    meaning = (
        "By final average accuracy, the best first; a cell names a task by its classes and its final percent. "
        "○: on the validation queries no better, or no worse, than the median of all orders."
    )

    def __init__(self, kind: Kind = "both", method: str | None = None, count: int = 5) -> None:
        self.kind = kind
        self.method = method
        self.count = count

    def compute(self, results: Results) -> Ends:
        scores = results.scores.of_kind(self.kind)
        names = names_in(scores)
        if self.method is not None:
            components = {learner.number: learner.method.name for learner in scores.learners}
            known = [*dict.fromkeys(components.values()), *dict.fromkeys(name.method for name in names)]
            choose("method", self.method, known)
            names = tuple(name for name in names if self.method in (name.method, components[name.number]))
            wanted = {name.number for name in names}
            scores = scores.where(lambda run: run.learner in wanted)
        return Ends(names, results.units, extreme_orders(scores, self.count), results.words)

    @styled
    def draw(self, value: Ends) -> Figure:
        places = zip(value.orders["order"], value.orders["position"], value.orders["accuracy"], strict=True)
        texts = [f"{task_text(order[position - 1])}: {percent_text(accuracy)}" for order, position, accuracy in places]
        orders = value.orders.assign(text=texts)
        titles = panel_titles(value.names)
        width = max(COLUMN_INCHES, 0.6 + (0.05 + 0.05 * max(map(len, texts))) * orders["position"].max())
        rows = orders.groupby("learner")["rank"].nunique().max()
        columns = min(2, len(titles))
        figure, axes = panels(len(titles), columns, width * columns, 0.75 + 0.135 * rows)
        for panel, (number, title) in zip(axes, titles.items(), strict=True):
            _draw_orders(panel, orders[orders["learner"] == number], value.words.average)
            panel.set_title(title)
        shown = sorted({unit for order in orders["order"] for task in order for unit in task})
        names = ", ".join(f"{unit} {value.units[unit]}".replace(" ", _UNBROKEN) for unit in shown)
        lines = [names, *([] if orders["holds"].all() else [_NOT_SO])]
        wrapped = (textwrap.fill(line, width=int(21 * width * columns)) for line in lines)
        figure.supxlabel("\n".join(wrapped), fontsize=SMALL)
        return figure


def _draw_orders(panel: Axes, orders: pd.DataFrame, average: str) -> None:
    cells = orders.pivot(index="rank", columns="position", values=["accuracy", "text"])
    shown = orders.drop_duplicates("rank").set_index("rank")
    ranks = list(cells.index)
    jumps = [rank + 0.5 for rank, after in pairwise(ranks) if after > rank + 1]
    cells = cells.reindex(sorted([*ranks, *jumps]))
    heatmap(panel, cells["accuracy"].astype(float), cells["text"])
    panel.set_yticklabels(["" if rank in jumps else str(int(rank)) for rank in cells.index])
    panel.set(xlabel="position", ylabel="rank (1: kindest)")
    beside: dict[str, Any] = {"fontsize": SMALL, "transform": panel.get_yaxis_transform()}
    for row, rank in enumerate(cells.index):
        if rank not in jumps:
            panel.text(1.03, row + 0.5, percent_text(shown["AA"][rank]), va="center", **beside)
            if not shown["holds"][rank]:
                panel.plot(1.015, row + 0.5, transform=beside["transform"], clip_on=False, **HOLLOW)
    panel.text(1.03, -0.1, average, va="bottom", **beside)
