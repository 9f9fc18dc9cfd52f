from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.graphs.graph_set import make_graph_set
from skeleton_cgl.graphs.link_set import make_link_set
from skeleton_cgl.graphs.picture import save_picture
from skeleton_cgl.graphs.pictures.graph_sets import a_few_of, draw_graph_set, look_at_graph_set
from skeleton_cgl.graphs.pictures.links import draw_links, look_at_links
from tests.graphs.made_sets import random_graph_set, random_link_set

ODD = "$\\x$ é\n<b> {} long long long long"


@pytest.mark.parametrize("directed", [True, False])
def test_drawn_links_are_those_between_drawn_nodes_with_their_classes(directed: bool) -> None:
    links = random_link_set(nodes=300, links=900, classes=12, directed=directed)
    shown = look_at_links(links)
    assert len(shown.positions) == 80
    assert 0 <= shown.ends.min() <= shown.ends.max() < 80
    assert (shown.ends[0] != shown.ends[1]).all()
    # One link of so many classes is begun with.
    assert len(set(shown.kinds.tolist()) - {-1}) >= 10
    counts = [int((links.labels == label).sum()) for label in range(12)]
    assert shown.links.tolist() == counts


def test_all_links_of_a_small_set_are_drawn() -> None:
    ends = np.array([[0, 1, 2, 2], [1, 2, 0, 2]])
    shown = look_at_links(make_link_set("ring", 3, ends, directed=True, labels=np.array([0, 1, 0, 1])))
    assert len(shown.positions) == 3
    assert sorted(shown.kinds.tolist()) == [0, 0, 1]


def test_links_that_are_all_alike_are_told_apart_by_their_groups() -> None:
    links = replace(random_link_set(), labels=np.zeros(40, dtype=np.int64), classes=("linked",))
    shown = look_at_links(links)
    assert (shown.word, shown.names) == ("market", ("é", "", "c"))
    assert shown.links.sum() == (links.groups["market"].numbers >= 0).sum()
    bare = look_at_links(replace(links, groups={}))
    assert (bare.word, bare.names, bare.links.tolist()) == ("class", ("linked",), [40])


@pytest.mark.parametrize("classes", [2, 30])
def test_links_are_drawn_whatever_their_classes_are_called(tmp_path: Path, classes: int) -> None:
    links = random_link_set(links=100, classes=classes, groups=())
    odd = replace(links, name=ODD, classes=tuple(f"{ODD} {number}" for number in range(classes)))
    save_picture(odd, tmp_path / "links.svg")
    assert (tmp_path / "links.svg").stat().st_size > 5000
    draw_links(look_at_links(odd)).draw_without_rendering()


@pytest.mark.parametrize("many_labels", [True, False])
def test_a_few_graphs_of_a_class_are_of_it_and_grow(many_labels: bool) -> None:
    graphs = random_graph_set(graphs=200, many_labels=many_labels)
    for label in range(3):
        chosen = a_few_of(graphs, label)
        of_class = graphs.labels[chosen, label] == 1 if many_labels else graphs.labels[chosen] == label
        assert of_class.all()
        assert len(set(chosen)) == 6
        assert (np.diff(graphs.sizes[chosen]) >= 0).all()


def test_classes_of_few_graphs_are_drawn_whole_and_of_many_classes_some() -> None:
    graphs = random_graph_set(graphs=30, classes=20, texts=False)
    shown = look_at_graph_set(graphs)
    assert len(shown.rows) == 8
    assert shown.names[0] == "class 0"
    assert shown.names[-1] == "class 19"
    assert "8 of them" in shown.title
    for row, count in zip(shown.rows, shown.counts, strict=True):
        assert len(row) == min(count, 6)
        for drawn in row:
            start, end = graphs.starts[drawn.number : drawn.number + 2]
            inside = (graphs.edges[0] >= start) & (graphs.edges[0] < end)
            assert len(drawn.positions) == end - start
            assert 2 * drawn.edges.shape[1] == inside.sum()


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_graphs_are_drawn_whatever_they_are_called(tmp_path: Path, suffix: str) -> None:
    graphs = random_graph_set(many_labels=True)
    odd = replace(graphs, name=ODD, classes=tuple(f"{ODD} {number}" for number in range(3)))
    save_picture(odd, tmp_path / f"graphs{suffix}")
    assert (tmp_path / f"graphs{suffix}").stat().st_size > 5000


def test_texts_are_drawn_as_molecules_where_each_has_as_many_atoms_as_its_graph() -> None:
    """Texts such as "C" may be names of anything: what has other nodes is no molecule."""
    pytest.importorskip("rdkit")
    pytest.importorskip("skeleton_cgl.graphs.molecules")
    starts, edges = np.array([0, 2, 5]), np.array([[0, 2, 3], [1, 3, 4]])
    graphs = make_graph_set(
        "molecules", starts, edges, np.ones((5, 1)), np.array([0, 1]), texts=("CO", "CCO"), both_ways=True
    )
    shown = look_at_graph_set(graphs)
    assert all(each.picture is not None for row in shown.rows for each in row)
    draw_graph_set(shown).draw_without_rendering()
    for texts in (("CO", "CO"), ("CO", "no molecule")):
        other = look_at_graph_set(replace(graphs, texts=texts))
        assert all(each.picture is None for row in other.rows for each in row)
