"""Molecules by RDKit: what is told of atoms and bonds, scaffolds and their domains, drawings."""

import subprocess
import sys
from collections import Counter
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rdkit import Chem

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.molecules import (
    aromatic_flags,
    atom_kinds,
    atom_measures,
    bond_kinds,
    degrees,
    draw,
    read_molecules,
    scaffold_domains,
)

# The sections of CGLB's vector by where they end, the elements in its sequence up to the thirtieth, hydrogen.
ELEMENTS = "C N O S F Si P Cl Br Mg Na Ca Fe As Al I B V K Tl Yb Sb Sn Ag Pd Co Se Ti Zn H"
ENDS = {"element": 43, "degree": 54, "implicit": 61, "charge": 62, "radicals": 63, "SP": 68, "aromatic": 69, "H": 74}
HYBRIDISATIONS = ("SP", "SP2", "SP3", "SP3D", "SP3D2")

# Six bonds of aluminium, five of boron, and a ring of five that cannot be written as single and double bonds.
PARTLY = (
    "O=C1O[Al]23(OC1=O)(OC(=O)C(=O)O2)OC(=O)C(=O)O3",
    "Cc1ccc([B-2]2(c3ccc(C)cc3)=NCCO2)cc1",
    "CC(c1ccccn1)=[N+]1[N-]C(N)=[S+][AlH3-]12[OH+]B(c1ccccc1)[OH+]2",
    "c1cccc1",
)
SOME = ("c1ccccc1", "CCO", "[NH4+].[Cl-]", "C[C@H](N)C(=O)O", "c1ccc2[nH]ccc2c1", "FC(F)(F)/C=C/C#N", *PARTLY)


def told(row: np.ndarray) -> tuple[str | None, int | None, int | None, float, float, str | None, bool, int | None]:
    """What a vector of CGLB says: element, degree, implicit valence, charge, radicals, hybridisation, aromatic, H."""
    parts = dict(zip(ENDS, np.split(row, [*ENDS.values()][:-1]), strict=True))

    def place(name: str) -> int | None:
        assert set(parts[name].tolist()) <= {0, 1}
        assert parts[name].sum() <= 1
        return int(np.argmax(parts[name])) if parts[name].any() else None

    element, hybridisation = place("element"), place("SP")
    return (
        None if element is None else ELEMENTS.split()[element],
        place("degree"),
        place("implicit"),
        parts["charge"].item(),
        parts["radicals"].item(),
        None if hybridisation is None else HYBRIDISATIONS[hybridisation],
        bool(parts["aromatic"].item()),
        place("H"),
    )


@pytest.mark.parametrize(
    ("smiles", "atom", "expected"),
    [
        ("c1ccccc1", 3, ("C", 2, 1, 0, 0, "SP2", True, 1)),
        ("CCO", 0, ("C", 1, 3, 0, 0, "SP3", False, 3)),
        ("CCO", 2, ("O", 1, 1, 0, 0, "SP3", False, 1)),
        ("C#N", 1, ("N", 1, 0, 0, 0, "SP", False, 0)),
        # Hydrogens in brackets are there, but not implicit.
        ("[NH4+]", 0, ("N", 0, 0, 1, 0, "SP3", False, 4)),
        ("[O-]C=O", 0, ("O", 1, 0, -1, 0, "SP2", False, 0)),
        ("[CH3]", 0, ("C", 0, 0, 0, 1, "SP3", False, 3)),
        ("[O][O]", 0, ("O", 1, 0, 0, 1, "SP3", False, 0)),
        ("FP(F)(F)(F)F", 1, ("P", 5, 0, 0, 0, "SP3D", False, 0)),
        ("FS(F)(F)(F)(F)F", 1, ("S", 6, 0, 0, 0, "SP3D2", False, 0)),
        ("[Al](C)(C)C", 0, ("Al", 3, 0, 0, 0, "SP2", False, 0)),
        # A hydrogen that is written is an atom; s alone is none of the five; uranium is no known element.
        ("[H]O[H]", 0, ("H", 1, 0, 0, 0, None, False, 0)),
        ("[U+6]", 0, (None, 0, 0, 6, 0, None, False, 0)),
    ],
)
def test_cglb_tells_of_an_atom_what_chemistry_does(smiles: str, atom: int, expected: tuple[object, ...]) -> None:
    assert told(atom_measures(read_molecules([smiles]))[atom]) == expected


