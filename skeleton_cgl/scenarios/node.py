"""Node classification as a scenario: one graph, fixed for all tasks, whose classes arrive task by task."""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import GraphBatch, neighbour_sum
from skeleton_cgl.graphs.planetoid import read_planetoid
from skeleton_cgl.parts import UNUSED
from skeleton_cgl.scenarios.labelled import LabelledSamples


class NodePool:
    """All nodes of one graph; whoever asks for a few gets the whole graph and their numbers."""

    augmented = False

    def __init__(self, edges: np.ndarray, features: np.ndarray) -> None:
        os.environ.setdefault("DGLBACKEND", "pytorch")
        import dgl

        self._graph = dgl.graph((edges[0], edges[1]), num_nodes=len(features))
        self._features = torch.from_numpy(features)
        self._summed = neighbour_sum(self._graph, self._features)

    def inputs(self, ids: Tensor, backbone: nn.Module, training: bool = False) -> GraphBatch:  # noqa: ARG002
        return GraphBatch(self._graph, self._features, ids, self._summed)


class NodeScenario(LabelledSamples):
    """Class- or task-incremental learning of the nodes of Cora or Citeseer, with the original split.

    Classes that do not fill a task are left out: Cora's seven make three tasks of two. Their nodes stay in the graph.
    """

    def __init__(
        self, data: str | Path, dataset: str = "cora", setting: str = "class-il", classes_per_task: int = 2
    ) -> None:
        graph = read_planetoid(data, dataset)
        classes = int(graph.labels.max()) + 1
        used = classes - classes % classes_per_task
        if not used:
            raise InputError(f"scenario: classes_per_task: {dataset} has {classes} classes, fewer than one task")
        super().__init__(
            NodePool(graph.edges, graph.features),
            torch.from_numpy(graph.labels),
            torch.from_numpy(np.where(graph.labels < used, graph.parts, UNUSED)),
            tuple(f"class {label}" for label in range(used)),
            setting,
            classes_per_task,
        )
        self._features = graph.features.shape[1]
        content = (graph.features, graph.labels, graph.parts, graph.edges)
        described = f"node {setting} {classes_per_task}".encode()
        self.digest = hashlib.sha256(b"".join([described, *(part.tobytes() for part in content)])).hexdigest()

    def backbone_arguments(self) -> dict[str, Any]:
        """Return the number of features of a node."""
        return {"features": self._features}
