"""What pictures of data sets share: their look, names that fit, bars of classes, and the panel of degrees."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

LOOK: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}
COLOURS = sns.color_palette("mako_r", as_cmap=True)
MOST_NAMED = 40
"""So many classes are named."""

_BAR = "#0072B2"
_COUNTS = "{x:,.0f}"
_HEAVY_TAILED = 8
"""A degree so many times the median is seen on logarithmic axes alone."""
_LONGEST_NAME = 22

# Inches on the paper.
_HEIGHT, _HEIGHT_OF_MANY, _BESIDE, _PER_CLASS = 2.6, 3.8, 0.9, 0.17


@dataclass(frozen=True)
class Degrees:
    """Bins of degrees with their numbers of nodes.

    borders (B + 1,) and counts (B,) are of nodes with an edge; isolated is the number of the others.
    """

    logarithmic: bool
    borders: np.ndarray
    counts: np.ndarray
    isolated: int


def bins_of(degrees: np.ndarray) -> Degrees:
    """Return degrees (N,) in bins, on logarithmic axes where few are far above the others."""
    linked = degrees[degrees > 0]
    logarithmic = bool(len(linked)) and int(linked.max()) >= _HEAVY_TAILED * float(np.median(linked))
    borders = _borders(int(linked.max(initial=1)), logarithmic)
    return Degrees(logarithmic, borders, np.histogram(linked, borders)[0], int((degrees == 0).sum()))


def _borders(most: int, logarithmic: bool) -> np.ndarray:
    """Return borders of bins from 1 to beyond the most, each of which holds a whole number at least."""
    if not logarithmic:
        step = -(-most // 40)
        return np.arange(1, most + step + 1, step) - 0.5
    borders = np.unique(np.floor(np.geomspace(1, most + 1, 24)))
    return borders - 0.5


def height_of(classes: int) -> float:
    """Return the inches of a picture that has a row for each of so many classes."""
    return max(_HEIGHT, _BESIDE + _PER_CLASS * classes) if classes <= MOST_NAMED else _HEIGHT_OF_MANY


def draw_degrees(panel: Axes, degrees: Degrees) -> None:
    # A bin of the logarithmic kind is as much wider as its degrees are larger: per degree, a power law is a line.
    widths = np.diff(degrees.borders)
    heights = degrees.counts / widths if degrees.logarithmic else degrees.counts
    panel.bar(degrees.borders[:-1], heights, widths, align="edge", color=_BAR, edgecolor="white", linewidth=0.3)
    if degrees.logarithmic:
        panel.set(xscale="log", yscale="log")
        panel.xaxis.set_major_formatter(_COUNTS)
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    isolated = f" ({degrees.isolated:,} without an edge)" if degrees.isolated else ""
    panel.set(xlabel="degree", ylabel="nodes per degree" if degrees.logarithmic else "nodes")
    panel.set_title(f"degrees{isolated}")
    panel.spines[["top", "right"]].set_visible(False)


def draw_counts(
    panel: Axes, names: Sequence[str], counts: np.ndarray, items: str, word: str, colours: Any = _BAR
) -> None:
    """Draw how many items each class has, from the top; colours: one for all, or one each."""
    rows = np.arange(len(names)) + 0.5
    named = len(rows) <= MOST_NAMED
    panel.barh(rows, counts, 0.8 if named else 1, color=colours)
    panel.set(ylim=(len(rows), 0), xlabel=items)
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    panel.xaxis.set_major_formatter(_COUNTS)
    if named:
        panel.set_yticks(rows, [cut(name) for name in names])
    else:
        panel.set_ylabel(word)
    panel.tick_params(axis="y", length=0)
    panel.set_title(f"{items} of a {word}")
    panel.spines[["top", "right"]].set_visible(False)


def plain(text: str) -> str:
    """Return a text that matplotlib shows as it is: what is between dollars would be a formula."""
    return " ".join(text.replace("$", r"\$").split())


def cut(name: str) -> str:
    """Return a name that fits, as matplotlib shows it."""
    return plain(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…")
