"""Readers of sets of graphs: a user's own say the same, published ones are read from files in the published form."""

import pickle
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.datasets import make_graph_source, open_graph
from skeleton_cgl.graphs.graph_set import GraphSet, Groups, make_graph_set
from skeleton_cgl.graphs.sources.graphml_folder import GraphmlFolder
from skeleton_cgl.graphs.sources.graphs_npz import GraphsNpz
from skeleton_cgl.graphs.sources.npz import Npz
from skeleton_cgl.graphs.sources.nyc_taxi import NycTaxi
from skeleton_cgl.graphs.sources.pyg import Pyg
from skeleton_cgl.graphs.sources.sentiment140 import Sentiment140
from skeleton_cgl.graphs.sources.superpixels import Superpixels

STARTS = np.array([0, 3, 4, 6])
EDGES = np.array([[0, 2, 4], [1, 0, 5]])
FEATURES = np.array([[0.5, -1], [2, 0], [0, 0], [1e-3, 7], [3, 0.1], [1, 1]])
LABELS = np.array([2, 0, 2])
MARKS = np.array([[0, 1], [np.nan, 0], [1, np.nan]])
TIMES = np.array([5, 3, -3])
SPLIT = np.array([0, -1, 2])
LANDS = np.array(["b", "a", "b"])
NAMES = ("training", "validation", "test", "")


def expected(many_labels: bool = False, both_ways: bool = False, **changes: Any) -> str:
    given: dict[str, Any] = {
        "labels": MARKS if many_labels else np.array([1, 0, 1]),
        "classes": ("x", "y") if many_labels else ("class 0", "class 2"),
        "groups": {"land": Groups(np.array([1, 0, 1]), ("a", "b"))},
        "times": TIMES,
        "split": SPLIT,
        **changes,
    }
    return make_graph_set("own", STARTS, EDGES, FEATURES, both_ways=both_ways, **given).digest


def save_npz(path: Path, **changes: Any) -> Path:
    content = {
        "starts": STARTS,
        "edges": EDGES,
        "features": FEATURES,
        "labels": LABELS,
        "times": TIMES,
        "split": SPLIT,
        "groups_land": LANDS,
        **changes,
    }
    np.savez(path / "own.npz", **{name: value for name, value in content.items() if value is not None})
    return path / "own.npz"


def save_graphml(folder: Path, directed: bool = True, **changes: Any) -> Path:
    """Write a folder of GraphML; a change is an attribute of graphs, one value a graph, None for none."""
    folder.mkdir(exist_ok=True)
    attributes = {
        "label": LABELS.tolist(),
        "time": TIMES.tolist(),
        "part": [NAMES[part] or None for part in SPLIT],
        "group:land": LANDS.tolist(),
        **changes,
    }
    for graph in range(3):
        first, last = STARTS[graph : graph + 2]
        made = (nx.DiGraph if directed else nx.Graph)(name="made")
        made.add_nodes_from(
            (f"n{node}", {"one": FEATURES[node, 0], "two": FEATURES[node, 1]}) for node in range(first, last)
        )
        made.add_edges_from((f"n{source}", f"n{target}") for source, target in EDGES.T if first <= source < last)
        made.graph.update({name: each[graph] for name, each in attributes.items() if each and each[graph] is not None})
        nx.write_graphml(made, folder / f"{graph}.graphml")
    return folder


def test_npz_and_graphml_say_the_same(tmp_path: Path) -> None:
    for path, reader in ((save_npz(tmp_path), GraphsNpz), (save_graphml(tmp_path / "own"), GraphmlFolder)):
        assert type(make_graph_source(path)) is reader
        assert open_graph(path).digest == expected()
    marks = {name: [None if np.isnan(mark) else int(mark) for mark in MARKS[:, at]] for at, name in enumerate("xy")}
    folder = save_graphml(tmp_path / "own", label=None, **{f"label:{name}": each for name, each in marks.items()})
    assert open_graph(folder).digest == expected(many_labels=True)
    assert open_graph(save_npz(tmp_path, labels=MARKS, classes=np.array(["x", "y"]))).digest == expected(
        many_labels=True
    )


