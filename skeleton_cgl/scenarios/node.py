"""Node classification as a scenario: one graph, fixed for all tasks, whose classes arrive task by task."""

import hashlib
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from skeleton_cgl.graphs.batches import Places, graph_of
from skeleton_cgl.graphs.planetoid import read_planetoid
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.inputs import Inputs
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.scenarios.settings import ScenarioSettings
from skeleton_cgl.seeds import seed_of


class NodeSettings(ClassTasks, ScenarioSettings):
    """Node classification on Cora or Citeseer with the original split; the nodes of classes left out stay in the graph.

    data: the folder of the Planetoid files `ind.NAME.*`.
    """

    kind: Literal["node"]
    data: str
    dataset: Literal["cora", "citeseer"] = "cora"

    def make(self, seed: int) -> "NodeScenario":  # noqa: ARG002
        return NodeScenario(self.data, self.dataset, self)


class NodePool:
    """All nodes of one graph, in a sequence that tells nothing of their classes."""

    augmented = False

    def __init__(self, digest: str, edges: np.ndarray, features: np.ndarray, order: np.ndarray) -> None:
        self.digest = digest
        self._places = Places(
            graph_of(edges, len(features)), torch.from_numpy(features), torch.from_numpy(order)[:, None]
        )

    def whole(self) -> Places:
        # A copy: whoever is given it may write into it.
        return self._places.copied()

    def drawn(self, ids: torch.Tensor, random: np.random.Generator) -> Inputs:  # noqa: ARG002
        return self._places.rows(ids)


class NodeScenario(LabelledSamples):
    """Class- or task-incremental learning of the nodes of Cora or Citeseer."""

    def __init__(self, data: str | Path, dataset: str = "cora", tasks: ClassTasks | None = None) -> None:
        tasks = tasks or ClassTasks()
        graph = read_planetoid(data, dataset)
        names = tuple(f"class {label}" for label in range(int(graph.labels.max()) + 1))
        # The files have their nodes sorted by part, and partly by class.
        order = np.random.default_rng(seed_of("nodes")).permutation(len(graph.labels))
        arrays = (graph.features, graph.labels, graph.parts, graph.edges)
        content = b"".join([f"node {tasks.setting}".encode(), *(array.tobytes() for array in arrays)])
        super().__init__(
            NodePool(hashlib.sha256(content).hexdigest(), graph.edges, graph.features, order),
            graph.labels[order],
            graph.parts[order],
            names,
            tasks,
            Facts("graph", {"features": graph.features.shape[1]}),
            content,
        )
