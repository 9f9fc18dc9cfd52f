import json

import numpy as np
import pytest

from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.items import Groups
from skeleton_cgl.graphs.link_set import LinkSet, make_link_set
from skeleton_cgl.graphs.summary import describe, headline, summarise
from tests.graphs.made_sets import random_graph_set, random_link_set


@pytest.fixture
def links() -> LinkSet:
    """0 ⇄ 1, 0 → 1 again, 1 → 2, a loop at 2; nodes 3 and 4 have no link."""
    return make_link_set(
        "small",
        5,
        np.array([[0, 1, 0, 1, 2], [1, 0, 1, 2, 2]]),
        directed=True,
        labels=np.array([0, 1, 0, 1, -1]),
        classes=("trust", "distrust"),
        groups={"market": Groups(np.array([0, 0, 1, -1, -1]), ("north", "south"))},
        times=np.array([3, 3, 5, 9, 9]),
        split=np.array([0, 0, 1, 2, -1]),
        negatives=np.array([[0, 3], [3, 4]]),
        negatives_split=np.array([2, 1]),
        notes=("times are days",),
    )


@pytest.fixture
def graphs() -> GraphSet:
    """A triangle, a single node with a loop, and a path of two."""
    return make_graph_set(
        "small",
        np.array([0, 3, 4, 6]),
        np.array([[0, 1, 1, 2, 2, 0, 3, 4, 5], [1, 0, 2, 1, 0, 2, 3, 5, 4]]),
        np.array([[0, 1], [1, 0], [0, 0], [0, 0], [0, 0], [2, 1]]),
        np.array([[1, np.nan], [0, np.nan], [0, 1]]),
        ("toxic", "soluble"),
        codes=(3, 2),
        edge_features=np.ones((9, 1)),
        texts=("C1CC1", "C", "CC"),
        notes=("1 molecule was read in part",),
    )


def test_links_are_counted(links: LinkSet) -> None:
    summary = summarise(links)
    assert summary["links"] == {
        "number": 5,
        "directed": True,
        "loops": 1,
        "repeated": 1,
        "answered": 3 / 4,
        "without_class": 1,
        "without_group": {"market": 2},
    }
    assert summary["degrees"] == {"least": 0, "median": 1, "mean": 4 / 5, "most": 2, "isolated": 2}
    assert [(each["name"], each["links"]) for each in summary["classes"]] == [("trust", 2), ("distrust", 2)]
    assert [each["links"] for each in summary["groups"]["market"]] == [2, 1]
    assert summary["negatives"] == {"training": 0, "validation": 1, "test": 1, "unused": 0}


def test_links_are_told_in_words(links: LinkSet) -> None:
    text = describe(summarise(links))
    assert text.startswith("small: 5 nodes, 5 links, 2 classes\n")
    for line in (
        "  links        5, directed, 75 % answered; 1 self-loops; 1 of a pair that came before",
        "  degrees      0 to 2, median 1, mean 0.80; 2 without an edge",
        "  features     none; a scenario takes degrees",
        "  labelled     1 of 5 links have no class",
        "  grouped      2 of 5 links have no market",
        "  market       2: north 2, south 1",
        "  times        3 to 9, 3 different",
        "  split        2 training, 1 validation, 1 test, 1 unused",
        "  note         times are days",
    ):
        assert f"{line}\n" in text


def test_links_that_are_all_alike_have_no_classes_to_tell() -> None:
    summary = summarise(make_link_set("alike", 3, np.array([[0, 1, 1], [1, 2, 0]]), directed=False))
    assert headline(summary) == "3 nodes, 3 links"
    assert summary["links"]["answered"] is None
    assert summary["links"]["repeated"] == 1
    assert "classes" not in describe(summary)


@pytest.mark.parametrize("seed", range(4))
def test_links_answered_are_those_whose_other_direction_is_listed(seed: int) -> None:
    links = random_link_set(seed, nodes=8)
    pairs = [(source, target) for source, target in links.ends.T.tolist() if source != target]
    expected = sum((target, source) in pairs for source, target in pairs) / len(pairs)
    assert summarise(links)["links"]["answered"] == pytest.approx(expected)


def test_graphs_are_counted(graphs: GraphSet) -> None:
    summary = summarise(graphs)
    assert summary["graphs"] == 3
    assert summary["nodes"] == {"least": 1, "median": 2, "mean": 2, "most": 3}
    assert summary["edges"] == {
        "number": 8,
        "both_ways": True,
        "loops": 1,
        "least": 0,
        "median": 2,
        "mean": 8 / 3,
        "most": 6,
        "graphs_without": 1,
    }
    assert summary["features"]["kinds"] == [3, 2]
    assert [tuple(entry.values()) for entry in summary["classes"]] == [
        (0, "toxic", 1, 2, 0),
        (1, "soluble", 1, 0, 2),
    ]


def test_graphs_are_told_in_words(graphs: GraphSet) -> None:
    text = describe(summarise(graphs))
    assert text.startswith("small: 3 graphs, 2.0 nodes on average, 2 labels\n")
    for line in (
        "  nodes        1 to 3, median 2, mean 2.00 of a graph",
        "  links        0 to 3, median 1, mean 1.33 of a graph, each both ways; 1 self-loops",
        "               1 graphs without any",
        "  features     2, numbers of kinds: 3, 2",
        "  of edges     1, dense, 100 % not zero",
        "  note         1 molecule was read in part",
        "  texts        C1CC1",
        "      0  toxic           1         2         0",
    ):
        assert f"{line}\n" in text
    assert text.endswith("      1  soluble         1         0         2")


@pytest.mark.parametrize("seed", range(4))
def test_the_spread_over_graphs_is_that_of_each_counted_alone(seed: int) -> None:
    graphs = random_graph_set(seed, many_labels=seed % 2 == 1, codes=seed > 1, edge_features=seed > 1)
    sizes = [end - start for start, end in zip(graphs.starts[:-1], graphs.starts[1:], strict=True)]
    edges = [
        sum(start <= source < end for source in graphs.edges[0])
        for start, end in zip(graphs.starts[:-1], graphs.starts[1:], strict=True)
    ]
    summary = summarise(graphs)
    for found, expected in ((summary["nodes"], sizes), (summary["edges"], edges)):
        assert (found["least"], found["most"]) == (min(expected), max(expected))
        assert (found["median"], found["mean"]) == (np.median(expected), pytest.approx(np.mean(expected)))
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert headline(summary) in describe(summary)
