"""Links and sets of graphs of the Open Graph Benchmark, read from folders in the form they are published in."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.datasets import open_graph
from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.graphs.link_set import LINKED, LinkSet
from skeleton_cgl.graphs.sources.ogb import Ogb
from tests.graphs.test_published import zipped

SIZES, COUNTS = [3, 1, 4], [2, 0, 3]
EDGES = [[0, 1], [1, 2], [3, 0], [1, 0], [2, 3]]
ATOMS = np.array([[118, 4, 11, 11, 9, 5, 5, 1, 1], *([[6, 0, 3, 5, 2, 0, 1, 0, 0]] * 7)])
BONDS = np.array([[4, 5, 1], [0, 0, 0], [1, 2, 1], [3, 0, 0], [0, 1, 0]])


def write_graphs(folder: Path, split: str, **changes: Any) -> Path:
    """Write the folders of three graphs; a change is a table of `raw` by name, None for none."""
    tables = {
        "num-node-list": [[size] for size in SIZES],
        "num-edge-list": [[count] for count in COUNTS],
        "edge": EDGES,
        "node-feat": ATOMS,
        "edge-feat": BONDS,
        "graph-label": [[0], [1], [0]],
        **{name.replace("_", "-"): rows for name, rows in changes.items()},
    }
    for name, rows in tables.items():
        if rows is not None:
            zipped(folder / "raw" / f"{name}.csv.gz", rows)
    for name, members in (("train", [2]), ("valid", [0]), ("test", [1])):
        zipped(folder / "split" / split / f"{name}.csv.gz", [[graph] for graph in members])
    return folder


def pairs_of(found: GraphSet, graph: int) -> set[tuple[int, ...]]:
    inside = found.edges[:, found.edge_starts[graph] : found.edge_starts[graph + 1]] - found.starts[graph]
    return {tuple(pair) for pair in inside.T.tolist()}


def test_molecules_have_kinds_of_atoms_and_bonds_in_both_directions(tmp_path: Path) -> None:
    found = open_graph(write_graphs(tmp_path / "molhiv", "scaffold"))
    assert isinstance(found, GraphSet)
    assert (found.name, found.sizes.tolist(), found.labels.tolist()) == ("ogbg-molhiv", SIZES, [0, 1, 0])
    assert found.split is not None
    assert found.split.tolist() == [1, 2, 0]
    assert (found.codes, found.edge_codes) == ((119, 5, 12, 12, 10, 6, 6, 2, 2), (5, 6, 2))
    assert (found.features == ATOMS).all()
    assert pairs_of(found, 0) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert pairs_of(found, 1) == set()
    assert pairs_of(found, 2) == {(3, 0), (0, 3), (1, 0), (0, 1), (2, 3), (3, 2)}
    assert found.edge_features is not None
    bond = {tuple(pair): row for pair, row in zip(found.edges.T.tolist(), found.edge_features.tolist(), strict=True)}
    assert bond[7, 4] == bond[4, 7] == BONDS[2].tolist()


def test_labels_of_several_columns_may_be_missing(tmp_path: Path) -> None:
    found = Ogb(write_graphs(tmp_path, "scaffold", graph_label="0,1\n,0\n1,nan\n")).read()
    assert isinstance(found, GraphSet)
    np.testing.assert_array_equal(found.labels, [[0, 1], [np.nan, 0], [1, np.nan]])
    assert found.name == "ogbg-mol"


def test_ppa_has_degrees_weights_of_edges_and_species_where_they_are_told(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).random((5, 7)).round(3)
    write_graphs(tmp_path, "species", node_feat=None, edge_feat=weights, graph_label=[[1], [2], [0]])
    found = Ogb(tmp_path).read()
    assert isinstance(found, GraphSet)
    assert (found.name, found.labels.tolist(), dict(found.groups)) == ("ogbg-ppa", [1, 2, 0], {})
    degrees = [1, 2, 1, 0, 2, 1, 1, 2]
    assert found.features.tolist() == [[degree, degree] for degree in degrees]
    assert found.edge_features is not None
    assert found.edge_features.shape == (10, 7)
    assert np.sort(found.edge_features[:, 0]) == pytest.approx(np.sort(np.repeat(weights[:, 0], 2)))
    zipped(tmp_path / "mapping" / "graphidx2speciesid.csv.gz", "graph idx,species id\n0,9606\n1,10090\n2,9606\n")
    told = Ogb(tmp_path, dataset="ppa").read()
    assert told.groups["species"].names == ("10090", "9606")
    assert told.groups["species"].numbers.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("edge.csv.gz: row 3: an end is outside the nodes 0–3 of graph 2", {"edge": [*EDGES[:2], [4, 0], *EDGES[3:]]}),
        ("edge.csv.gz: row 2: an end is outside the nodes 0–2 of graph 0", {"edge": [[0, 1], [1, 3], *EDGES[2:]]}),
        ("edge.csv.gz: expected 5 rows, one per edge, found 4", {"edge": EDGES[1:]}),
        ("num-edge-list.csv.gz: expected 3 rows, one per graph, found 2", {"num_edge_list": [[2], [3]]}),
        ("num-node-list or num-edge-list: a number is negative", {"num_edge_list": [[2], [-1], [4]]}),
        ("starts: graph 1 has no nodes", {"num_node_list": [[3], [0], [5]]}),
        ("node-feat.csv.gz: expected 8 rows, one per node, found 7", {"node_feat": ATOMS[1:]}),
        ("node-feat.csv.gz: expected 9 columns, found 8", {"node_feat": ATOMS[:, 1:]}),
        ("features: column 0: expected a whole number from 0 to 118, found 119", {"node_feat": ATOMS + 1}),
        ("edge-feat.csv.gz: expected 5 rows, one per edge, found 4", {"edge_feat": BONDS[1:]}),
        ("edge_features: 2 columns, but kinds of 3", {"edge_feat": BONDS[:, 1:]}),
        ("graph-label.csv.gz: expected 3 rows, one per graph, found 2", {"graph_label": [[0], [1]]}),
        ("labels: expected a whole number, found 0.5.* at graph 1", {"graph_label": [[0], [0.5], [1]]}),
        ("node-feat.csv.gz: no such file or folder; published at ogb", {"node_feat": None}),
    ],
)
def test_sets_of_graphs_that_do_not_fit_are_refused(tmp_path: Path, reason: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=reason):
        Ogb(write_graphs(tmp_path, "scaffold", **changes)).read()


def test_parts_and_species_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write_graphs(tmp_path, "species", node_feat=None, edge_feat=[[1.0] * 7] * 5)
    for name, text, reason in (
        ("mapping/graphidx2speciesid.csv.gz", "graph idx,kind\n0,1\n", "column 'species id' is missing"),
        ("mapping/graphidx2speciesid.csv.gz", "species id\n1\n", "expected 3 rows, one per graph, found 1"),
        ("split/species/test.csv.gz", "3\n", "test.csv.gz: row 1: 3 is outside the graphs 0–2"),
        ("split/species/test.csv.gz", "2\n", "test.csv.gz: graph 2 is in another part already"),
    ):
        zipped(tmp_path / name, text)
        with pytest.raises(InputError, match=reason):
            Ogb(tmp_path).read()
        (tmp_path / name).unlink()
        if name.startswith("split"):
            zipped(tmp_path / name, "1\n")
    with pytest.raises(InputError, match="both_ways: of graphs of nodes alone"):
        Ogb(tmp_path, both_ways=False).read()


LINKS = {"train": [[0, 1], [1, 0], [2, 3]], "valid": [[3, 4]], "test": [[0, 4], [0, 4]]}
YEARS = {"train": [1990, 1991, 1992], "valid": [2018], "test": [2019, 2019]}
APART = {"valid": [[0, 2], [4, 3]], "test": [[1, 2]]}


def write_collab(folder: Path, kind: Any = torch.tensor, old: bool = False, **changes: Any) -> Path:
    """Write the folders of a few links; a change is what a part holds, by the part's name."""
    zipped(folder / "raw" / "num-node-list.csv.gz", [[5]])
    zipped(folder / "raw" / "node-feat.csv.gz", np.arange(10).reshape(5, 2) / 4)
    (folder / "split" / "time").mkdir(parents=True, exist_ok=True)
    for part in LINKS:
        content = {"edge": LINKS[part], "weight": [1] * len(LINKS[part]), "year": YEARS[part]}
        if part in APART:
            content["edge_neg"] = APART[part]
        content = changes.get(part, {name: kind(rows) for name, rows in content.items()})
        torch.save(content, folder / "split" / "time" / f"{part}.pt", _use_new_zipfile_serialization=not old)
    return folder


