"""What scenarios on links make of them: the edges that carry messages, and degrees as features."""

import numpy as np


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
