"""Readers of a user's own graphs: npz, CSV, DGL, PyG and GraphML say the same, and what is no graph is refused."""

import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Groups, make_graph
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.graphs.sources.csv import Csv
from skeleton_cgl.graphs.sources.dgl import Dgl
from skeleton_cgl.graphs.sources.graphml import Graphml
from skeleton_cgl.graphs.sources.npz import Npz
from skeleton_cgl.graphs.sources.pyg import Pyg

EDGES = np.array([[0, 1, 2, 4, 4], [1, 2, 0, 3, 4]])
FEATURES = np.array([[0.5, -1], [2, 0], [0, 0], [1e-3, 7], [3, 0.1]])
LABELS = np.array([2, 0, -1, 0, 2])
TIMES = np.array([5, 3, 3, -1, 9])
SPLIT = np.array([0, 1, -1, 2, 0])
LANDS = np.array([7, 7, 9, 9, 7])
MARKS = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1]])
NAMES = ("training", "validation", "test", "")
MASKS = {name: part == SPLIT for part, name in enumerate(("train_mask", "val_mask", "test_mask"))}


def expected(many_labels: bool = False, both_ways: bool = False, sparse: bool = False, **changes: Any) -> str:
    given: dict[str, Any] = {
        "labels": MARKS if many_labels else np.array([1, 0, -1, 0, 1]),
        "classes": None if many_labels else ("class 0", "class 2"),
        "groups": {"land": Groups(np.array([0, 0, 1, 1, 0]), ("7", "9"))},
        "times": TIMES,
        "split": SPLIT,
        **changes,
    }
    features = csr_array(FEATURES) if sparse else FEATURES
    return make_graph("own", EDGES, features, both_ways=both_ways, **given).digest


