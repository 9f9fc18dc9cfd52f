"""A graph of a user's own in GraphML, as networkx and others write it.

Attributes of a node are what the columns of `nodes.csv` are: `label` or `label:NAME`, `time`, `part`, `group:NAME`, and
numbers, which are features. Attributes of edges are not read.
"""

from pathlib import Path

from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.options import existing
from skeleton_cgl.graphs.own import graph_of_columns
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.graphml import edges_of, node_columns, read_graphml


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
        path = existing(self._path)
        graph = read_graphml(path)
        nodes = list(graph.nodes)
        return graph_of_columns(
            path.stem,
            str(path),
            node_columns(path, graph),
            edges_of(graph),
            not graph.is_directed(),
            lambda number: f"node {shown(nodes[number])}",
        )
