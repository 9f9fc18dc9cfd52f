"""The reader of molecules in a table of SMILES: columns, labels, what is refused, set aside or left out, real files."""

import csv
import gzip
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.datasets import open_graph
from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.graphs.sources.smiles import Smiles
from tests.shared_data import FOLDER, needs

MOLECULES = FOLDER / "molecules"
ALUMINIUM = "O=C1O[Al]23(OC1=O)(OC(=O)C(=O)O2)OC(=O)C(=O)O3"


def write(folder: Path, *lines: str, name: str = "own.csv") -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def graph_set(path: Path, **options: Any) -> GraphSet:
    found = open_graph(path, options)
    assert isinstance(found, GraphSet)
    return found


def test_bonds_go_both_ways_and_a_column_gives_one_class(tmp_path: Path) -> None:
    found = graph_set(write(tmp_path, "mol_id,SMILES,active,note", "7,CCO,10,a", "8,C1CC1,9,b", "9,[Na+].[Cl-],10,c"))
    assert (found.name, found.classes, found.texts) == ("own", ("9", "10"), ("CCO", "C1CC1", "[Na+].[Cl-]"))
    assert found.labels.tolist() == [1, 0, 1]
    assert found.starts.tolist() == [0, 3, 6, 8]
    assert found.edges.T.tolist() == [[1, 0], [0, 1], [2, 1], [1, 2], [4, 3], [5, 3], [3, 4], [5, 4], [3, 5], [4, 5]]
    assert found.features.tolist() == [[1, 1], [2, 2], [1, 1], *[[2, 2]] * 3, [0, 0], [0, 0]]
    assert found.notes == ("columns that are not read: mol_id, note",)


def test_several_columns_give_labels_of_which_some_are_not_known(tmp_path: Path) -> None:
    path = write(tmp_path, "a,smiles,b,c", "0,C,1.0,", "1,CC,,1", ",CCC,0,0")
    found = graph_set(path)
    assert found.classes == ("a", "b", "c")
    assert found.labels.dtype == np.float32
    assert np.array_equal(found.labels, [[0, 1, np.nan], [1, np.nan, 1], [np.nan, 0, 0]], equal_nan=True)
    some = graph_set(path, labels=["c", "a"])
    assert np.array_equal(some.labels, found.labels[:, [2, 0]], equal_nan=True)
    assert (some.classes, some.notes) == (("c", "a"), ())


def test_features_have_the_widths_that_are_published(tmp_path: Path) -> None:
    path = write(tmp_path, "smiles,y", "c1ccccc1O,0", "C/C=C/C#N,1")
    flag = np.array([1] * 6 + [0] * 6)
    found = {
        (features, aromatic): graph_set(path, features=features, aromatic=aromatic)
        for features, aromatic in (
            *(("degree", each) for each in (None, True, False)),
            *(("atoms", each) for each in (None, False)),
            ("ogb", None),
        )
    }
    assert [each.features.shape[1] for each in found.values()] == [2, 3, 2, 74, 73, 9]
    assert np.array_equal(found["degree", True].features[:, 2], flag)
    assert np.array_equal(found["atoms", None].features[:, 68], flag)
    ogb = found["ogb", None]
    assert (ogb.codes, ogb.edge_codes) == ((119, 5, 12, 12, 10, 6, 6, 2, 2), (5, 6, 2))
    assert all(each.edge_features is None for kind, each in found.items() if kind[0] != "ogb")
    assert ogb.edge_features is not None
    kinds = dict(zip(map(tuple, ogb.edges.T.tolist()), ogb.edge_features.tolist(), strict=True))
    assert all(kinds[source, target] == kinds[target, source] for source, target in kinds)
    # Aromatic, the bond of the hydroxyl, the double bond that is E, the triple bond.
    assert [kinds[pair] for pair in ((0, 1), (5, 6), (8, 9), (10, 11))] == [[3, 0, 1], [0, 0, 1], [1, 2, 1], [2, 0, 1]]


def test_small_classes_are_left_out_with_their_graphs(tmp_path: Path) -> None:
    path = write(tmp_path, "smiles,y", "C,5", "CC,3", "CCC,5", "CCCC,4", "CCCCC,3", "C1CC1,5")
    found = graph_set(path, fewest=2)
    assert (found.classes, found.labels.tolist()) == (("3", "5"), [1, 0, 1, 0, 1])
    assert found.texts == ("C", "CC", "CCC", "CCCCC", "C1CC1")
    assert found.sizes.tolist() == [1, 2, 3, 5, 3]
    assert graph_set(path, fewest=3).texts == ("C", "CCC", "C1CC1")
    with pytest.raises(InputError, match=r"fewest: no class of .*own\.csv has 4 graphs; the largest 3"):
        graph_set(path, fewest=4)


