"""Deep Graph Infomax (Veličković et al. 2019): telling what is there from a corruption of it, without labels."""

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Features, Places
from skeleton_cgl.learning.batchnorm import unnoted
from skeleton_cgl.scenarios.inputs import Clips, Inputs
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


class DeepGraphInfomax(nn.Module):
    """BCE(D(h⁺, s), 1) + BCE(D(h⁻, s), 0), with D(h, s) = hᵀWs, s = σ(mean h⁺), and W drawn from ±1/√d.

    h⁺ are the embeddings of a batch as it is, h⁻ those of its corruption, drawn anew every epoch. Of nodes, h is that
    of every node of the lesson's graph that has a neighbour; of pairs, what the ends of every training pair are joined
    to. Of clips, whose corruption is ours and no paper's, it is that of every training clip.
    """

    most: int | None = None
    """So many rows make a batch where the recipe does not say: all."""

    def __init__(self, learner: "Learner", experience: Experience) -> None:
        super().__init__()
        bound = learner.head.width**-0.5
        self.weight = nn.Parameter(torch.empty(learner.head.width, learner.head.width).uniform_(-bound, bound))
        self._learner = learner
        self._plain = _plain(experience)
        self._clean = learner.arranged(self._plain)
        self._corrupted = self._clean

    def __len__(self) -> int:
        return len(self._clean)

    def begin_epoch(self) -> None:
        """Draw another corruption."""
        # Arranged as the plain inputs were: what a backbone computes once for all is of corrupted features too.
        self._corrupted = self._learner.arranged(corrupted(self._plain))

    def embed(self, rows: Tensor) -> Tensor:
        """Return (B, d) the embeddings of a batch as it is."""
        return self._learner.embeddings(self._clean.rows(rows))

    def loss(self, rows: Tensor) -> Tensor:
        """Return the loss of a batch; BatchNorm's running statistics are of the batch as it is alone."""
        found = self.embed(rows)
        with unnoted(self._learner.backbone):
            wrong = self._learner.embeddings(self._corrupted.rows(rows))
        return infomax(found, wrong, self.weight)


def infomax(found: Tensor, wrong: Tensor, weight: Tensor) -> Tensor:
    """Return the loss of embeddings h⁺ (N, d) and h⁻ (M, d) under the weights W (d, d)."""
    summary = weight @ torch.sigmoid(found.mean(dim=0))
    right, not_right = found @ summary, wrong @ summary
    loss = functional.binary_cross_entropy_with_logits
    return loss(right, torch.ones_like(right)) + loss(not_right, torch.zeros_like(not_right))


def corrupted(inputs: Inputs) -> Inputs:
    """Return plain inputs corrupted by chance; refuse those of a form that no corruption is known of.

    In a graph the nodes exchange their features, and edges stay. In every clip the joints exchange their trajectories,
    in a sequence of its own: the same idea, the skeleton being the graph.
    """
    if isinstance(inputs, Places):
        return replace(inputs, features=_rows(inputs.features, torch.randperm(inputs.links.nodes)))
    if isinstance(inputs, Clips) and isinstance(inputs.parts, Tensor):
        *clips, _, _, joints = inputs.parts.shape
        sequence = torch.rand(*clips, 1, 1, joints).argsort(dim=-1)
        return replace(inputs, parts=inputs.parts.gather(-1, sequence.expand_as(inputs.parts)))
    raise InputError(f"pre-training: expected clips or places in a graph, found {type(inputs).__name__}")


def _plain(experience: Experience) -> Inputs:
    """Return what embeddings are wanted of: all nodes of the lesson's graph, or its training samples."""
    whole, ids = experience.training.pool.whole(), experience.training.ids
    if not isinstance(whole, Places):
        return whole.rows(ids)
    return _without_isolated(whole) if whole.places == 1 else _without_isolated(whole.rows(ids))


def _without_isolated(places: Places) -> Places:
    """Return a graph without the nodes that have no neighbour but themselves, unless they are an end of a pair.

    Of nodes, all that are left are asked about; pairs stay what they are.
    """
    links, of_nodes = places.links, places.places == 1
    proper = links.sources != links.targets
    stays = torch.zeros(links.nodes, dtype=torch.bool)
    stays[links.sources[proper]] = stays[links.targets[proper]] = True
    if not of_nodes:
        stays[places.at.flatten()] = True
    elif not stays.any():
        stays[:] = True
    nodes = stays.nonzero()[:, 0]
    at = torch.arange(len(nodes))[:, None] if of_nodes else torch.searchsorted(nodes, places.at)
    if len(nodes) == links.nodes:
        return replace(places, at=at, numbers=None, components=None)
    return Places(links.among(nodes), _rows(places.features, nodes), at)


def _rows(features: Features, rows: Tensor) -> Features:
    return features[rows] if isinstance(features, Tensor) else features.rows(rows)
