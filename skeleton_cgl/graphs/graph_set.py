"""One value for a set of graphs that are classified as a whole, such as molecules, whatever file it came from.

Letters: G graphs, N nodes and E edges of all of them, F features, B features of edges, K classes or labels.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from skeleton_cgl.graphs.items import (
    NO_CLASS,
    Groups,
    ItemKind,
    Refusing,
    checked_ends,
    checked_features,
    checked_items,
    digest_of,
    item_arrays,
)


@dataclass(frozen=True, eq=False)
class GraphSet:
    """Graphs one after the other; `make_graph_set` makes one, and refuses what is none.

    starts (G + 1,): the first node of every graph, and the number of all nodes. edges (2, E) from sources to targets,
    sorted by target and then by source; both ends are in one graph, and a link without a direction stands in both.
    features (N, F). codes: where features are no measures but numbers of kinds, how many kinds there are of each.
    edge_features (E, B) and edge_codes: the same of edges, where they have any. texts: what people call each graph,
    such as the SMILES of a molecule. notes: what a user must know of how they were read, in words. The rest is what all
    `Items` have, a graph being one; of many labels, float32, those that are not known are NaN.
    """

    item: ClassVar[ItemKind] = "graph"

    name: str
    starts: np.ndarray
    edges: np.ndarray
    features: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]
    codes: tuple[int, ...] | None = None
    edge_features: np.ndarray | None = None
    edge_codes: tuple[int, ...] | None = None
    groups: Mapping[str, Groups] = field(default_factory=lambda: MappingProxyType({}))
    times: np.ndarray | None = None
    split: np.ndarray | None = None
    texts: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def many_labels(self) -> bool:
        """Whether a graph may have several labels."""
        return self.labels.ndim == 2

    @property
    def sizes(self) -> np.ndarray:
        """(G,) the number of nodes of every graph."""
        return np.diff(self.starts)

    @cached_property
    def edge_starts(self) -> np.ndarray:
        """(G + 1,): the first edge of every graph, and the number of all edges."""
        return np.searchsorted(self.edges[1], self.starts)

    @cached_property
    def digest(self) -> str:
        """A digest of everything but the name, the texts and the notes."""
        return digest_of(self._arrays())

    def _arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        yield "starts", self.starts
        yield "edges", self.edges
        yield f"features of {self.codes}", self.features
        if self.edge_features is not None:
            yield f"edge features of {self.edge_codes}", self.edge_features
        yield from item_arrays(self)


def make_graph_set(
    name: str,
    starts: np.ndarray,
    edges: np.ndarray,
    features: np.ndarray,
    labels: np.ndarray,
    classes: tuple[str, ...] | None = None,
    codes: tuple[int, ...] | None = None,
    edge_features: np.ndarray | None = None,
    edge_codes: tuple[int, ...] | None = None,
    groups: Mapping[str, Groups] | None = None,
    times: np.ndarray | None = None,
    split: np.ndarray | None = None,
    texts: tuple[str, ...] | None = None,
    notes: tuple[str, ...] = (),
    both_ways: bool = False,
    where: str = "graphs",
) -> GraphSet:
    """Return graphs of what a reader found; both_ways: every edge is given once and stands for both directions.

    Refused, with the field and beginning with `where`: what `make_graph` refuses, of graphs; a graph without nodes, an
    edge from one graph to another, an edge given twice, numbers of kinds that there are not.
    """
    refuse = Refusing(where, "graph")
    checked = checked_features(features, refuse)
    if not isinstance(checked, np.ndarray):
        raise refuse("features", "expected a dense table, found sparse rows")
    nodes = len(checked)
    starts = _checked_starts(np.asarray(starts), nodes, refuse)
    _check_codes("features", checked, codes, refuse)
    ends = checked_ends("edges", np.asarray(edges), nodes, refuse)
    if edge_features is not None:
        edge_features = _checked_edge_features(np.asarray(edge_features), ends.shape[1], refuse)
        _check_codes("edge_features", edge_features, edge_codes, refuse)
    if both_ways:
        # A loop is its own other direction.
        proper = ends[0] != ends[1]
        ends = np.concatenate([ends, ends[::-1, proper]], axis=1)
        edge_features = None if edge_features is None else np.concatenate([edge_features, edge_features[proper]])
    sequence = np.lexsort(ends)
    ends = ends[:, sequence]
    _check_edges(ends, starts, refuse)
    items = checked_items(len(starts) - 1, labels, classes, groups, times, split, refuse, missing=True)
    if texts is not None and len(texts) != len(starts) - 1:
        raise refuse("texts", f"expected one for each of {len(starts) - 1} graphs, found {len(texts)}")
    return GraphSet(
        name,
        starts,
        ends,
        checked,
        codes=_plain(codes),
        edge_features=None if edge_features is None else edge_features[sequence],
        edge_codes=_plain(edge_codes),
        texts=texts,
        notes=notes,
        **items,
    )


def _checked_starts(starts: np.ndarray, nodes: int, refuse: Refusing) -> np.ndarray:
    if starts.ndim != 1 or len(starts) < 2 or starts.dtype.kind not in "iu":
        expected = "expected the first node of every graph and the number of all"
        raise refuse("starts", f"{expected}, found {starts.dtype} of shape {starts.shape}")
    if starts[0] != 0 or starts[-1] != nodes:
        raise refuse("starts", f"expected to begin with 0 and to end with {nodes}, found {starts[0]} and {starts[-1]}")
    starts = starts.astype(np.int64)
    if (np.diff(starts) < 1).any():
        raise refuse("starts", f"graph {int(np.argmax(np.diff(starts) < 1))} has no nodes")
    return starts


def _checked_edge_features(features: np.ndarray, edges: int, refuse: Refusing) -> np.ndarray:
    if features.ndim != 2 or len(features) != edges or not features.shape[1] or features.dtype.kind not in "biuf":
        raise refuse("edge_features", f"expected numbers ({edges}, B), found {features.dtype} {features.shape}")
    found = features.astype(np.float32)
    if not np.isfinite(found).all():
        raise refuse("edge_features", f"edge {int(np.argmin(np.isfinite(found).all(axis=1)))} has one not finite")
    return found


def _check_codes(field: str, features: np.ndarray, codes: tuple[int, ...] | None, refuse: Refusing) -> None:
    if codes is None:
        return
    if len(codes) != features.shape[1]:
        raise refuse(field, f"{features.shape[1]} columns, but kinds of {len(codes)}")
    wrong = (features < 0) | (features >= np.array(codes)) | (features != np.floor(features))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise refuse(
            field,
            f"column {column}: expected a whole number from 0 to {codes[column] - 1}, found {features[row, column]}",
        )


def _plain(codes: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return codes as numbers of Python: those of NumPy would be others to the digest."""
    return None if codes is None else tuple(int(code) for code in codes)


def _check_edges(ends: np.ndarray, starts: np.ndarray, refuse: Refusing) -> None:
    """Refuse edges between graphs, and edges given twice; they are sorted."""
    apart = np.searchsorted(starts, ends[0], side="right") != np.searchsorted(starts, ends[1], side="right")
    twice = np.append((np.diff(ends, axis=1) == 0).all(axis=0), False) if ends.shape[1] else apart
    for wrong, reason in ((apart, "leads from one graph to another"), (twice, "is given twice")):
        if wrong.any():
            source, target = ends[:, int(np.argmax(wrong))].tolist()
            raise refuse("edges", f"edge {source} – {target} {reason}")


__all__ = ["NO_CLASS", "GraphSet", "Groups", "make_graph_set"]
