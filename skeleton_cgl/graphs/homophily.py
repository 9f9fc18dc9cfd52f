"""How alike the ends of edges are (Zhao et al., AGALE, TMLR 2024): label homophily of edges, nodes and graphs.

Of an edge, the Jaccard similarity of the label sets of its ends, h_e = |L_i ∩ L_j| / |L_i ∪ L_j|; of a node, the mean
over its edges; of a graph, the mean over all edges. Where nodes have one class each, h_e is 1 or 0. Left out of the
means are loops, which join a node to itself, and edges with an end that has no label.

Letters: N nodes, E edges, K labels.
"""

import numpy as np

_EDGES_AT_ONCE = 2**16


def edge_homophily(labels: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return (E,) h_e, NaN where an end has no label, of labels (N,) or (N, K) as a `Graph` has them."""
    sources, targets = edges
    if labels.ndim == 1:
        known = (labels[sources] >= 0) & (labels[targets] >= 0)
        return np.where(known, labels[sources] == labels[targets], np.nan)
    found = np.full(edges.shape[1], np.nan)
    has = labels.astype(bool)
    sizes = has.sum(axis=1)
    # A few edges at a time: (E, K) of a large graph would be larger than the graph.
    for start in range(0, len(found), _EDGES_AT_ONCE):
        some = slice(start, start + _EDGES_AT_ONCE)
        common = (has[sources[some]] & has[targets[some]]).sum(axis=1)
        either = sizes[sources[some]] + sizes[targets[some]] - common
        known = (sizes[sources[some]] > 0) & (sizes[targets[some]] > 0)
        np.divide(common, either, out=found[some], where=known)
    return found


def node_homophily(labels: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return (N,) the mean of h_e over a node's edges, whichever way they lead; NaN where it has none that counts."""
    found, ends = _counted(labels, edges)
    numbers = np.bincount(ends.ravel(), minlength=len(labels))
    sums = np.bincount(ends.ravel(), np.tile(found, 2), minlength=len(labels))
    return np.divide(sums, numbers, out=np.full(len(labels), np.nan), where=numbers > 0)


def graph_homophily(labels: np.ndarray, edges: np.ndarray) -> float:
    """Return the mean of h_e over edges; NaN where none counts."""
    found, _ = _counted(labels, edges)
    return float(found.mean()) if len(found) else float("nan")


def _counted(labels: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return h_e (E′,) of the edges that count, and their ends (2, E′)."""
    found = edge_homophily(labels, edges)
    counts = ~np.isnan(found) & (edges[0] != edges[1])
    return found[counts], edges[:, counts]
