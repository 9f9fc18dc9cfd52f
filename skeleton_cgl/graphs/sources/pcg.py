"""PCG: proteins of which each may belong to several of 15 phenotypes (Zhao et al. 2023)."""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.graphs.options import existing
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.reading.tables import read_numbers

_FILES = ("edges_undir.csv", "features.csv", "labels.csv")


class Pcg(GraphSource):
    """The graph of edges_undir.csv, features.csv and labels.csv, tables without names, in a folder.

    Line i of features and labels is node i. The file of edges has both directions of every link already.
    """

    published = "github.com/Tianqi-py/MLGNC, folder data/pcg_removed_isolated_nodes"

    def __init__(self, path: str | Path) -> None:
        self._folder = Path(path)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return (path / _FILES[0]).is_file()

    def read(self) -> Graph:
        existing(self._folder, self.published)
        edges, features, labels = (existing(self._folder / name, self.published) for name in _FILES)
        table = read_numbers(features, np.float64)
        marks = read_numbers(labels, np.int64)
        if len(table) != len(marks):
            raise InputError(f"{labels}: expected {len(table)} rows, as features.csv has, found {len(marks)}")
        return make_graph("PCG", read_numbers(edges, np.int64, 2).T, table, marks, where=str(self._folder))
