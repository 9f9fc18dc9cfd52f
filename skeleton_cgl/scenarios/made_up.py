"""Small scenarios made up at once, without a file: enough for a method or a backbone to be tried on."""

import hashlib
from typing import Literal

import numpy as np

from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.node import NodeSettings
from skeleton_cgl.scenarios.scenario import Facts, Scenario
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.scenarios.views import Surroundings
from skeleton_cgl.skeletons.sources.synthetic import SyntheticSource

Setting = Literal["class-il", "task-il"]

_TASKS = ((0, 4), (3, 8), (2, 5))
"""Actions of the synthetic data set that a few epochs tell apart."""
_FRAMES = 24
_NODES, _FEATURES = 30, 16


def made_up_clips(setting: Setting) -> Scenario:
    """Return three tasks of two synthetic actions each, 16 clips of 24 frames to learn every action from."""
    tasks = ClassTasks(setting=setting, tasks=_TASKS, classes=tuple(label for task in _TASKS for label in task))
    source = SyntheticSource(subjects=4, views=1, repetitions=5)
    return SkeletonScenario(source, tasks, preparation={"frames": _FRAMES})


def made_up_graph(setting: Setting) -> Scenario:
    """Return three tasks of two classes each of nodes in a graph; a class has features, and neighbours, of its own."""
    random = np.random.default_rng(0)
    labels = random.permutation(np.repeat(np.arange(6), _NODES))
    nodes = len(labels)
    features = random.normal(size=(6, _FEATURES))[labels] + random.normal(size=(nodes, _FEATURES))
    near = np.where(labels[:, None] == labels[None, :], 0.1, 0.01)
    linked = np.triu(random.random((nodes, nodes)) < near, k=1)
    edges = np.stack(np.nonzero(linked | linked.T | np.eye(nodes, dtype=bool)))
    place = np.empty(nodes, dtype=np.int64)
    for label in range(6):
        place[labels == label] = np.arange(_NODES)
    parts = np.select([place < 4, place < 8], [TEST, VALIDATION], TRAINING)
    digest = hashlib.sha256(f"made-up graph {setting}".encode()).hexdigest()
    pool = Surroundings(edges, features.astype(np.float32), self_loops=False).whole
    names = tuple(f"class {label}" for label in range(6))
    facts = Facts("graph", {"features": _FEATURES})
    tasks = ClassTasks(setting=setting)
    return LabelledSamples(pool, labels, parts, names, tasks, facts, digest.encode(), NodeSettings.offered)
