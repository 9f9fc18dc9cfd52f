"""What tests of readers compare: the content of a graph, written out."""

from dataclasses import fields

import numpy as np
from scipy.sparse import csr_array

from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.source import GraphData


def dense(graph: Graph) -> np.ndarray:
    """Return the features as a table."""
    return graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()


def pairs(graph: Graph) -> set[tuple[int, int]]:
    """Return the edges as pairs of source and target."""
    return {(source, target) for source, target in graph.edges.T.tolist()}


def both_ways(links: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return links | {(target, source) for source, target in links}


def assert_same(found: GraphData, expected: GraphData) -> None:
    """Check that all fields are equal to the bit, kinds of numbers included."""
    assert type(found) is type(expected)
    for field in fields(expected):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if field.name == "groups":
            assert list(one) == list(other)
            for name in one:
                assert one[name].names == other[name].names
                np.testing.assert_array_equal(one[name].numbers, other[name].numbers, strict=True)
        elif isinstance(other, csr_array):
            assert one.shape == other.shape
            for part in ("data", "indices", "indptr"):
                np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
        elif isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other, strict=True)
        else:
            assert one == other
            assert type(one) is type(other)
    assert found.digest == expected.digest
