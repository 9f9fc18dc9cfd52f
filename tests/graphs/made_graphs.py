"""Small random graphs for tests of what is done with graphs."""

import numpy as np
from scipy.sparse import csr_array

from skeleton_cgl.graphs.graph import NO_CLASS, Graph, Groups, make_graph


def random_graph(
    seed: int = 0,
    nodes: int = 30,
    classes: int = 4,
    sparse: bool = False,
    many_labels: bool = False,
    groups: tuple[str, ...] = ("language",),
    dated: bool = True,
    published: bool = True,
    both_ways: bool = True,
) -> Graph:
    """Return a graph in which everything is drawn at random but for one node that each class has for certain."""
    random = np.random.default_rng(seed)
    edges = random.integers(0, nodes, (2, random.integers(0, 4 * nodes)))
    features = random.normal(size=(nodes, 5)) * (random.random((nodes, 5)) < 0.4)
    if many_labels:
        labels = (random.random((nodes, classes)) < 0.3).astype(np.uint8)
        labels[:classes] |= np.eye(classes, dtype=np.uint8)
    else:
        labels = random.integers(NO_CLASS, classes, nodes)
        labels[:classes] = np.arange(classes)
    return make_graph(
        f"graph {seed}",
        edges,
        csr_array(features) if sparse else features,
        labels,
        groups={name: Groups(random.integers(0, 3, nodes), ("é", "", "c")) for name in groups},
        times=random.integers(1990, 2030, nodes) if dated else None,
        split=random.integers(-1, 3, nodes) if published else None,
        both_ways=both_ways,
    )
