"""What the MUSAE graphs (Rozemberczki et al. 2019) share: links and targets as CSV, features as lists of indices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.documents import read_json
from skeleton_cgl.reading.tables import read_numbers, read_text


@dataclass(frozen=True)
class MusaeFiles:
    """The three files of one graph: NAME_edges.csv, NAME_target.csv and NAME.json or NAME_features.json."""

    edges: Path
    target: Path
    features: Path

    @classmethod
    def find(cls, folder: Path, name: str) -> "MusaeFiles | None":
        """Return the files of a graph in a folder or in its folder NAME, with or without `musae_` before the name."""
        for place, prefix in _places(folder, name):
            edges, target = place / f"{prefix}_edges.csv", place / f"{prefix}_target.csv"
            for features in (place / f"{prefix}_features.json", place / f"{prefix}.json"):
                if edges.is_file() and target.is_file() and features.is_file():
                    return cls(edges, target, features)
        return None

    @staticmethod
    def are_begun(folder: Path, name: str) -> bool:
        """Return whether the edges of a graph are there, the first of its files."""
        return any((place / f"{prefix}_edges.csv").is_file() for place, prefix in _places(folder, name))

    def links(self, columns: tuple[str, str], nodes: int) -> np.ndarray:
        """Return (2, E); refuse an end that is no node."""
        links = read_numbers(self.edges, np.int64, columns)
        wrong = ((links < 0) | (links >= nodes)).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            ends = " – ".join(map(str, links[row].tolist()))
            raise InputError(f"{self.edges}: row {row + 1}: {ends} has an end outside the nodes 0–{nodes - 1}")
        return links.T

    def targets(self, key: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
        """Return what is told of every node, by its number in the column `key`.

        A node told of twice, as two of the French users of Twitch are, is taken as it is told first. Refused: numbers
        other than 0, 1, 2 …, and nodes told of twice with different values in `columns`.
        """
        table = read_text(self.target)
        for name in (key, *columns):
            if name not in table:
                raise InputError(f"{self.target}: column {name!r} is missing; found {', '.join(table)}")
        found: dict[str, dict[str, str]] = {}
        for row, number in enumerate(table[key]):
            told = {name: table[name][row] for name in columns}
            if found.setdefault(number, told) != told:
                raise InputError(f"{self.target}: row {row + 1}: node {number!s:.40} was told of before, otherwise")
        missing = next((number for number in range(len(found)) if str(number) not in found), None)
        if missing is not None:
            raise InputError(f"{self.target}: column {key!r}: {len(found)} nodes, but none has the number {missing}")
        return [found[str(number)] for number in range(len(found))]

    def lists(self, nodes: int) -> tuple[list[list[int]], list[str]]:
        """Return the lists of feature indices of all nodes, and where each stands."""
        lists = read_json(self.features)
        if not isinstance(lists, Mapping):
            raise InputError(f"{self.features}: expected lists by node, found {type(lists).__name__}")
        missing = next((node for node in range(nodes) if str(node) not in lists), None)
        if missing is not None or len(lists) > nodes:
            said = f"node {missing} is missing" if missing is not None else f"{len(lists)} lists for {nodes} nodes"
            raise InputError(f"{self.features}: {said}")
        return [lists[str(node)] for node in range(nodes)], [f"{self.features}: node {node}" for node in range(nodes)]


def _places(folder: Path, name: str) -> Iterator[tuple[Path, str]]:
    """Return the folders where files of a graph may be, and how their names may begin."""
    return product((folder, folder / name), (f"musae_{name}", name))
