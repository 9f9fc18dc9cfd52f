"""Graphs made up for benchmarks: of the sizes of Cora, Citeseer, ogbn-arxiv, Reddit, Aromaticity and Bitcoin-OTC."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from method_costs import Setting
from scipy.sparse import csr_array

from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.datasets import open_graph
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.parts import TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.graph import WholeGraphSettings
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.node import NodeSettings
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.scenarios.views import GraphPool, Surroundings

CORA, CITESEER = (2708, 5278, 1433, 18, 7), (3327, 4552, 3703, 32, 6)
"""Nodes, links, features, words of a node, classes."""
ARXIV = (169_343, 1_166_243, 128, 40)
"""Nodes, links, features, classes."""
REDDIT_DEGREE = 500
AROMATICITY = (3868, 29.7, 30, 3, 128)
"""Graphs, their mean number of nodes, classes, classes of a task, graphs of a batch."""
BITCOIN = (6005, 35_592, 9_943, 6)
"""Nodes, links, pairs that have a class, classes."""


@dataclass(frozen=True)
class Data:
    """A graph with its features, labels and parts; edges (2, E) in both directions, without loops."""

    edges: np.ndarray
    features: np.ndarray | csr_array
    labels: np.ndarray
    parts: np.ndarray


def citation_graph(size: tuple[int, ...], folder: Path | None, name: str) -> Data:
    """Return Cora or Citeseer from their files, or a graph of that size and sparsity."""
    if folder is not None:
        found = open_graph(str(folder), {"name": "planetoid", "dataset": name})
        assert found.split is not None
        # Nodes without a class are in no part.
        return Data(found.edges, found.features, found.labels.clip(0), found.split)
    nodes, links, width, words, classes = size
    random = np.random.default_rng(0)
    columns = random.integers(0, width, (nodes, words))
    features = csr_array(
        (np.full(nodes * words, 1 / words, dtype=np.float32), (np.repeat(np.arange(nodes), words), columns.ravel())),
        shape=(nodes, width),
    )
    parts = np.full(nodes, UNUSED)
    parts[:-1000], parts[-1000:] = UNUSED, TEST
    parts[: 20 * classes], parts[20 * classes : 20 * classes + 500] = TRAINING, VALIDATION
    return Data(linked(nodes, links, random), features, np.arange(nodes) % classes, parts)


def large_graph(nodes: int, links: int, width: int, classes: int) -> Data:
    """Return a graph with dense features; half of its nodes are to learn from."""
    random = np.random.default_rng(0)
    features = random.standard_normal((nodes, width), dtype=np.float32)
    parts = np.where(np.arange(nodes) % 2, TRAINING, np.where(np.arange(nodes) % 4, VALIDATION, TEST))
    return Data(linked(nodes, links, random), features, random.integers(0, classes, nodes), parts)


def linked(nodes: int, links: int, random: np.random.Generator) -> np.ndarray:
    """Return (2, E): random links in both directions, each once, none from a node to itself."""
    ends = random.integers(0, nodes, (2, links + links // 50))
    ends = ends[:, ends[0] != ends[1]]
    keys = np.unique(np.minimum(*ends) * nodes + np.maximum(*ends))
    chosen = keys if len(keys) <= links else random.choice(keys, links, replace=False)
    sources, targets = chosen // nodes, chosen % nodes
    return np.stack([np.concatenate([sources, targets]), np.concatenate([targets, sources])])


def scenario_of(data: Data, classes_per_task: int, setting: Setting = "class-il") -> LabelledSamples:
    """Return nodes of a graph, all of which is in view, as a scenario; a loop is at each."""
    return LabelledSamples(
        Surroundings(data.edges, data.features, self_loops=True).whole,
        data.labels,
        data.parts,
        _names(int(data.labels.max()) + 1),
        ClassTasks(setting=setting, classes_per_task=classes_per_task),
        Facts("graph", {"features": data.features.shape[1]}),
        b"benchmark",
        NodeSettings.offered,
    )


def _names(classes: int) -> tuple[str, ...]:
    return tuple(f"class {label}" for label in range(classes))


def molecules(graphs: int, mean_nodes: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return starts and edges of graphs of the sizes of Aromaticity's: chains with branches, and a few rings each."""
    sizes = random.poisson(mean_nodes - 8, graphs) + 8
    starts = np.concatenate([[0], sizes.cumsum()])
    bonds = []
    for start, size in zip(starts, sizes, strict=False):
        nodes = np.arange(1, size)
        before = nodes - np.minimum(random.choice([1, 1, 1, 2], size - 1), nodes)
        rings = random.choice(size - 5, min(4, size - 5), replace=False)
        bonds.append(start + np.concatenate([[nodes, before], [rings, rings + 5]], axis=1))
    ends = np.concatenate(bonds, axis=1)
    edges = np.unique(np.concatenate([ends, ends[::-1]], axis=1), axis=1)
    return starts, edges


