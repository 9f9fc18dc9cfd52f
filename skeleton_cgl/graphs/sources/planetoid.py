"""Cora, Citeseer and Pubmed as Planetoid published them (Yang et al. 2016): `ind.NAME.*`, with their split.

They circulate as pickles, which are read by the restricted unpickler. A link stands in both directions and a loop in
none, as every benchmark on these graphs has them. Of Citeseer, 15 numbers in the range of the test nodes belong to
nodes without content: they get zero features, no class and no part.
"""

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, vstack

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import NO_CLASS, Graph, make_graph
from skeleton_cgl.graphs.options import existing, flag, one_of
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.parts import TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.reading.pickled import SparseRows
from skeleton_cgl.reading.unpickle import load_pickle

_VALIDATION_NODES = 500
_NAMES = {"cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed"}


class Planetoid(GraphSource):
    """One graph of a folder; dataset: cora, citeseer or pubmed, or the only one there.

    normalise: features of a node are divided by their sum, as BeGin has them; otherwise as in the files. Training nodes
    are those of `x`, validation nodes the 500 after them, test nodes those of `test.index`.
    """

    published = "github.com/kimiyoung/planetoid, folder data"

    def __init__(self, path: str | Path, dataset: str | None = None, normalise: bool = True) -> None:
        self._folder = Path(path)
        self._dataset = dataset if dataset is None else one_of("dataset", dataset, _NAMES)
        self._normalise = flag("normalise", normalise)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return bool(_there(path))

    def read(self) -> Graph:
        name = self._chosen()
        x, tx, allx = (self._features(name, part) for part in ("x", "tx", "allx"))
        ty, ally = (self._classes(name, part) for part in ("ty", "ally"))
        nodes, links = self._links(name)
        places = self._test_places(name, allx.shape[0], nodes)
        if not (x.shape[1] == tx.shape[1] == allx.shape[1]) or len(places) != tx.shape[0] or x.shape[0] > allx.shape[0]:
            raise InputError(
                f"{self._folder}: the parts of ind.{name} do not fit: x {x.shape}, tx {tx.shape}, allx {allx.shape}, "
                f"{len(places)} test nodes"
            )
        for part, labels, features in (("ty", ty, tx), ("ally", ally, allx)):
            if len(labels) != features.shape[0]:
                raise InputError(f"{self._file(name, part)}: expected {features.shape[0]} rows, found {len(labels)}")
        labels = np.full(nodes, NO_CLASS)
        labels[: len(ally)], labels[places] = ally, ty
        split = np.full(nodes, UNUSED)
        split[: x.shape[0]] = TRAINING
        split[x.shape[0] : min(x.shape[0] + _VALIDATION_NODES, allx.shape[0])] = VALIDATION
        split[places] = TEST
        features = _placed(allx, tx, places, nodes)
        return make_graph(
            _NAMES[name],
            links,
            _divided_by_sums(features) if self._normalise else features,
            labels,
            split=split,
            both_ways=True,
            where=str(self._folder / f"ind.{name}"),
        )

    def _chosen(self) -> str:
        existing(self._folder, self.published)
        there = _there(self._folder)
        if self._dataset is not None or len(there) == 1:
            return self._dataset or there[0]
        if not there:
            raise InputError(
                f"{self._folder}: no file ind.NAME.graph of {', '.join(_NAMES)} in it; published at {self.published}"
            )
        raise InputError(f"{self._folder}: {', '.join(there)} are in it; choose one by `dataset`")

    def _file(self, name: str, part: str) -> Path:
        return existing(self._folder / f"ind.{name}.{part}", self.published)

    def _features(self, name: str, part: str) -> csr_array:
        path = self._file(name, part)
        content = load_pickle(path)
        if not isinstance(content, SparseRows):
            raise InputError(f"{path}: expected a sparse matrix, found {type(content).__name__}")
        return content.sparse()

    def _classes(self, name: str, part: str) -> np.ndarray:
        path = self._file(name, part)
        content = load_pickle(path)
        if not isinstance(content, np.ndarray) or content.ndim != 2 or content.dtype.kind not in "biuf":
            raise InputError(f"{path}: expected one-hot rows, found {type(content).__name__}")
        right = np.isin(content, (0, 1)).all(axis=1) & (content.sum(axis=1) == 1)
        if not right.all():
            raise InputError(f"{path}: row {int(np.argmin(right))}: expected one 1 among zeros")
        return content.argmax(axis=1)

    def _test_places(self, name: str, known: int, nodes: int) -> np.ndarray:
        path = self._file(name, "test.index")
        try:
            places = np.array([int(line) for line in path.read_text().split()], dtype=np.int64)
        except (OSError, ValueError, OverflowError) as error:
            raise InputError(f"{path}: expected a node number per line: {error!s:.200}") from error
        if len(places) == 0 or places.min() < known or places.max() >= nodes or len(np.unique(places)) < len(places):
            raise InputError(f"{path}: expected numbers from {known} to {nodes - 1}, each once")
        return places

    def _links(self, name: str) -> tuple[int, np.ndarray]:
        """Return the number of nodes and the links (2, E) between two of them."""
        path = self._file(name, "graph")
        content = load_pickle(path)
        if not isinstance(content, dict):
            raise InputError(f"{path}: expected lists of neighbours, found {type(content).__name__}")
        nodes = range(len(content))
        pairs = []
        for node, others in content.items():
            if type(node) is not int or node not in nodes or not isinstance(others, list):
                raise InputError(f"{path}: node {node!s:.40}: expected a list of neighbours of 0–{len(nodes) - 1}")
            for other in others:
                if type(other) is not int or other not in nodes:
                    raise InputError(
                        f"{path}: node {node}: neighbour {other!s:.40} is outside the nodes 0–{len(nodes) - 1}"
                    )
                if other != node:
                    pairs.append((node, other))
        return len(nodes), np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def _there(folder: Path) -> list[str]:
    return [name for name in _NAMES if any(folder.glob(f"ind.{name}.*"))]


def _placed(allx: csr_array, tx: csr_array, places: np.ndarray, nodes: int) -> csr_array:
    """Return the features of all nodes: the first are those of `allx`, those of `tx` are at `places`."""
    rows = np.full(nodes, -1)
    rows[: allx.shape[0]] = np.arange(allx.shape[0])
    rows[places] = allx.shape[0] + np.arange(len(places))
    nothing = csr_array((1, allx.shape[1]), dtype=np.float32)
    return csr_array(vstack([allx, tx, nothing], format="csr")[rows])


def _divided_by_sums(features: csr_array) -> csr_array:
    sums = np.asarray(features.sum(axis=1), dtype=np.float64)
    of_entry = np.repeat(sums, np.diff(features.indptr))
    values = np.divide(features.data, of_entry, where=of_entry != 0, out=features.data.astype(np.float64))
    return csr_array((values, features.indices, features.indptr), shape=features.shape)
