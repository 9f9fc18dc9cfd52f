"""Curvature of edges: how much the neighbourhoods of their ends overlap, exactly (Ollivier) and roughly."""

import copy
from math import lcm
from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from skeleton_cgl.graphs.links import Links
from skeleton_cgl.methods.neighbours import Choice, Neighbours, Scores
from skeleton_cgl.methods.parameters import check_whole

Curvature = Literal["ollivier", "surrogate"]

LARGEST = 20
"""What W₁ may cost, where nothing is said."""


class Ollivier:
    """κ(u, v) = 1 − W₁(m_u, m_v) for linked u and v, m uniform on neighbours, whatever the direction of edges.

    Exact, but for nodes with more than `largest` neighbours: there m is uniform on so many of them, drawn once. W₁ is
    the cost of the best assignment where both neighbourhoods are repeated to the same size. Between neighbours of two
    linked nodes distances are 0 to 3.
    """

    def __init__(self, links: Links, largest: int, random: np.random.Generator) -> None:
        ends = np.stack([links.sources.numpy(), links.targets.numpy()])
        ends = ends[:, ends[0] != ends[1]]
        # Numbers instead of pairs: they are sorted much faster.
        both = np.unique(np.concatenate([pairs.T @ [1, links.nodes] for pairs in (ends, ends[::-1])]))
        self._sources = both % links.nodes
        self._offsets = np.searchsorted(both // links.nodes, np.arange(links.nodes + 1))
        self._largest = largest
        self._random = random
        self._near: dict[int, frozenset[int]] = {}
        self._measured: dict[int, list[int]] = {}
        self._found: dict[tuple[int, int], float] = {}

    def again(self, random: np.random.Generator) -> "Ollivier":
        """Return curvatures in the same graph, with what is drawn of large neighbourhoods to be drawn anew."""
        other = copy.copy(self)
        other._random, other._measured, other._found = random, {}, {}
        return other

    def of(self, source: int, target: int) -> float:
        """Return the curvature of an edge, computed once."""
        edge = (min(source, target), max(source, target))
        if edge not in self._found:
            self._found[edge] = 1 - self._transport(*map(self._measure, edge))
        return self._found[edge]

    def _neighbours(self, node: int) -> frozenset[int]:
        if node not in self._near:
            self._near[node] = frozenset(self._sources[self._offsets[node] : self._offsets[node + 1]].tolist())
        return self._near[node]

    def _measure(self, node: int) -> list[int]:
        """Return the nodes that the measure of a node is uniform on."""
        if node not in self._measured:
            near = self._sources[self._offsets[node] : self._offsets[node + 1]]
            some = near if len(near) <= self._largest else self._random.choice(near, self._largest, replace=False)
            self._measured[node] = some.tolist()
        return self._measured[node]

    def _transport(self, left: list[int], right: list[int]) -> float:
        size = lcm(len(left), len(right))
        distances = np.array([[self._distance(one, other) for other in right] for one in left])
        repeated = distances.repeat(size // len(left), axis=0).repeat(size // len(right), axis=1)
        return float(repeated[linear_sum_assignment(repeated)].sum()) / size

    def _distance(self, one: int, other: int) -> int:
        if one == other:
            return 0
        near = self._neighbours(one)
        if other in near:
            return 1
        return 3 if near.isdisjoint(self._neighbours(other)) else 2


class Surrogate:
    """(|N_in(d) ∩ N_out(s)| + 1) / (max(|N_in(d)|, |N_out(s)|) + 1) for an edge s → d, without loops (DRIFT)."""

    def __init__(self, links: Links) -> None:
        proper = (links.sources != links.targets).numpy()
        sources, targets = links.sources.numpy()[proper], links.targets.numpy()[proper]
        nodes = np.arange(links.nodes + 1)
        self._sources, self._inward = sources, np.searchsorted(targets, nodes)
        leaving = np.argsort(sources, kind="stable")
        self._targets, self._outward = targets[leaving], np.searchsorted(sources[leaving], nodes)
        self._marked = np.zeros(links.nodes, dtype=bool)

    def of(self, source: int, target: int) -> float:
        """Return the surrogate of an edge."""
        into = self._sources[self._inward[target] : self._inward[target + 1]]
        out = self._targets[self._outward[source] : self._outward[source + 1]]
        self._marked[into] = True
        both = int(self._marked[out].sum())
        self._marked[into] = False
        return (both + 1) / (max(len(into), len(out)) + 1)


def check_curvature(curvature: str, largest: int) -> None:
    """Refuse a curvature that there is not, and neighbourhoods too small for one."""
    if curvature not in ("ollivier", "surrogate"):
        raise ValueError(f"curvature must be ollivier or surrogate, found {curvature!r}")
    check_whole(2, largest=largest)


def spelled_largest(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a method, `largest` as it is by default where it changes nothing."""
    return {**parameters, "largest": LARGEST} if parameters["curvature"] == "surrogate" else parameters


def by_curvature(links: Links, curvature: Curvature, largest: int) -> Choice:
    """Return a choice by the highest curvature of a neighbour's edges to nodes of the hop before, ties by chance."""
    exact = curvature == "ollivier"
    known = Ollivier(links, largest, np.random.default_rng(0)) if exact else Surrogate(links)
    neighbours = Neighbours(links)

    def choice(random: np.random.Generator) -> Scores:
        found_of = known.again(random) if isinstance(known, Ollivier) else known

        def scores(found: np.ndarray, latest: np.ndarray) -> np.ndarray:
            highest = dict.fromkeys(found.tolist(), -np.inf)
            for target in latest.tolist():
                near = np.intersect1d(neighbours.of(target), found)
                if exact and len(near) > largest:
                    near = random.choice(near, largest, replace=False)
                for source in near.tolist():
                    highest[source] = max(highest[source], found_of.of(source, target))
            values, chances = np.array([*highest.values()]), random.random(len(found))
            ranks = np.empty(len(found))
            ranks[np.lexsort((chances, values))] = np.arange(len(found))
            return ranks

        return scores

    return choice
