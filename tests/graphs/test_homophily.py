from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.graphs.homophily import edge_homophily, graph_homophily, node_homophily
from tests.graphs.made_graphs import random_graph
from tests.shared_data import FOLDER, needs

LABELS = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 0]], dtype=np.uint8)
EDGES = np.array([[0, 1, 0, 2, 0, 2, 1], [1, 0, 2, 2, 4, 3, 2]])


def test_an_edge_of_label_sets_has_their_jaccard_similarity() -> None:
    expected = [1 / 2, 1 / 2, 1 / 3, 1, 1, np.nan, 0]
    np.testing.assert_allclose(edge_homophily(LABELS, EDGES), expected)


def test_an_edge_between_single_classes_is_alike_or_not() -> None:
    found = edge_homophily(np.array([2, 0, 2, -1]), np.array([[0, 0, 0, 3], [2, 1, 3, 3]]))
    np.testing.assert_array_equal(found, [1, 0, np.nan, np.nan])


def test_loops_and_ends_without_labels_count_in_no_mean() -> None:
    assert graph_homophily(LABELS, EDGES) == pytest.approx((1 / 2 + 1 / 2 + 1 / 3 + 1 + 0) / 5)
    expected = [(1 / 2 + 1 / 2 + 1 / 3 + 1) / 4, (1 / 2 + 1 / 2 + 0) / 3, (1 / 3 + 0) / 2, np.nan, 1]
    np.testing.assert_allclose(node_homophily(LABELS, EDGES), expected)
    assert np.isnan(graph_homophily(LABELS, np.array([[2, 0], [2, 3]])))


@pytest.mark.parametrize("seed", range(3))
def test_one_class_is_a_set_of_one_label(seed: int) -> None:
    graph = random_graph(seed)
    one_hot = np.array([[label == column for column in range(4)] for label in graph.labels], dtype=np.uint8)
    np.testing.assert_array_equal(edge_homophily(graph.labels, graph.edges), edge_homophily(one_hot, graph.edges))
    np.testing.assert_array_equal(node_homophily(graph.labels, graph.edges), node_homophily(one_hot, graph.edges))


def test_graphs_of_many_edges_are_gone_through_whole() -> None:
    random = np.random.default_rng(0)
    labels = (random.random((50, 6)) < 0.4).astype(np.uint8)
    edges = random.integers(0, 50, (2, 150_000))
    found = edge_homophily(labels, edges)
    sets = [set(np.flatnonzero(row)) for row in labels]
    for edge in [0, 65_535, 65_536, 131_072, 149_999, *random.integers(0, 150_000, 50)]:
        one, other = (sets[end] for end in edges[:, edge])
        expected = len(one & other) / len(one | other) if one and other else np.nan
        np.testing.assert_equal(found[edge], expected)


@pytest.fixture(scope="module")
def pcg() -> tuple[np.ndarray, np.ndarray]:
    """Labels (N, 15) and edges (2, E) of PCG, each link once."""
    folder: Path = FOLDER / "pcg"
    labels = np.loadtxt(folder / "labels.csv", delimiter=",", dtype=np.uint8)
    links = np.loadtxt(folder / "edges_undir.csv", delimiter=",", dtype=np.int64)
    return labels, np.unique(np.sort(links, axis=1), axis=0).T


@needs("pcg")
def test_pcg_is_as_heterophilous_as_published(pcg: tuple[np.ndarray, np.ndarray]) -> None:
    """AGALE's table has .17."""
    assert graph_homophily(*pcg) == pytest.approx(0.174, abs=5e-4)


@needs("pcg")
def test_a_task_of_pcg_is_more_homophilous_as_the_theorem_says(pcg: tuple[np.ndarray, np.ndarray]) -> None:
    """Theorem 1 of AGALE on tasks of K = 2 labels, drawn in 10 random orders of the 15 labels.

    Where an end of an edge has one label, h_e among the labels of a task, between nodes that have one of them, is no
    less than h_e in the whole graph: without exception. Of the other edges at least 1 − (1 − h_e)^K should be so, on
    average. The mean homophily of the tasks is .649 over 300 orders, .022 between orders; AGALE's table has .64.
    """
    labels, edges = pcg
    random = np.random.default_rng(0)
    whole, sizes = edge_homophily(labels, edges), labels.sum(axis=1)
    one_label = (sizes[edges] == 1).any(axis=0)
    of_tasks, held, bounds, tried = [], [], [], 0
    for _ in range(10):
        order = random.permutation(15)
        for task in (*order[:12].reshape(6, 2), order[12:]):
            shown = np.zeros_like(labels)
            shown[:, task] = labels[:, task]
            inside = edge_homophily(shown, edges)
            induced = ~np.isnan(inside)
            of_tasks.append(graph_homophily(shown, edges))
            certain, other = induced & one_label, induced & ~one_label
            assert (inside[certain] >= whole[certain]).all()
            tried += int(certain.sum())
            held.extend(inside[other] >= whole[other])
            bounds.extend(1 - (1 - whole[other]) ** len(task))
    assert tried > 50_000
    assert np.mean(held) >= np.mean(bounds)
    assert np.mean(of_tasks) == pytest.approx(0.649, abs=0.02)