def test_what_an_npz_of_graphs_may_hold_instead(tmp_path: Path) -> None:
    by_node = save_npz(tmp_path, starts=None, graph=np.array([0, 0, 0, 1, 2, 2]))
    assert open_graph(by_node).digest == expected()
    assert not Npz.recognises(by_node)
    assert open_graph(save_npz(tmp_path, edges=EDGES.T, both_ways=True)).digest == expected(both_ways=True)
    assert GraphsNpz(tmp_path / "own.npz", both_ways=False).read().digest == expected()
    masks = {name: part == SPLIT for part, name in enumerate(("train_mask", "val_mask", "test_mask"))}
    assert open_graph(save_npz(tmp_path, split=None, **masks)).digest == expected()
    weights = np.array([[1.0], [2.0], [3.0]])
    assert open_graph(save_npz(tmp_path, edge_features=weights)).digest == expected(edge_features=weights)
    column = open_graph(save_npz(tmp_path, labels=MARKS[:, :1]))
    np.testing.assert_array_equal(column.labels, MARKS[:, :1])
    bare = dict.fromkeys(("groups_land", "times", "split"))
    given = {"groups": None, "times": None, "split": None}
    assert open_graph(save_npz(tmp_path, **bare)).digest == expected(**given)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"edges": None}, "array 'edges' is missing; found features"),
        ({"features": None}, "array 'features' is missing"),
        ({"labels": None}, "array 'labels' is missing"),
        ({"weights": TIMES}, "unknown array 'weights'"),
        ({"graph": np.zeros(6, int)}, "expected one of the arrays 'starts' and 'graph'"),
        (
            {"starts": None, "graph": np.array([0, 0, 1, 0, 2, 2])},
            "array 'graph': node 3: expected graphs counted from 0",
        ),
        ({"starts": None, "graph": np.array([0, 0, 0, 2, 2, 2])}, "array 'graph': node 3: .*, found 2"),
        ({"starts": None, "graph": np.array([1, 1, 1, 2, 3, 3])}, "array 'graph': node 0: .*, found 1"),
        (
            {"starts": None, "graph": np.zeros(6)},
            r"array 'graph': expected a whole number per node, found float64 \(6,\)",
        ),
        ({"starts": np.array([0, 3, 3, 6])}, "starts: graph 1 has no nodes"),
        ({"edges": np.array([[0], [3]])}, "edges: edge 0 – 3 leads from one graph to another"),
        ({"labels": np.array([0, np.nan, 1])}, "labels: expected a whole number, found nan at graph 1"),
        ({"labels": np.array(["a", "", "b"])}, "array 'labels': graph 1: expected a class"),
        ({"split": np.array(["test", "tset", ""])}, "array 'split': graph 1: expected training"),
        ({"split": None, "train_mask": np.ones(6, bool)}, "array 'train_mask': expected true or false for every graph"),
        ({"groups_land": LANDS[:2]}, "groups 'land': expected a whole number per graph"),
    ],
)
def test_an_npz_that_is_no_set_of_graphs_is_refused_with_the_field(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=f"own.npz: {reason}"):
        GraphsNpz(save_npz(tmp_path, **changes)).read()


def test_links_of_undirected_graphml_have_both_directions_and_a_group_needs_no_name(tmp_path: Path) -> None:
    folder = save_graphml(tmp_path / "own", directed=False, **{"group:land": None, "group": LANDS.tolist()})
    found = open_graph(folder)
    assert isinstance(found, GraphSet)
    assert found.texts == ("0", "1", "2")
    groups = {"group": Groups(np.array([1, 0, 1]), ("a", "b"))}
    assert found.digest == expected(both_ways=True, groups=groups)


