"""What tests of readers compare: the content of a graph, written out."""

import numpy as np

from skeleton_cgl.graphs.graph import Graph


def dense(graph: Graph) -> np.ndarray:
    """Return the features as a table."""
    return graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()


def pairs(graph: Graph) -> set[tuple[int, int]]:
    """Return the edges as pairs of source and target."""
    return {(source, target) for source, target in graph.edges.T.tolist()}


def both_ways(links: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return links | {(target, source) for source, target in links}
