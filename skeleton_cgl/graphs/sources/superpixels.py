"""MNIST and CIFAR10 as graphs of super-pixels (Dwivedi et al. 2020): `MNIST_v2.pt`, `CIFAR10_v2.pt`.

A file holds three lists, for training, validation and test, of a dict per image: x (n, 1) or (n, 3), the mean colour of
super-pixels; pos (n, 2), where they are; edge_index (2, e), from source to target; edge_attr (e,) or (e, 1), how far
apart they are; y, the class.
"""

from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.options import existing, flag
from skeleton_cgl.graphs.pieces import Piece, joined, make_piece
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.tensors import array_of, load_tensors

_COLOURS = {"MNIST_v2.pt": 1, "CIFAR10_v2.pt": 3}
_LISTS = 3


class Superpixels(GraphSource):
    """The graphs of such a file, or of a folder with one of them; features are colour and place.

    edge_features: whether edges have what `edge_attr` says.
    """

    published = "data.pyg.org/datasets/benchmarking-gnns"

    def __init__(self, path: str | Path, edge_features: bool = False) -> None:
        self._path = Path(path)
        self._edge_features = flag("edge_features", edge_features)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return bool(_files(path))

    def read(self) -> GraphSet:
        files = _files(existing(self._path, self.published))
        if len(files) != 1:
            raise InputError(f"{self._path}: expected one of {', '.join(_COLOURS)}; published at {self.published}")
        path = files[0]
        lists = load_tensors(path)
        if not isinstance(lists, list | tuple) or [type(each) for each in lists] != [list] * _LISTS:
            raise InputError(f"{path}: expected three lists of graphs, found {shown(type(lists).__name__)}")
        places = [
            (f"{path}: list {part}, graph {place}", each)
            for part, held in enumerate(lists)
            for place, each in enumerate(held)
        ]
        if not places:
            raise InputError(f"{path}: no graph in it")
        return make_graph_set(
            path.stem.removesuffix("_v2"),
            labels=np.array([_class(where, graph) for where, graph in places]),
            split=np.repeat(np.arange(_LISTS), [len(held) for held in lists]),
            where=str(path),
            **joined([self._piece(where, graph, 2 + _COLOURS[path.name]) for where, graph in places]),
        )

    def _piece(self, where: str, graph: Any, width: int) -> Piece:
        colours, places, ends = (_array(where, graph, name) for name in ("x", "pos", "edge_index"))
        if places.ndim != 2 or colours.ndim != 2 or places.shape != (len(colours), 2):
            raise InputError(f"{where}: expected x (n, C) and pos (n, 2), found {colours.shape} and {places.shape}")
        apart = None
        if self._edge_features:
            apart = _array(where, graph, "edge_attr")
            apart = apart[:, None] if apart.ndim == 1 else apart
        return make_piece(where, np.hstack([colours, places]), ends, apart, width)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return [path / name for name in _COLOURS if (path / name).is_file()]
    return [path] if path.is_file() and path.name in _COLOURS else []


def _entry(where: str, graph: Any, name: str) -> Any:
    if not isinstance(graph, dict) or name not in graph:
        found = ", ".join(map(str, graph)) if isinstance(graph, dict) else type(graph).__name__
        raise InputError(f"{where}: {name!r} is missing; found {shown(found)}")
    return graph[name]


def _array(where: str, graph: Any, name: str) -> np.ndarray:
    return array_of(f"{where}: {name!r}", _entry(where, graph, name))


def _class(where: str, graph: Any) -> int:
    given = _entry(where, graph, "y")
    found = np.array(given) if type(given) is int else array_of(f"{where}: 'y'", given)
    if found.size != 1 or found.dtype.kind not in "iu":
        raise InputError(f"{where}: 'y': expected one whole number, found {found.dtype} of shape {found.shape}")
    return int(found.item())