def test_a_folder_of_graphml_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    def refuse(reason: str, **changes: Any) -> None:
        with pytest.raises(InputError, match=reason):
            GraphmlFolder(save_graphml(tmp_path / "own", **changes)).read()

    refuse("1.graphml: attribute 'label' of the graph is missing", label=[1, None, 2])
    refuse("own: expected a column 'label', or columns 'label:NAME'", label=None)
    refuse("own: unknown attribute 'weight' of graphs; expected label", weight=[1, 2, 3])
    refuse("own: column 'time': 1.graphml: expected a whole number like the first", time=[1, "x", 2])
    refuse("own: column 'label:x': 2.graphml: expected 0 or 1, found '7'", label=None, **{"label:x": [0, 1, 7]})
    save_graphml(tmp_path / "own")
    nx.write_graphml(nx.Graph(label=1), tmp_path / "own" / "3.graphml")
    with pytest.raises(InputError, match=r"3.graphml: no node in it"):
        open_graph(tmp_path / "own")
    other = nx.Graph(label=1, time=1, **{"group:land": "a"})
    other.add_node("a", one=1.0, three=2.0)
    nx.write_graphml(other, tmp_path / "own" / "3.graphml")
    with pytest.raises(
        InputError, match=r"3.graphml: nodes have the attributes one, three, those of 0.graphml one, two"
    ):
        open_graph(tmp_path / "own")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: no .graphml file in it"):
        GraphmlFolder(tmp_path / "empty").read()


def image(seed: int, colours: int, **changes: Any) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    nodes = 3 + seed
    content = {
        "x": torch.tensor(random.random((nodes, colours)), dtype=torch.float32),
        "pos": torch.tensor(random.random((nodes, 2)), dtype=torch.float32),
        "edge_index": torch.tensor([[0, 1, 2], [1, 2, 0]]),
        "edge_attr": torch.tensor([0.5, 1.5, seed]),
        "y": torch.tensor([seed % 2]),
        **changes,
    }
    return {name: value for name, value in content.items() if value is not None}


@pytest.mark.parametrize(("name", "colours"), [("MNIST", 1), ("CIFAR10", 3)])
def test_images_of_superpixels_have_colour_and_place_and_are_split_by_list(
    tmp_path: Path, name: str, colours: int
) -> None:
    images = [image(seed, colours) for seed in range(4)]
    path = tmp_path / f"{name}_v2.pt"
    torch.save((images[:2], images[2:3], [{**images[3], "y": 1}]), path)
    assert not Pyg.recognises(path)
    for place in (path, tmp_path):
        found = open_graph(place)
        assert isinstance(found, GraphSet)
        assert (found.name, found.labels.tolist()) == (name, [0, 1, 0, 1])
        assert found.split is not None
        assert found.split.tolist() == [0, 0, 1, 2]
        assert found.edge_features is None
        for each, (first, last) in zip(images, zip(found.starts, found.starts[1:], strict=False), strict=True):
            assert (found.features[first:last, :colours] == each["x"].numpy()).all()
            assert (found.features[first:last, colours:] == each["pos"].numpy()).all()
    weighted = Superpixels(path, edge_features=True).read()
    assert weighted.edge_features is not None
    inside = weighted.edges[:, weighted.edge_starts[3] :] - weighted.starts[3]
    assert inside.tolist() == [[2, 0, 1], [0, 1, 2]]
    assert weighted.edge_features[weighted.edge_starts[3] :, 0].tolist() == [3, 0.5, 1.5]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([[], []], "expected three lists of graphs, found 'list'"),
        ([[], [], []], "no graph in it"),
        ([[image(0, 1)], [image(1, 1, pos=None)], []], "list 1, graph 0: 'pos' is missing; found 'x, edge_index"),
        ([[torch.zeros(3)], [], []], "list 0, graph 0: 'y' is missing; found 'Tensor'"),
        ([[image(0, 3)], [], []], r"graph 0: features: expected numbers \(n, 3\), found float32 of shape \(3, 5\)"),
        ([[image(0, 1, pos=torch.zeros(2, 2))], [], []], r"expected x \(n, C\) and pos \(n, 2\)"),
        ([[image(0, 1, x=torch.zeros(0, 1), pos=torch.zeros(0, 2))], [], []], "graph 0: features: no node in it"),
        (
            [[image(0, 1), image(1, 1, edge_index=torch.tensor([[0], [4]]))], [], []],
            "graph 1: edges: an end is outside",
        ),
        ([[image(0, 1, edge_index=torch.zeros(3, 2))], [], []], r"graph 0: edges: expected whole numbers \(2, e\)"),
        ([[image(0, 1, y=torch.tensor([1, 2]))], [], []], "graph 0: 'y': expected one whole number"),
        ([[image(0, 1, y=Path("x"))], [], []], "holds more than tensors, which is not read$"),
    ],
)
def test_superpixels_that_do_not_fit_are_refused(tmp_path: Path, content: Any, reason: str) -> None:
    torch.save(content, tmp_path / "MNIST_v2.pt")
    with pytest.raises(InputError, match=f"MNIST_v2.pt: .*{reason}" if "graph" in reason else reason):
        Superpixels(tmp_path).read()


