"""A set of graphs of a user's own: a folder of GraphML, one graph a file, in the sequence of the files' names.

Attributes of a graph say what it is: `label`, or `label:NAME` of 0 and 1, which a graph whose label is not known lacks;
`time`, `part`, and `group` or `group:NAME`; its `name` is not read. Attributes of nodes are features, the same in all
graphs; those of edges are not read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.options import existing
from skeleton_cgl.graphs.own import features_of_columns, items_of_columns
from skeleton_cgl.graphs.pieces import Piece, joined
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.graphml import as_word, edges_of, node_columns, read_graphml

_SUFFIX = "*.graphml"
_OPTIONAL = ("part", "label:")


class GraphmlFolder(GraphSource):
    """The graphs of a folder; links of undirected ones have both directions, and a link given twice counts once.

    Refused: what a single `.graphml` is refused for; attributes that not all graphs have.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return path.is_dir() and any(path.glob(_SUFFIX))

    def read(self) -> GraphSet:
        files = sorted(existing(self._path).glob(_SUFFIX))
        if not files:
            raise InputError(f"{self._path}: no .graphml file in it")
        graphs = [read_graphml(path) for path in files]
        columns = _columns(files, graphs)
        return make_graph_set(
            self._path.name,
            where=str(self._path),
            texts=tuple(path.stem for path in files),
            **joined([Piece(table, _ends(graph)) for table, graph in zip(_tables(files, graphs), graphs, strict=True)]),
            **items_of_columns(str(self._path), columns, lambda number: files[number].name, missing=True),
        )


def _ends(graph: Any) -> np.ndarray:
    ends = edges_of(graph)
    ends = ends if graph.is_directed() else np.concatenate([ends, ends[::-1]], axis=1)
    return np.unique(ends, axis=1)


def _tables(files: list[Path], graphs: list[Any]) -> Iterator[np.ndarray]:
    """Yield the features (n, F) of every graph, in the sequence of attributes of the first."""
    names: list[str] | None = None
    for path, graph in zip(files, graphs, strict=True):
        columns = node_columns(path, graph, optional=())
        names = list(columns) if names is None else names
        if {*columns} != {*names}:
            raise InputError(
                f"{path}: nodes have the attributes {', '.join(sorted(columns))}, "
                f"those of {files[0].name} {', '.join(sorted(names))}"
            )
        chosen = {name: columns[name] for name in names}
        called = [f"node {shown(node)}" for node in graph.nodes]
        yield features_of_columns(str(path), chosen, called.__getitem__)


def _columns(files: list[Path], graphs: list[Any]) -> dict[str, list[str]]:
    """Return the attributes of graphs, by name, as text."""
    told = [
        {name: as_word(value) for name, value in graph.graph.items() if name != "name" and not isinstance(value, dict)}
        for graph in graphs
    ]
    columns: dict[str, list[str]] = {name: [] for name in dict.fromkeys(name for each in told for name in each)}
    for name, column in columns.items():
        if name not in ("label", "time", "part", "group") and not name.startswith(("label:", "group:")):
            raise InputError(
                f"{files[0].parent}: unknown attribute {shown(name)} of graphs; "
                "expected label, label:NAME, time, part, group or group:NAME"
            )
        for path, each in zip(files, told, strict=True):
            if name not in each and not name.startswith(_OPTIONAL):
                raise InputError(f"{path}: attribute {shown(name)} of the graph is missing")
            column.append(each.get(name, ""))
    return {"group:group" if name == "group" else name: column for name, column in columns.items()}
