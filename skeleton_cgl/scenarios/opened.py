"""The data of a scenario: opened by what a study calls it, once for all repeats, its items in a random sequence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.datasets import open_graph
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.graphs.items import Groups, Items
from skeleton_cgl.graphs.link_set import LinkSet
from skeleton_cgl.graphs.source import GraphData
from skeleton_cgl.seeds import seed_of

Data = TypeVar("Data", bound=GraphData)

_HAS = {
    Graph: "a graph of nodes with classes or labels; that is kind: node, multilabel or link-prediction",
    LinkSet: "links; that is kind: link or link-prediction",
    GraphSet: "whole graphs with classes or labels; that is kind: graph",
}


@dataclass(frozen=True, eq=False)
class Opened(Generic[Data]):
    """Data with their items in a random sequence, and the number (I,) that each had before."""

    data: Data
    order: np.ndarray


def open_shuffled(data: str, options: Mapping[str, Any], *expected: type[Data]) -> Opened[Data]:
    """Return what `data` names, as the reader's options say, its items in a sequence that tells nothing.

    In files, items often stand sorted by part and by class. Refused: data of another kind than expected.
    """
    opened = _opened(data, json.dumps(dict(options), sort_keys=True), _state(Path(data)))
    if not isinstance(opened.data, expected):
        raise InputError(f"scenario: data: {opened.data.name} has {_HAS[type(opened.data)]}")
    return opened


@lru_cache(maxsize=1)
def _opened(data: str, options: str, state: tuple[int, ...]) -> Opened[Any]:  # noqa: ARG001
    return shuffled(open_graph(data, json.loads(options)))


def _state(path: Path) -> tuple[int, ...]:
    """Return numbers that change when a file, or one in a folder, is changed; none where there is no such path."""
    if not path.exists():
        return ()
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return tuple(number for file in files for number in (file.stat().st_mtime_ns, file.stat().st_size))


def shuffled(data: Data) -> Opened[Data]:
    """Return data with their items in another sequence, always the same for one number of items."""
    order = np.random.default_rng(seed_of("nodes")).permutation(len(data))
    changed = {Graph: _nodes, LinkSet: _links, GraphSet: _graphs}[type(data)](data, order)
    return Opened(replace(data, **changed, **_of_items(data, order)), order)


def _of_items(items: Items, order: np.ndarray) -> dict[str, Any]:
    groups = {name: Groups(each.numbers[order], each.names) for name, each in items.groups.items()}
    return {
        "labels": items.labels[order],
        "groups": MappingProxyType(groups),
        "times": None if items.times is None else items.times[order],
        "split": None if items.split is None else items.split[order],
    }


def _nodes(graph: Any, order: np.ndarray) -> dict[str, Any]:
    ends = np.argsort(order)[graph.edges]
    # Sorted by target and then by source, as edges of graphs are.
    return {"edges": ends[:, np.lexsort(ends)], "features": graph.features[order]}


def _links(links: Any, order: np.ndarray) -> dict[str, Any]:
    return {"ends": links.ends[:, order]}


def _graphs(graphs: Any, order: np.ndarray) -> dict[str, Any]:
    sizes = graphs.sizes[order]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    shift = starts[:-1] - graphs.starts[:-1][order]
    nodes = _ranges(graphs.starts[:-1][order], sizes)
    counts = np.diff(graphs.edge_starts)[order]
    edges = _ranges(graphs.edge_starts[:-1][order], counts)
    return {
        "starts": starts,
        "edges": graphs.edges[:, edges] + np.repeat(shift, counts),
        "features": graphs.features[nodes],
        "edge_features": None if graphs.edge_features is None else graphs.edge_features[edges],
        "texts": None if graphs.texts is None else tuple(graphs.texts[place] for place in order.tolist()),
    }


def _ranges(begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return so many numbers from each beginning on, one range after the other."""
    firsts = np.cumsum(counts) - counts
    found: np.ndarray = np.arange(int(counts.sum())) + np.repeat(begins - firsts, counts)
    return found