def save_npz(path: Path, **changes: Any) -> Path:
    content = {
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


def save_csv(path: Path, **changes: Any) -> Path:
    """Write the two tables; a change is a column of nodes.csv, or `edges`, `nodes` for the whole text."""
    columns = {
        "id": list("abcde"),
        "one": FEATURES[:, 0].tolist(),
        "label": LABELS.tolist(),
        "time": TIMES.tolist(),
        "part": [NAMES[part] for part in SPLIT],
        "group:land": LANDS.tolist(),
        "two": FEATURES[:, 1].tolist(),
        **{name: values for name, values in changes.items() if name not in ("edges", "nodes")},
    }
    columns = {name: values for name, values in columns.items() if values is not None}
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    text = "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    (path / "nodes.csv").write_text(changes.get("nodes", text))
    ends = "".join(f"{'abcde'[source]},{'abcde'[target]},1.5\n" for source, target in EDGES.T)
    (path / "edges.csv").write_text(changes.get("edges", f"source,target,weight\n{ends}"))
    return path


def save_dgl(path: Path, formats: list[str] | None = None, whole: type = torch.int64, **changes: Any) -> Path:
    import dgl

    graph = dgl.graph(tuple(torch.tensor(EDGES)), num_nodes=5)
    graph = graph if whole is torch.int64 else graph.int()
    data = {
        "feat": torch.tensor(FEATURES),
        "label": torch.tensor(LABELS),
        "time": torch.tensor(TIMES),
        "group_land": torch.tensor(LANDS),
        "other": torch.zeros(5, 2, 2),
        **{name: torch.tensor(mask) for name, mask in MASKS.items()},
        **changes,
    }
    for name, value in data.items():
        if value is not None:
            graph.ndata[name] = value
    dgl.save_graphs(str(path / "own.bin"), [graph], {"about": torch.arange(3)}, formats=formats)
    return path / "own.bin"


def save_pyg(path: Path, **changes: Any) -> Path:
    content = {
        "edge_index": torch.tensor(EDGES),
        "x": torch.tensor(FEATURES),
        "y": torch.tensor(LABELS),
        "time": torch.tensor(TIMES),
        "group_land": torch.tensor(LANDS),
        "num_nodes": 5,
        "edge_attr": torch.zeros(5, 1),
        **{name: torch.tensor(mask) for name, mask in MASKS.items()},
        **changes,
    }
    torch.save({name: value for name, value in content.items() if value is not None}, path / "own.pt")
    return path / "own.pt"


def save_graphml(path: Path, directed: bool = True, **changes: Any) -> Path:
    graph = nx.DiGraph() if directed else nx.Graph()
    for node in range(5):
        attributes = {
            "one": float(FEATURES[node, 0]),
            "label": int(LABELS[node]),
            "time": int(TIMES[node]),
            "part": NAMES[SPLIT[node]],
            "group:land": int(LANDS[node]),
            "two": float(FEATURES[node, 1]),
        }
        attributes |= {name: values[node] for name, values in changes.items()}
        graph.add_node("abcde"[node], **{name: value for name, value in attributes.items() if value is not None})
    graph.add_weighted_edges_from([("abcde"[source], "abcde"[target], 2.5) for source, target in EDGES.T])
    nx.write_graphml(graph, path / "own.graphml")
    return path / "own.graphml"


@pytest.mark.parametrize(
    ("reader", "save"),
    [(Npz, save_npz), (Csv, save_csv), (Dgl, save_dgl), (Pyg, save_pyg), (Graphml, save_graphml)],
)
def test_every_form_says_the_same(tmp_path: Path, reader: type[GraphSource], save: Callable[[Path], Path]) -> None:
    path = save(tmp_path)
    assert reader.recognises(path)
    assert [other for other in (Npz, Csv, Dgl, Pyg, Graphml) if other.recognises(path)] == [reader]
    assert reader(path).read().digest == expected()  # type: ignore[call-arg]
    with pytest.raises(InputError, match="no such file or folder"):
        reader(tmp_path / "none").read()  # type: ignore[call-arg]


@pytest.mark.parametrize(("reader", "save"), [(Npz, save_npz), (Csv, save_csv), (Dgl, save_dgl), (Pyg, save_pyg)])
def test_edges_count_in_both_directions_where_asked(
    tmp_path: Path, reader: Callable[..., GraphSource], save: Callable[[Path], Path]
) -> None:
    assert reader(save(tmp_path), both_ways=True).read().digest == expected(both_ways=True)
    with pytest.raises(InputError, match="both_ways: expected true or false, found 1"):
        reader(tmp_path, both_ways=1)


def test_many_labels(tmp_path: Path) -> None:
    names = ("ill", "old", "tall")
    columns = {"label": None, **{f"label:{name}": MARKS[:, place].tolist() for place, name in enumerate(names)}}
    named = expected(many_labels=True, classes=names)
    assert Csv(save_csv(tmp_path, **columns)).read().digest == named
    attributes = {"label": [None] * 5, **{name: column for name, column in columns.items() if column}}
    assert Graphml(save_graphml(tmp_path, **attributes)).read().digest == named
    assert Npz(save_npz(tmp_path, labels=MARKS, classes=np.array(names))).read().digest == named
    unnamed = expected(many_labels=True)
    assert Npz(save_npz(tmp_path, labels=MARKS)).read().digest == unnamed
    assert Pyg(save_pyg(tmp_path, y=torch.tensor(MARKS).float())).read().digest == unnamed
    assert Dgl(save_dgl(tmp_path, label=torch.tensor(MARKS).int())).read().digest == unnamed


def test_what_an_npz_may_hold_instead(tmp_path: Path) -> None:
    rows = csr_array(FEATURES)
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape)}
    sparse = {f"features_{name}": value for name, value in parts.items()}
    assert Npz(save_npz(tmp_path, features=None, **sparse)).read().digest == expected(sparse=True)
    assert Npz(save_npz(tmp_path, edges=EDGES.T, both_ways=True)).read().digest == expected(both_ways=True)
    assert Npz(save_npz(tmp_path, both_ways=True), both_ways=False).read().digest == expected()
    assert Npz(save_npz(tmp_path, split=None, **MASKS)).read().digest == expected()
    assert Npz(save_npz(tmp_path, split=np.array([NAMES[part] for part in SPLIT]))).read().digest == expected()
    assert Npz(save_npz(tmp_path, groups_land=LANDS.astype(str))).read().digest == expected()
    words = np.array(["cat", "ant", "-1", "ant", "cat"])
    assert Npz(save_npz(tmp_path, labels=words)).read().digest == expected(classes=("ant", "cat"))
    turned = expected(labels=np.array([0, 1, -1, 1, 0]), classes=("cat", "ant"))
    assert Npz(save_npz(tmp_path, labels=words, classes=np.array(["cat", "ant"]))).read().digest == turned
    bare = make_graph("own", EDGES, FEATURES, np.array([1, 0, -1, 0, 1]), ("class 0", "class 2")).digest
    optional = {"times": None, "split": None, "groups_land": None}
    assert Npz(save_npz(tmp_path, labels=LABELS[:, None].astype(float), **optional)).read().digest == bare


