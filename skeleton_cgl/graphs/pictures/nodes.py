"""A picture of a graph: the degrees of its nodes, the nodes of its classes, and between which classes edges lead."""

from dataclasses import dataclass

import numpy as np
import seaborn as sns
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.sparse import csr_array

from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.pictures.look import (
    COLOURS,
    LOOK,
    MOST_NAMED,
    Degrees,
    bins_of,
    draw_counts,
    draw_degrees,
    height_of,
    plain,
)
from skeleton_cgl.graphs.summaries.counts import class_counts, degrees_of
from skeleton_cgl.graphs.summary import headline, summarise

_MOST_WRITTEN = 16
"""So many classes have their shares written into the heat map."""
_WIDTH = 10.0


@dataclass(frozen=True)
class ShownNodes:
    """What is drawn: degrees, nodes of classes (K,), shares of edges (K, K).

    Shares are of the edges that leave a class, by the class they lead to; NaN where none does. An edge between nodes of
    several labels counts for every pair of them in equal parts; loops do not count.
    """

    title: str
    word: str
    degrees: Degrees
    names: tuple[str, ...]
    nodes: np.ndarray
    shares: np.ndarray


def look_at_nodes(graph: Graph) -> ShownNodes:
    """Return what is drawn of a graph."""
    return ShownNodes(
        f"{graph.name}: {headline(summarise(graph))}",
        "label" if graph.many_labels else "class",
        bins_of(degrees_of(graph.edges, len(graph))),
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


def draw_nodes(shown: ShownNodes) -> Figure:
    """Return the picture: degrees, nodes of the classes, and edges from class to class in the same rows."""
    with rc_context(LOOK):
        figure = Figure(figsize=(_WIDTH, height_of(len(shown.names))), layout="constrained")
        degrees, nodes, shares = figure.subplots(1, 3, width_ratios=(1.1, 1, 1.2))
        figure.suptitle(plain(shown.title), fontsize=9)
        draw_degrees(degrees, shown.degrees)
        draw_counts(nodes, shown.names, shown.nodes, "nodes", shown.word)
        _draw_shares(shares, shown)
    return figure


def _draw_shares(panel: Axes, shown: ShownNodes) -> None:
    percent = 100 * shown.shares
    few = len(shown.names) <= _MOST_WRITTEN
    ticks = [str(label) for label in range(len(shown.names))] if len(shown.names) <= MOST_NAMED else False
    sns.heatmap(
        percent,
        ax=panel,
        cmap=COLOURS,
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
