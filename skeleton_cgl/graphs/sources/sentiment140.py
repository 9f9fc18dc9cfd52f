"""Sentiment140 as BeGin has it (Ko et al. 2022): parse trees of posts, negative or positive, period by period.

A pickle of a dict: `graphs`, a list of dicts with nfeats (n, 300), vectors of words; srcs and dsts (e,), from source to
target; labels, a number that is above 0 where the post is positive. `inner_tvt_splits` (G,): a number whose last digit
says the part: 0–5 training, 6 and 7 validation, 8 and 9 test. `time_info` (G,): the period.
"""

from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.options import existing
from skeleton_cgl.graphs.pieces import Piece, joined, make_piece
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.unpickle import load_pickle

_FILE = "sentiment_metadata_allIL.pkl"
_FEATURES = 300
_PART_OF_DIGIT = np.repeat([TRAINING, VALIDATION, TEST], [6, 2, 2])


class Sentiment140(GraphSource):
    """The graphs of `sentiment_metadata_allIL.pkl`, or of a folder with it.

    Arrays and numbers, and tensors of PyTorch in place of arrays, are read from it, and nothing else.
    """

    published = "github.com/jihoon-ko/BeGin/tree/main/metadata"

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return (path / _FILE).is_file() or (path.is_file() and path.name == _FILE)

    def read(self) -> GraphSet:
        path = existing(self._path / _FILE if self._path.is_dir() else self._path, self.published)
        content = load_pickle(path)
        graphs = _entry(str(path), content, "graphs")
        if not isinstance(graphs, list) or not graphs:
            raise InputError(f"{path}: 'graphs': expected a list of graphs, found {shown(type(graphs).__name__)}")
        digits, times = (_whole(str(path), content, name, len(graphs)) for name in ("inner_tvt_splits", "time_info"))
        places = [(f"{path}: graph {place}", graph) for place, graph in enumerate(graphs)]
        return make_graph_set(
            "Sentiment140",
            labels=np.array([int(_label(where, graph) > 0) for where, graph in places]),
            classes=("negative", "positive"),
            times=times,
            split=_PART_OF_DIGIT[digits % 10],
            where=str(path),
            **joined([_piece(where, graph) for where, graph in places]),
        )


def _entry(where: str, content: Any, name: str) -> Any:
    if not isinstance(content, dict) or name not in content:
        found = ", ".join(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise InputError(f"{where}: {name!r} is missing; found {shown(found)}")
    return content[name]


def _array(where: str, content: Any, name: str) -> np.ndarray:
    found = _entry(where, content, name)
    numbers = isinstance(found, list) and all(type(each) in (int, float) for each in found)
    if not numbers and not isinstance(found, np.ndarray):
        raise InputError(f"{where}: {name!r}: expected an array, found {type(found).__name__}")
    return np.asarray(found)


def _whole(where: str, content: Any, name: str, count: int) -> np.ndarray:
    found = _array(where, content, name)
    if found.shape != (count,) or found.dtype.kind not in "iu":
        raise InputError(
            f"{where}: {name!r}: expected a whole number for each of {count} graphs, found {found.dtype} {found.shape}"
        )
    return found


def _label(where: str, graph: Any) -> float:
    found = np.asarray(_entry(where, graph, "labels"))
    if found.size != 1 or found.dtype.kind not in "biuf":
        raise InputError(f"{where}: 'labels': expected one number, found {found.dtype} of shape {found.shape}")
    return float(found.item())


def _piece(where: str, graph: Any) -> Piece:
    features, sources, targets = (_array(where, graph, name) for name in ("nfeats", "srcs", "dsts"))
    if sources.ndim != 1 or sources.shape != targets.shape:
        raise InputError(f"{where}: expected srcs (e,) and dsts (e,), found {sources.shape} and {targets.shape}")
    return make_piece(where, features, np.stack([sources, targets]), width=_FEATURES)
