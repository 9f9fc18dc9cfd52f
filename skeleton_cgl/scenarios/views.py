"""What a learner sees of a graph: all of it, what has come so far, or each lesson's own part of it.

Samples are nodes. Their numbers mean the same in every view a learner is given in a run, so that what is remembered by
number is found again. A view holds no node of a lesson to come, but for the whole graph, which does by definition.
"""

import hashlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.items import Features
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.scenarios.lessons import Prefix, Task, tokens
from skeleton_cgl.seeds import seed_of

NodesOf = Callable[[Task], np.ndarray]
"""Ascending nodes, from the units of a lesson."""


class GraphPool:
    """Places in a graph, or whole graphs, as a pool; its digest is of what is in it, and so tells of nothing else.

    together: the pool in which the samples of all lessons so far stand as in theirs.
    """

    augmented = False

    def __init__(self, places: "Places | Graphs", together: "GraphPool | None" = None) -> None:
        self.digest = _digest_of(places)
        self._places = places
        self._together = together

    @property
    def together(self) -> "GraphPool":
        return self._together or self

    def whole(self) -> "Places | Graphs":
        # A copy: whoever is given it may write into it.
        return self._places.copied()

    def drawn(self, ids: Tensor, random: np.random.Generator) -> "Places | Graphs":  # noqa: ARG002
        return self._places.rows(ids)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Edges (2, E) and features (N, F) of a graph, and whether every node is its own neighbour too: no labels."""

    edges: np.ndarray
    features: Features
    self_loops: bool

    @property
    def nodes(self) -> int:
        return self.features.shape[0]

    @cached_property
    def whole(self) -> GraphPool:
        """All nodes in the whole graph: the view of BeGin. A sample has the number of its node."""
        places = Places.of(self.edges, self.features, np.arange(self.nodes)[:, None], self.self_loops)
        return GraphPool(places)

    def so_far(self, lessons: Sequence[np.ndarray]) -> GraphPool:
        """Return the subgraph of the nodes of all lessons; a sample has the number of its node.

        It is the snapshot of time-incremental learning, and CGLB's view with edges between tasks.
        """
        nodes = np.unique(np.concatenate(lessons))
        places = Places.of(
            self._among(nodes), self.features[nodes], np.arange(len(nodes))[:, None], self.self_loops, numbers=nodes
        )
        return GraphPool(places)

    def own(self, lessons: Sequence[np.ndarray], remembered: Sequence[np.ndarray]) -> GraphPool:
        """Return the subgraph of the nodes of the latest lesson: CGLB's view without edges between tasks, and AGALE's.

        A sample has the number `numbers_in` gives its lesson and node. What may be remembered of earlier lessons is
        there as nodes without neighbours, which take part only where they are asked for.
        """
        step = len(lessons) - 1
        nodes = [*remembered[:step], lessons[step]]
        numbers = np.concatenate([numbers_in(lessons, place, each) for place, each in enumerate(nodes)])
        alone = len(numbers) - len(lessons[step])
        components = np.concatenate([1 + np.arange(alone), np.zeros(len(lessons[step]), dtype=np.int64)])
        places = Places.of(
            self._among(lessons[step]) + alone,
            self.features[np.concatenate(nodes)],
            np.arange(len(numbers))[:, None],
            self.self_loops,
            numbers=numbers,
            components=components,
        )
        return GraphPool(places, self._side_by_side(lessons))

    def _side_by_side(self, lessons: Sequence[np.ndarray]) -> GraphPool:
        """Return the subgraphs of all lessons side by side, without an edge between them."""
        edges, nodes = self._union(lessons)
        steps = np.repeat(np.arange(len(lessons)), [len(each) for each in lessons])
        at = np.arange(len(nodes))[:, None]
        return GraphPool(Places.of(edges, self.features[nodes], at, self.self_loops, components=steps))

    def asked_side_by_side(self, lessons: Sequence[np.ndarray], steps: np.ndarray, nodes: np.ndarray) -> "Asked":
        """Return nodes (Q,), each in the subgraph of the so manieth lesson (Q,), as queries in a random sequence.

        Neither the numbers of samples nor those of nodes tell the lesson.
        """
        edges, union = self._union(lessons)
        place = np.random.default_rng(seed_of("places", len(union))).permutation(len(union))
        sequence = sequence_of(len(nodes))
        at = place[numbers_in(lessons, steps, nodes)[sequence]]
        features = self.features[union[np.argsort(place)]]
        places = Places.of(place[edges], features, at[:, None], self.self_loops)
        return Asked(GraphPool(places), torch.arange(len(at)), sequence)

    def _union(self, lessons: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges and the nodes of subgraphs side by side."""
        starts = np.cumsum([0, *map(len, lessons)])
        edges = [self._among(nodes) + start for nodes, start in zip(lessons, starts, strict=False)]
        return np.concatenate(edges, axis=1), np.concatenate(lessons)

    def _among(self, nodes: np.ndarray) -> np.ndarray:
        """Return the edges between nodes, which are given ascending, by their places among them."""
        place = np.full(self.nodes, -1)
        place[nodes] = np.arange(len(nodes))
        ends = place[self.edges]
        return ends[:, (ends >= 0).all(axis=0)]


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries as samples `ids` (Q,) of a pool, in a random sequence (Q,) of what they were made of."""

    pool: GraphPool
    ids: Tensor
    sequence: np.ndarray


ViewName = Literal["whole", "so far", "own"]
_KEPT = 3
"""So many prefixes are remembered: of the lesson being learned, and of those tried before it."""


class ItemViews(ABC):
    """What a learner sees of nodes, links or graphs after every prefix of lessons.

    name: "whole", whatever the prefix; "so far", what has come with its lessons; "own", of the last lesson alone. An
    item has the same number as a sample in all views but for "own".
    """

    def __init__(self, name: ViewName) -> None:
        self.name = name
        self._pools: OrderedDict[str, GraphPool] = OrderedDict()

    @abstractmethod
    def made(self, prefix: Prefix) -> "GraphPool":
        """Return the pool of a prefix; where the view is whole, of any."""

    def pool(self, prefix: Prefix) -> "GraphPool":
        """Return what a learner sees while it learns the last lesson of a prefix."""
        called = "" if self.name == "whole" else tokens(prefix)
        if called not in self._pools:
            self._pools[called] = self.made(prefix)
            while len(self._pools) > _KEPT:
                self._pools.popitem(last=False)
        return self._pools[called]

    def numbers(self, prefix: Prefix, items: np.ndarray) -> Tensor:  # noqa: ARG002
        """Return the numbers of the samples that are items of the last lesson of a prefix."""
        return torch.from_numpy(items)

    def asked(self, prefix: Prefix, steps: np.ndarray, items: np.ndarray) -> Asked:  # noqa: ARG002
        """Return items (Q,) of the so manieth lessons (Q,) as queries on the view of a prefix."""
        sequence = sequence_of(len(items))
        return Asked(self.pool(prefix), torch.from_numpy(items[sequence]), sequence)


class Views(ItemViews):
    """The views of the nodes of a graph: which nodes are in a lesson, and which of them may be remembered."""

    def __init__(self, graph: Surroundings, name: ViewName, nodes: NodesOf, remembered: NodesOf) -> None:
        super().__init__(name)
        self._graph = graph
        self._nodes = nodes
        self._remembered = remembered

    def made(self, prefix: Prefix) -> GraphPool:
        if self.name == "whole":
            return self._graph.whole
        lessons = [self._nodes(lesson.units) for lesson in prefix]
        if self.name == "so far":
            return self._graph.so_far(lessons)
        return self._graph.own(lessons, [self._remembered(lesson.units) for lesson in prefix])

    def numbers(self, prefix: Prefix, nodes: np.ndarray) -> Tensor:
        if self.name != "own":
            return super().numbers(prefix, nodes)
        lessons = [self._nodes(lesson.units) for lesson in prefix]
        return torch.from_numpy(numbers_in(lessons, len(prefix) - 1, nodes))

    def asked(self, prefix: Prefix, steps: np.ndarray, nodes: np.ndarray) -> Asked:
        if self.name != "own":
            return super().asked(prefix, steps, nodes)
        return self._graph.asked_side_by_side([self._nodes(lesson.units) for lesson in prefix], steps, nodes)


def sequence_of(number: int) -> np.ndarray:
    """Return the random sequence (Q,) that so many queries are asked in."""
    return np.random.default_rng(seed_of("queries", number)).permutation(number)


def numbers_in(lessons: Sequence[np.ndarray], steps: int | np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return the numbers of samples that are nodes in the own views of the so manieth lessons.

    It is their place where the nodes of all lessons, ascending, stand one lesson after the other: it stays the same
    whatever comes later, and tells nothing of it.
    """
    # More than the largest node, so that pairs of lesson and node are ascending numbers.
    apart = 1 + max(int(each.max(initial=0)) for each in lessons)
    every = np.concatenate([step * apart + each for step, each in enumerate(lessons)])
    return np.searchsorted(every, steps * apart + nodes)


def _digest_of(places: Places | Graphs) -> str:
    found = hashlib.sha256()
    for tensor in places.tensors():
        found.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.numpy().data)
    return found.hexdigest()
