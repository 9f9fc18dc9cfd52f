"""A picture of links: degrees, links of the classes, and some nodes with their links in the colours of the classes.

Letters: n nodes and l links that are drawn, K classes or groups.
"""

from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
import numpy as np
import seaborn as sns
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.sparse import csr_array

from skeleton_cgl.graphs.link_set import LINKED, LinkSet
from skeleton_cgl.graphs.pictures.look import (
    LOOK,
    Degrees,
    bins_of,
    draw_counts,
    draw_degrees,
    height_of,
    plain,
)
from skeleton_cgl.graphs.summaries.counts import class_counts, degrees_of
from skeleton_cgl.graphs.summary import headline, summarise

_MOST_NODES, _PER_CLASS, _NEIGHBOURS = 80, 8, 3
"""So many nodes are drawn, so many of a class at least, found by going from each to so many of its neighbours."""
_FEW_CLASSES = 8
"""So many have colours of their own; of more, neighbours in the list have similar ones."""
_NO_CLASS_COLOUR, _NODE_COLOUR = "#BBBBBB", "#333333"
_WIDTH, _LEAST_HEIGHT = 11.0, 3.6


@dataclass(frozen=True)
class ShownLinks:
    """What is drawn: degrees, links of each class (K,), and a part of the graph.

    Where all links are alike, their groups, if there are any, stand in for classes. ends (2, l) number the rows of
    positions (n, 2); kinds (l,) are classes, -1 for none.
    """

    title: str
    word: str
    degrees: Degrees
    names: tuple[str, ...]
    links: np.ndarray
    directed: bool
    positions: np.ndarray
    ends: np.ndarray
    kinds: np.ndarray


def look_at_links(links: LinkSet) -> ShownLinks:
    """Return what is drawn of links."""
    word, names, kinds, counts = "class", links.classes, links.labels, class_counts(links)
    if links.classes == (LINKED,) and links.groups:
        word, groups = next(iter(links.groups.items()))
        names, kinds = groups.names, groups.numbers
        counts = np.bincount(kinds[kinds >= 0], minlength=len(names))
    degrees = degrees_of(links.ends, links.nodes)
    chosen = nodes_together(links, kinds)
    place = np.full(links.nodes, -1)
    place[chosen] = np.arange(len(chosen))
    ends = place[links.ends]
    drawn = (ends >= 0).all(axis=0) & (ends[0] != ends[1])
    return ShownLinks(
        f"{links.name}: {headline(summarise(links))}",
        word,
        bins_of(degrees),
        names,
        counts,
        links.directed,
        _positions(len(chosen), ends[:, drawn]),
        ends[:, drawn],
        kinds[drawn],
    )


def nodes_together(links: LinkSet, kinds: np.ndarray, most: int = _MOST_NODES) -> np.ndarray:
    """Return up to so many nodes near one another; kinds (L,): classes, of which as many are begun with as may be.

    Begun with is a link of each class, then a few neighbours of each node are taken, and so on from each of these.
    """
    random = np.random.default_rng(0)
    ends = np.concatenate([links.ends, links.ends[::-1]], axis=1)
    shape = (links.nodes, links.nodes)
    neighbours = csr_array((np.ones(ends.shape[1], dtype=np.int8), (ends[0], ends[1])), shape=shape)
    # A class at a time: hubs would leave no room for what is far from them.
    classes = random.permutation(np.unique(kinds[kinds >= 0] if (kinds >= 0).any() else kinds))[: most // _PER_CLASS]
    firsts = [int(random.choice(np.flatnonzero(kinds == each))) for each in classes]
    waiting = dict.fromkeys(links.ends[:, firsts].T.ravel().tolist())
    found: dict[int, None] = {}
    while waiting and len(found) < most:
        node = next(iter(waiting))
        del waiting[node]
        found[node] = None
        around = random.permutation(neighbours.indices[neighbours.indptr[node] : neighbours.indptr[node + 1]])
        new = [each for each in around.tolist() if each not in found and each not in waiting]
        waiting |= dict.fromkeys(new[:_NEIGHBOURS])
    return np.array(list(found))


def _positions(nodes: int, ends: np.ndarray) -> np.ndarray:
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(ends.T.tolist())
    # Springs push parts without a link between them out of sight: all are tied together, in their places alone.
    hubs = [max(part, key=graph.degree) for part in nx.connected_components(graph)]
    graph.add_edges_from(pairwise(hubs), weight=3)
    placed = nx.spring_layout(graph, k=2.2 / np.sqrt(nodes), iterations=150, seed=0)
    found = np.array([placed[node] for node in range(nodes)])
    # And they leave the nodes of each part in a clump: half-way to their ranks, all are seen.
    ranks = np.argsort(np.argsort(found, axis=0), axis=0) / max(nodes - 1, 1)
    spread = (found - found.min(axis=0)) / np.maximum(np.ptp(found, axis=0), 1e-9)
    even: np.ndarray = (spread + ranks) / 2
    return even


def draw_links(shown: ShownLinks) -> Figure:
    """Return the picture: the colours of the bars are those of the links beside them."""
    colours = _colours(len(shown.names))
    with rc_context(LOOK):
        height = max(_LEAST_HEIGHT, height_of(len(shown.names)))
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        degrees, counts, part = figure.subplots(1, 3, width_ratios=(1, 1, 1.6))
        figure.suptitle(plain(shown.title), fontsize=9)
        draw_degrees(degrees, shown.degrees)
        draw_counts(counts, shown.names, shown.links, "links", plain(shown.word), colours)
        _draw_part(part, shown, colours)
    return figure


def _draw_part(panel: Axes, shown: ShownLinks, colours: list[tuple[float, float, float]]) -> None:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(len(shown.positions)))
    places = dict(enumerate(shown.positions))
    nx.draw_networkx_nodes(graph, places, ax=panel, node_size=14, node_color=_NODE_COLOUR, linewidths=0)
    pairs = [(source, target) for source, target in shown.ends.T.tolist()]
    graph.add_edges_from(pairs)
    nx.draw_networkx_edges(
        graph,
        places,
        ax=panel,
        edgelist=[(*pair, 0) for pair in pairs],
        edge_color=[_NO_CLASS_COLOUR if kind < 0 else colours[kind] for kind in shown.kinds.tolist()],
        width=0.9,
        node_size=14,
        arrows=True,
        arrowstyle="-|>" if shown.directed else "-",
        arrowsize=5,
        # Two that lead between the same nodes are seen beside one another.
        connectionstyle="arc3,rad=0.12" if shown.directed else "arc3",
    )
    panel.set_title(f"{len(shown.positions)} of the nodes, and the {len(pairs):,} links between them")
    panel.set_axis_off()


def _colours(number: int) -> list[tuple[float, float, float]]:
    if number <= _FEW_CLASSES:
        return list(sns.color_palette("colorblind", number))
    scale = sns.color_palette("plasma", as_cmap=True)
    # Its lightest are hard to see on white.
    return [scale(share)[:3] for share in np.linspace(0, 0.88, number)]
