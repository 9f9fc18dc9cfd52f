import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, Groups, make_graph
from skeleton_cgl.graphs.picture import save_picture
from skeleton_cgl.graphs.pictures.nodes import class_shares, draw_nodes, look_at_nodes
from skeleton_cgl.graphs.summaries.counts import degrees_of
from skeleton_cgl.graphs.summary import describe, headline, summarise
from tests.graphs.made_graphs import random_graph

EDGES = np.array([[0, 1, 0, 2, 3, 3], [1, 0, 2, 1, 3, 0]])
"""0 ↔ 1, 0 → 2 → 1, a loop at 3, 3 → 0; node 4 has no edge."""


@pytest.fixture
def small() -> Graph:
    return make_graph(
        "small",
        EDGES,
        csr_array(np.array([[1, 0], [0, 0], [0, 2], [0, 0], [3, 4]])),
        np.array([0, 0, 1, -1, 1]),
        ("cat", "dog"),
        {"farm": Groups(np.array([0, 1, 1, 1, 1]), ("north", "south", "empty"))},
        np.array([1999, 2003, 1999, 2001, 2003]),
        np.array([0, 0, 1, 2, -1]),
    )


def test_a_summary_counts_what_is_there(small: Graph) -> None:
    summary = summarise(small)
    assert summary["nodes"] == 5
    assert summary["edges"] == {"number": 5, "both_ways": False, "loops": 1}
    assert summary["degrees"] == {"least": 0, "median": 2, "mean": 8 / 5, "most": 3, "isolated": 1}
    assert summary["features"] == {"number": 2, "kept": "sparse", "nonzero": 4 / 10}
    assert [(each["name"], each["nodes"]) for each in summary["classes"]] == [("cat", 2), ("dog", 2)]
    assert summary["labels_per_node"] == [1, 4]
    assert [each["nodes"] for each in summary["groups"]["farm"]] == [1, 4, 0]
    assert summary["times"] == {"first": 1999, "last": 2003, "different": 3}
    assert summary["split"] == {"training": 2, "validation": 1, "test": 1, "unused": 1}
    assert summary["homophily"] == pytest.approx(2 / 4)
    assert summary["digest"] == small.digest


def test_a_summary_is_told_in_words(small: Graph) -> None:
    text = describe(summarise(small))
    assert text.startswith("small: 5 nodes, 5 edges, 2 classes\n")
    for line in (
        "  edges        5, directed; 1 self-loops",
        "  degrees      0 to 3, median 2, mean 1.60; 1 without an edge",
        "  homophily    0.500 of edges",
        "  features     2, sparse, 40 % not zero",
        "  labelled     1 of 5 nodes have no class",
        "  farm         3: north 1, south 4, empty 0",
        "  times        1999 to 2003, 3 different",
        "  split        2 training, 1 validation, 1 test, 1 unused",
    ):
        assert f"{line}\n" in text


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("both_ways", [True, False])
def test_a_degree_counts_other_nodes_once(seed: int, both_ways: bool) -> None:
    graph = random_graph(seed, both_ways=both_ways, many_labels=seed % 2 == 1)
    pairs = set(map(tuple, graph.edges.T.tolist()))
    expected = [
        sum((node, other) in pairs or (other, node) in pairs for other in range(len(graph)) if other != node)
        for node in range(len(graph))
    ]
    assert degrees_of(graph.edges, len(graph)).tolist() == expected
    summary = summarise(graph)
    assert summary["edges"]["both_ways"] is all((target, source) in pairs for source, target in pairs)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert headline(summary) in describe(summary)


def test_labels_are_counted_per_node_and_edges_without_any_are_no_error() -> None:
    labels = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]])
    graph = make_graph("bare", np.zeros((2, 0), dtype=np.int64), np.ones((3, 1)), labels)
    summary = summarise(graph)
    assert (summary["labels_per_node"], summary["homophily"]) == ([1, 1, 1], None)
    text = describe(summary)
    assert "1.00 labels per node: 1 with 0, 1 with 1, 1 with 2" in text
    assert "homophily    unknown" in text
    assert np.isnan(class_shares(graph)).all()
    draw_nodes(look_at_nodes(graph)).draw_without_rendering()


def test_edges_are_shared_out_among_the_classes_they_lead_to(small: Graph) -> None:
    """From cats 0 → 1, 1 → 0, 0 → 2; from the dog 2 → 1; the node without a class and the loop count for nothing."""
    np.testing.assert_allclose(class_shares(small), [[2 / 3, 1 / 3], [1, 0]])


def test_an_edge_between_several_labels_counts_for_every_pair_in_equal_parts() -> None:
    labels = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 0]])
    graph = make_graph("labels", np.array([[0, 2, 2], [1, 0, 3]]), np.ones((4, 1)), labels)
    expected = [[0, 1 / 2, 1 / 2], [0, 1 / 2, 1 / 2], [3 / 4, 1 / 4, 0]]
    np.testing.assert_allclose(class_shares(graph), expected)


@pytest.mark.parametrize("star", [0, 5, 60, 2000])
def test_every_node_with_an_edge_is_in_one_bin_of_its_degree(star: int) -> None:
    """A ring, and one node that is linked to many others: degrees so far apart are shown by their logarithms."""
    nodes = 2500
    ring = np.stack([np.arange(1, nodes - 1), np.arange(2, nodes)])
    edges = np.hstack([ring, np.stack([np.zeros(star, dtype=np.int64), np.arange(2, star + 2)])])
    graph = make_graph("star", edges, np.ones((nodes, 1)), np.arange(nodes) % 2, both_ways=True)
    shown = look_at_nodes(graph).degrees
    degrees = degrees_of(graph.edges, len(graph))
    assert shown.logarithmic is (star > 16)
    assert shown.counts.sum() + shown.isolated == nodes
    assert shown.borders[0] == 0.5
    assert shown.borders[-1] > degrees.max()
    assert (np.diff(shown.borders) >= 1).all()
    assert len(shown.counts) <= 40


@pytest.mark.parametrize("classes", [2, 20, 60])
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_is_drawn_whatever_the_classes_are_called(tmp_path: Path, classes: int, suffix: str) -> None:
    graph = random_graph(nodes=100, classes=classes)
    odd = replace(graph, classes=tuple(f"$\\{number}$ é\n<b> {'long ' * 9}" for number in range(classes)), name="$\\x$")
    save_picture(odd, tmp_path / f"graph{suffix}")
    assert (tmp_path / f"graph{suffix}").stat().st_size > 5000


def test_a_picture_of_another_kind_is_refused(tmp_path: Path, small: Graph) -> None:
    with pytest.raises(InputError, match=r"graph\.gif: a picture ends in \.png, \.pdf, \.svg; found \.gif"):
        save_picture(small, tmp_path / "graph.gif")
    assert list(tmp_path.iterdir()) == []
