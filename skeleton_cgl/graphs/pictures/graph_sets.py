"""A picture of a set of graphs: a few of each class, molecules as chemists draw them.

Letters: n nodes and e edges of one graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import networkx as nx
import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread

from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.graphs.pictures.look import COLOURS, LOOK, cut, plain
from skeleton_cgl.graphs.summaries.counts import class_counts, degrees_of
from skeleton_cgl.graphs.summary import headline, summarise

_MOLECULES = "skeleton_cgl.graphs.molecules"
_MOST_CLASSES, _PER_CLASS = 8, 6
_FAR_APART = 60
"""Graphs of more nodes are laid out by springs, which is quicker."""
_SIDE, _BESIDE, _ABOVE = 1.2, 1.2, 0.45
"""Inches of a graph, of the names of classes, and of the title."""


@dataclass(frozen=True)
class Drawn:
    """A graph as it is drawn: its number, positions (n, 2), edges (2, e) each once, degrees (n,).

    picture: that of a molecule, which has no positions.
    """

    number: int
    positions: np.ndarray
    edges: np.ndarray
    degrees: np.ndarray
    picture: np.ndarray | None = None


@dataclass(frozen=True)
class ShownGraphs:
    """What is drawn: the names of classes, how many graphs each has, and a few of them; most: the highest degree."""

    title: str
    names: tuple[str, ...]
    counts: tuple[int, ...]
    rows: tuple[tuple[Drawn, ...], ...]
    most: int


def look_at_graph_set(graphs: GraphSet) -> ShownGraphs:
    """Return what is drawn of a set of graphs: of some classes spread over all of them, graphs from small to large."""
    number = len(graphs.classes)
    classes = np.unique(np.linspace(0, number - 1, min(number, _MOST_CLASSES)).round().astype(int)).tolist()
    chosen = [a_few_of(graphs, label) for label in classes]
    numbers = sorted({each for row in chosen for each in row})
    pictures = _molecules(graphs, numbers)
    drawn = {each: _drawn(graphs, each, pictures.get(each)) for each in numbers}
    counts = class_counts(graphs)
    shown = "" if len(classes) == number else f"; {len(classes)} of them"
    return ShownGraphs(
        f"{graphs.name}: {headline(summarise(graphs))}{shown}",
        tuple(graphs.classes[label] for label in classes),
        tuple(int(counts[label]) for label in classes),
        tuple(tuple(drawn[each] for each in row) for row in chosen),
        max(int(each.degrees.max()) for each in drawn.values()),
    )


def a_few_of(graphs: GraphSet, label: int, number: int = _PER_CLASS) -> list[int]:
    """Return the numbers of up to so many graphs that have a class or label, from small to large."""
    found = np.flatnonzero(graphs.labels[:, label] == 1 if graphs.many_labels else graphs.labels == label)
    by_size = found[np.argsort(graphs.sizes[found], kind="stable")]
    # Neither the smallest nor the largest of all, which tell little of the others.
    places = (np.arange(number) + 0.5) * len(by_size) / number if len(by_size) > number else np.arange(len(by_size))
    return [int(each) for each in by_size[places.astype(int)]]


def _drawn(graphs: GraphSet, number: int, picture: np.ndarray | None) -> Drawn:
    start, end = graphs.starts[number : number + 2].tolist()
    edges = graphs.edges[:, graphs.edge_starts[number] : graphs.edge_starts[number + 1]] - start
    links = np.unique(np.sort(edges[:, edges[0] != edges[1]], axis=0), axis=1)
    positions = np.zeros((end - start, 2)) if picture is not None else _positions(end - start, links)
    return Drawn(number, positions, links, degrees_of(edges, end - start), picture)


def _positions(nodes: int, links: np.ndarray) -> np.ndarray:
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(links.T.tolist())
    near = nodes <= _FAR_APART and nx.is_connected(graph)
    placed = nx.kamada_kawai_layout(graph) if near else nx.spring_layout(graph, seed=0)
    return np.array([placed[node] for node in range(nodes)])


def _molecules(graphs: GraphSet, numbers: Sequence[int]) -> dict[int, np.ndarray]:
    """Return pictures of graphs by number, where the texts of all are molecules of as many atoms; else none."""
    if graphs.texts is None or any(find_spec(needed) is None for needed in ("rdkit", _MOLECULES)):
        return {}
    molecules = import_module(_MOLECULES)
    texts = [graphs.texts[number] for number in numbers]
    found = molecules.read_molecules(texts)
    if not found.parsed.all() or (np.diff(found.starts) != graphs.sizes[numbers]).any():
        return {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "molecule.png"
        pictures = {}
        for number, text in zip(numbers, texts, strict=True):
            molecules.draw([text], [""], path)
            pictures[number] = imread(path)
    return pictures


def draw_graph_set(shown: ShownGraphs) -> Figure:
    """Return the picture: a row of graphs for each class."""
    across = max(len(row) for row in shown.rows)
    # Few graphs leave no room for the title above them.
    width = max(_BESIDE + _SIDE * across, 0.065 * len(shown.title))
    with rc_context(LOOK):
        figure = Figure(figsize=(width, _ABOVE + _SIDE * len(shown.rows)), layout="constrained")
        figure.suptitle(plain(shown.title), fontsize=9)
        panels = figure.subplots(len(shown.rows), across + 1, squeeze=False, width_ratios=[_BESIDE] + [_SIDE] * across)
        for row, name, count, graphs in zip(panels, shown.names, shown.counts, shown.rows, strict=True):
            for panel in row:
                panel.set_axis_off()
            row[0].text(1, 0.5, f"{cut(name)}\n{count:,}", ha="right", va="center", transform=row[0].transAxes)
            for panel, graph in zip(row[1:], graphs, strict=False):
                _draw(panel, graph, shown.most)
    return figure


def _draw(panel: Axes, graph: Drawn, most: int) -> None:
    if graph.picture is not None:
        panel.imshow(graph.picture)
        return
    nodes = len(graph.positions)
    size = float(np.clip(400 / nodes, 3, 28))
    sources, targets = graph.positions[graph.edges]
    faint = float(np.clip(60 / max(graph.edges.shape[1], 1), 0.15, 1))
    panel.plot(
        np.stack([sources[:, 0], targets[:, 0]]),
        np.stack([sources[:, 1], targets[:, 1]]),
        color="#888888",
        linewidth=0.8,
        alpha=faint,
        zorder=1,
    )
    colours = COLOURS(0.15 + 0.75 * graph.degrees / max(most, 1))
    across, up = graph.positions.T
    panel.scatter(across, up, s=size, c=colours, linewidths=0.3, edgecolors="white", zorder=2)
    panel.set_aspect("equal", adjustable="datalim")
    panel.margins(0.12)
