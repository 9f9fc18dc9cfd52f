"""One class per graph, two classes a task: rings and stars with features of their own, for backbones that read out."""

import numpy as np
from torch import Tensor

from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.inputs import Inputs
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.scenarios.settings import ScenarioSettings

CLASSES, EACH, FEATURES = 4, 7, 3
_PARTS = (TRAINING, TRAINING, TRAINING, TRAINING, TRAINING, VALIDATION, TEST)


class WholeGraphsSettings(ClassTasks, ScenarioSettings):
    kind: str

    def make(self, seed: int) -> LabelledSamples:
        labels = np.tile(np.arange(CLASSES), EACH)
        parts = np.repeat(_PARTS, CLASSES)
        names = tuple(f"class {label}" for label in range(CLASSES))
        facts = Facts("graph", {"features": FEATURES, "rows": "graphs"})
        return LabelledSamples(GraphsPool(labels, seed), labels, parts, names, self, facts, b"whole graphs")


class GraphsPool:
    digest = "whole graphs"
    augmented = False

    def __init__(self, labels: np.ndarray, seed: int) -> None:
        random = np.random.default_rng(seed)
        starts, edges, features = [0], [], []
        for label in labels:
            nodes = int(random.integers(3, 6))
            others = np.arange(1, nodes)
            ends = np.stack([others - 1 if label % 2 else np.zeros_like(others), others])
            edges.append(starts[-1] + np.concatenate([ends, ends[::-1]], axis=1))
            features.append(random.normal(label, 1, (nodes, FEATURES)).astype(np.float32))
            starts.append(starts[-1] + nodes)
        self._members = Graphs.of(
            np.array(starts), np.concatenate(edges, axis=1), np.concatenate(features), self_loops=True
        )

    def whole(self) -> Inputs:
        return self._members

    def drawn(self, ids: Tensor, random: np.random.Generator) -> Inputs:  # noqa: ARG002
        return self._members.rows(ids)