def test_without_the_flag_only_its_column_is_gone() -> None:
    molecules = read_molecules(SOME)
    whole = atom_measures(molecules)
    assert whole.shape == (molecules.starts[-1], 74)
    assert np.array_equal(atom_measures(molecules, flag=False), np.delete(whole, 68, axis=1))
    assert np.array_equal(aromatic_flags(molecules)[:, 0], whole[:, 68])
    assert whole[:, 68].any()


@pytest.mark.parametrize(
    ("smiles", "atom", "expected"),
    [
        # Number less one, chirality, degree with hydrogens, charge from -5, hydrogens, radicals, SP…, aromatic, ring.
        ("c1ccccc1", 0, (5, 0, 3, 5, 1, 0, 1, 1, 1)),
        ("CCO", 1, (5, 0, 4, 5, 2, 0, 2, 0, 0)),
        ("C1CC1", 0, (5, 0, 4, 5, 2, 0, 2, 0, 1)),
        ("[NH4+]", 0, (6, 0, 4, 6, 4, 0, 2, 0, 0)),
        ("[CH3]", 0, (5, 0, 3, 5, 3, 1, 2, 0, 0)),
        ("N[C@@H](C)C(=O)O", 1, (5, 1, 4, 5, 1, 0, 2, 0, 0)),
        ("N[C@H](C)C(=O)O", 1, (5, 2, 4, 5, 1, 0, 2, 0, 0)),
        # Others: no element, a charge above five; the s of a lone ion is none of the five hybridisations.
        ("*C", 0, (118, 0, 1, 5, 0, 0, 5, 0, 0)),
        ("[Mo+6]", 0, (41, 0, 0, 11, 0, 0, 5, 0, 0)),
        ("[Na+]", 0, (10, 0, 0, 6, 0, 0, 5, 0, 0)),
    ],
)
def test_ogb_tells_of_an_atom_what_chemistry_does(smiles: str, atom: int, expected: tuple[int, ...]) -> None:
    kinds, codes = atom_kinds(read_molecules([smiles]))
    assert codes == (119, 5, 12, 12, 10, 6, 6, 2, 2)
    assert tuple(kinds[atom]) == expected


@pytest.mark.parametrize(
    ("smiles", "bond", "expected"),
    [
        # Single, double, triple, aromatic, other; none, Z, E, cis, trans, other; conjugated.
        ("CC", 0, (0, 0, 0)),
        ("C=O", 0, (1, 0, 0)),
        ("C#N", 0, (2, 0, 0)),
        ("c1ccccc1", 0, (3, 0, 1)),
        ("C=CC=C", 1, (0, 0, 1)),
        ("C/C=C\\C", 1, (1, 1, 0)),
        ("C/C=C/C", 1, (1, 2, 0)),
        ("N->[Fe]", 0, (4, 0, 0)),
    ],
)
def test_ogb_tells_of_a_bond_what_chemistry_does(smiles: str, bond: int, expected: tuple[int, ...]) -> None:
    kinds, codes = bond_kinds(read_molecules([smiles]))
    assert codes == (5, 6, 2)
    assert tuple(kinds[bond]) == expected