def molecule_scenario(
    starts: np.ndarray, edges: np.ndarray, classes: int, classes_per_task: int, setting: Setting = "class-il"
) -> LabelledSamples:
    """Return graphs as a scenario; nodes tell their degree alone."""
    graphs = len(starts) - 1
    return LabelledSamples(
        GraphPool(Graphs.of(starts, edges, degrees_of(starts, edges), self_loops=False)),
        np.arange(graphs) % classes,
        np.random.default_rng(1).choice([TRAINING, VALIDATION, TEST], graphs, p=[0.6, 0.2, 0.2]),
        _names(classes),
        ClassTasks(setting=setting, classes_per_task=classes_per_task),
        Facts("graph", {"features": 2, "rows": "graphs"}),
        b"benchmark",
        WholeGraphSettings.offered,
    )


def degrees_of(starts: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return (N, 2) in- and out-degrees, which are equal."""
    return np.repeat(np.bincount(edges[1], minlength=starts[-1])[:, None], 2, axis=1).astype(np.float32)


def dgl_graphs(starts: np.ndarray, edges: np.ndarray) -> list[Any]:
    """Return each of many graphs as a graph of DGL's."""
    import dgl

    whole = dgl.graph(tuple(torch.from_numpy(ends) for ends in edges), num_nodes=int(starts[-1]))
    whole.ndata["features"] = torch.from_numpy(degrees_of(starts, edges))
    whole.set_batch_num_nodes(torch.from_numpy(np.diff(starts)))
    owners = np.searchsorted(starts, edges[1], side="right") - 1
    whole.set_batch_num_edges(torch.from_numpy(np.bincount(owners, minlength=len(starts) - 1)))
    return dgl.unbatch(whole)


def rating_scenario(nodes: int, links: int, pairs: int, classes: int) -> tuple[LabelledSamples, Places]:
    """Return pairs of nodes that are linked as a scenario, and as places in their graph."""
    random = np.random.default_rng(0)
    # A few take part in many ratings.
    popular = (nodes * random.random((2, 2 * links)) ** 3).astype(np.int64)
    edges = np.unique(popular[:, popular[0] != popular[1]], axis=1)
    edges = edges[:, np.sort(random.choice(edges.shape[1], links, replace=False))]
    features = np.stack([np.bincount(ends, minlength=nodes) for ends in edges], axis=1).astype(np.float32)
    at = edges[:, random.choice(links, pairs, replace=False)].T
    places = Places.of(edges, features, at, self_loops=True)
    scenario = LabelledSamples(
        GraphPool(places),
        random.integers(0, classes, pairs),
        random.choice([TRAINING, VALIDATION, TEST], pairs, p=[0.8, 0.1, 0.1]),
        _names(classes),
        ClassTasks(classes_per_task=2),
        Facts("graph", {"features": 2, "rows": "pairs"}, join="product"),
        b"benchmark",
    )
    return scenario, places
