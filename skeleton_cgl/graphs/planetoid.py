"""The Planetoid citation graphs (Yang et al. 2016): Cora and Citeseer with their original split.

They circulate as pickles, which are read by the restricted unpickler.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.reading.pickled import SparseRows
from skeleton_cgl.reading.unpickle import load_pickle

_VALIDATION_NODES = 500


@dataclass(frozen=True)
class CitationGraph:
    """A graph of n nodes: features (n, F), labels (n,), parts (n,) of the split, edges (2, E) in both directions."""

    features: np.ndarray
    labels: np.ndarray
    parts: np.ndarray
    edges: np.ndarray


def read_planetoid(folder: str | Path, name: str) -> CitationGraph:
    """Return the graph `ind.NAME.*` of a folder; refuse missing and unexpected files, naming file and field.

    Test nodes are put where `test.index` says; of Citeseer, a few numbers in its range belong to nodes without links or
    content, which get zero features and are in no part.
    """
    folder = Path(folder)
    x, tx, allx = (_features(folder / f"ind.{name}.{part}") for part in ("x", "tx", "allx"))
    ty, ally = (_labels(folder / f"ind.{name}.{part}") for part in ("ty", "ally"))
    places = _test_places(folder / f"ind.{name}.test.index", len(tx))
    count = max(len(allx), places.max() + 1)
    features = np.zeros((count, allx.shape[1]), dtype=np.float32)
    one_hot = np.zeros((count, ally.shape[1]))
    features[: len(allx)], one_hot[: len(allx)] = allx, ally
    features[places], one_hot[places] = tx, ty
    parts = np.full(count, UNUSED)
    parts[: len(x)] = TRAINING
    parts[len(x) : len(x) + _VALIDATION_NODES] = VALIDATION
    parts[places] = TEST
    return CitationGraph(features, one_hot.argmax(axis=1), parts, _edges(folder / f"ind.{name}.graph", count))


def _features(path: Path) -> np.ndarray:
    content = load_pickle(path)
    if not isinstance(content, SparseRows):
        raise InputError(f"{path}: expected a sparse matrix, found {type(content).__name__}")
    try:
        return content.dense()
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _labels(path: Path) -> np.ndarray:
    content = load_pickle(path)
    if not isinstance(content, np.ndarray) or content.ndim != 2:
        raise InputError(f"{path}: expected one-hot rows, found {type(content).__name__}")
    return content


def _test_places(path: Path, expected: int) -> np.ndarray:
    try:
        places = np.array([int(line) for line in path.read_text().split()])
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected a node number per line: {error}") from error
    if len(places) != expected:
        raise InputError(f"{path}: expected {expected} node numbers, found {len(places)}")
    return places


def _edges(path: Path, count: int) -> np.ndarray:
    """Return (2, E): every link in both directions, and a self-loop per node, each once."""
    content = load_pickle(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected lists of neighbours, found {type(content).__name__}")
    pairs = [(node, other) for node, others in content.items() for other in others]
    links = np.array(pairs, dtype=np.int64).T
    if links.min() < 0 or links.max() >= count:
        raise InputError(f"{path}: a link leads outside the nodes 0–{count - 1}")
    loops = np.tile(np.arange(count), (2, 1))
    return np.unique(np.concatenate([links, links[::-1], loops], axis=1), axis=1)