def rows_of(smiles: str) -> Counter[tuple[object, ...]]:
    """What is told of atoms, and of bonds with their ends, whatever their sequence."""
    molecules = read_molecules([smiles])
    # Which way round a centre is written depends on the sequence of its neighbours.
    kinds = np.delete(atom_kinds(molecules)[0], 1, axis=1)
    atoms = [*map(tuple, np.concatenate([degrees(molecules), atom_measures(molecules), kinds], axis=1).tolist())]
    rows: Counter[tuple[object, ...]] = Counter(atoms)
    for (begin, end), kind in zip(molecules.bonds.T.tolist(), bond_kinds(molecules)[0].tolist(), strict=True):
        rows[(*sorted([atoms[begin], atoms[end]]), *kind)] += 1
    return rows


@pytest.mark.parametrize("smiles", ["OCC", *SOME[3:6], "CC[N+](C)(C)C.[Cl-]"])
def test_what_is_told_does_not_depend_on_the_sequence_in_which_atoms_are_written(smiles: str) -> None:
    others = set(Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(smiles), 8, randomSeed=1)) - {smiles}
    assert others
    assert all(rows_of(other) == rows_of(smiles) for other in others)


def test_degrees_count_the_bonds_of_every_atom() -> None:
    molecules = read_molecules(SOME)
    expected = np.bincount(molecules.bonds.ravel(), minlength=molecules.starts[-1])
    assert np.array_equal(degrees(molecules), np.stack([expected, expected], axis=1))


def test_some_molecules_are_what_they_are_alone() -> None:
    which = np.arange(len(SOME)) % 3 != 1
    chosen = read_molecules(SOME, scaffolds=True).chosen(which)
    alone = read_molecules([smiles for smiles, is_chosen in zip(SOME, which, strict=True) if is_chosen], scaffolds=True)
    for name in ("starts", "bonds", "parsed", "partly"):
        assert np.array_equal(getattr(chosen, name), getattr(alone, name))
    assert chosen.scaffolds == alone.scaffolds
    for each, other in ((chosen.atoms, alone.atoms), (chosen.bond_kinds, alone.bond_kinds)):
        assert each.keys() == other.keys()
        assert all(np.array_equal(each[name], other[name]) for name in each)


def test_what_only_the_checks_refuse_is_read_with_rings_aromaticity_and_hybridisation() -> None:
    molecules = read_molecules(PARTLY, scaffolds=True)
    assert molecules.parsed.all()
    assert molecules.partly.all()
    assert np.diff(molecules.starts).tolist() == [
        Chem.MolFromSmiles(smiles, sanitize=False).GetNumAtoms() for smiles in PARTLY
    ]
    flags = np.add.reduceat(molecules.atoms["aromatic"], molecules.starts[:-1])
    assert flags.tolist() == [0, 12, 12, 5]
    boron = atom_kinds(molecules)[0][molecules.starts[1] :]
    # The methyl group, then the carbon of the ring that bears it.
    assert boron[:2].tolist() == [[5, 0, 4, 5, 3, 0, 2, 0, 0], [5, 0, 3, 5, 0, 0, 1, 1, 1]]
    assert all(molecules.scaffolds)
    assert np.isfinite(atom_measures(molecules)).all()


def test_what_is_no_molecule_has_no_atoms_and_moves_no_other(capfd: pytest.CaptureFixture[str]) -> None:
    molecules = read_molecules(["CCO", "no molecule", "", "C1CC", "c1ccccc1"])
    assert np.diff(molecules.starts).tolist() == [3, 0, 0, 0, 6]
    assert molecules.parsed.tolist() == [True, False, True, False, True]
    assert not molecules.partly.any()
    assert molecules.bonds.min(axis=1).tolist() == [0, 1]
    assert molecules.bonds[:, 2:].min() == 3
    assert capfd.readouterr() == ("", "")


def test_a_scaffold_is_rings_and_what_links_them() -> None:
    smiles = ["CCCO", "Cc1ccccc1", "Oc1ccccc1CCN", "CC(c1ccccc1)C1CC1", "C[C@H]1CCNC1"]
    found = read_molecules(smiles, scaffolds=True).scaffolds
    expected = ["", "c1ccccc1", "c1ccccc1", "c1ccccc1CC1CC1", "C1CCNC1"]
    assert found == tuple(Chem.CanonSmiles(each) if each else "" for each in expected)
    assert read_molecules(smiles).scaffolds == ("",) * 5


