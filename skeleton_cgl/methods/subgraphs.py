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
from skeleton_cgl.methods.neighbours import Neighbours, Scores
from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.scenario import Samples
from skeleton_cgl.scenarios.views import GraphPool


@dataclass(frozen=True, eq=False)
class Remembered:
    """Labelled centres (N,), each the place of one component, its subgraph; neighbours have features and no label."""

    places: Places
    labels: Tensor
    step: Tensor

    @classmethod
    def around(cls, samples: Samples, fan_outs: Sequence[int], scores: Callable[[Links], Scores]) -> "Remembered":
        """Return samples with the graph in view around them: of every hop so many neighbours, and all edges between."""
        view = whole_of(samples.pool).rows(samples.ids)
        places = cut_out(view, fan_outs, [scores(view.links)] * len(samples))
        return cls(places, samples.labels, samples.step)

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: Tensor) -> "Remembered":
        """Return the centres at `rows`, in that order, and what is around them alone."""
        return Remembered(self.places.rows(rows), self.labels[rows], self.step[rows])

    def contents(self) -> dict[str, Any]:
        """Return all of it as tensors and numbers."""
        return {**contents_of(self.places), "labels": self.labels, "step": self.step}

    @classmethod
    def of(cls, contents: dict[str, Any]) -> "Remembered":
        """Return what has these contents."""
        return cls(places_of(contents), contents["labels"], contents["step"])


def cut_out(view: Places, fan_outs: Sequence[int], scores: Sequence[Scores]) -> Places:
    """Return the places of a graph (N, 1) with what is around each: of every hop so many neighbours, and all edges.

    Each is a component of its own; scores (N): how the neighbours of each are chosen.
    """
    neighbours = Neighbours(view.links)
    parts = [
        neighbours.around(centre, fan_outs, each) for centre, each in zip(view.at[:, 0].tolist(), scores, strict=True)
    ]
    sizes = [len(part) for part in parts]
    starts = np.cumsum([0, *sizes])
    edges = [neighbours.among(part) + start for part, start in zip(parts, starts, strict=False)]
    nodes = torch.from_numpy(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))
    found = view.features[nodes] if isinstance(view.features, Tensor) else view.features.rows(nodes)
    links = Links.of(np.concatenate([np.zeros((2, 0), dtype=np.int64), *edges], axis=1), len(nodes))
    components = torch.from_numpy(np.repeat(np.arange(len(parts)), sizes))
    return Places(links, found, torch.from_numpy(starts[:-1, None].copy()), components=components)


def contents_of(places: Places) -> dict[str, Any]:
    """Return subgraphs as tensors and numbers."""
    features = places.features
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
    }


def places_of(contents: dict[str, Any]) -> Places:
    """Return the subgraphs that have these contents."""
    features, at, components = contents["features"].numpy(), contents["at"], contents["components"].numpy()
    if contents["sparse"]:
        offsets, columns, width = contents["sparse"]
        features = csr_array((features, columns.numpy(), offsets.numpy()), shape=(len(offsets) - 1, width))
    return Places.of(contents["edges"].numpy(), features, at, self_loops=False, components=components)


def beside(samples: Samples, remembered: Sequence[Remembered]) -> Samples:
    """Return what is remembered and then some samples, in one graph: that of the samples, and the subgraphs apart."""
    if not remembered:
        return samples
    view, kept = whole_of(samples.pool), reduce(Places.beside, (each.places for each in remembered))
    ids = view.next_number + torch.arange(len(kept))
    columns = ((each.labels, each.step) for each in remembered)
    labels, step = (torch.cat(each) for each in zip(*columns, (samples.labels, samples.step), strict=True))
    return Samples(GraphPool(view.beside(kept)), torch.cat([ids, samples.ids]), labels, step)


def whole_of(pool: Pool) -> Places:
    """Return the graph of a pool, as a copy."""
    places = pool.whole()
    assert isinstance(places, Places), "the method needs nodes"
    return places
