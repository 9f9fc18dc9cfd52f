"""The neighbours of nodes, and how some of them are chosen: by chance, or by scores of a method's own."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from skeleton_cgl.graphs.links import Links
from skeleton_cgl.methods.parameters import is_whole

Scores = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Of candidates (n,), and the nodes (m,) of the hop before, whose neighbours they are: the higher, the sooner kept."""

Choice = Callable[[np.random.Generator], Scores]
"""How the neighbours of a graph's nodes are chosen, given what to draw from."""

Sampling = Literal["random", "degree"]


def checked_fan_outs(fan_outs: Sequence[int]) -> tuple[int, ...]:
    """Return how many neighbours are kept of every hop; refuse what says nothing of that."""
    if not isinstance(fan_outs, list | tuple) or not fan_outs or not all(is_whole(each, 1) for each in fan_outs):
        raise ValueError(f"fan_outs must be a list of whole numbers, at least 1, found {fan_outs!r}")
    return tuple(fan_outs)


def check_sampling(sampling: str) -> None:
    """Refuse a way to draw neighbours that there is not."""
    if sampling not in ("random", "degree"):
        raise ValueError(f"sampling must be random or degree, found {sampling!r}")


def spelled_fan_outs(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a method, its fan-outs in one spelling."""
    fan_outs = parameters["fan_outs"]
    return {**parameters, "fan_outs": tuple(fan_outs) if isinstance(fan_outs, list) else fan_outs}


def by_chance(links: Links, sampling: Sampling) -> Choice:
    """Return a choice without replacement, by the largest of ln(u)/w: u uniform, w the weight of a neighbour.

    The largest of these is each one's with a probability in proportion to its weight: 1, or its in-degree ("degree").
    """
    weights = links.in_degrees.clamp(min=1).numpy() if sampling == "degree" else None

    def choice(random: np.random.Generator) -> Scores:
        def scores(found: np.ndarray, latest: np.ndarray) -> np.ndarray:  # noqa: ARG001
            # 1 − u is never 0.
            drawn: np.ndarray = np.log1p(-random.random(len(found)))
            return drawn if weights is None else drawn / weights[found]

        return scores

    return choice


class Neighbours:
    """The in-edges of a graph, node by node, as arrays."""

    def __init__(self, links: Links) -> None:
        self.offsets = links.pattern.offsets.numpy()
        self.sources = links.sources.numpy()

    def of(self, node: int) -> np.ndarray:
        """Return the sources of the in-edges of a node, itself among them where it has a loop."""
        return self.sources[self.offsets[node] : self.offsets[node + 1]]

    def around(self, centre: int, fan_outs: Sequence[int], scores: Scores) -> np.ndarray:
        """Return a node and, hop by hop, so many neighbours at most of those of the hop before."""
        nodes = latest = np.array([centre])
        for fan_out in fan_outs:
            found = np.setdiff1d(np.concatenate([self.of(node) for node in latest]), nodes)
            latest = found[np.argsort(-scores(found, latest), kind="stable")[:fan_out]] if len(found) else found
            if not len(latest):
                break
            nodes = np.concatenate([nodes, latest])
        return nodes

    def among(self, nodes: np.ndarray) -> np.ndarray:
        """Return (2, E) the edges between some nodes, by their places among them."""
        place = {node: number for number, node in enumerate(nodes.tolist())}
        edges = [
            (place[source], target)
            for target, node in enumerate(nodes)
            for source in self._some_of(node, nodes)
            if source in place
        ]
        return np.array(edges, dtype=np.int64).reshape(-1, 2).T

    def _some_of(self, node: int, nodes: np.ndarray) -> list[int]:
        """Return those in-neighbours of a node that may be among others; of hubs, not all pass through Python."""
        sources = self.of(node)
        return (sources if len(sources) < 2 * len(nodes) else sources[np.isin(sources, nodes)]).tolist()
