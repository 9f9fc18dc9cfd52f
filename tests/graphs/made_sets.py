"""Small random links and sets of graphs for tests of what is done with them."""

import numpy as np
from scipy.sparse import csr_array

from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.items import NO_CLASS, NO_GROUP, Groups
from skeleton_cgl.graphs.link_set import LinkSet, make_link_set


def random_link_set(
    seed: int = 0,
    nodes: int = 20,
    links: int = 40,
    classes: int = 3,
    features: str = "none",
    directed: bool = True,
    groups: tuple[str, ...] = ("market",),
    dated: bool = True,
    published: bool = True,
    negatives: bool = True,
) -> LinkSet:
    """Return links drawn at random but for one that each class has for certain; features: none, dense or sparse."""
    random = np.random.default_rng(seed)
    ends = random.integers(0, nodes, (2, links))
    labels = random.integers(NO_CLASS, classes, links)
    labels[:classes] = np.arange(classes)
    drawn = random.normal(size=(nodes, 5)) * (random.random((nodes, 5)) < 0.4)
    linked = {frozenset(pair) for pair in ends.T.tolist()}
    apart = [pair for pair in np.ndindex(nodes, nodes) if frozenset(pair) not in linked][: links // 4]
    return make_link_set(
        f"links {seed}",
        nodes,
        ends,
        directed,
        labels,
        features={"none": None, "dense": drawn, "sparse": csr_array(drawn)}[features],
        groups={name: Groups(random.integers(NO_GROUP, 3, links), ("é", "", "c")) for name in groups},
        times=random.integers(1990, 2030, links) if dated else None,
        split=random.integers(-1, 3, links) if published else None,
        negatives=np.array(apart, dtype=np.int64).reshape(-1, 2).T if negatives else None,
        negatives_split=random.integers(0, 3, len(apart)) if negatives else None,
        notes=("read at random",) if published else (),
    )


def random_graph_set(
    seed: int = 0,
    graphs: int = 20,
    classes: int = 3,
    codes: bool = False,
    edge_features: bool = False,
    many_labels: bool = False,
    groups: tuple[str, ...] = ("scaffold",),
    dated: bool = True,
    published: bool = True,
    texts: bool = True,
) -> GraphSet:
    """Return graphs of 1 to 9 nodes; all is drawn at random but for one graph that each class has for certain."""
    random = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(random.integers(1, 10, graphs))])
    pairs = [
        (first, second)
        for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        for first in range(start, end)
        for second in range(first + 1, end)
        if random.random() < 0.4
    ]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    kinds = (4, 3)

    def rows(number: int) -> np.ndarray:
        drawn = random.integers(0, kinds, (number, 2)) if codes else random.normal(size=(number, 2))
        return drawn.astype(np.float32)

    if many_labels:
        labels = random.choice([0, 1, np.nan], (graphs, classes))
        labels[:classes][np.eye(classes, dtype=bool)] = 1
    else:
        labels = random.integers(NO_CLASS, classes, graphs)
        labels[:classes] = np.arange(classes)
    return make_graph_set(
        f"graphs {seed}",
        starts,
        edges,
        rows(int(starts[-1])),
        labels,
        codes=kinds if codes else None,
        edge_features=rows(edges.shape[1]) if edge_features else None,
        edge_codes=kinds if codes and edge_features else None,
        groups={name: Groups(random.integers(0, 3, graphs), ("é", "", "c")) for name in groups},
        times=random.integers(1990, 2030, graphs) if dated else None,
        split=random.integers(-1, 3, graphs) if published else None,
        texts=tuple(f"C\ud800 / {number}" for number in range(graphs)) if texts else None,
        notes=("8 of them were read with é",) if published else (),
        both_ways=True,
    )
