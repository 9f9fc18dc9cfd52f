from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.archive import read_archive, read_provenance, write_archive
from skeleton_cgl.graphs.datasets import open_graph
from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.link_set import LinkSet, make_link_set
from skeleton_cgl.graphs.source import GraphData
from skeleton_cgl.reading.seal import seal
from tests.graphs.graph_checks import assert_same
from tests.graphs.made_graphs import random_graph
from tests.graphs.made_sets import random_graph_set, random_link_set

LINKS = st.builds(
    random_link_set,
    seed=st.integers(0, 2**32),
    nodes=st.integers(2, 30),
    links=st.integers(3, 60),
    features=st.sampled_from(["none", "dense", "sparse"]),
    directed=st.booleans(),
    groups=st.lists(st.text(), max_size=3, unique=True).map(tuple),
    dated=st.booleans(),
    published=st.booleans(),
    negatives=st.booleans(),
)
GRAPHS = st.builds(
    random_graph_set,
    seed=st.integers(0, 2**32),
    graphs=st.integers(3, 20),
    codes=st.booleans(),
    edge_features=st.booleans(),
    many_labels=st.booleans(),
    groups=st.lists(st.text(), max_size=3, unique=True).map(tuple),
    dated=st.booleans(),
    published=st.booleans(),
    texts=st.booleans(),
)


@settings(max_examples=40)
@given(st.one_of(LINKS, GRAPHS))
def test_an_archive_gives_back_links_and_graphs_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, data: LinkSet | GraphSet
) -> None:
    path = tmp_path_factory.mktemp("data") / "data.h5"
    write_archive(data, path, {"source": "made up"})
    assert_same(read_archive(path), data)
    assert_same(open_graph(path), data)
    assert read_provenance(path)["source"] == "made up"


@pytest.mark.parametrize("data", [random_graph(), random_link_set(), random_graph_set()], ids=lambda data: data.item)
def test_a_file_says_which_value_it_holds(tmp_path: Path, data: GraphData) -> None:
    write_archive(data, tmp_path / "data.h5")
    with h5py.File(tmp_path / "data.h5") as file:
        assert file.attrs["item"] == data.item


def test_numbers_of_numpy_make_the_same_data_set_as_those_of_python(tmp_path: Path) -> None:
    ends, starts = np.array([[0, 1], [1, 0]]), np.array([0, 2])
    links = [make_link_set("same", nodes, ends, directed) for nodes, directed in ((2, True), (np.int32(2), np.True_))]
    features, labels = np.zeros((2, 1)), np.array([0])
    graphs = [make_graph_set("same", starts, ends, features, labels, codes=codes) for codes in ((3,), (np.int16(3),))]
    for plain, other in (links, graphs):
        write_archive(other, tmp_path / "data.h5")
        assert_same(read_archive(tmp_path / "data.h5"), plain)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (random_link_set(features="sparse"), "features"),
        (random_link_set(), "ends"),
        (random_link_set(), "negatives"),
        (random_graph_set(), "starts"),
        (random_graph_set(edge_features=True), "edge_features"),
        (random_graph_set(), "split"),
    ],
)
def test_an_archive_that_lacks_a_field_is_refused(tmp_path: Path, data: GraphData, field: str) -> None:
    path = tmp_path / "data.h5"
    write_archive(data, path)
    with h5py.File(path, "r+") as file:
        del file[field]
    seal(path)
    with pytest.raises(InputError, match=r"data\.h5: damaged.*; prepare it again"):
        read_archive(path)


def test_an_archive_of_what_there_is_not_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.h5"
    write_archive(random_graph_set(), path)
    with h5py.File(path, "r+") as file:
        file.attrs["item"] = "hyperedge"
    seal(path)
    with pytest.raises(InputError, match=r"data\.h5: damaged.*hyperedge"):
        read_archive(path)


def test_texts_of_many_graphs_are_packed(tmp_path: Path) -> None:
    """What is alike in texts takes less room than the texts."""
    graphs = random_graph_set(graphs=3000, texts=False)
    texts = tuple("CC(=O)Oc1ccccc1C(=O)O" * 10 + str(number) for number in range(len(graphs)))
    write_archive(graphs, tmp_path / "bare.h5")
    write_archive(replace(graphs, texts=texts), tmp_path / "told.h5")
    more = (tmp_path / "told.h5").stat().st_size - (tmp_path / "bare.h5").stat().st_size
    assert 0 < more < sum(map(len, texts)) / 5
