"""What the growth of a graph changes: which nodes are seen otherwise than before, and what their neighbours are."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.links import Links
from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.scenario import Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner

_HOPS = 2


class Changes:
    """Remembers the numbers of the nodes of the graph last seen, and finds what later ones changed.

    A node that was not there before counts as one that had no neighbours; links between nodes that were there are taken
    to have been there as well. So a graph need not be kept to know what it was.
    """

    def __init__(self) -> None:
        self._seen = torch.zeros(0, dtype=torch.int64)

    def may_come(self, pool: Pool) -> bool:
        """Return whether nodes may come to what a pool shows: not to all of a graph, nor to that of one task alone."""
        places = _places(pool)
        return places.numbers is not None and places.components is None

    def look(self, pool: Pool) -> None:
        """Remember the nodes of a pool as those last seen."""
        self._seen = _numbers(_places(pool))

    def most_touched(self, learner: "Learner", pool: Pool, share: float) -> Tensor:
        """Return the numbers of this share of the nodes touched, those with the highest scores.

        δ_v = ‖h(v, G_t) − h(v, G_t−1)‖₁ of nodes with other neighbours than before, embedded as queries are answered;
        a score is δ after two times the mean over a node's neighbours and itself, and touched are those above 0.
        """
        places = _places(pool)
        links, numbers = places.links, _numbers(places)
        seen = torch.isin(numbers, self._seen)
        new_edge = (links.sources != links.targets) & ~(seen[links.sources] & seen[links.targets])
        changed = links.targets[new_edge].unique()
        if not len(changed):
            return numbers[:0]
        edges = torch.stack([links.sources, links.targets])[:, ~new_edge].numpy()
        before = Links.of(edges, links.nodes)
        found = [_embedded(learner, replace(places, links=each), changed) for each in (links, before)]
        scores = torch.zeros(links.nodes, dtype=torch.float64)
        scores[changed] = (found[0] - found[1]).abs().sum(dim=1).double().cpu()
        for _ in range(_HOPS):
            scores = _mean_with_neighbours(links, scores)
        touched = (scores > 0).nonzero()[:, 0]
        best_first = touched[scores[touched].argsort(descending=True, stable=True)]
        return numbers[best_first[: int(share * len(touched))]]

    def state(self) -> dict[str, Any]:
        return {"seen": self._seen}

    def restore(self, state: dict[str, Any]) -> None:
        self._seen = state["seen"]


def shares_of_others(samples: Samples) -> Tensor:
    """Return (N,) the share of another class among a node's neighbours that are samples too; 0 where it has none."""
    places = _places(samples.pool)
    links = places.links
    at = places.rows(samples.ids).at[:, 0]
    labels = torch.full((links.nodes,), -1)
    labels[at] = samples.labels
    sources, targets = labels[links.sources], labels[links.targets]
    known = (sources >= 0) & (targets >= 0) & (links.sources != links.targets)
    counted, others = (
        torch.bincount(links.targets[which], minlength=links.nodes) for which in (known, known & (sources != targets))
    )
    return (others / counted.clamp(min=1))[at]


def _places(pool: Pool) -> Places:
    places = pool.whole()
    assert isinstance(places, Places)
    return places


def _numbers(places: Places) -> Tensor:
    """Return (nodes,) the number of every node."""
    numbers = torch.arange(len(places)) if places.numbers is None else places.numbers
    return numbers[places.at[:, 0].argsort()]


def _embedded(learner: "Learner", places: Places, nodes: Tensor) -> Tensor:
    with learner.answering(), torch.no_grad():
        return learner.embeddings(learner.arranged(places.asking(nodes[:, None])))


def _mean_with_neighbours(links: Links, values: Tensor) -> Tensor:
    """Return (nodes,) the mean of the values of every node and its neighbours."""
    proper = links.sources != links.targets
    sources, targets = (ends[proper].numpy() for ends in (links.sources, links.targets))
    sums = np.bincount(targets, values.numpy()[sources], minlength=links.nodes)
    return (values + torch.from_numpy(sums)) / (1 + torch.bincount(links.targets[proper], minlength=links.nodes))
