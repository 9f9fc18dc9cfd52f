"""A picture of a graph: how many edges nodes have, how many nodes classes have, and between which classes edges lead.

What is shown is computed apart from drawing it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.summary import class_counts, degrees_of, headline, summarise

_FORMATS = (".png", ".pdf", ".svg")
_DPI = 200
_LOOK: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}
_COLOURS = sns.color_palette("mako_r", as_cmap=True)
_BAR = "#0072B2"
_COUNTS = "{x:,.0f}"
_HEAVY_TAILED = 8
"""A degree so many times the median is seen on logarithmic axes alone."""
_MOST_NAMED, _MOST_WRITTEN, _LONGEST_NAME = 40, 16, 22
"""So many classes are named, so many have their shares written into the heat map; a longer name is cut."""

# Inches on the paper.
_WIDTH, _HEIGHT, _HEIGHT_OF_MANY, _BESIDE, _PER_CLASS = 10.0, 2.6, 3.8, 0.9, 0.17


@dataclass(frozen=True)
class Shown:
    """What is drawn: bins of degrees with their numbers of nodes, nodes of classes (K,), shares of edges (K, K).

    borders (B + 1,) and counts (B,) are of nodes with an edge; isolated is the number of the others. Shares are of the
    edges that leave a class, by the class they lead to; NaN where none does. An edge between nodes of several labels
    counts for every pair of them in equal parts; loops do not count.
    """

    title: str
    word: str
    logarithmic: bool
    borders: np.ndarray
    counts: np.ndarray
    isolated: int
    names: tuple[str, ...]
    nodes: np.ndarray
    shares: np.ndarray


def look_at(graph: Graph) -> Shown:
    """Return what is drawn of a graph."""
    degrees = degrees_of(graph)
    linked = degrees[degrees > 0]
    logarithmic = bool(len(linked)) and int(linked.max()) >= _HEAVY_TAILED * float(np.median(linked))
    borders = _borders(int(linked.max(initial=1)), logarithmic)
    return Shown(
        f"{graph.name}: {headline(summarise(graph))}",
        "label" if graph.many_labels else "class",
        logarithmic,
        borders,
        np.histogram(linked, borders)[0],
        int((degrees == 0).sum()),
        graph.classes,
        class_counts(graph),
        class_shares(graph),
    )


def class_shares(graph: Graph) -> np.ndarray:
    """Return (K, K): of the edges that leave a class, the share that leads to each; NaN where none does."""
    has = np.zeros((len(graph), len(graph.classes)))
    if graph.many_labels:
        has += graph.labels / np.maximum(graph.labels.sum(axis=1, keepdims=True), 1)
    else:
        known = np.flatnonzero(graph.labels >= 0)
        has[known, graph.labels[known]] = 1
    sources, targets = graph.edges[:, graph.edges[0] != graph.edges[1]]
    links = csr_array((np.ones(len(sources)), (sources, targets)), shape=(len(graph), len(graph)))
    counts = has.T @ (links @ has)
    totals = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, totals, out=np.full_like(counts, np.nan), where=totals > 0)


def _borders(most: int, logarithmic: bool) -> np.ndarray:
    """Return borders of bins from 1 to beyond the most, each of which holds a whole number at least."""
    if not logarithmic:
        step = -(-most // 40)
        return np.arange(1, most + step + 1, step) - 0.5
    borders = np.unique(np.floor(np.geomspace(1, most + 1, 24)))
    return borders - 0.5


def draw_graph(shown: Shown) -> Figure:
    """Return the picture: degrees, nodes of the classes, and edges from class to class in the same rows."""
    named = len(shown.names) <= _MOST_NAMED
    height = max(_HEIGHT, _BESIDE + _PER_CLASS * len(shown.names)) if named else _HEIGHT_OF_MANY
    with rc_context(_LOOK):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        degrees, nodes, shares = figure.subplots(1, 3, width_ratios=(1.1, 1, 1.2))
        figure.suptitle(_plain(shown.title), fontsize=9)
        _draw_degrees(degrees, shown)
        _draw_nodes(nodes, shown)
        _draw_shares(shares, shown)
    return figure


def _draw_degrees(panel: Axes, shown: Shown) -> None:
    # A bin of the logarithmic kind is as much wider as its degrees are larger: per degree, a power law is a line.
    widths = np.diff(shown.borders)
    heights = shown.counts / widths if shown.logarithmic else shown.counts
    panel.bar(shown.borders[:-1], heights, widths, align="edge", color=_BAR, edgecolor="white", linewidth=0.3)
    if shown.logarithmic:
        panel.set(xscale="log", yscale="log")
        panel.xaxis.set_major_formatter(_COUNTS)
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    isolated = f" ({shown.isolated:,} without an edge)" if shown.isolated else ""
    panel.set(xlabel="degree", ylabel="nodes per degree" if shown.logarithmic else "nodes")
    panel.set_title(f"degrees{isolated}")
    panel.spines[["top", "right"]].set_visible(False)


def _draw_nodes(panel: Axes, shown: Shown) -> None:
    rows = np.arange(len(shown.names)) + 0.5
    named = len(rows) <= _MOST_NAMED
    panel.barh(rows, shown.nodes, 0.8 if named else 1, color=_BAR)
    panel.set(ylim=(len(rows), 0), xlabel="nodes")
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    panel.xaxis.set_major_formatter(_COUNTS)
    if named:
        panel.set_yticks(rows, [_cut(name) for name in shown.names])
    else:
        panel.set_ylabel(shown.word)
    panel.tick_params(axis="y", length=0)
    panel.set_title(f"nodes of a {shown.word}")
    panel.spines[["top", "right"]].set_visible(False)


def _draw_shares(panel: Axes, shown: Shown) -> None:
    percent = 100 * shown.shares
    few = len(shown.names) <= _MOST_WRITTEN
    ticks = [str(label) for label in range(len(shown.names))] if len(shown.names) <= _MOST_NAMED else False
    sns.heatmap(
        percent,
        ax=panel,
        cmap=_COLOURS,
        vmin=0,
        vmax=np.nan_to_num(percent).max(initial=1),
        annot=few,
        fmt=".0f",
        annot_kws={"fontsize": 6},
        xticklabels=ticks,
        yticklabels=ticks,
        cbar=not few,
        cbar_kws=None if few else {"label": "%"},
    )
    panel.tick_params(length=0, rotation=0)
    panel.set(xlabel=f"to {shown.word}", ylabel=f"from {shown.word}")
    panel.set_title(f"where the edges of a {shown.word} lead, in %")


def _plain(text: str) -> str:
    """Return a text that matplotlib shows as it is: what is between dollars would be a formula."""
    return " ".join(text.replace("$", r"\$").split())


def _cut(name: str) -> str:
    return _plain(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…")


def drawable(path: str | Path) -> Path:
    """Return the path of a picture; refuse another suffix than .png, .pdf and .svg."""
    path = Path(path)
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"{path}: a picture ends in {', '.join(_FORMATS)}; found {path.suffix or 'no suffix'}")
    return path


def save_picture(graph: Graph, path: str | Path) -> None:
    """Draw a graph; refuse another suffix than .png, .pdf and .svg."""
    path = drawable(path)
    figure = draw_graph(look_at(graph))
    with write_beside(path) as unfinished:
        figure.savefig(unfinished, format=path.suffix[1:].lower(), dpi=_DPI)
