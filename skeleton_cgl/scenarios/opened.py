"""The graph of a scenario: opened by what a study calls it, once for all repeats, its nodes in a random sequence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from skeleton_cgl.graphs.datasets import open_graph
from skeleton_cgl.graphs.graph import Graph, Groups
from skeleton_cgl.seeds import seed_of


@dataclass(frozen=True, eq=False)
class Opened:
    """A graph with its nodes in a random sequence, and the number (N,) that each had before."""

    graph: Graph
    order: np.ndarray


def open_shuffled(data: str, options: Mapping[str, Any]) -> Opened:
    """Return the graph that `data` names, as the reader's options say, its nodes in a sequence that tells nothing.

    In files, nodes often stand sorted by part and by class.
    """
    return _opened(data, json.dumps(dict(options), sort_keys=True), _state(Path(data)))


@lru_cache(maxsize=1)
def _opened(data: str, options: str, state: tuple[int, ...]) -> Opened:  # noqa: ARG001
    return shuffled(open_graph(data, json.loads(options)))


def _state(path: Path) -> tuple[int, ...]:
    """Return numbers that change when a file, or one in a folder, is changed; none where there is no such path."""
    if not path.exists():
        return ()
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return tuple(number for file in files for number in (file.stat().st_mtime_ns, file.stat().st_size))


def shuffled(graph: Graph) -> Opened:
    """Return a graph with its nodes in another sequence, always the same for one number of nodes."""
    order = np.random.default_rng(seed_of("nodes")).permutation(len(graph))
    place = np.argsort(order)
    groups = {name: Groups(each.numbers[order], each.names) for name, each in graph.groups.items()}
    ends = place[graph.edges]
    changed = replace(
        graph,
        # Sorted by target and then by source, as edges of graphs are.
        edges=ends[:, np.lexsort(ends)],
        features=graph.features[order],
        labels=graph.labels[order],
        groups=MappingProxyType(groups),
        times=None if graph.times is None else graph.times[order],
        split=None if graph.split is None else graph.split[order],
    )
    return Opened(changed, order)