@pytest.mark.parametrize("formats", [["coo"], ["csr"], ["csc"], ["csr", "csc"], ["coo", "csr", "csc"]])
@pytest.mark.parametrize("whole", [torch.int64, torch.int32])
def test_dgl_graphs_of_every_format_are_read(tmp_path: Path, formats: list[str], whole: type) -> None:
    assert Dgl(save_dgl(tmp_path, formats, whole)).read().digest == expected()


def test_dgl_graphs_may_call_their_data_otherwise_and_have_one_kind(tmp_path: Path) -> None:
    import dgl

    path = save_dgl(tmp_path, feat=None, label=None, x=torch.tensor(FEATURES), y=torch.tensor(LABELS))
    assert Dgl(path, features="x", labels="y").read().digest == expected()
    with pytest.raises(InputError, match=r"own.bin: node data 'feat' are missing; found"):
        Dgl(path).read()
    graph = dgl.graph((torch.tensor([0]), torch.tensor([1])))
    dgl.save_graphs(str(path), [graph, graph])
    with pytest.raises(InputError, match="expected version 2 with 1 graph, found version 2 with 2"):
        Dgl(path).read()
    ends = (torch.tensor([0]), torch.tensor([1]))
    dgl.save_graphs(str(path), [dgl.heterograph({("u", "likes", "u"): ends, ("u", "sees", "u"): ends})])
    with pytest.raises(InputError, match=r"own.bin: expected one kind of edges, found 2"):
        Dgl(path).read()


@pytest.mark.parametrize(
    ("reader", "save"), [(Npz, save_npz), (Csv, save_csv), (Dgl, save_dgl), (Pyg, save_pyg), (Graphml, save_graphml)]
)
def test_damaged_files_are_refused_in_one_line_or_read(
    tmp_path: Path, reader: Callable[..., GraphSource], save: Callable[[Path], Path]
) -> None:
    path = save(tmp_path)
    damaged = path / "nodes.csv" if path.is_dir() else path
    whole = damaged.read_bytes()
    # Most of a DGL file is a head of zeros and of what was in memory.
    useful = np.array([*range(32), *range(4096, len(whole))]) if reader is Dgl else np.arange(len(whole))
    random = np.random.default_rng(0)
    refused: list[str] = []
    for trial in range(150):
        content = bytearray(whole)
        for place in random.choice(useful, size=random.integers(1, 4)):
            content[place] ^= 1 << random.integers(8)
        damaged.write_bytes(content[: random.integers(len(whole))] if trial % 5 == 0 else content)
        try:
            reader(path).read()
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 30
    assert [said for said in refused if "\n" in said or str(tmp_path) not in said] == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"edges": None}, "array 'edges' is missing; found features, groups_land"),
        ({"labels": None}, "array 'labels' is missing"),
        ({"features": None}, "array 'features' is missing, or all of features_data, features_indices"),
        ({"label": LABELS}, "unknown array 'label'; did you mean 'labels'"),
        ({"edges": EDGES + 1}, "edges: edge 3, 5 – 4, has an end outside the nodes 0–4"),
        ({"edges": EDGES.astype(float)}, "edges: expected whole numbers"),
        ({"labels": np.array([0, 1, np.nan, 1, 0])}, "labels: expected a whole number, found .*nan.* at node 2"),
        ({"labels": np.array(["a", "", "b", "a", "b"])}, "array 'labels': node 1: expected a class, or -1 for none"),
        ({"labels": np.array(["a", "b"] * 2 + ["\x1b"])}, "array 'labels': .* has a control character in it"),
        ({"labels": LABELS.astype(object)}, "array 'labels': expected numbers or text, found Python objects"),
        ({"labels": np.array(3), "split": None, **MASKS}, "array 'train_mask': expected true or false for every node"),
        ({"labels": np.array(3)}, r"labels: expected one class \(5,\) or a row of labels"),
        ({"features": np.array(3.0)}, "features: expected a table"),
        ({"labels": MARKS * 2}, "labels: expected 0 or 1, found 2 as label 1 of node 0"),
        ({"labels": LABELS - 1}, "labels: expected -1 to 1, found -2 at node 2"),
        ({"classes": np.array(["x", "y"])}, "labels: expected -1 to 1, found 2 at node 0"),
        ({"classes": np.eye(2)}, "array 'classes': expected names"),
        ({"features": np.where(FEATURES == 7, np.nan, FEATURES)}, "features: node 3 has one that is not finite"),
        ({"times": TIMES + 0.5}, "times: expected a whole number, found .*5.5.* at node 0"),
        ({"split": np.array(["train"] * 5)}, "array 'split': node 0: expected training, validation, test or nothing"),
        (
            {"split": None, "train_mask": np.ones(5, bool), "val_mask": np.ones(5, bool)},
            "array 'val_mask': node 0 is in",
        ),
        ({"split": None, "test_mask": np.ones(3, bool)}, "array 'test_mask': expected true or false for every node"),
        ({"groups_land": np.eye(5)}, "array 'groups_land': expected whole numbers or text"),
        ({"groups_land": LANDS[:4]}, "groups 'land': expected a whole number per node"),
        ({"both_ways": np.array([1, 2])}, "array 'both_ways': expected true or false"),
    ],
)
def test_an_npz_that_is_no_graph_is_refused_with_the_field(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=f"own.npz: {reason}"):
        Npz(save_npz(tmp_path, **changes)).read()