def test_a_molecule_set_aside_does_not_count_for_its_class(tmp_path: Path) -> None:
    path = write(tmp_path, "smiles,y", "C,0", "xx,0", "CC,1", "CCC,1")
    found = graph_set(path, fewest=2, skip_bad=True)
    assert (found.classes, found.texts) == (("1",), ("CC", "CCC"))


def test_domains_are_groups_of_scaffolds_among_the_molecules_kept(tmp_path: Path) -> None:
    rows = ["Cc1ccccc1,0", "C,9", "CCC,0", "Oc1ccccc1,1", "OC1CC1,0", "xx,1", "CC1CC1,1"]
    found = graph_set(write(tmp_path, "smiles,y", *rows), fewest=2, skip_bad=True, domains=3)
    groups = found.groups["scaffold"]
    assert groups.names == ("scaffolds 0", "scaffolds 1", "scaffolds 2")
    assert found.texts == ("Cc1ccccc1", "CCC", "Oc1ccccc1", "OC1CC1", "CC1CC1")
    assert groups.numbers.tolist() == [1, 0, 1, 2, 2]
    assert graph_set(tmp_path / "own.csv", skip_bad=True).groups == {}


def test_what_is_no_molecule_is_refused_by_its_row_or_set_aside(tmp_path: Path) -> None:
    path = write(tmp_path, "smiles,y", "", "C,0", "", "xx,1", "", f"{ALUMINIUM},1", ",0")
    with pytest.raises(InputError) as refused:
        graph_set(path)
    # Rows are counted below the names, with the empty ones.
    assert str(refused.value) == f"{path}: row 4: column 'smiles': not a molecule: 'xx'"
    found = graph_set(path, skip_bad=True)
    assert found.texts == ("C", ALUMINIUM)
    assert found.notes == (
        "2 molecules set aside, no molecule: rows 4, 7",
        "1 molecule read without the checks of RDKit that refuse them, such as of valence: row 6",
    )


