"""Reddit posts that had a commentator in common, to be told by their community (Hamilton et al. 2017)."""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.graphs.options import existing
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.reading.npy import plain_array

_NODES, _LINKS = "reddit_data.npz", "reddit_graph.npz"


class Reddit(GraphSource):
    """The graph of reddit_data.npz (feature, label, node_types) and reddit_graph.npz (row, col) in a folder.

    The links have both directions in the file. The split is that of node_types: 1 training, 2 validation, 3 test.
    """

    published = "data.dgl.ai/dataset/reddit.zip"

    def __init__(self, path: str | Path) -> None:
        self._folder = Path(path)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return (path / _NODES).is_file() or (path / _LINKS).is_file()

    def read(self) -> Graph:
        existing(self._folder, self.published)
        nodes, links = (existing(self._folder / name, self.published) for name in (_NODES, _LINKS))
        row, col = plain_array(links, "row"), plain_array(links, "col")
        if row.shape != col.shape or row.ndim != 1:
            raise InputError(
                f"{links}: arrays 'row' and 'col': expected one end of each edge, {row.shape}, {col.shape}"
            )
        features = plain_array(nodes, "feature")
        types = plain_array(nodes, "node_types")
        if types.dtype.kind not in "iu" or not np.isin(types, (1, 2, 3)).all():
            raise InputError(f"{nodes}: array 'node_types': expected 1, 2 or 3 for every node")
        return make_graph(
            "Reddit",
            np.stack([row, col]),
            features,
            plain_array(nodes, "label"),
            split=types.astype(np.int64) - 1,
            where=str(self._folder),
        )
