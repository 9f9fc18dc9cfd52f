"""What scenarios on links make of them: a graph that messages pass along, with degrees where no features are given."""

from dataclasses import dataclass

import numpy as np

from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.items import Features


@dataclass(frozen=True, eq=False)
class Connections:
    """Links (2, L) between so many nodes, without labels; features (N, F) of the nodes, if any are given.

    Without any, a view has the degrees of its own links.
    """

    ends: np.ndarray
    nodes: int
    directed: bool
    features: Features | None
    self_loops: bool

    @property
    def width(self) -> int:
        """The number of features."""
        return 1 + self.directed if self.features is None else int(self.features.shape[1])

    def places(self, seen: np.ndarray, pairs: np.ndarray, numbers: np.ndarray) -> Places:
        """Return pairs of nodes (P, 2), which these ascending numbers ask for, in the graph of links (2, S)."""
        features = degrees(seen, self.nodes, self.directed) if self.features is None else self.features
        edges = message_edges(seen, self.nodes, self.directed)
        return Places.of(edges, features, pairs, self.self_loops, numbers=numbers)


def message_edges(ends: np.ndarray, nodes: int, directed: bool) -> np.ndarray:
    """Return (2, E) the edges that messages pass along: every link once, in both directions unless directed."""
    sources, targets = ends if directed else np.concatenate([ends, ends[::-1]], axis=1)
    unique = np.unique(targets * nodes + sources)
    return np.stack([unique % nodes, unique // nodes])


def degrees(ends: np.ndarray, nodes: int, directed: bool) -> np.ndarray:
    """Return (N, 2) the number of links to every node and from it; where they have no direction, (N, 1) of all."""
    outward, inward = (np.bincount(part, minlength=nodes) for part in ends)
    columns = [inward, outward] if directed else [inward + outward]
    return np.stack(columns, axis=1).astype(np.float32)
