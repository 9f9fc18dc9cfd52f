"""Graphs that files give one by one, each with nodes numbered from 0, put one after the other as a `GraphSet` has them.

Letters: n nodes and e edges of one graph, F features, B features of edges.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skeleton_cgl.errors import InputError


@dataclass(frozen=True, eq=False)
class Piece:
    """One graph: features (n, F), ends (2, e) of its edges, and edge_features (e, B), where there are any."""

    features: np.ndarray
    ends: np.ndarray
    edge_features: np.ndarray | None = None


def make_piece(
    where: str,
    features: np.ndarray,
    ends: np.ndarray,
    edge_features: np.ndarray | None = None,
    width: int | None = None,
) -> Piece:
    """Return one graph; width: how many features there are to be.

    Refused, beginning with `where`: a graph without nodes, tables of other shapes, an end that is none of its nodes.
    """
    if features.ndim != 2 or features.dtype.kind not in "biuf" or (width is not None and features.shape[1] != width):
        expected = "F" if width is None else width
        raise InputError(f"{where}: features: expected numbers (n, {expected}), found {_found(features)}")
    nodes = len(features)
    if not nodes:
        raise InputError(f"{where}: features: no node in it")
    if ends.ndim != 2 or len(ends) != 2 or (ends.dtype.kind not in "iu" and ends.size):
        raise InputError(f"{where}: edges: expected whole numbers (2, e), found {_found(ends)}")
    if ends.size and not 0 <= ends.min() <= ends.max() < nodes:
        raise InputError(f"{where}: edges: an end is outside the nodes 0–{nodes - 1}")
    if edge_features is not None and (edge_features.ndim != 2 or len(edge_features) != ends.shape[1]):
        raise InputError(f"{where}: edge features: expected ({ends.shape[1]}, B), found {_found(edge_features)}")
    return Piece(features, ends.astype(np.int64), edge_features)


def joined(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Return starts, edges, features and edge_features of graphs one after the other, by name of the field.

    Their numbers of features have to be the same, and all have features of edges, or none.
    """
    starts = np.cumsum([0, *(len(piece.features) for piece in pieces)])
    of_edges = [piece.edge_features for piece in pieces if piece.edge_features is not None]
    return {
        "starts": starts,
        "edges": np.concatenate([piece.ends + start for piece, start in zip(pieces, starts[:-1], strict=True)], axis=1),
        "features": np.concatenate([piece.features for piece in pieces]),
        "edge_features": np.concatenate(of_edges) if of_edges else None,
    }


def _found(array: np.ndarray) -> str:
    return f"{array.dtype} of shape {array.shape}"
