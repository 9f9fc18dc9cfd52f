"""CoraFull and its like (Bojchevski and Günnemann 2018, Shchur et al. 2018): one `.npz` of compressed sparse rows."""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.graphs.options import existing, flag
from skeleton_cgl.graphs.rows import stored_rows
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.reading.npy import field_names, fields_of, plain_array


class CsrNpz(GraphSource):
    """The graph of a file such as cora_full.npz: adj_… and attr_… (data, indices, indptr, shape), labels.

    Features may also stand as a table `attr_matrix`. Nodes are in the sequence of the file; names in it are Python
    objects, which are not read. both_ways: a citation has both directions; loops: those of the file are kept.
    """

    published = "github.com/shchur/gnn-benchmark, folder data/npz"

    def __init__(self, path: str | Path, both_ways: bool = True, loops: bool = True) -> None:
        self._path = Path(path)
        self._both_ways, self._loops = flag("both_ways", both_ways), flag("loops", loops)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return "adj_indptr" in fields_of(path)

    def read(self) -> Graph:
        path = existing(self._path, self.published)
        links = stored_rows(path, "adj")
        features = plain_array(path, "attr_matrix") if "attr_matrix" in field_names(path) else stored_rows(path, "attr")
        if features.ndim != 2 or links.shape != (features.shape[0],) * 2:
            raise InputError(f"{path}: array 'adj_shape': {links.shape}, but features {features.shape}")
        sources = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
        edges = np.stack([sources, links.indices])[:, links.data != 0]
        return make_graph(
            path.stem,
            edges if self._loops else edges[:, edges[0] != edges[1]],
            features,
            plain_array(path, "labels"),
            both_ways=self._both_ways,
            where=str(path),
        )
