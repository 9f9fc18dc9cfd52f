"""Counts that summaries share, as plain values.

Letters: I items, N nodes, E edges, K classes or labels.
"""

from typing import Any

import numpy as np

from skeleton_cgl.graphs.items import Features, Items
from skeleton_cgl.parts import NAMES, UNUSED


def counts_of_items(items: Items) -> dict[str, Any]:
    """Return what is counted of items whatever they are: classes, groups, times, parts, and the digest."""
    return {
        "item": items.item,
        "name": items.name,
        "digest": items.digest,
        "many_labels": items.many_labels,
        "classes": [
            {"label": label, "name": name, f"{items.item}s": int(count)}
            for label, (name, count) in enumerate(zip(items.classes, class_counts(items), strict=True))
        ],
        "groups": {
            called: [
                {"name": name, f"{items.item}s": int(count)}
                for name, count in zip(groups.names, _counted(groups.numbers, len(groups.names)), strict=True)
            ]
            for called, groups in items.groups.items()
        },
        "times": None if items.times is None else _times(items.times),
        "split": None if items.split is None else parts_of(items.split),
    }


def class_counts(items: Items) -> np.ndarray:
    """Return (K,) how many items have each class or label."""
    if items.many_labels:
        return (items.labels == 1).sum(axis=0, dtype=np.int64)
    return _counted(items.labels, len(items.classes))


def degrees_of(edges: np.ndarray, nodes: int) -> np.ndarray:
    """Return (N,) how many other nodes each has an edge with, whichever way it leads and however often it is there."""
    ends = np.sort(edges[:, edges[0] != edges[1]], axis=0)
    links = np.unique(ends[0] * nodes + ends[1])
    return np.bincount(np.concatenate([links // nodes, links % nodes]), minlength=nodes)


def counts_of_edges(edges: np.ndarray, nodes: int) -> dict[str, Any]:
    """Return the number of edges between two nodes, whether each is there both ways, and the number of loops."""
    sources, targets = edges
    loops = sources == targets
    there, back = (np.sort(one * nodes + other) for one, other in ((sources, targets), (targets, sources)))
    return {
        "number": int((~loops).sum()),
        "both_ways": bool(np.array_equal(there, back)),
        "loops": int(loops.sum()),
    }


def spread_of(numbers: np.ndarray) -> dict[str, Any]:
    """Return the least, median, mean and most of whole numbers."""
    return {
        "least": int(numbers.min()),
        "median": float(np.median(numbers)),
        "mean": float(numbers.mean()),
        "most": int(numbers.max()),
    }


def counts_of_degrees(edges: np.ndarray, nodes: int) -> dict[str, Any]:
    """Return how degrees are spread, and how many nodes have none."""
    degrees = degrees_of(edges, nodes)
    return {**spread_of(degrees), "isolated": int((degrees == 0).sum())}


def counts_of_features(features: Features) -> dict[str, Any]:
    """Return how many features there are, how they are kept, and the share of them that is not zero."""
    rows, number = features.shape
    dense = isinstance(features, np.ndarray)
    values = features if isinstance(features, np.ndarray) else features.data
    return {
        "number": number,
        "kept": "dense" if dense else "sparse",
        "nonzero": float(np.count_nonzero(values) / max(rows * number, 1)),
    }


def parts_of(split: np.ndarray) -> dict[str, int]:
    """Return how many items each part has, by its name."""
    parts = {**dict(enumerate(NAMES)), UNUSED: "unused"}
    return {name: int((split == part).sum()) for part, name in parts.items()}


def _counted(numbers: np.ndarray, end: int) -> np.ndarray:
    """Return how often each number from 0 to before `end` is there; those below belong to nothing."""
    return np.bincount(numbers[numbers >= 0], minlength=end)


def _times(times: np.ndarray) -> dict[str, int]:
    return {"first": int(times.min()), "last": int(times.max()), "different": len(np.unique(times))}
