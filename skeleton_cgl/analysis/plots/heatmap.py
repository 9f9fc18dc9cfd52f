"""Accuracies as colours, with a text on each."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from skeleton_cgl.analysis.plots.style import SMALL

_COLOURS = sns.color_palette("mako_r", as_cmap=True)
_DARK = 0.5
"""Above this accuracy colours are so dark that white letters are read more easily than black ones."""


def heatmap(panel: Axes, grid: pd.DataFrame, texts: pd.DataFrame | None = None, square: bool = False) -> None:
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
            colour = letter_colour(value)
            place = (column + 0.5, row + 0.5)
            text = str(texts.iat[row, column])
            panel.text(*place, text, ha="center", va="center", color=colour, fontsize=SMALL, in_layout=False)


def letter_colour(value: float) -> str:
    """Return the colour in which something on the colour of an accuracy is read most easily."""
    return "white" if value > _DARK else "black"


def percent_text(value: float) -> str:
    """Return an accuracy as it stands in a cell: whole percent."""
    return "" if np.isnan(value) else f"{100 * value:.0f}"


def task_text(task: Sequence[int]) -> str:
    """Return a task as it stands in a cell: the numbers of its units."""
    return ",".join(map(str, task))
