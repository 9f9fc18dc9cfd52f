"""What is in a graph, in links or in a set of graphs, as plain values for machines and as text for people."""

from typing import Any

from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.link_set import LinkSet
from skeleton_cgl.graphs.source import GraphData
from skeleton_cgl.graphs.summaries.graph_sets import headline_of_graph_set, lines_on_graph_set, summarise_graph_set
from skeleton_cgl.graphs.summaries.links import headline_of_links, lines_on_links, summarise_links
from skeleton_cgl.graphs.summaries.nodes import headline_of_nodes, lines_on_nodes, summarise_nodes

_HEADLINES = {"node": headline_of_nodes, "link": headline_of_links, "graph": headline_of_graph_set}
_LINES = {"node": lines_on_nodes, "link": lines_on_links, "graph": lines_on_graph_set}


def summarise(data: GraphData) -> dict[str, Any]:
    """Return plain values: what is classified, as "item", counts of everything there is, and the digest."""
    if isinstance(data, Graph):
        return summarise_nodes(data)
    return summarise_links(data) if isinstance(data, LinkSet) else summarise_graph_set(data)


def headline(summary: dict[str, Any]) -> str:
    """Return the counts that tell a data set in a line."""
    return _HEADLINES[summary["item"]](summary)


def describe(summary: dict[str, Any]) -> str:
    """Return a summary as text of a few lines, with the "tasks" of a scenario if they are there."""
    first = f"{summary.get('archive', summary['name'])}: {headline(summary)}"
    return "\n".join([first, *_LINES[summary["item"]](summary)])
