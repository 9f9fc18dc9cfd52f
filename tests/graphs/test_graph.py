"""One value for a graph: what `make_graph` refuses, what it makes of edges, and what its digest tells apart."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import NO_CLASS, Graph, Groups, make_graph

EDGES = np.array([[0, 1, 2, 3], [1, 2, 3, 3]])
FEATURES = np.array([[1, 0, 2], [0, 0, 0], [0, 5, 0], [7, 0, 1]], dtype=np.float32)
LABELS = np.array([0, 1, NO_CLASS, 1])
MARKS = np.array([[0, 1], [1, 1], [0, 0], [1, 0]])


def whole(**changes: Any) -> Graph:
    given: dict[str, Any] = {
        "name": "g",
        "edges": EDGES,
        "features": FEATURES,
        "labels": LABELS,
        "classes": ("x", "y"),
        "groups": {"land": Groups(np.array([0, 1, 0, 1]), ("a", "b"))},
        "times": np.array([3, 1, 2, 1]),
        "split": np.array([0, 1, -1, 2]),
    }
    return make_graph(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"features": FEATURES[0]}, r"features: expected a table \(nodes, features\), found \(3,\)"),
        ({"features": [[1.0]]}, "features: expected a table"),
        ({"features": np.zeros((0, 3))}, "features: expected at least one node"),
        ({"features": np.zeros((4, 0))}, "features: expected at least one node and one feature"),
        ({"features": FEATURES.astype(str)}, "features: expected numbers, found <U"),
        ({"features": np.where(FEATURES == 5, np.nan, FEATURES)}, "features: node 2 has one that is not finite"),
        (
            {"features": np.where(FEATURES == 7, 1e300, FEATURES.astype(float))},
            "features: node 3 has one that is not finite",
        ),
        ({"features": csr_array(np.where(FEATURES == 7, np.inf, FEATURES))}, "features: node 3 has one"),
        (
            {"labels": LABELS[:3]},
            r"labels: expected one class \(4,\) or a row of labels \(4, K\) per node, found int64",
        ),
        ({"labels": np.zeros((4, 1, 1))}, "labels: expected one class"),
        ({"labels": np.array([0, 1, np.nan, 1])}, r"labels: expected a whole number, found .*nan.* at node 2"),
        ({"labels": np.array([0, 1, 0.5, 1])}, r"labels: expected a whole number, found .*0\.5.* at node 2"),
        ({"labels": np.array(["x", "y", "x", "y"])}, "labels: expected a whole number, found .*'x'.* at node 0"),
        ({"labels": np.array([0, 1, 2, 1])}, "labels: expected -1 to 1, found 2 at node 2"),
        ({"labels": np.array([0, 1, -2, 1])}, "labels: expected -1 to 1, found -2 at node 2"),
        ({"labels": np.array([0, 0, 0, NO_CLASS])}, "labels: no node has 'y'"),
        ({"labels": np.full(4, NO_CLASS), "classes": None}, "labels: no node has a class"),
        ({"labels": MARKS + 1}, "labels: expected 0 or 1, found 2 as label 1 of node 0"),
        ({"labels": np.where(MARKS, np.nan, 0.0)}, "labels: label 1 of node 0 is not a number"),
        ({"labels": MARKS[:, :1]}, "labels: 1 columns, but 2 names"),
        ({"labels": MARKS * [1, 0]}, "labels: no node has 'y'"),
        ({"classes": ("x", "x")}, "classes: two have the same name"),
        ({"edges": EDGES.T}, r"edges: expected whole numbers \(2, E\), found int64 of shape \(4, 2\)"),
        ({"edges": EDGES.astype(float)}, "edges: expected whole numbers"),
        ({"edges": EDGES + 1}, "edges: edge 2, 3 – 4, has an end outside the nodes 0–3"),
        ({"edges": EDGES - 1}, "edges: edge 0, -1 – 0, has an end outside"),
        ({"times": np.array([1, 2])}, r"times: expected one per node \(4,\)"),
        ({"times": np.array([1, 2, 3, np.inf])}, "times: expected a whole number, found .*inf.* at node 3"),
        ({"split": np.array([0, 1, 2, 3])}, "split: expected -1 to 2, found 3 at node 3"),
        ({"groups": {"land": Groups(np.array([0, 1, 0, 2]), ("a", "b"))}}, "groups 'land': expected 0 to 1, found 2"),
        ({"groups": {"land": Groups(np.array([0, 1]), ("a", "b"))}}, "groups 'land': expected a whole number per node"),
    ],
)
def test_what_is_no_graph_is_refused_with_the_field(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=f"^own.npz: {reason}"):
        whole(**changes, where="own.npz")


def test_edges_stand_once_sorted_by_target_and_in_both_directions_where_they_mean_both() -> None:
    random = np.random.default_rng(0)
    edges = random.integers(4, size=(2, 30))
    pairs = {(source, target) for source, target in edges.T.tolist()}
    for both_ways, expected in ((False, pairs), (True, pairs | {(target, source) for source, target in pairs})):
        found = whole(edges=edges, both_ways=both_ways).edges.T.tolist()
        assert found == [list(pair) for pair in sorted(expected, key=lambda pair: (pair[1], pair[0]))]


def test_types_and_default_names() -> None:
    graph = whole(classes=None, features=FEATURES.astype(np.int8))
    assert (graph.features.dtype, graph.labels.dtype, len(graph)) == (np.float32, np.int64, 4)
    assert graph.classes == ("class 0", "class 1")
    assert not graph.many_labels
    marked = whole(labels=MARKS.astype(float), classes=None)
    assert (marked.many_labels, marked.classes, marked.labels.dtype) == (True, ("label 0", "label 1"), np.uint8)


DIFFERENT = [
    {"edges": EDGES[:, :3]},
    {"edges": EDGES[::-1]},
    {"features": FEATURES + 1},
    {"features": csr_array(FEATURES)},
    {"labels": np.array([0, 1, 1, 1])},
    {"labels": MARKS},
    {"classes": ("x", "z")},
    {"groups": None},
    {"groups": {"sea": Groups(np.array([0, 1, 0, 1]), ("a", "b"))}},
    {"groups": {"land": Groups(np.array([0, 1, 0, 1]), ("a", "c"))}},
    {"groups": {"land": Groups(np.array([0, 1, 1, 1]), ("a", "b"))}},
    {"times": None},
    {"times": np.array([3, 1, 2, 2])},
    {"split": None},
    {"split": np.array([0, 1, 2, 2])},
]


def test_the_digest_changes_with_every_field_and_not_with_the_name() -> None:
    digests = [whole(**changes).digest for changes in ({}, *DIFFERENT)]
    assert len(set(digests)) == len(digests)
    assert whole(name="another").digest == digests[0]
    assert replace(whole(), name="another").digest == digests[0]


def test_the_digest_is_that_of_the_content_however_it_was_given() -> None:
    shuffled = np.concatenate([EDGES, EDGES[:, :2]], axis=1)[:, [3, 1, 5, 0, 2, 4]]
    as_given = whole(
        edges=shuffled.astype(np.uint8),
        features=np.asfortranarray(FEATURES.astype(np.float64)),
        labels=LABELS.astype(np.float32),
    )
    assert as_given.digest == whole().digest
    sparse = csr_array(FEATURES)
    unsorted = csr_array((sparse.data[[1, 0, 2, 3, 4]], sparse.indices[[1, 0, 2, 3, 4]], sparse.indptr), sparse.shape)
    assert not unsorted.has_sorted_indices
    assert whole(features=unsorted).digest == whole(features=sparse).digest
