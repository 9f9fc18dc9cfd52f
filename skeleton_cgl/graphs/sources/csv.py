"""A graph of a user's own as two tables: edges.csv, and nodes.csv beside it.

`edges.csv` has the columns `source` and `target`: ids of nodes, other columns are not read. `nodes.csv`:

| column | what |
|---|---|
| id | any text, each once |
| label | the class, text or number, -1 for none; or columns `label:NAME` of 0 and 1 |
| time | optional: a whole number, or a date as 2024-01-31, which becomes days since 1970 |
| part | optional: training, validation, test, or nothing |
| group:NAME | optional: text |
| any other | a feature: a finite number |
"""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.options import existing, flag
from skeleton_cgl.graphs.own import graph_of_columns, numbers_of
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.tables import read_text

_EDGES, _NODES = "edges.csv", "nodes.csv"


class Csv(GraphSource):
    """The graph of the folder of edges.csv and nodes.csv, or of the path of edges.csv.

    both_ways: every edge stands for both directions.
    """

    def __init__(self, path: str | Path, both_ways: bool = False) -> None:
        path = Path(path)
        self._folder = path.parent if path.name == _EDGES else path
        self._both_ways = flag("both_ways", both_ways)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        folder = path.parent if path.name == _EDGES else path
        return (folder / _EDGES).is_file() or (folder / _NODES).is_file()

    def read(self) -> Graph:
        edges, nodes = (existing(self._folder / name) for name in (_EDGES, _NODES))
        columns = read_text(nodes)
        if "id" not in columns:
            raise InputError(f"{nodes}: column 'id' is missing; found {', '.join(columns)}")
        numbers = numbers_of(columns.pop("id"), f"{nodes}: column 'id'")
        return graph_of_columns(
            self._folder.name,
            str(nodes),
            columns,
            _ends(edges, numbers),
            self._both_ways,
            lambda node: f"row {node + 1}",
        )


def _ends(path: Path, numbers: dict[str, int]) -> np.ndarray:
    table = read_text(path)
    for column in ("source", "target"):
        if column not in table:
            raise InputError(f"{path}: column {column!r} is missing; found {', '.join(table)}")
        for row, name in enumerate(table[column]):
            if name not in numbers:
                raise InputError(f"{path}: column {column!r}: row {row + 1}: {shown(name)} is no node of {_NODES}")
    return np.array([[numbers[name] for name in table[column]] for column in ("source", "target")])
