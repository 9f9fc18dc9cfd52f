"""Molecules of a table of SMILES with label columns, such as those of MoleculeNet, read by RDKit."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import GraphSet, Groups, make_graph_set
from skeleton_cgl.graphs.molecules import (
    FEATURES,
    Molecules,
    aromatic_flags,
    atom_kinds,
    atom_measures,
    bond_kinds,
    degrees,
    read_molecules,
    scaffold_domains,
)
from skeleton_cgl.graphs.options import existing, flag, one_of
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.tables import names_of, read_numbered_text

_IDENTIFIER = re.compile(r"(.*[\W_])?(id|cid|index)|unnamed: 0", re.IGNORECASE)
_MOST_ROWS = 10


class Smiles(GraphSource):
    """The molecules of a CSV file, plain or gzipped: atoms are nodes, and bonds are edges in both directions.

    smiles: the column of SMILES; by default the only one called so, or the only one with the word in its name. labels:
    the columns of labels; by default all others of numbers or nothing alone, but for identifiers such as `mol_id`. One
    column gives every graph one class, several give labels of 0, 1, and nothing for what is not known. features: of
    atoms: "degree" twice (BeGin), "atoms" (the 74 of CGLB), or "ogb" (9 kinds of atoms, 3 of bonds). aromatic: true
    adds whether an atom is aromatic to "degree", false takes it from "atoms". fewest: classes with fewer graphs are
    left out. domains: so many groups "scaffold" of about one size. skip_bad: set aside what is no molecule, instead of
    refusing it.
    """

    published = "moleculenet.org"
    shows_progress = True

    def __init__(
        self,
        path: str | Path,
        smiles: str | None = None,
        labels: Sequence[str] | None = None,
        features: str = "degree",
        aromatic: bool | None = None,
        fewest: int = 1,
        domains: int | None = None,
        skip_bad: bool = False,
    ) -> None:
        self._path = Path(path)
        self._smiles = None if smiles is None else _names("smiles", [smiles])[0]
        self._labels = None if labels is None else _names("labels", labels)
        self._features = one_of("features", features, FEATURES)
        self._aromatic = None if aromatic is None else flag("aromatic", aromatic)
        if self._aromatic and self._features != "degree":
            raise InputError(f"aromatic: true: the features {self._features!r} tell it already")
        if self._aromatic is False and self._features == "ogb":
            raise InputError("aromatic: false: the features 'ogb' tell it by the types of bonds too")
        self._fewest = _at_least(1, "fewest", fewest)
        self._domains = None if domains is None else _at_least(2, "domains", domains)
        self._skip_bad = flag("skip_bad", skip_bad)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        if not path.is_file() or not path.name.lower().endswith((".csv", ".csv.gz")):
            return False
        try:
            return bool(_called_smiles(names_of(path)))
        except InputError:
            return False

    def read(self) -> GraphSet:
        path = existing(self._path, self.published)
        table, rows = read_numbered_text(path)
        texts = table[smiles := self._column(table)]
        names = self._label_columns(table, smiles)
        labels = np.stack([_numbers(path, name, table[name], rows, len(names) > 1) for name in names], axis=1)
        bar = tqdm(texts, f"reading {path.name}", unit=" molecules", delay=2, leave=False)
        molecules = read_molecules(bar, scaffolds=self._domains is not None)
        kept = self._molecules(molecules, smiles, texts, rows)
        notes = [_said(rows, ~kept, "set aside, no molecule")] if not kept.all() else []
        classes: tuple[str, ...] = names
        if len(names) == 1:
            labels, classes, large = self._classes(labels[:, 0], table[names[0]], kept)
            if (kept & ~large).any():
                left_out = f"in classes of fewer than {self._fewest} graphs"
                notes.append(f"{(kept & ~large).sum()} molecules left out, {left_out}")
            kept &= large
        elif self._fewest > 1:
            raise InputError(f"fewest: is of classes, but {path} is read with {len(names)} columns of labels")
        if (partly := kept & molecules.partly).any():
            notes.append(_said(rows, partly, "read without the checks of RDKit that refuse them, such as of valence"))
        if self._labels is None and (unread := [name for name in table if name not in (*names, smiles)]):
            notes.append(f"columns that are not read: {', '.join(unread)}")
        return self._graphs(
            molecules.chosen(kept),
            labels=labels[kept],
            classes=classes,
            texts=tuple(text for text, is_kept in zip(texts, kept, strict=True) if is_kept),
            notes=tuple(notes),
        )

    def _column(self, table: dict[str, list[str]]) -> str:
        if self._smiles is not None:
            return _existing_column(self._path, self._smiles, table)
        found = _called_smiles(table)
        if len(found) != 1:
            said = f"found {', '.join(found or table)}; `smiles` names it"
            raise InputError(f"{self._path}: expected one column called smiles, {said}")
        return found[0]

    def _label_columns(self, table: dict[str, list[str]], smiles: str) -> tuple[str, ...]:
        if self._labels is not None:
            if smiles in self._labels:
                raise InputError(f"labels: {shown(smiles)} is the column of SMILES")
            return tuple(_existing_column(self._path, name, table) for name in self._labels)
        names = tuple(
            name
            for name, values in table.items()
            if name != smiles and not _IDENTIFIER.fullmatch(name) and _are_numbers(values)
        )
        if not names:
            raise InputError(f"{self._path}: no column of numbers beside the SMILES; `labels` names those of labels")
        return names

    def _molecules(self, molecules: Molecules, column: str, texts: list[str], rows: list[int]) -> np.ndarray:
        """Return (M,) which SMILES are molecules; refuse others, and those without atoms, unless they are skipped."""
        found = np.diff(molecules.starts) > 0
        if not found.all() and not self._skip_bad:
            bad = int(np.argmin(found))
            said = "a molecule without atoms" if molecules.parsed[bad] else "not a molecule"
            raise InputError(f"{self._path}: row {rows[bad]}: column {column!r}: {said}: {shown(texts[bad])}")
        if not found.any():
            raise InputError(f"{self._path}: column {column!r}: no molecule in it")
        return found

    def _classes(
        self, values: np.ndarray, texts: list[str], kept: np.ndarray
    ) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
        """Return the classes of molecules, their names, and (M,) which molecules are in classes that are not left out.

        A class is called as it is first written.
        """
        found, firsts, numbers = np.unique(values, return_index=True, return_inverse=True)
        counts = np.bincount(numbers[kept], minlength=len(found))
        large = counts >= self._fewest
        if not large.any():
            raise InputError(f"fewest: no class of {self._path} has {self._fewest} graphs; the largest {counts.max()}")
        names = tuple(texts[first].strip() for first in firsts[large])
        return np.cumsum(large)[numbers] - 1, names, large[numbers]

    def _graphs(self, molecules: Molecules, **items: Any) -> GraphSet:
        codes = edge_features = edge_codes = groups = None
        if self._features == "ogb":
            features, codes = atom_kinds(molecules)
            edge_features, edge_codes = bond_kinds(molecules)
        elif self._features == "atoms":
            features = atom_measures(molecules, self._aromatic is not False)
        else:
            features = degrees(molecules)
            if self._aromatic:
                features = np.concatenate([features, aromatic_flags(molecules)], axis=1)
        if self._domains is not None:
            names = tuple(f"scaffolds {domain}" for domain in range(self._domains))
            groups = {"scaffold": Groups(scaffold_domains(molecules.scaffolds, self._domains), names)}
        return make_graph_set(
            self._path.name.split(".")[0],
            molecules.starts,
            molecules.bonds,
            features,
            codes=codes,
            edge_features=edge_features,
            edge_codes=edge_codes,
            groups=groups,
            both_ways=True,
            where=str(self._path),
            **items,
        )


def _names(option: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(name, str) for name in value):
        raise InputError(f"{option}: expected names of columns, found {shown(value)}")
    if len(set(value)) < len(value):
        raise InputError(f"{option}: a column is named twice")
    return tuple(value)


def _at_least(least: int, option: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{option}: expected a whole number from {least}, found {shown(value)}")
    return value


def _called_smiles(names: Sequence[str] | dict[str, list[str]]) -> list[str]:
    """Return the columns that are called smiles, or else those with the word in their name."""
    exact = [name for name in names if name.strip().lower() == "smiles"]
    return exact or [name for name in names if re.search(r"(?<![a-z])smiles(?![a-z])", name.lower())]


def _existing_column(path: Path, name: str, table: dict[str, list[str]]) -> str:
    if name not in table:
        raise InputError(f"{path}: column {name!r} is missing; found {', '.join(table)}")
    return name


def _number(text: str) -> float | None:
    """Return the finite number that a text says, NaN where it says nothing, None for any other text."""
    if not text.strip():
        return math.nan
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _are_numbers(values: list[str]) -> bool:
    """Return whether all are numbers or nothing, and some are numbers."""
    return any(value.strip() for value in values) and all(_number(value) is not None for value in values)


def _numbers(path: Path, name: str, values: list[str], rows: list[int], missing: bool) -> np.ndarray:
    """Return a column as numbers, NaN for nothing where any may be missing."""
    found = np.empty(len(values))
    for place, value in enumerate(values):
        number = _number(value)
        if number is None or (math.isnan(number) and not missing):
            said = "nothing" if number is not None else shown(value)
            raise InputError(f"{path}: row {rows[place]}: column {name!r}: expected a number, found {said}")
        found[place] = number
    return found


def _said(rows: list[int], which: np.ndarray, what: str) -> str:
    places = np.flatnonzero(which)
    shown_rows = ", ".join(str(rows[place]) for place in places[:_MOST_ROWS]) + (", …" * (len(places) > _MOST_ROWS))
    one = len(places) == 1
    return f"{len(places)} molecule{'' if one else 's'} {what}: row{'' if one else 's'} {shown_rows}"
