"""Embeddings with noise: how wide it spreads is learned, against a discriminator that tells it from the embeddings."""

from math import log
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.learning.optimizers import memory_of, remind, set_rate

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner

_SHARPNESS = 10
_DISCRIMINATOR = 64


class Noise:
    """The spread σ around embeddings, the discriminator, and the optimizer of both; known: what was learned before."""

    def __init__(self, learner: "Learner", known: dict[str, Any]) -> None:
        width = learner.head.width
        self._spread = nn.Linear(width, width)
        self._discriminator = nn.Sequential(nn.Linear(width, _DISCRIMINATOR), nn.ReLU(), nn.Linear(_DISCRIMINATOR, 1))
        self.parts = nn.ModuleDict({"spread": self._spread, "discriminator": self._discriminator})
        if known:
            self.parts.load_state_dict(known["weights"])
        self.parts.to(learner.device)
        training = learner.training
        self._optimizer = torch.optim.Adam(
            self.parts.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay, fused=True
        )
        if known and not training.reset_optimizer:
            remind(self._optimizer, known["optimizer"])

    def spread(self, mean: Tensor) -> Tensor:
        """Return σ (N, width) for embeddings μ."""
        return functional.softplus(self._spread(mean), beta=_SHARPNESS)

    def told_apart(self, made: Tensor, mean: Tensor) -> Tensor:
        """Return how badly h (1) and μ (0) are told apart; gradients by these are turned round."""
        found = self._discriminator(Reversed.apply(torch.cat([made, mean])))[:, 0]
        wanted = torch.cat([torch.ones(len(made)), torch.zeros(len(mean))]).to(found)
        return functional.binary_cross_entropy_with_logits(found, wanted)

    def step(self, learner: "Learner") -> None:
        """Take a step with the gradients at hand, at the rate the learner has at present."""
        set_rate(self._optimizer, learner.optimizer.param_groups[0]["lr"])
        self._optimizer.step()
        self._optimizer.zero_grad()

    def learned(self) -> dict[str, Any]:
        """Return what another is to know."""
        return {"weights": dict(self.parts.state_dict()), "optimizer": memory_of(self._optimizer)}


class Reversed(torch.autograd.Function):
    """The same forwards; backwards, gradients with the other sign."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:  # noqa: ARG004
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ARG004
        return -gradient


def variational_loss(made: Tensor, mean: Tensor, spread: Tensor, targets: Tensor) -> Tensor:
    """Return BCE(hhᵀ, of the same class) of pairs of two + KL(N(μ, σ²) ‖ N(0, I)) / ln 2 of a node, on average."""
    alike = (targets[:, None] == targets).to(made)
    pairs = ~torch.eye(len(made), dtype=torch.bool, device=made.device)
    of_pairs = functional.binary_cross_entropy_with_logits((made @ made.T)[pairs], alike[pairs], reduction="sum")
    divergence = (mean.square() + spread.square() - 1 - 2 * spread.log()).sum(dim=1).mean() / 2
    return of_pairs / max(int(pairs.sum()), 1) + divergence / log(2)
