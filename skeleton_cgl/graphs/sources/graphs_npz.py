"""A set of graphs of a user's own in one `.npz`, one after the other.

| array | what |
|---|---|
| starts | (G + 1,) the first node of every graph, and the number of all; or graph: (N,) the graph of a node, from 0 |
| edges | (2, E) or (E, 2) numbers of nodes, counted over all graphs, from source to target |
| features | (N, F) numbers |
| labels | (G,) whole numbers or text, -1 for no class; or (G, K) of 0 and 1, NaN for what is not known |
| classes | optional: (K,) names; numeric labels then count from 0 in it |
| edge_features | optional: (E, B) numbers |
| times | optional: (G,) whole numbers |
| split | optional: (G,) training, validation, test as text or as 0, 1, 2; nothing or -1 for none |
| train_mask, val_mask, test_mask | optional, instead of split: (G,) true or false |
| groups_NAME | optional: (G,) whole numbers or text |
| both_ways | optional: true if every edge stands for both directions |
"""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.options import existing, flag
from skeleton_cgl.graphs.own import MASKS, arrays_of_npz, edges_of, items_of_arrays, require
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.reading.npy import fields_of

_PLACES = ("starts", "graph")
_ARRAYS = (*_PLACES, "edges", "features", "edge_features", "labels", "classes", "times", "split", *MASKS)


class GraphsNpz(GraphSource):
    """The graphs of an `.npz`; both_ways: every edge stands for both directions, by default what the file says, or no.

    Refused: other arrays than those listed above, Python objects, and what `make_graph_set` refuses.
    """

    def __init__(self, path: str | Path, both_ways: bool | None = None) -> None:
        self._path = Path(path)
        self._both_ways = both_ways if both_ways is None else flag("both_ways", both_ways)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return path.is_file() and not fields_of(path).isdisjoint(_PLACES)

    def read(self) -> GraphSet:
        path = existing(self._path)
        arrays, both_ways = arrays_of_npz(path, _ARRAYS, self._both_ways)
        for field in ("edges", "features"):
            require(field, arrays, str(path))
        return make_graph_set(
            path.stem,
            _starts(arrays, path),
            edges_of(arrays["edges"]),
            arrays["features"],
            edge_features=arrays.get("edge_features"),
            both_ways=both_ways,
            where=str(path),
            **items_of_arrays("graph", str(path), arrays),
        )


def _starts(arrays: dict[str, np.ndarray], path: Path) -> np.ndarray:
    if ("starts" in arrays) == ("graph" in arrays):
        raise InputError(f"{path}: expected one of the arrays 'starts' and 'graph'; found {', '.join(sorted(arrays))}")
    if "starts" in arrays:
        return arrays["starts"]
    graph = arrays["graph"]
    if graph.ndim != 1 or graph.dtype.kind not in "iu" or not len(graph):
        raise InputError(f"{path}: array 'graph': expected a whole number per node, found {graph.dtype} {graph.shape}")
    graph = graph.astype(np.int64)
    steps = np.diff(graph, prepend=-1)
    if not np.isin(steps[1:], (0, 1)).all() or steps[0] != 1:
        place = int(np.argmax(~np.isin(steps, (0, 1)))) if steps[0] == 1 else 0
        raise InputError(
            f"{path}: array 'graph': node {place}: expected graphs counted from 0, one after the other, "
            f"found {graph[place]}"
        )
    return np.append(np.flatnonzero(steps), len(graph))