ZONES = ("EWR", "Queens", "Unknown", "Manhattan")


def write_taxi(folder: Path, table: str = "", **changes: Any) -> dict[str, np.ndarray]:
    """Write a Friday and a Saturday of two quarters; return the customers of each."""
    (folder / "new").mkdir(exist_ok=True)
    lines = "".join(f'{zone + 1},"{name}","Zone {zone}","Boro"\n' for zone, name in enumerate(ZONES))
    (folder / "lookup.csv").write_text(table or f'"LocationID","Borough","Zone","service_zone"\n{lines}')
    sources, targets = torch.tensor([0, 1, 2, 3, 0]), torch.tensor([0, 2, 3, 3, 3])
    customers = {}
    for seed, day in enumerate(("2018_3_31", "2018_4_6")):
        customers[day] = np.random.default_rng(seed).integers(0, 3, (5, 24))
        torch.save(changes.get(day, (sources, targets, torch.tensor(customers[day]))), folder / "new" / f"{day}.pt")
    return customers


def test_taxi_has_a_graph_an_hour_of_zones_and_customers(tmp_path: Path) -> None:
    customers = write_taxi(tmp_path)
    found = open_graph(tmp_path)
    assert isinstance(found, GraphSet)
    assert (found.name, found.classes, len(found)) == ("NYC-Taxi", ("weekday", "weekend"), 48)
    assert found.labels.tolist() == [1] * 24 + [0] * 24
    assert found.times is not None
    assert found.times.tolist() == [201801] * 24 + [201804] * 24
    assert (found.sizes == 4).all()
    assert found.features[:4].argmax(axis=1).tolist() == [2, 4, 6, 3]
    assert (found.features.sum(axis=1) == 1).all()
    assert found.edge_features is not None
    links = [(0, 0), (1, 2), (2, 3), (3, 3), (0, 3)]
    for graph in range(48):
        counts = customers["2018_3_31" if graph < 24 else "2018_4_6"][:, graph % 24]
        there = {link: count for link, count in zip(links, counts, strict=True) if count or link[0] == link[1]}
        inside = slice(*found.edge_starts[graph : graph + 2])
        pairs = [tuple(pair) for pair in (found.edges[:, inside] - 4 * graph).T.tolist()]
        assert dict(zip(pairs, found.edge_features[inside, 0].tolist(), strict=True)) == there


