"""Reading GraphML as networkx and others write it, without trusting it: nodes, links and the attributes they have."""

import warnings
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError
from xml.parsers import expat

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import shown


def read_graphml(path: Path) -> Any:
    """Return the graph of a file, as networkx has it.

    Refused: what is no GraphML, a document type, which can declare entities without end, a graph without nodes.
    """
    import networkx as nx

    _refuse_declarations(path)
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            # An attribute without a type is text, which features are refused as.
            warnings.simplefilter("ignore", UserWarning)
            graph = nx.read_graphml(file)
    except (nx.NetworkXException, ParseError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a readable GraphML: {' '.join(str(error).split())!s:.200}") from error
    if not len(graph):
        raise InputError(f"{path}: no node in it")
    return graph


def edges_of(graph: Any) -> np.ndarray:
    """Return (2, E): the links of a graph, its nodes numbered in the sequence of the file."""
    numbers = {node: number for number, node in enumerate(graph.nodes)}
    edges = np.array([[numbers[source], numbers[target]] for source, target in graph.edges()], dtype=np.int64)
    return edges.reshape(-1, 2).T


def node_columns(path: Path, graph: Any, optional: tuple[str, ...] = ("part",)) -> dict[str, list[str]]:
    """Return the attributes of nodes, by name, as text; refuse a node that lacks one that is not optional."""
    names = list(dict.fromkeys(name for _, attributes in graph.nodes(data=True) for name in attributes))
    if not names:
        raise InputError(f"{path}: no node has an attribute; expected label and features")
    columns: dict[str, list[str]] = {name: [] for name in names}
    for node, attributes in graph.nodes(data=True):
        for name in names:
            if name not in attributes and name not in optional:
                raise InputError(f"{path}: node {shown(node)}: attribute {shown(name)} is missing")
            columns[name].append(as_word(attributes.get(name, "")))
    return columns


def as_word(value: Any) -> str:
    """Return a value as the tables write it; true and false are 1 and 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)


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
