"""What is in a graph whose nodes are classified."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.homophily import graph_homophily
from skeleton_cgl.graphs.summaries.counts import (
    counts_of_degrees,
    counts_of_edges,
    counts_of_features,
    counts_of_items,
)
from skeleton_cgl.graphs.summaries.words import (
    class_word,
    degrees_in_words,
    edges_in_words,
    features_in_words,
    lines_on_classes,
    lines_on_items,
    told,
)


def summarise_nodes(graph: Graph) -> dict[str, Any]:
    """Return plain values: counts of everything, degrees, homophily (None where no edge counts) and digest."""
    homophily = graph_homophily(graph.labels, graph.edges)
    return {
        **counts_of_items(graph),
        "nodes": len(graph),
        "edges": counts_of_edges(graph.edges, len(graph)),
        "degrees": counts_of_degrees(graph.edges, len(graph)),
        "features": counts_of_features(graph.features),
        "labels_per_node": _labels_per_node(graph),
        "homophily": None if math.isnan(homophily) else homophily,
    }


def headline_of_nodes(summary: dict[str, Any]) -> str:
    classes = f"{len(summary['classes'])} {class_word(summary)}"
    return f"{summary['nodes']:,} nodes, {summary['edges']['number']:,} edges, {classes}"


def lines_on_nodes(summary: dict[str, Any]) -> Iterator[str]:
    homophily = summary["homophily"]
    yield from told("edges", edges_in_words(summary["edges"]))
    yield from told("degrees", degrees_in_words(summary["degrees"]))
    yield from told("homophily", f"{'unknown' if homophily is None else f'{homophily:.3f}'} of edges")
    yield from told("features", features_in_words(summary["features"]))
    yield from told("labelled", _labelled(summary))
    yield from lines_on_items(summary)
    yield from lines_on_classes(summary)


def _labels_per_node(graph: Graph) -> list[int]:
    """Return how many nodes have no label, one, two, and so on up to the most a node has."""
    each = graph.labels.sum(axis=1, dtype=np.int64) if graph.many_labels else (graph.labels >= 0).astype(np.int64)
    return [int(count) for count in np.bincount(each)]


def _labelled(summary: dict[str, Any]) -> str:
    counts: list[int] = summary["labels_per_node"]
    if not summary["many_labels"]:
        return f"{counts[0]:,} of {summary['nodes']:,} nodes have no class" if counts[0] else ""
    mean = sum(number * count for number, count in enumerate(counts)) / summary["nodes"]
    each = ", ".join(f"{count:,} with {number}" for number, count in enumerate(counts) if count)
    return f"{mean:.2f} labels per node: {each}"
