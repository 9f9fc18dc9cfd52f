"""What a learner sees of a set of graphs: all of them, or those that have come."""

import numpy as np

from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.scenarios.lessons import Prefix
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.scenarios.views import GraphPool, ItemViews, NodesOf, ViewName


class GraphViews(ItemViews):
    """The views of graphs; a sample has the number of its graph."""

    def __init__(self, graphs: GraphSet, self_loops: bool, name: ViewName, items: NodesOf) -> None:
        super().__init__(name)
        self._graphs = Graphs.of(
            graphs.starts, graphs.edges, graphs.features, self_loops, graphs.edge_features, graphs.codes
        )
        self._items = items

    def made(self, prefix: Prefix) -> GraphPool:
        if self.name == "whole":
            return GraphPool(self._graphs)
        here = np.unique(np.concatenate([self._items(lesson.units) for lesson in prefix]))
        return GraphPool(self._graphs.numbered(here))


def facts_of(graphs: GraphSet) -> Facts:
    """Return what a backbone may know of graphs."""
    edge_features = 0 if graphs.edge_features is None else graphs.edge_features.shape[1]
    return Facts(
        "graph",
        {
            "features": graphs.features.shape[1],
            "rows": "graphs",
            "codes": graphs.codes,
            "edge_features": edge_features,
            "edge_codes": graphs.edge_codes,
        },
    )