@pytest.mark.parametrize(("kind", "old"), [(torch.tensor, False), (np.array, False), (np.array, True)])
def test_collab_has_the_links_of_its_split_by_year(tmp_path: Path, kind: Any, old: bool) -> None:
    found = open_graph(write_collab(tmp_path, kind, old))
    assert isinstance(found, LinkSet)
    assert (found.name, found.nodes, found.directed, found.classes) == ("ogbl-collab", 5, False, (LINKED,))
    assert found.ends.T.tolist() == [link for links in LINKS.values() for link in links]
    assert found.times is not None
    assert found.times.tolist() == [year for years in YEARS.values() for year in years]
    assert found.split is not None
    assert found.split.tolist() == [0, 0, 0, 1, 2, 2]
    assert np.asarray(found.features).tolist() == (np.arange(10).reshape(5, 2) / 4).tolist()
    assert found.negatives is not None
    assert found.negatives_split is not None
    # The pair 4 – 3 is a link the other way round.
    assert found.negatives.T.tolist() == [[0, 2], [1, 2]]
    assert found.negatives_split.tolist() == [1, 2]
    assert found.notes == ("1 published pairs without a link have one in another part, and are left out",)


def test_a_split_of_links_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    edge, year = torch.tensor([[0, 1]]), torch.tensor([2000])
    for part, content, reason in (
        ("train", [edge], "train.pt: expected a dict of tensors, found list"),
        ("train", {"edge": edge}, "train.pt: 'year' is missing; found 'edge'"),
        (
            "train",
            {"edge": edge[0], "year": year},
            r"train.pt: 'edge': expected whole numbers \(L, 2\), found int64 \(2,\)",
        ),
        ("train", {"edge": edge, "year": year[:0]}, r"train.pt: 'year': expected whole numbers \(L,\), one per link"),
        ("train", {"edge": edge.float(), "year": year}, "train.pt: 'edge': expected whole numbers"),
        ("test", {"edge": edge, "year": year}, "test.pt: 'edge_neg' is missing"),
        ("train", {"edge": edge + 4, "year": year}, "links: edge 0, 4 – 5, has an end outside the nodes 0–4"),
        ("train", {"edge": Path("x"), "year": year}, "train.pt: refused: the pickle asks for pathlib"),
    ):
        with pytest.raises(InputError, match=reason):
            Ogb(write_collab(tmp_path, **{part: content})).read()
    write_collab(tmp_path)
    zipped(tmp_path / "raw" / "num-node-list.csv.gz", [[6]])
    with pytest.raises(InputError, match=r"node-feat.csv.gz: expected 6 rows, one per node, found 5"):
        Ogb(tmp_path).read()
    (tmp_path / "split" / "time" / "valid.pt").write_bytes(b"")
    zipped(tmp_path / "raw" / "num-node-list.csv.gz", [[5]])
    with pytest.raises(InputError, match=r"valid.pt: not a readable pickle"):
        Ogb(tmp_path).read()
