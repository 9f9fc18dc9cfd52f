"""The built-in set of small graphs: trees with a ring, a star or a clique in one of two colours, in four domains.

A class is a shape and its colour: the shape is told by the links alone, the colour by the features of its nodes, which
are noisy. Domains differ in the size of graphs; what a colour looks like differs from domain to domain and drifts over
four periods, so that who learns one domain or period after the other has something to forget.
"""

import numpy as np

from skeleton_cgl.graphs.blocks import MOST_SEEDS, check_count, directions, named_groups, rounded, spread
from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.options import flag
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.seeds import seed_of

_DOMAINS, _PERIODS, _FIRST_YEAR = 4, 4, 2018
_FEATURES = 8
_COLOURS = ("red", "blue")
_SHAPES = {
    "ring": ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0)),
    "star": ((0, 1), (0, 2), (0, 3), (0, 4)),
    "clique": tuple((first, second) for second in range(5) for first in range(second)),
}
_WITHIN = 5
"""The nodes of every shape."""
_CLASSES = tuple(f"{colour} {shape}" for colour in _COLOURS for shape in _SHAPES)
_SMALLEST, _LARGER, _RANGE = 3, 2, 6
"""The nodes of the smallest tree, by how many a domain's trees are larger than the one's before, and how many sizes."""
_EVERYWHERE, _HERE, _NOW, _NOISE = 0.5, 1.0, 1.2, 0.5
"""How much features tell of the colour everywhere, here, by now, and of nothing."""
_TURN = np.pi / 2
"""How far, as an angle, a colour drifts from the first period to the last."""
_MISSING = 0.15
"""The share of labels that are not known, of many."""
_MOST_GRAPHS = 100_000


class SyntheticGraphs(GraphSource):
    """graphs: how many; labels: whether a graph has one shape or two, each a label of its own; seed: other graphs.

    Of many labels, some are not known.
    """

    def __init__(self, graphs: int = 600, labels: bool = False, seed: int = 0) -> None:
        check_count("graphs", graphs, len(_CLASSES) * _DOMAINS * _PERIODS, _MOST_GRAPHS)
        check_count("seed", seed, 0, MOST_SEEDS)
        self.graphs, self.labels, self.seed = graphs, flag("labels", labels), seed

    def read(self) -> GraphSet:
        random = np.random.default_rng(seed_of("synthetic graphs", self.seed))
        classes, domains, periods = spread(self.graphs, random, len(_CLASSES), _DOMAINS, _PERIODS)
        # Another shape in some graphs, in any colour.
        more = (classes + random.integers(1, len(_SHAPES), self.graphs)) % len(_SHAPES)
        more += len(_SHAPES) * random.integers(0, len(_COLOURS), self.graphs)
        inside = np.stack([classes, np.where(self.labels & (random.random(self.graphs) < 0.5), more, -1)], axis=1)
        trees = _SMALLEST + _LARGER * domains + random.integers(0, _RANGE, self.graphs)
        shapes = (inside >= 0).sum(axis=1)
        starts = np.concatenate([[0], np.cumsum(trees + _WITHIN * shapes)])
        edges = [_links(int(tree), held[held >= 0], random) for tree, held in zip(trees, inside, strict=True)]
        return make_graph_set(
            "synthetic-graphs",
            starts,
            np.concatenate([links + start for links, start in zip(edges, starts[:-1], strict=True)], axis=1),
            _features(trees, inside, domains, periods, random),
            _many(inside, random) if self.labels else classes,
            _CLASSES,
            groups={"domain": named_groups("domain", domains)},
            times=_FIRST_YEAR + periods,
            both_ways=True,
        )


def _links(tree: int, held: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return (2, M): the links of a random tree, of the shapes after it, and one from each of these to the tree."""
    later = np.arange(1, tree)
    links = [np.stack([(random.random(tree - 1) * later).astype(np.int64), later])]
    for place, number in enumerate(held % len(_SHAPES)):
        first = tree + _WITHIN * place
        links.append(first + np.array(list(_SHAPES.values())[number]).T)
        links.append(np.array([[random.integers(tree)], [first + random.integers(_WITHIN)]]))
    return np.concatenate(links, axis=1)


def _features(
    trees: np.ndarray, inside: np.ndarray, domains: np.ndarray, periods: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Return (N, F): 1, by which neighbours can be counted, the domain's shift, the colour of shapes, and noise."""
    everywhere, here, now = directions(random, 3, len(_COLOURS), _FEATURES - 1)
    shift = directions(random, _DOMAINS, _FEATURES - 1)
    angle = (_TURN * periods / (_PERIODS - 1))[:, None]
    looks = np.zeros((len(trees), 3, _FEATURES - 1))
    for place, held in enumerate(inside.T, start=1):
        colours = np.maximum(held, 0) // len(_SHAPES)
        looks[:, place] = _EVERYWHERE * everywhere[colours] + _HERE * here[(colours + domains) % len(_COLOURS)]
        looks[:, place] += _NOW * (np.cos(angle) * now[colours] + np.sin(angle) * now[(colours + 1) % len(_COLOURS)])
    looks += shift[domains][:, None]
    counts = np.stack([trees, *(_WITHIN * (held >= 0) for held in inside.T)], axis=1)
    meant = np.repeat(looks.reshape(-1, _FEATURES - 1), counts.ravel(), axis=0)
    noisy = meant + _NOISE * random.normal(size=meant.shape)
    return rounded(np.concatenate([np.ones((len(noisy), 1)), noisy], axis=1))


def _many(inside: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return (G, K): which shapes in which colours a graph has, as far as that is known."""
    labels = (inside[:, :, None] == np.arange(len(_CLASSES))).any(axis=1).astype(np.float32)
    labels[random.random(labels.shape) < _MISSING] = np.nan
    return labels
