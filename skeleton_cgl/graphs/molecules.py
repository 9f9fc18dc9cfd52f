"""Molecules as graphs: SMILES read by RDKit, features of atoms and bonds, scaffolds, drawings.

RDKit is the optional extra `molecules`, and loaded when the first molecule is, so that all else works without it.
Letters: M molecules, N atoms and B bonds of all of them, F features.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import shown

if TYPE_CHECKING:
    from rdkit.Chem import Mol

FEATURES = ("degree", "atoms", "ogb")
"""What atoms may be told by: their degree, twice (BeGin), the 74 measures of CGLB, or the 9 kinds of OGB."""

_ELEMENTS = (
    "C N O S F Si P Cl Br Mg Na Ca Fe As Al I B V K Tl Yb Sb Sn Ag Pd Co Se Ti Zn H Li Ge Cu Au Ni Cd In Mn Zr Cr Pt "
    "Hg Pb"
)
_HYBRIDISATIONS = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_CHIRALITIES = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
_BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
_STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS")


@dataclass(frozen=True, eq=False)
class Molecules:
    """Molecules one after the other, a SMILES that is none having no atoms.

    starts (M + 1,): the first atom of each, and the number of all. atoms: what RDKit says of them, (N,) each, by name.
    bonds (2, B), each once, and of what bond kinds they are: type, stereo and conjugated, (B,) each, by name. parsed
    (M,): whether a SMILES is a molecule; partly (M,): whether only without some of RDKit's checks. scaffolds: the
    Bemis–Murcko scaffold of each, as SMILES, "" for one without rings.
    """

    starts: np.ndarray
    atoms: dict[str, np.ndarray]
    bonds: np.ndarray
    bond_kinds: dict[str, np.ndarray]
    parsed: np.ndarray
    partly: np.ndarray
    scaffolds: tuple[str, ...]

    def chosen(self, which: np.ndarray) -> "Molecules":
        """Return some of them; which (M,): whether each is one."""
        sizes = np.diff(self.starts)
        atoms = np.repeat(which, sizes)
        bonds = atoms[self.bonds[0]]
        numbers = np.cumsum(atoms) - 1
        return Molecules(
            np.concatenate([[0], np.cumsum(sizes[which])]),
            {name: values[atoms] for name, values in self.atoms.items()},
            numbers[self.bonds[:, bonds]],
            {name: values[bonds] for name, values in self.bond_kinds.items()},
            self.parsed[which],
            self.partly[which],
            tuple(scaffold for scaffold, chosen in zip(self.scaffolds, which, strict=True) if chosen),
        )


def read_molecules(smiles: Iterable[str], scaffolds: bool = False) -> Molecules:
    """Return molecules by their SMILES; scaffolds: whether theirs are wanted, all "" where not.

    An atom is one that is written, [H] included. What RDKit refuses when it checks a molecule is read without the steps
    that refuse it, valences first, so that rings, aromaticity and hybridisation are still found.
    """
    chem, base = _rdkit()
    starts, parsed, partly, found = [0], [], [], []
    atoms, bonds = [np.empty((0, len(_ATOM)), np.int32)], [np.empty((0, len(_BOND)), np.int32)]
    with base.BlockLogs():
        for each in smiles:
            molecule, whole = _parsed(chem, each)
            parsed.append(molecule is not None)
            partly.append(not whole)
            found.append(_scaffold(chem, molecule) if molecule is not None and scaffolds else "")
            if molecule is not None:
                atoms.append(_table(_ATOM, molecule.GetAtoms()))
                bonds.append(_table(_BOND, molecule.GetBonds()))
                bonds[-1][:, :2] += starts[-1]
            starts.append(starts[-1] + (0 if molecule is None else len(atoms[-1])))
    of_atoms, of_bonds = np.concatenate(atoms), np.concatenate(bonds)
    return Molecules(
        np.array(starts),
        dict(zip(_ATOM, of_atoms.T, strict=True)),
        of_bonds[:, :2].T.astype(np.int64),
        dict(zip(tuple(_BOND)[2:], of_bonds.T[2:], strict=True)),
        np.array(parsed, dtype=bool),
        np.array(partly, dtype=bool),
        tuple(found),
    )


def degrees(molecules: Molecules) -> np.ndarray:
    """Return (N, 2) the number of bonds of an atom, in and out, as BeGin has it."""
    return np.stack([molecules.atoms["degree"]] * 2, axis=1).astype(np.float32)


def aromatic_flags(molecules: Molecules) -> np.ndarray:
    """Return (N, 1) whether an atom is aromatic."""
    return molecules.atoms["aromatic"][:, None].astype(np.float32)


def atom_measures(molecules: Molecules, flag: bool = True) -> np.ndarray:
    """Return (N, 74) what CGLB tells of an atom, zeros where a kind is none of those known; flag: aromatic or not.

    43 elements, degree 0–10, implicit valence 0–6, charge, radical electrons, 5 hybridisations, whether it is aromatic,
    hydrogens 0–4: 43 + 11 + 7 + 1 + 1 + 5 + 1 + 5, without the flag 73.
    """
    chem, _ = _rdkit()
    numbers = chem.GetPeriodicTable()
    parts: list[tuple[str, list[int] | None]] = [
        ("element", [numbers.GetAtomicNumber(symbol) for symbol in _ELEMENTS.split()]),
        ("degree", [*range(11)]),
        ("implicit", [*range(7)]),
        ("charge", None),
        ("radicals", None),
        ("hybridisation", _values(chem.HybridizationType, _HYBRIDISATIONS)),
        *([("aromatic", None)] if flag else []),
        ("hydrogens", [*range(5)]),
    ]
    width = sum(1 if known is None else len(known) for _, known in parts)
    features = np.zeros((molecules.starts[-1], width), dtype=np.float32)
    first = 0
    for name, known in parts:
        values = molecules.atoms[name]
        if known is None:
            features[:, first] = values
            first += 1
            continue
        kinds = _kinds(values, known)
        some = np.flatnonzero(kinds < len(known))
        features[some, first + kinds[some]] = 1
        first += len(known)
    return features


def atom_kinds(molecules: Molecules) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return (N, 9) the kinds that OGB tells of an atom, and how many there are of each, the last being all others."""
    chem, _ = _rdkit()
    return _all_kinds(
        molecules.atoms,
        {
            "element": [*range(1, 119)],
            "chirality": _values(chem.ChiralType, _CHIRALITIES),
            "total degree": [*range(11)],
            "charge": [*range(-5, 6)],
            "hydrogens": [*range(9)],
            "radicals": [*range(5)],
            "hybridisation": _values(chem.HybridizationType, _HYBRIDISATIONS),
            "aromatic": [0],
            "ring": [0],
        },
    )


