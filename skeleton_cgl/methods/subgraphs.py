"""Small graphs around some nodes: cut out of the graph in view, kept by content, put beside later graphs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.links import Links
from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.scenario import Samples
from skeleton_cgl.scenarios.views import GraphPool

Scores = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Of candidates (n,), and the nodes (m,) of the hop before, whose neighbours they are: the higher, the sooner kept."""


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


@dataclass(frozen=True, eq=False)
class Remembered:
    """Labelled centres (N,), each the place of one component, its subgraph; neighbours have features and no label."""

    places: Places
    labels: Tensor
    step: Tensor

    @classmethod
    def around(cls, samples: Samples, fan_outs: Sequence[int], scores: Callable[[Links], Scores]) -> "Remembered":
        """Return samples with the graph in view around them: of every hop so many neighbours, and all edges between."""
        view = _whole(samples.pool).rows(samples.ids)
        of_nodes, neighbours = scores(view.links), Neighbours(view.links)
        parts = [neighbours.around(centre, fan_outs, of_nodes) for centre in view.at[:, 0].tolist()]
        sizes = [len(part) for part in parts]
        starts = np.cumsum([0, *sizes])
        edges = [neighbours.among(part) + start for part, start in zip(parts, starts, strict=False)]
        nodes = torch.from_numpy(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))
        found = view.features[nodes] if isinstance(view.features, Tensor) else view.features.rows(nodes)
        links = Links.of(np.concatenate([np.zeros((2, 0), dtype=np.int64), *edges], axis=1), len(nodes))
        components = torch.from_numpy(np.repeat(np.arange(len(parts)), sizes))
        places = Places(links, found, torch.from_numpy(starts[:-1, None].copy()), components=components)
        return cls(places, samples.labels, samples.step)

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: Tensor) -> "Remembered":
        """Return the centres at `rows`, in that order, and what is around them alone."""
        return Remembered(self.places.rows(rows), self.labels[rows], self.step[rows])

    def contents(self) -> dict[str, Any]:
        """Return all of it as tensors and numbers."""
        places, features = self.places, self.places.features
        if isinstance(features, Tensor):
            values, sparse = features, []
        else:
            values, sparse = features.values, [features.pattern.offsets, features.pattern.columns, features.shape[1]]
        return {
            "features": values,
            "sparse": sparse,
            "edges": torch.stack([places.links.sources, places.links.targets]),
            "at": places.at,
            "components": places.components,
            "labels": self.labels,
            "step": self.step,
        }

    @classmethod
    def of(cls, contents: dict[str, Any]) -> "Remembered":
        """Return what has these contents."""
        features, at, components = contents["features"].numpy(), contents["at"], contents["components"].numpy()
        if contents["sparse"]:
            offsets, columns, width = contents["sparse"]
            features = csr_array((features, columns.numpy(), offsets.numpy()), shape=(len(offsets) - 1, width))
        places = Places.of(contents["edges"].numpy(), features, at, self_loops=False, components=components)
        return cls(places, contents["labels"], contents["step"])


def beside(samples: Samples, remembered: Sequence[Remembered]) -> Samples:
    """Return what is remembered and then some samples, in one graph: that of the samples, and the subgraphs apart."""
    if not remembered:
        return samples
    view, kept = _whole(samples.pool), reduce(Places.beside, (each.places for each in remembered))
    ids = view.next_number + torch.arange(len(kept))
    columns = ((each.labels, each.step) for each in remembered)
    labels, step = (torch.cat(each) for each in zip(*columns, (samples.labels, samples.step), strict=True))
    return Samples(GraphPool(view.beside(kept)), torch.cat([ids, samples.ids]), labels, step)


def _whole(pool: Pool) -> Places:
    places = pool.whole()
    assert isinstance(places, Places), "the method needs nodes"
    return places
