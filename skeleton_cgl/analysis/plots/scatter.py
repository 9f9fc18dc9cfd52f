"""AA against AF, a point per order, under the bound of Theorem 1."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skeleton_cgl.analysis.performance import forgetting_bound
from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, SMALL, label_outer, looks, method_legend, panels, styled

_FILLED = {"linewidths": 0.3, "edgecolors": "white", "alpha": 0.75}


@styled
def order_scatter(runs: pd.DataFrame) -> Figure:
    """Return AA against AF with the bound, one point per row: filled for task orders, hollow for class orders.

    `runs` is what `performance.runs` or `curves.mean_over_repeats` gives. There is a panel for every value of its
    column "panel", or else for every backbone.
    """
    by = runs["panel" if "panel" in runs else "backbone"]
    titles = list(dict.fromkeys(by))
    width = COLUMN_INCHES * min(2, len(titles))
    figure, axes = panels(len(titles), 2, width, 3.1, sharex=True, sharey=True)
    for panel, title in zip(axes, titles, strict=True):
        _scatter(panel, runs[by == title])
        panel.set_xlabel("average accuracy (AA)")
        panel.set_ylabel("average forgetting (AF)")
        if len(titles) > 1:
            panel.set_title(title)
    label_outer(axes)
    axes[0].set_xlim(0, 1)
    axes[0].set_ylim(min(0, runs["AF"].min()) - 0.03, 1.03)
    kinds = []
    if runs["kind"].nunique() > 1:
        point = {"color": "#444444", "marker": "o", "linestyle": ""}
        kinds = [Line2D([], [], label="task order", **point), Line2D([], [], label="class order", mfc="none", **point)]
    method_legend(figure, runs["method"], kinds, line="")
    return figure


def _scatter(panel: Axes, runs: pd.DataFrame) -> None:
    size = 14 if len(runs) < 500 else 9
    # The widest cloud first, so that none is hidden behind it.
    spread = runs.groupby("method")[["AA", "AF"]].agg(np.ptp).sum(axis=1)
    styles = looks(runs["method"])
    for method in sorted(styles, key=spread.get, reverse=True):
        look = styles[method]
        for kind in ("task", "class"):
            points = runs[(runs["method"] == method) & (runs["kind"] == kind)]
            hollow = {"facecolors": "none", "edgecolors": look.colour, "linewidths": 0.6, "alpha": 0.75}
            style = {"c": look.colour, **_FILLED} if kind == "task" else hollow
            if len(points):
                panel.scatter(points["AA"], points["AF"], s=size, marker=look.marker, label=f"{method} {kind}", **style)
    for steps in sorted(set(runs["order"].map(len)) - {1}):
        _bound(panel, steps)


def _bound(panel: Axes, steps: int) -> None:
    accuracy = np.array([0.0, 1.0])
    bound = forgetting_bound(accuracy, steps)
    panel.plot(accuracy, bound, ":", color="#444444", linewidth=1)
    panel.annotate(
        f"bound, {steps} tasks",
        (0.6, forgetting_bound(0.6, steps)),
        (2.5, 2.5),
        textcoords="offset points",
        rotation=np.degrees(np.arctan2(*np.diff(bound), *np.diff(accuracy))),
        rotation_mode="anchor",
        transform_rotates_text=True,
        ha="center",
        va="bottom",
        fontsize=SMALL,
    )
