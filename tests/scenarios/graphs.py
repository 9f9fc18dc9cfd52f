"""Small graphs for tests of scenarios: classes, domains and times that cross, or labels that overlap."""

from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.graphs.graph import Graph, Groups, make_graph
from skeleton_cgl.scenarios.multilabel import MultilabelScenario, MultilabelSettings
from skeleton_cgl.scenarios.node import NodeScenario, NodeSettings
from skeleton_cgl.scenarios.opened import Opened

CLASSES, DOMAINS, PERIODS, FEATURES = 6, 3, 4, 5
NODES = CLASSES * DOMAINS * PERIODS * 5


def node_graph(seed: int = 0, **changes: Any) -> Graph:
    """Return a graph with five nodes of every class in every domain and period, all mixed."""
    random = np.random.default_rng(seed)
    number = random.permutation(NODES)
    labels, domains = number % CLASSES, number // CLASSES % DOMAINS
    times = 2000 + number // (CLASSES * DOMAINS) % PERIODS
    features = random.normal(size=(NODES, FEATURES)) + np.eye(CLASSES, FEATURES)[labels]
    edges = random.integers(NODES, size=(2, 4 * NODES))
    groups = {"domain": Groups(domains, tuple("abc"))}
    fields = {"groups": groups, "times": times, "both_ways": True}
    return make_graph("small", edges, features, labels, **{**fields, **changes})


def label_graph(seed: int = 0, nodes: int = 240) -> Graph:
    """Return a graph whose nodes have one to three of six labels."""
    random = np.random.default_rng(seed)
    labels = np.zeros((nodes, CLASSES), dtype=np.uint8)
    for node in range(nodes):
        labels[node, random.choice(CLASSES, random.integers(1, 4), replace=False)] = 1
    features = labels @ random.normal(size=(CLASSES, FEATURES)) + random.normal(size=(nodes, FEATURES))
    groups = {"domain": Groups(random.integers(DOMAINS, size=nodes), tuple("abc"))}
    return make_graph(
        "small", random.integers(nodes, size=(2, 4 * nodes)), features, labels, groups=groups, both_ways=True
    )


def node_scenario(graph: Graph | None = None, seed: int = 0, **fields: Any) -> NodeScenario:
    """Return the scenario of a graph as it stands: its nodes keep their numbers."""
    graph, settings = graph or node_graph(), NodeSettings(kind="node", **fields).checked()
    return NodeScenario(Opened(graph, np.arange(len(graph))), settings, settings.split_for(graph, seed))


def citation_scenario(folder: Path, **fields: Any) -> NodeScenario:
    """Return the scenario of a graph in the files of Planetoid."""
    return NodeSettings(kind="node", data=str(folder), dataset="cora", **fields).make(0)


def label_scenario(graph: Graph | None = None, seed: int = 0, **fields: Any) -> MultilabelScenario:
    graph, settings = graph or label_graph(), MultilabelSettings(kind="multilabel", **fields).checked()
    return MultilabelScenario(Opened(graph, np.arange(len(graph))), settings, settings.split_for(graph, seed))


def write_npz(graph: Graph, path: Path) -> Path:
    """Write a graph in the form of a user's own; return the path."""
    parts = {name: array for name, array in (("times", graph.times), ("split", graph.split)) if array is not None}
    groups = {f"groups_{name}": each.numbers for name, each in graph.groups.items()}
    np.savez(path, edges=graph.edges, features=graph.features, labels=graph.labels, **parts, **groups)
    return path