def test_taxi_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    ends, customers = torch.tensor([0, 1]), torch.ones(2, 24)
    for content, reason in (
        ((ends, ends), "2018_4_6.pt: expected sources, targets and customers, found 'tuple'"),
        (
            (ends, ends, customers[:, 1:]),
            r"2018_4_6.pt: expected .* customers \(e, 24\), found \(2,\), \(2,\) and \(2, 23\)",
        ),
        ((ends, ends + 3, customers), "2018_4_6.pt: hour 0: edges: an end is outside the nodes 0–3"),
    ):
        write_taxi(tmp_path, **{"2018_4_6": content})
        with pytest.raises(InputError, match=reason):
            NycTaxi(tmp_path).read()
    for table, reason in (
        ("LocationID,Zone\n1,x\n", "lookup.csv: column 'Borough' is missing"),
        ("LocationID,Borough\n1,Boston\n", "lookup.csv: row 1: column 'Borough': expected one of Bronx"),
    ):
        write_taxi(tmp_path, table)
        with pytest.raises(InputError, match=reason):
            NycTaxi(tmp_path).read()
    write_taxi(tmp_path)
    torch.save((), tmp_path / "new" / "2018_2_30.pt")
    with pytest.raises(InputError, match=r"2018_2_30.pt: expected a file called by its day"):
        NycTaxi(tmp_path).read()
    (tmp_path / "lookup.csv").unlink()
    with pytest.raises(InputError, match=r"none of lookup.csv, .* is in it"):
        NycTaxi(tmp_path).read()
    with pytest.raises(InputError, match=r"none: no such file or folder; published at github"):
        NycTaxi(tmp_path / "none").read()


def posts(kind: Any, **changes: Any) -> dict[str, Any]:
    graphs = [
        {"idx": 7, "nfeats": kind(np.full((3, 300), 0.5)), "srcs": kind([0, 1]), "dsts": kind([1, 2]), "labels": 4},
        {"idx": 9, "nfeats": kind(np.full((1, 300), 1.5)), "srcs": kind([]), "dsts": kind([]), "labels": 0},
    ]
    return {"graphs": graphs, "inner_tvt_splits": kind([17, 8]), "time_info": kind([0, 10]), **changes}


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_posts_are_trees_of_words_of_either_sign_over_periods(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "sentiment_metadata_allIL.pkl"
    path.write_bytes(pickle.dumps(posts(kind)))
    for place in (path, tmp_path):
        found = open_graph(place)
        assert isinstance(found, GraphSet)
        assert (found.name, found.classes) == ("Sentiment140", ("negative", "positive"))
        assert found.labels.tolist() == [1, 0]
        assert found.starts.tolist() == [0, 3, 4]
        assert found.edges.tolist() == [[0, 1], [1, 2]]
        assert (found.features == [[0.5], [0.5], [0.5], [1.5]] * np.ones(300)).all()
        assert found.times is not None
        assert found.split is not None
        assert (found.times.tolist(), found.split.tolist()) == ([0, 10], [1, 2])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"graphs": {}}, "'graphs': expected a list of graphs, found 'dict'"),
        ({"time_info": np.zeros(3, int)}, "'time_info': expected a whole number for each of 2 graphs"),
        ({"inner_tvt_splits": None}, "'inner_tvt_splits': expected an array, found NoneType"),
        ({"graphs": [{"nfeats": np.ones((1, 300))}] * 2}, "graph 0: 'labels' is missing; found 'nfeats'"),
        (
            {"graphs": [{**posts(np.array)["graphs"][0], "nfeats": np.ones((3, 30))}] * 2},
            r"graph 0: features: .*\(n, 300\)",
        ),
        (
            {"graphs": [{**posts(np.array)["graphs"][0], "srcs": np.array([3, 0])}] * 2},
            "graph 0: edges: an end is outside",
        ),
        ({"graphs": [{**posts(np.array)["graphs"][0], "srcs": np.array([0])}] * 2}, r"graph 0: expected srcs \(e,\)"),
        ({"graphs": [{**posts(np.array)["graphs"][0], "labels": "x"}] * 2}, "graph 0: 'labels': expected one number"),
        ({"graphs": [Path("x")]}, "refused: the pickle asks for pathlib"),
    ],
)
def test_posts_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    path = tmp_path / "sentiment_metadata_allIL.pkl"
    path.write_bytes(pickle.dumps(posts(np.array, **changes)))
    with pytest.raises(InputError, match=f"allIL.pkl: {reason}"):
        Sentiment140(path).read()