@pytest.mark.parametrize(
    ("lines", "options", "reason"),
    [
        (["smiles,y", ",0"], {}, "own.csv: row 1: column 'smiles': a molecule without atoms: ''"),
        (["smiles,y", "CC ethane,0"], {}, "row 1: column 'smiles': not a molecule: 'CC ethane'"),
        (["smiles,y", "xx,0"], {"skip_bad": True}, "column 'smiles': no molecule in it"),
        (["smiles,y", "C,0", "C,"], {}, "row 2: column 'y': expected a number, found nothing"),
        (["smiles,y", "C,0", "", "C,no"], {"labels": ["y"]}, "row 3: column 'y': expected a number, found 'no'"),
        (["smiles,y", "C,inf"], {"labels": ["y"]}, "row 1: column 'y': expected a number, found 'inf'"),
        (["smiles,y,z", "C,0,1", "CC,1,2"], {}, "own.csv: labels: expected 0 or 1, found 2.0 as label 1 of graph 1"),
        (["smiles,y", "C,no"], {}, "own.csv: no column of numbers beside the SMILES"),
        (["smiles,mol_id", "C,1"], {}, "own.csv: no column of numbers beside the SMILES"),
        (["a,y", "C,0"], {}, "own.csv: expected one column called smiles, found a, y"),
        (["smiles,SMILES,y", "C,C,0"], {}, "expected one column called smiles, found smiles, SMILES"),
        (["smiles,y", "C,0"], {"smiles": "x"}, "own.csv: column 'x' is missing; found smiles, y"),
        (["smiles,y", "C,0"], {"labels": ["x"]}, "own.csv: column 'x' is missing; found smiles, y"),
        (["smiles,y", "C,0"], {"labels": ["smiles"]}, "labels: 'smiles' is the column of SMILES"),
        (["smiles,y", "C,0"], {"labels": ["y", "y"]}, "labels: a column is named twice"),
        (["smiles,y", "C,0"], {"labels": "y"}, "labels: expected names of columns, found 'y'"),
        (["smiles,y", "C,0"], {"labels": []}, "labels: expected names of columns"),
        (["smiles,y", "C,0"], {"smiles": 3}, "smiles: expected names of columns"),
        (["smiles,y", "C,0"], {"features": "atom"}, "features: unknown 'atom'; did you mean 'atoms'"),
        (["smiles,y", "C,0"], {"features": "atoms", "aromatic": True}, "aromatic: true: the features 'atoms' tell it"),
        (["smiles,y", "C,0"], {"features": "ogb", "aromatic": True}, "aromatic: true: the features 'ogb' tell it"),
        (["smiles,y", "C,0"], {"features": "ogb", "aromatic": False}, "aromatic: false: the features 'ogb' tell it by"),
        (["smiles,y", "C,0"], {"aromatic": "no"}, "aromatic: expected true or false, found 'no'"),
        (["smiles,y", "C,0"], {"fewest": 0}, "fewest: expected a whole number from 1, found 0"),
        (["smiles,y,z", "C,0,1"], {"fewest": 2}, "fewest: is of classes, but .* with 2 columns of labels"),
        (["smiles,y", "C,0"], {"domains": 1}, "domains: expected a whole number from 2, found 1"),
        (["smiles,y", "C,0", "CC,0"], {"domains": 2}, "domains: expected fewer than 2: 2 molecules have 1 scaffolds"),
        (["smiles,y", "C,0"], {"skip": True}, "unknown parameter 'skip'; did you mean 'skip_bad'"),
        (["smiles,y", "C,0,1"], {}, "own.csv: row 1: expected 2 values, found 3"),
        (["smiles,y"], {}, "own.csv: expected a line of names and at least one row"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(
    tmp_path: Path, lines: list[str], options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        open_graph(write(tmp_path, *lines), {"name": "smiles", **options})


def test_a_table_with_a_column_of_smiles_is_recognised(tmp_path: Path) -> None:
    for name, names, expected in (
        ("a.csv", "smiles,y", True),
        ("b.csv", "y,Cano_SMILES", True),
        ("c.csv", '"y","smiles"', True),
        ("d.csv", "source,target", False),
        ("e.csv", "facesmiles,y", False),
        ("f.txt", "smiles,y", False),
    ):
        assert Smiles.recognises(write(tmp_path, names, "C,0", name=name)) is expected
    packed = tmp_path / "g.csv.gz"
    packed.write_bytes(gzip.compress(b"smiles,y\nC,0\nCC,1\n"))
    assert (graph_set(packed).name, len(graph_set(packed))) == ("g", 2)
    packed.write_bytes(b"smiles,y\n")
    assert not Smiles.recognises(packed)
    assert not Smiles.recognises(tmp_path)


def test_without_rdkit_a_table_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(InputError, match=r"^[^\n]*pip install 'skeleton_cgl\[molecules\]'[^\n]*$"):
        graph_set(write(tmp_path, "smiles,y", "C,0"))


@needs("molecules")
@pytest.mark.parametrize("fewest", [20, 21])
def test_aromaticity_has_the_published_atoms_and_bonds(fewest: int) -> None:
    found = graph_set(MOLECULES / "aromatic_atom_count.csv", fewest=fewest, aromatic=True)
    assert found.classes == ("0", "4", "5", "6", *(str(count) for count in range(8, 34)))
    assert (len(found), found.starts[-1], found.edges.shape[1]) == (3868, 115061, 253018)
    # The label is the number of aromatic atoms, but for three molecules of fused rings, which RDKit once saw otherwise.
    counts = np.add.reduceat(found.features[:, 2], found.starts[:-1])
    assert (counts != np.array([int(name) for name in found.classes])[found.labels]).sum() <= 5


@needs("molecules")
@pytest.mark.parametrize(
    ("name", "expected", "partly"),
    [("tox21", (7831, 12, 145459, 302190), "8 molecules read without"), ("sider", (1427, 27, 48006, 100912), None)],
)
def test_tox21_and_sider_have_the_published_atoms_and_bonds(
    name: str, expected: tuple[int, ...], partly: str | None
) -> None:
    found = graph_set(MOLECULES / f"{name}.csv", features="atoms")
    assert (*found.labels.shape, found.starts[-1], found.edges.shape[1]) == expected
    assert any(note.startswith(partly) for note in found.notes) if partly else not found.notes
    assert found.features.shape[1] == 74


def some_of_hiv(path: Path) -> Iterable[list[str]]:
    """One in forty molecules, and all that RDKit refuses when it checks them, with the empty lines between."""
    with path.open(newline="") as file:
        rows = csv.reader(file)
        yield next(rows)
        for number, row in enumerate(each for each in rows if each):
            if number % 40 == 0 or number in (137, 987, 12882, 18293, 30784, 30785, 35728):
                yield []
                yield row


@needs("molecules")
def test_molecules_of_hiv_are_read_whole_or_partly_and_none_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "HIV.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(some_of_hiv(MOLECULES / "HIV.csv"))
    found = graph_set(path, features="ogb", domains=5)
    assert found.classes == ("0", "1")
    assert any(note.startswith("7 molecules read without the checks") for note in found.notes)
    assert found.texts is not None
    raw = [Chem.MolFromSmiles(text, sanitize=False) for text in found.texts]
    assert len(raw) == 1029 + 7
    assert found.sizes.tolist() == [molecule.GetNumAtoms() for molecule in raw]
    assert np.diff(found.edge_starts).tolist() == [2 * molecule.GetNumBonds() for molecule in raw]
    sizes = np.bincount(found.groups["scaffold"].numbers)
    assert len(sizes) == 5
    assert np.abs(sizes - len(raw) / 5).max() < 60
