"""Small learners of nodes for tests of methods, and the graph they learn as dense numbers."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.node import NodeScenario
from skeleton_cgl.scenarios.scenario import Experience
from tests.scenarios.graphs import node_graph, node_scenario

SMALL = {
    "cat": {"count": 7, "steps": 3, "width": 8},
    "delome": {"count": 5, "steps": 3, "width": 8},
    "dmsg": {"count": 4},
}
"""The methods, small enough for tests."""

BY_SETTING: dict[str, dict[str, Any]] = {"domain-il": {"domains": "domain"}, "time-il": {"periods": 3}}


def nodes(setting: str = "class-il", graph: Graph | None = None, **fields: Any) -> NodeScenario:
    """Return a scenario of 360 nodes: three tasks of two classes, or what arrives in the setting."""
    given = BY_SETTING.get(setting, {"classes_per_task": 2})
    return node_scenario(graph, setting=setting, **{**given, **fields})


def learner_of(scenario: NodeScenario, method: str, parameters: dict[str, Any], **training: Any) -> Learner:
    recipe = Training(**{"epochs": 3, "learning_rate": 0.01, "device": "cpu", **training})
    return make_learner(scenario, "gcn", method, recipe, 0, {"width": 6}, parameters)


def lessons_of(scenario: NodeScenario) -> list[Experience]:
    prefix = scenario.lessons(scenario.default)
    return [scenario.experience(prefix[: step + 1]) for step in range(len(prefix))]


def learned(learner: Learner, scenario: NodeScenario, lessons: int) -> Learner:
    """Return the learner after the first lessons of the default order."""
    for step, experience in enumerate(lessons_of(scenario)[:lessons]):
        learner.learn(experience, step)
    return learner


def unequal_graph() -> Graph:
    """Return a graph in which class c has fewer nodes the larger c is."""
    graph = node_graph()
    random = np.random.default_rng(1)
    labels = random.choice(6, size=len(graph), p=np.array([6, 5, 4, 3, 2, 1]) / 21)
    return make_graph("small", graph.edges, graph.features, labels)


def propagated(graph: Graph, hops: int) -> Tensor:
    """Return Â^hops·X of all nodes, Â = D^−½(A + I)D^−½, by dense products."""
    count = len(graph)
    adjacency = np.zeros((count, count))
    adjacency[graph.edges[1], graph.edges[0]] = 1
    np.fill_diagonal(adjacency, 1)
    into, out = adjacency.sum(axis=1), adjacency.sum(axis=0)
    scaled = adjacency / np.sqrt(into[:, None] * out)
    return torch.from_numpy(np.linalg.matrix_power(scaled, hops) @ graph.features).float()
