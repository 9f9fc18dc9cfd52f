"""A graph of a user's own in one `.npz`.

| array | what |
|---|---|
| edges | (2, E) or (E, 2) numbers of nodes, from source to target |
| features | (N, F) numbers; or sparse: features_data, features_indices, features_indptr, features_shape |
| labels | (N,) whole numbers or text, -1 for no class; or (N, K) of 0 and 1 |
| classes | optional: (K,) names; numeric labels then count from 0 in it |
| times | optional: (N,) whole numbers |
| split | optional: (N,) training, validation, test as text or as 0, 1, 2; nothing or -1 for none |
| train_mask, val_mask, test_mask | optional, instead of split: (N,) true or false |
| groups_NAME | optional: (N,) whole numbers or text |
| both_ways | optional: true if every edge stands for both directions |
"""

from pathlib import Path

from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.options import existing, flag
from skeleton_cgl.graphs.own import ARRAYS, arrays_of_npz, graph_of_arrays
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.reading.npy import fields_of

_OTHERS = ("adj_indptr", "node_features", "sequences", "row", "node_types", "starts", "graph")
"""Arrays by which a published form, or a set of graphs, is known."""


class Npz(GraphSource):
    """The graph of an `.npz`; both_ways: every edge stands for both directions, by default what the file says, or no.

    Refused: other arrays than those listed above, Python objects, and what `make_graph` refuses.
    """

    def __init__(self, path: str | Path, both_ways: bool | None = None) -> None:
        self._path = Path(path)
        self._both_ways = both_ways if both_ways is None else flag("both_ways", both_ways)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Return whether it is an `.npz` of no published form: what is wrong with it is told when it is read."""
        return path.is_file() and path.suffix == ".npz" and fields_of(path).isdisjoint(_OTHERS)

    def read(self) -> Graph:
        path = existing(self._path)
        arrays, both_ways = arrays_of_npz(path, ARRAYS, self._both_ways)
        return graph_of_arrays(path.stem, str(path), arrays, both_ways)