def test_an_npz_that_claims_more_than_it_holds_takes_no_memory(tmp_path: Path) -> None:
    path = save_npz(tmp_path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000, 2), }"
    members["features.npy"] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(InputError, match=r"array 'features': shape .* needs 1600000000.* bytes, found"):
        Npz(path).read()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": None}, "nodes.csv: column 'id' is missing; found one, label"),
        ({"id": list("abcda")}, "nodes.csv: column 'id': row 5: expected an id of its own, found 'a'"),
        ({"edges": "source,target\na,b\nb,x\n"}, "edges.csv: column 'target': row 2: 'x' is no node of nodes.csv"),
        ({"edges": "from,to\na,b\n"}, "edges.csv: column 'source' is missing; found from, to"),
        ({"edges": "source,target\n"}, "edges.csv: expected a line of names and at least one row"),
        ({"edges": "source,target\na\n"}, "edges.csv: row 1: expected 2 values, found 1"),
        ({"edges": "source,target\na,b\na,b,c,d\n"}, "edges.csv: row 2: expected 2 values, found 4"),
        ({"label": None}, "nodes.csv: expected a column 'label', or columns 'label:NAME'; found one, time"),
        ({"label:x": [0] * 5}, "nodes.csv: expected a column 'label', or columns 'label:NAME'"),
        ({"label": ["a", "b", "", "a", "b"]}, "nodes.csv: column 'label': row 3: expected a class, or -1 for none"),
        (
            {"label": ["a", "NaN", "b", "a", "b"]},
            "column 'label': row 2: expected a class, or -1 for none, found 'NaN'",
        ),
        ({"label": None, "label:x": [0, 1, 1, 2, 0]}, "column 'label:x': row 4: expected 0 or 1, found '2'"),
        ({"label": None, "label:x": [0, 1, "", 1, 0]}, "column 'label:x': row 3: expected a number, found ''"),
        ({"one": [1, 2, "x", 4, 5]}, "nodes.csv: column 'one': row 3: expected a number, found 'x'"),
        ({"one": [1, 2, "nan", 4, 5]}, "nodes.csv: column 'one': row 3: expected a finite number, found 'nan'"),
        ({"one": [1, 2, "1e300", 4, 5]}, "nodes.csv: column 'one': row 3: expected a finite number, found '1e300'"),
        ({"one": None, "two": None}, "nodes.csv: no column of features"),
        ({"time": ["x", 1, 2, 3, 4]}, "column 'time': row 1: expected a whole number, or a date as 2024-01-31"),
        ({"time": [1, 2, "2024-01-31", 3, 4]}, "column 'time': row 3: expected a whole number like the first"),
        ({"time": ["2024-01-31"] * 4 + ["2024-02-30"]}, "column 'time': row 5: expected a date as 2024-01-31 like"),
        (
            {"part": ["train"] * 5},
            "column 'part': row 1: expected training, validation, test or nothing, found 'train'",
        ),
        (
            {"group:land": ["a", "", "b", "c", "d"]},
            "column 'group:land': row 2: expected the name of a group, found ''",
        ),
        ({"nodes": "id,label,id\na,b,c\n"}, "nodes.csv: column 3: expected a name of its own, found 'id'"),
        ({"nodes": "\xff"}, "nodes.csv: expected a line of names and at least one row"),
    ],
)
def test_tables_that_are_no_graph_are_refused_with_file_column_and_row(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        Csv(save_csv(tmp_path, **changes)).read()


def test_dates_become_days_and_words_classes(tmp_path: Path) -> None:
    dates = ["1970-01-01", "1970-03-01", "1969-12-31", "2000-01-01", "1970-01-02"]
    graph = Csv(save_csv(tmp_path, time=dates, label=["b", "a", "10", "b", "a"]) / "edges.csv").read()
    assert graph.times is not None
    assert graph.times.tolist() == [0, 59, -1, 10957, 1]
    assert (graph.classes, graph.labels.tolist()) == (("10", "a", "b"), [2, 1, 0, 2, 1])
    numbers = Csv(save_csv(tmp_path, label=[10, 9, 9, 100, 10])).read()
    assert (numbers.classes, numbers.labels.tolist()) == (("class 9", "class 10", "class 100"), [1, 0, 0, 2, 1])


def test_pyg_files_may_have_several_splits_and_hold_tensors_only(tmp_path: Path) -> None:
    masks = {name: torch.tensor(np.stack([~mask, mask], axis=1)) for name, mask in MASKS.items()}
    assert Pyg(save_pyg(tmp_path, **masks), mask=1).read().digest == expected()

    def refuse(reason: str, **changes: Any) -> None:
        with pytest.raises(InputError, match=f"own.pt: {reason}"):
            Pyg(save_pyg(tmp_path, **changes), mask=2 if masks.keys() <= changes.keys() else 0).read()

    refuse("'train_mask': no split 2, there are 2", **masks)
    refuse("'x' is missing; found 'edge_index, y", x=None)
    refuse("'x': expected a dense tensor", x=torch.tensor(FEATURES).to_sparse())
    refuse("'y': expected a dense tensor, found list", y=[1, 2])
    refuse("'x': claims 200,000,000,000 values", x=torch.zeros(1).expand(10**11, 2))
    refuse("edges: edge 3, 5 – 4, has an end outside", edge_index=torch.tensor(EDGES + 1))
    refuse("holds more than tensors, which is not read; save a Data object as", extra=Path("x"))
    torch.save([1], tmp_path / "own.pt")
    with pytest.raises(InputError, match="expected a dict of tensors, found list"):
        Pyg(tmp_path / "own.pt").read()
    (tmp_path / "own.pt").write_bytes(b"\x80\x02.")
    with pytest.raises(InputError, match=r"own\.pt: expected a file as torch\.save writes it; cannot be read"):
        Pyg(tmp_path / "own.pt").read()


def test_links_of_an_undirected_graphml_have_both_directions(tmp_path: Path) -> None:
    assert Graphml(save_graphml(tmp_path, directed=False)).read().digest == expected(both_ways=True)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_graphml_that_declares_anything_is_refused(tmp_path: Path, encoding: str) -> None:
    path = save_graphml(tmp_path)
    text = path.read_text().split("?>", 1)[1]
    bomb = '<!DOCTYPE g [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>{bomb}{text}'.encode(encoding))
    with pytest.raises(InputError, match=r"own.graphml: refused: declares a document type"):
        Graphml(path).read()


def test_a_graphml_that_is_no_graph_is_refused_with_node_and_attribute(tmp_path: Path) -> None:
    def refuse(reason: str, **changes: Any) -> None:
        with pytest.raises(InputError, match=f"own.graphml: {reason}"):
            Graphml(save_graphml(tmp_path, **changes)).read()

    refuse("node 'c': attribute 'label' is missing", label=[1, 1, None, 0, 0])
    refuse("column 'time': node 'b': expected a whole number like the first", time=["3", "x", "1", "1", "1"])
    refuse("column 'one': node 'd': expected a finite number, found 'nan'", one=[1.0, 2.0, 3.0, float("nan"), 5.0])
    path = save_graphml(tmp_path)
    path.write_text(path.read_text().replace('target="b"', 'target="ghost"'))
    with pytest.raises(InputError, match=r"own.graphml: node 'ghost': attribute .* is missing"):
        Graphml(path).read()
    path.write_text("<graphml><graph></graphml>")
    with pytest.raises(InputError, match=r"own.graphml: not a readable GraphML"):
        Graphml(path).read()
