"""A graph of a user's own in GraphML, as networkx and others write it.

Attributes of a node are what the columns of `nodes.csv` are: `label` or `label:NAME`, `time`, `part`, `group:NAME`, and
numbers, which are features. Attributes of edges are not read.
"""

import warnings
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError
from xml.parsers import expat

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.options import existing
from skeleton_cgl.graphs.own import graph_of_columns
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown


class Graphml(GraphSource):
    """The graph of a `.graphml`; links of an undirected one have both directions.

    Refused: a file with a document type, which can declare entities without end; attributes that not all nodes have.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return path.is_file() and path.suffix == ".graphml"

    def read(self) -> Graph:
        import networkx as nx

        path = existing(self._path)
        _refuse_declarations(path)
        try:
            with path.open("rb") as file, warnings.catch_warnings():
                # An attribute without a type is text, which features are refused as.
                warnings.simplefilter("ignore", UserWarning)
                graph = nx.read_graphml(file)
        except (nx.NetworkXException, ParseError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise InputError(f"{path}: not a readable GraphML: {' '.join(str(error).split())!s:.200}") from error
        nodes = list(graph.nodes)
        if not nodes:
            raise InputError(f"{path}: no node in it")
        numbers = {node: number for number, node in enumerate(nodes)}
        edges = np.array([[numbers[source], numbers[target]] for source, target in graph.edges()], dtype=np.int64)
        return graph_of_columns(
            path.stem,
            str(path),
            _columns(path, graph),
            edges.reshape(-1, 2).T,
            not graph.is_directed(),
            lambda number: f"node {shown(nodes[number])}",
        )


def _refuse_declarations(path: Path) -> None:
    def refuse(*_: Any) -> None:
        raise InputError(f"{path}: refused: declares a document type, which no graph needs")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except (expat.ExpatError, LookupError, OSError) as error:
        raise InputError(f"{path}: not a readable GraphML: {error}") from error


def _columns(path: Path, graph: Any) -> dict[str, list[str]]:
    names = list(dict.fromkeys(name for _, attributes in graph.nodes(data=True) for name in attributes))
    if not names:
        raise InputError(f"{path}: no node has an attribute; expected label and features")
    columns: dict[str, list[str]] = {name: [] for name in names}
    for node, attributes in graph.nodes(data=True):
        for name in names:
            if name not in attributes and name != "part":
                raise InputError(f"{path}: node {shown(node)}: attribute {shown(name)} is missing")
            columns[name].append(_word(attributes.get(name, "")))
    return columns


def _word(value: Any) -> str:
    """Return a value as the tables write it; true and false are 1 and 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)