def test_scaffolds_become_domains_from_the_commonest_down() -> None:
    # 10 molecules in 2 domains: a (4), then c before b as it begins later, which ends at 6 ≥ 5; b and d are left.
    assert scaffold_domains([*"aabbaaccde"], 2).tolist() == [1, 1, 0, 0, 1, 1, 1, 1, 0, 0]
    assert scaffold_domains([*"aabbaaccde"], 3).tolist() == [2, 2, 1, 1, 2, 2, 1, 1, 0, 0]


def cut(scaffolds: list[str], domains: int) -> list[int] | None:
    """The rule word by word: None where a domain is left empty."""
    groups = Counter(scaffolds)
    sequence = sorted(groups, key=lambda name: (groups[name], scaffolds.index(name)), reverse=True)
    ends = list(accumulate(groups[name] for name in sequence))
    domain_of: dict[str, int] = {}
    for k in range(1, domains + 1):
        last = next(place for place, end in enumerate(ends) if end >= k * len(scaffolds) / domains)
        taken = [name for name in sequence[: last + 1] if name not in domain_of]
        if not taken:
            return None
        domain_of.update(dict.fromkeys(taken, domains - k))
    return [domain_of[name] for name in scaffolds]


def test_domains_are_cut_where_the_rule_says() -> None:
    generator = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        scaffolds = [str(each) for each in generator.zipf(1.6, size=generator.integers(5, 80)) % 40]
        domains = int(generator.integers(2, 8))
        expected = cut(scaffolds, domains)
        if expected is None:
            refused += 1
            with pytest.raises(InputError, match=f"domains: expected fewer than {domains}: "):
                scaffold_domains(scaffolds, domains)
        else:
            assert scaffold_domains(scaffolds, domains).tolist() == expected
    assert 20 < refused < 180


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_molecules_are_drawn_in_rows_of_five_partly_read_ones_too(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"drawn{suffix}"
    draw(SOME, [f"class {place}" for place in range(len(SOME))], path)
    if suffix == ".png":
        with Image.open(path) as picture:
            assert picture.size == (5 * 240, 2 * 240)
            shades = np.asarray(picture.convert("L"))
        panels = shades.reshape(2, 240, 5, 240).min(axis=(1, 3))
        assert (panels < 128).all()
    else:
        assert "</svg>" in path.read_text()


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    for smiles, name, reason in (
        (["CC", "no molecule"], "a.png", "not a molecule: 'no molecule'"),
        (["CC"], "a.pdf", r"a\.pdf: a picture of molecules ends in \.png or \.svg"),
        ([], "a.png", "no molecules to draw"),
    ):
        with pytest.raises(InputError, match=reason):
            draw(smiles, [""] * len(smiles), tmp_path / name)
        assert not (tmp_path / name).exists()


def test_rdkit_is_loaded_with_the_first_molecule_and_not_before() -> None:
    program = (
        "import sys\n"
        "from skeleton_cgl.graphs.datasets import graph_names\n"
        "from skeleton_cgl.registry import GRAPH_DATASETS\n"
        "assert 'smiles' in GRAPH_DATASETS.names() and 'smiles' not in graph_names()\n"
        "assert 'rdkit' not in sys.modules\n"
        "from skeleton_cgl.graphs.molecules import read_molecules\n"
        "read_molecules(['CC'])\n"
        "assert 'rdkit' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_rdkit_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    for attempt in (lambda: read_molecules(["CC"]), lambda: draw(["CC"], [""], tmp_path / "a.png")):
        with pytest.raises(InputError) as refused:
            attempt()
        assert "pip install 'skeleton_cgl[molecules]'" in str(refused.value)
        assert "the extra `molecules`" in str(refused.value)
        assert "\n" not in str(refused.value)
