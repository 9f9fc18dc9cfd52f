"""Embeddings with noise: how wide it spreads is learned, against a discriminator that tells it from the embeddings."""

from collections.abc import Callable
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.learning.optimizers import clear_gradients, memory_of, remind, set_rate

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

_SHARPNESS = 10
_DISCRIMINATOR = 64
_TOO_SMALL = 1e-30
"""Of a spread below this, ln σ is taken of what σ is made of: 1/σ, its gradient, would soon be infinite."""
_LOWEST = -8.0
"""Of lower numbers, softplus is too small for its logarithm to be taken."""


class Strengths(NamedTuple):
    """λ, λ_adv and λ_vae: what the losses of what is replayed with noise weigh; those of no weight are left out."""

    replay: float
    adversarial: float
    variational: float


class Noise:
    """The spread σ around embeddings, the discriminator, and the optimizer of both.

    known: what was learned before; without an "optimizer" among it, the optimizer begins anew.
    """

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
        if "optimizer" in known:
            remind(self._optimizer, known["optimizer"])

    def spread(self, mean: Tensor) -> Tensor:
        """Return σ (N, width) for embeddings μ."""
        return _softplus(self._spread(mean))

    def told_apart(self, made: Tensor, mean: Tensor) -> Tensor:
        """Return how badly h (1) and μ (0) are told apart; gradients by these are turned round."""
        found = self._discriminator(Reversed.apply(torch.cat([made, mean])))[:, 0]
        wanted = torch.cat([torch.ones(len(made)), torch.zeros(len(mean))]).to(found)
        return functional.binary_cross_entropy_with_logits(found, wanted)

    def loss(
        self, learner: "Learner", batch: "Batch", strengths: Strengths, drawn: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return L + λ L_replay + λ_adv L_adv + λ_vae L_vae, and the outputs (N, O) of the samples that L is of.

        Of a batch's two parts the second is replayed: as h = μ + σε, ε being `drawn` in the shape of σ.
        """
        current, mean = learner.embeddings(batch.inputs).split(batch.sizes)
        mapped = self._spread(mean)
        spread = _softplus(mapped)
        made = mean + spread * drawn(spread)
        outputs = learner.head(torch.cat([current, made]))
        of_batch, replayed = learner.losses_of_parts(outputs, batch)
        loss = of_batch + strengths.replay * replayed
        if strengths.adversarial:
            loss = loss + strengths.adversarial * self.told_apart(made, mean)
        if strengths.variational:
            # Only where it has to be: gradients by the other way are rounded differently.
            log_spread = None if bool(spread.min() > _TOO_SMALL) else log_softplus(mapped)
            variational = variational_loss(made, mean, spread, batch.targets[-len(made) :], log_spread)
            loss = loss + strengths.variational * variational
        return loss, outputs[: len(current)]

    def step(self, learner: "Learner") -> None:
        """Take a step with the gradients at hand, at the rate the learner has at present."""
        set_rate(self._optimizer, learner.optimizer.param_groups[0]["lr"])
        self._optimizer.step()
        clear_gradients(self._optimizer)

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


def _softplus(mapped: Tensor) -> Tensor:
    return functional.softplus(mapped, beta=_SHARPNESS)


def log_softplus(mapped: Tensor) -> Tensor:
    """Return ln(ln(1 + e^βx)/β), finite where softplus itself is 0 to the last bit: there it is βx − ln β."""
    usual = _softplus(mapped.clamp(min=_LOWEST)).log()
    return torch.where(mapped < _LOWEST, _SHARPNESS * mapped - log(_SHARPNESS), usual)


def variational_loss(
    made: Tensor, mean: Tensor, spread: Tensor, targets: Tensor, log_spread: Tensor | None = None
) -> Tensor:
    """Return BCE(hhᵀ, of the same class) of pairs of two + KL(N(μ, σ²) ‖ N(0, I)) / ln 2 of a node, on average.

    log_spread: ln σ, where σ may be too small for it to be taken here.
    """
    alike = (targets[:, None] == targets).to(made)
    pairs = ~torch.eye(len(made), dtype=torch.bool, device=made.device)
    of_pairs = functional.binary_cross_entropy_with_logits((made @ made.T)[pairs], alike[pairs], reduction="sum")
    divergence = (mean.square() + spread.square() - 1 - 2 * (spread.log() if log_spread is None else log_spread)).sum(
        dim=1
    ).mean() / 2
    return of_pairs / max(int(pairs.sum()), 1) + divergence / log(2)
