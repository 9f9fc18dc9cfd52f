"""One value for a set of graphs: what `make_graph_set` refuses, where its edges stand, what its digest tells apart."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import NO_CLASS, GraphSet, Groups, make_graph_set

STARTS = np.array([0, 3, 4, 6])
EDGES = np.array([[0, 1, 4, 3], [1, 2, 5, 3]])
FEATURES = np.array([[0, 1], [2, 0], [1, 1], [0, 0], [2, 1], [1, 0]])
BONDS = np.array([[0.5], [1.5], [2.5], [3.5]])
LABELS = np.array([0, NO_CLASS, 1])
MARKS = np.array([[0, 1], [np.nan, 0], [1, np.nan]])


def whole(**changes: Any) -> GraphSet:
    given: dict[str, Any] = {
        "name": "s",
        "starts": STARTS,
        "edges": EDGES,
        "features": FEATURES,
        "labels": LABELS,
        "classes": ("x", "y"),
        "codes": (3, 2),
        "edge_features": BONDS,
        "groups": {"land": Groups(np.array([0, 1, 0]), ("a", "b"))},
        "times": np.array([3, 1, 2]),
        "split": np.array([0, -1, 2]),
        "texts": ("C", "N", "O"),
    }
    return make_graph_set(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"starts": np.array([0])}, r"starts: expected the first node of every graph .*, found int64 of shape \(1,\)"),
        ({"starts": STARTS.astype(float)}, "starts: expected the first node of every graph .*, found float64"),
        ({"starts": STARTS + 1}, "starts: expected to begin with 0 and to end with 6, found 1 and 7"),
        ({"starts": np.array([0, 3, 4])}, "starts: expected to begin with 0 and to end with 6, found 0 and 4"),
        ({"starts": np.array([0, 3, 3, 6])}, "starts: graph 1 has no nodes"),
        ({"starts": np.array([0, 4, 3, 6])}, "starts: graph 1 has no nodes"),
        ({"edges": EDGES + 2}, "edges: edge 2, 6 – 7, has an end outside the nodes 0–5"),
        ({"edges": np.array([[0, 1, 4, 2], [1, 2, 5, 3]])}, "edges: edge 2 – 3 leads from one graph to another"),
        ({"edges": np.array([[0, 1, 4, 0], [1, 2, 5, 1]])}, "edges: edge 0 – 1 is given twice"),
        ({"features": csr_array(FEATURES)}, "features: expected a dense table, found sparse rows"),
        ({"features": FEATURES * 2}, r"features: column 1: expected a whole number from 0 to 1, found 2\.0"),
        ({"features": FEATURES / 2}, r"features: column 1: expected a whole number from 0 to 1, found 0\.5"),
        ({"codes": (3,)}, "features: 2 columns, but kinds of 1"),
        ({"edge_codes": (4,)}, r"edge_features: column 0: expected a whole number from 0 to 3, found 0\.5"),
        ({"edge_features": BONDS[:3]}, r"edge_features: expected numbers \(4, B\), found float64 \(3, 1\)"),
        ({"edge_features": BONDS[:, 0]}, "edge_features: expected numbers"),
        ({"edge_features": np.where(BONDS > 2, np.inf, BONDS)}, "edge_features: edge 2 has one not finite"),
        ({"labels": LABELS[:2]}, r"labels: expected one class \(3,\) or a row of labels \(3, K\) per graph"),
        ({"labels": np.array([0, np.nan, 1])}, "labels: expected a whole number, found nan at graph 1"),
        ({"labels": MARKS + 1}, r"labels: expected 0 or 1, found 2\.0 as label 1 of graph 0"),
        ({"labels": np.where(MARKS == 1, np.nan, MARKS)}, "labels: no graph has 'x'"),
        ({"times": STARTS}, r"times: expected one per graph \(3,\)"),
        (
            {"groups": {"land": Groups(np.array([0, -1, 0]), ("a",))}},
            "groups 'land': expected 0 to 0, found -1 at graph",
        ),
        ({"texts": ("C",)}, "texts: expected one for each of 3 graphs, found 1"),
    ],
)
def test_what_is_no_set_of_graphs_is_refused_with_the_field(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=f"^own.npz: {reason}"):
        whole(**changes, where="own.npz")


def test_edges_keep_their_features_and_stand_by_graph_in_both_directions_where_they_mean_both() -> None:
    for both_ways in (False, True):
        found = whole(both_ways=both_ways)
        expected = {
            (source, target): value for (source, target), value in zip(EDGES.T.tolist(), BONDS[:, 0], strict=True)
        }
        if both_ways:
            expected |= {(target, source): value for (source, target), value in expected.items()}
        assert found.edge_features is not None
        pairs = [tuple(pair) for pair in found.edges.T.tolist()]
        assert dict(zip(pairs, found.edge_features[:, 0].tolist(), strict=True)) == expected
        assert pairs == sorted(expected, key=lambda pair: (pair[1], pair[0]))
        for graph in range(3):
            first, last = found.edge_starts[graph : graph + 2]
            inside = found.edges[:, first:last]
            assert ((inside >= STARTS[graph]) & (inside < STARTS[graph + 1])).all()
        assert found.edge_starts[-1] == len(expected)


def test_many_labels_may_miss_some_and_sizes_are_those_of_nodes() -> None:
    found = whole(labels=MARKS, edges=np.zeros((2, 0), dtype=int), edge_features=None)
    assert (found.many_labels, found.labels.dtype, len(found)) == (True, np.float32, 3)
    np.testing.assert_array_equal(found.labels, MARKS)
    assert found.sizes.tolist() == [3, 1, 2]
    assert found.edge_starts.tolist() == [0, 0, 0, 0]


DIFFERENT = [
    {"starts": np.array([0, 2, 4, 6]), "edges": np.array([[0, 2, 4, 3], [1, 3, 5, 3]])},
    {"starts": np.array([0, 1, 4, 6]), "edges": np.array([[0, 2, 4, 3], [0, 3, 5, 3]])},
    {"edges": EDGES[::-1]},
    {"features": FEATURES[::-1]},
    {"codes": None},
    {"codes": (4, 2)},
    {"edge_features": None},
    {"edge_features": BONDS + 1},
    {"labels": MARKS},
    {"labels": np.array([0, 1, 1])},
    {"classes": ("x", "z")},
    {"groups": None},
    {"times": None},
    {"split": None},
]


def test_the_digest_changes_with_every_field_but_name_texts_and_notes() -> None:
    digests = [whole(**changes).digest for changes in ({}, *DIFFERENT)]
    assert len(set(digests)) == len(digests)
    whole_codes = {"edge_features": BONDS - 0.5}
    assert whole(**whole_codes).digest != whole(**whole_codes, edge_codes=(4,)).digest
    for same in ({"name": "another"}, {"texts": None}, {"notes": ("read so",)}):
        assert replace(whole(), **same).digest == digests[0]
    turned = [2, 0, 3, 1]
    assert whole(edges=EDGES[:, turned], edge_features=BONDS[turned]).digest == digests[0]