def bond_kinds(molecules: Molecules) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return (B, 3) the kinds that OGB tells of a bond, and how many there are of each, the last being all others."""
    chem, _ = _rdkit()
    return _all_kinds(
        molecules.bond_kinds,
        {
            "type": _values(chem.BondType, _BONDS),
            "stereo": _values(chem.BondStereo, _STEREO),
            "conjugated": [0],
        },
    )


def scaffold_domains(scaffolds: Sequence[str], domains: int) -> np.ndarray:
    """Return (M,) the domain of each molecule: those of one scaffold together, the commonest scaffolds in the last.

    Scaffolds by (molecules, first molecule), descending, are cut after the first that ends at k · M / domains or later;
    slice k = 1, 2 … is domain `domains` - k. Refused: so many that one is left empty.
    """
    names, firsts, which, counts = np.unique(
        np.array(scaffolds), return_index=True, return_inverse=True, return_counts=True
    )
    sequence = np.lexsort([firsts, counts])[::-1]
    ends = np.cumsum(counts[sequence])
    cuts = np.searchsorted(ends * domains, np.arange(1, domains + 1) * len(scaffolds))
    if (np.diff(cuts, prepend=-1) == 0).any():
        raise InputError(
            f"domains: expected fewer than {domains}: {len(scaffolds)} molecules have {len(names)} scaffolds, "
            f"the commonest has {counts.max()}"
        )
    of_scaffold = np.empty(len(names), dtype=np.int64)
    of_scaffold[sequence] = domains - 1 - np.searchsorted(cuts, np.arange(len(names)))
    return of_scaffold[which]


def draw(smiles: Sequence[str], captions: Sequence[str], path: Path) -> None:
    """Write a picture of molecules, each with its caption, in rows of up to five.

    Refused: another suffix than .png and .svg, no molecules, a SMILES that is none.
    """
    if path.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"{path}: a picture of molecules ends in .png or .svg")
    if not smiles:
        raise InputError(f"{path}: no molecules to draw")
    chem, base = _rdkit()
    from rdkit.Chem.Draw import rdMolDraw2D

    side, across = 240, min(5, len(smiles))
    kind: Any = rdMolDraw2D.MolDraw2DSVG if path.suffix.lower() == ".svg" else rdMolDraw2D.MolDraw2DCairo
    canvas = kind(side * across, side * -(-len(smiles) // across), side, side)
    options = canvas.drawOptions()
    options.prepareMolsBeforeDrawing = options.drawMolsSameScale = False
    with base.BlockLogs():
        molecules = []
        for each in smiles:
            molecule, whole = _parsed(chem, each)
            if molecule is None:
                raise InputError(f"not a molecule: {shown(each)}")
            # Of what was read partly, rings cannot always be written as single and double bonds.
            molecules.append(rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=whole))
        canvas.DrawMolecules(molecules, legends=list(captions))
    canvas.FinishDrawing()
    text = canvas.GetDrawingText()
    path.write_bytes(text.encode() if isinstance(text, str) else text)


_ATOM = {
    "element": lambda atom: atom.GetAtomicNum(),
    "chirality": lambda atom: atom.GetChiralTag(),
    "degree": lambda atom: atom.GetDegree(),
    "total degree": lambda atom: atom.GetTotalDegree(),
    "charge": lambda atom: atom.GetFormalCharge(),
    "hydrogens": lambda atom: atom.GetTotalNumHs(),
    "implicit": lambda atom: atom.GetNumImplicitHs(),
    "radicals": lambda atom: atom.GetNumRadicalElectrons(),
    "hybridisation": lambda atom: atom.GetHybridization(),
    "aromatic": lambda atom: atom.GetIsAromatic(),
    "ring": lambda atom: atom.IsInRing(),
}

_BOND = {
    "begin": lambda bond: bond.GetBeginAtomIdx(),
    "end": lambda bond: bond.GetEndAtomIdx(),
    "type": lambda bond: bond.GetBondType(),
    "stereo": lambda bond: bond.GetStereo(),
    "conjugated": lambda bond: bond.GetIsConjugated(),
}


def _rdkit() -> tuple[Any, Any]:
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise InputError(
            "molecules are read by RDKit, the extra `molecules`, which is not installed; "
            "to get it: pip install 'skeleton_cgl[molecules]'"
        ) from error
    return Chem, rdBase


def _parsed(chem: Any, smiles: str) -> tuple["Mol | None", bool]:
    """Return a molecule, None for what is none, and whether RDKit refused nothing of it."""
    if len(smiles.split()) > 1:
        # RDKit takes what follows a blank for a name, so that words of a text pass for molecules.
        return None, True
    how = chem.SmilesParserParams()
    how.removeHs = False
    molecule = chem.MolFromSmiles(smiles, how)
    if molecule is not None:
        return molecule, True
    how.sanitize = False
    steps = int(chem.SanitizeFlags.SANITIZE_ALL)
    while (molecule := chem.MolFromSmiles(smiles, how)) is not None:
        molecule.UpdatePropertyCache(strict=False)
        refusing = steps & int(chem.SanitizeMol(molecule, steps, catchErrors=True))
        if not refusing:
            chem.AssignStereochemistry(molecule, cleanIt=True)
            return molecule, False
        steps &= ~refusing
    return None, True


def _scaffold(chem: Any, molecule: "Mol") -> str:
    core = chem.MurckoDecompose(molecule)
    core.ClearComputedProps()
    core.UpdatePropertyCache(strict=False)
    chem.GetSymmSSSR(core)
    return str(chem.MolToSmiles(core, isomericSmiles=False))


def _table(properties: dict[str, Any], parts: Iterable[Any]) -> np.ndarray:
    tells = tuple(properties.values())
    rows = [[tell(part) for tell in tells] for part in parts]
    return np.array(rows, dtype=np.int32).reshape(-1, len(tells))


def _values(kinds: Any, names: Iterable[str]) -> list[int]:
    return [int(kinds.names[name]) for name in names]


def _kinds(values: np.ndarray, known: list[int]) -> np.ndarray:
    """Return the place of each value among the known ones, their number for any other."""
    sorted_places = np.argsort(known)
    in_sequence = np.array(known)[sorted_places]
    places = np.minimum(np.searchsorted(in_sequence, values), len(known) - 1)
    return np.where(in_sequence[places] == values, sorted_places[places], len(known))


def _all_kinds(properties: dict[str, np.ndarray], known: dict[str, list[int]]) -> tuple[np.ndarray, tuple[int, ...]]:
    found = np.stack([_kinds(properties[name], values) for name, values in known.items()], axis=1)
    return found.astype(np.float32), tuple(len(values) + 1 for values in known.values())
