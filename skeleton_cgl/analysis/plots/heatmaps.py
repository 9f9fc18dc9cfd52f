"""Accuracies as colours: matrices by step and position, classes by position, the kindest and cruellest orders."""

import textwrap
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skeleton_cgl.analysis.performance import Order
from skeleton_cgl.analysis.plots.style import (
    COLUMN_INCHES,
    NORMAL,
    SMALL,
    TICKS,
    panel_titles,
    panels,
    panels_per_row,
    styled,
)

_COLOURS = sns.color_palette("mako_r", as_cmap=True)
_DARK = 0.5
"""Above this accuracy colours are so dark that white letters are read more easily than black ones."""
_UNBROKEN = "\N{NO-BREAK SPACE}"
_BESIDE = {"va": "center", "fontsize": SMALL}


@styled
def accuracy_matrices(matrices: pd.DataFrame, order: Order | None = None) -> Figure:
    """Return a panel per backbone and method: accuracy in percent by step and position.

    `matrices` is what `curves.mean_accuracy_matrices` gives; the tasks of `order`, if given, name the positions.
    """
    titles = panel_titles(matrices)
    columns = panels_per_row(titles.values(), letters=54, most=3)
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    # The label below takes its room once, however many rows there are.
    figure, axes = panels(len(titles), columns, COLUMN_INCHES / 3 * columns, 1.25 + 0.2 / rows)
    for panel, pair in zip(axes, titles, strict=True):
        grid = _of(matrices, pair).pivot(index="step", columns="position", values="accuracy")
        _heatmap(panel, grid, grid.map(_percent), square=True)
        panel.set_title(titles[pair])
        if order is not None:
            panel.set_xticklabels([_task(task) for task in order])
    figure.supxlabel("task", fontsize=NORMAL)
    figure.supylabel("tasks learned", fontsize=NORMAL)
    return figure


@styled
def class_fate(fate: pd.DataFrame, units: Sequence[str]) -> Figure:
    """Return a panel per backbone and method: final accuracy of every class by its position in the order.

    `fate` is what `fate.accuracy_by_position` gives; `units` are the names of the classes.
    """
    titles = panel_titles(fate, between="\n")
    columns = panels_per_row(titles.values(), letters=36, most=4)
    height = 0.5 + 0.13 * fate["class"].nunique()
    figure, axes = panels(len(titles), columns, COLUMN_INCHES, height, sharey=True)
    for panel, pair in zip(axes, titles, strict=True):
        grid = _of(fate, pair).pivot(index="class", columns="position", values="accuracy")
        _heatmap(panel, grid)
        panel.set_yticklabels([units[label] for label in grid.index])
        panel.set_title(titles[pair])
    figure.supxlabel("position in the order", fontsize=NORMAL)
    bar = figure.colorbar(axes[0].collections[0], ax=axes, aspect=40, pad=0.02)
    bar.set_label("final accuracy", labelpad=4)
    bar.outline.set_visible(False)
    bar.ax.tick_params(**TICKS)
    return figure


@styled
def best_worst_orders(orders: pd.DataFrame, units: Sequence[str]) -> Figure:
    """Return a panel per backbone and method: the extreme orders, a row each, with every task's final accuracy.

    `orders` is what `fate.extreme_orders` gives; a cell names the task by its classes and says its percent. AA stands
    at the end of a row.
    """
    places = zip(orders["order"], orders["position"], orders["accuracy"], strict=True)
    orders = orders.assign(
        text=[f"{_task(order[position - 1])}: {_percent(accuracy)}" for order, position, accuracy in places]
    )
    titles = panel_titles(orders)
    width = max(COLUMN_INCHES, 0.6 + (0.05 + 0.05 * orders["text"].map(len).max()) * orders["position"].max())
    rows = orders.groupby(["backbone", "method"])["rank"].nunique().max()
    columns = min(2, len(titles))
    figure, axes = panels(len(titles), columns, width * columns, 0.75 + 0.135 * rows)
    for panel, pair in zip(axes, titles, strict=True):
        _extreme_orders(panel, _of(orders, pair))
        panel.set_title(titles[pair])
    shown = sorted({label for order in orders["order"] for task in order for label in task})
    names = ", ".join(f"{label} {units[label]}".replace(" ", _UNBROKEN) for label in shown)
    figure.supxlabel(textwrap.fill(names, width=int(21 * width * columns)), fontsize=SMALL)
    return figure


def _extreme_orders(panel: Axes, orders: pd.DataFrame) -> None:
    cells = orders.pivot(index="rank", columns="position", values=["accuracy", "text"])
    averages = orders.drop_duplicates("rank").set_index("rank")["AA"]
    ranks = list(cells.index)
    jumps = [rank + 0.5 for rank, after in pairwise(ranks) if after > rank + 1]
    cells = cells.reindex(sorted([*ranks, *jumps]))
    _heatmap(panel, cells["accuracy"].astype(float), cells["text"])
    panel.set_yticklabels(["" if rank in jumps else str(int(rank)) for rank in cells.index])
    panel.set(xlabel="position", ylabel="rank (1: kindest)")
    for row, rank in enumerate(cells.index):
        if rank not in jumps:
            panel.text(1.03, row + 0.5, _percent(averages[rank]), **_BESIDE, transform=panel.get_yaxis_transform())
    panel.text(1.03, -0.1, "AA", **{**_BESIDE, "va": "bottom"}, transform=panel.get_yaxis_transform())


def _heatmap(panel: Axes, grid: pd.DataFrame, texts: pd.DataFrame | None = None, square: bool = False) -> None:
    """Draw accuracies as colours, with a text on each; what is missing is left blank."""
    look = {"cmap": _COLOURS, "vmin": 0, "vmax": 1, "cbar": False, "linewidths": 0.3}
    sns.heatmap(grid, ax=panel, square=square, xticklabels=True, yticklabels=True, **look)
    panel.grid(visible=False)
    panel.tick_params(length=0, rotation=0)
    panel.set(xlabel="", ylabel="")
    if texts is None:
        return
    for (row, column), value in np.ndenumerate(grid):
        if not np.isnan(value):
            style = {"color": "white" if value > _DARK else "black", "fontsize": SMALL, "in_layout": False}
            panel.text(column + 0.5, row + 0.5, texts.iat[row, column], ha="center", va="center", **style)


def _of(frame: pd.DataFrame, pair: tuple[str, str]) -> pd.DataFrame:
    return frame[(frame["backbone"] == pair[0]) & (frame["method"] == pair[1])]


def _percent(value: float) -> str:
    return "" if np.isnan(value) else f"{100 * value:.0f}"


def _task(task: Sequence[int]) -> str:
    return ",".join(map(str, task))
