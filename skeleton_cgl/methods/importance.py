"""Importances of parameters, and the quadratic penalty that keeps important ones where they were.

All are vectors over the learner's trainable parameters, head last. Those of a whole task (EWC `batch`, TWP, MAS but for
`absolute-samples`) are taken as a step of training sees the task, with BatchNorm on the task's own statistics: the
published strengths belong to them, and on running statistics, which lag behind, the same gradients are an order of
magnitude larger. Those of single samples, which have no statistics of their own, are taken as queries are answered, and
so are those of BeGin (variant `begin`), of the batches of an epoch. Computing any leaves no trace in the learner.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from skeleton_cgl.learning.training import Recipe
from skeleton_cgl.scenarios.scenario import Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

_SAMPLES_AT_ONCE = 64

Values = Callable[[Tensor, Tensor, Tensor], Tensor]
"""A number (N,) per sample, from outputs (N, O), targets and what each is answered among."""

Magnitude = Callable[[Tensor], Tensor]
"""What becomes of every entry of a gradient: its square, or its absolute value."""


@dataclass(frozen=True)
class Anchor:
    """Parameters θ* as a task left them, and the importance of each."""

    parameters: Tensor
    importance: Tensor

    @classmethod
    def at(cls, learner: "Learner", importance: Tensor) -> "Anchor":
        return cls(learner.parameter_vector().detach(), importance)

    def penalty(self, parameters: Tensor) -> Tensor:
        """Return Σᵢ Fᵢ (θᵢ − θ*ᵢ)²; parameters that came later (new classes) are free."""
        # What comes from a saved state may be on another device.
        importance, anchored = self.importance.to(parameters.device), self.parameters.to(parameters.device)
        return (importance * (parameters[: len(anchored)] - anchored).square()).sum()


def squared_gradient_of_loss(learner: "Learner", samples: Samples) -> Tensor:
    """Return the square of the gradient of the mean task loss over the samples (the `batch` importance of CGLB)."""
    with learner.observing():
        return learner.gradient_of(learner.task_loss(learner.batch(samples))).square()


def sample_fisher(learner: "Learner", samples: Samples) -> Tensor:
    """Return the mean over samples of the squared gradient of each one's loss (Kirkpatrick et al. 2017)."""
    return mean_over_samples(learner, samples, learner.problem.losses, torch.square)


def squared_gradients_of_batches(learner: "Learner", samples: Samples) -> Tensor:
    """Return the mean over batches of the squared gradient of each one's task loss (the importance of EWC in BeGin)."""
    return mean_over_batches(learner, samples, lambda batch: learner.gradient_of(learner.task_loss(batch)).square())


def mean_over_batches(learner: "Learner", samples: Samples, importance: Callable[["Batch"], Tensor]) -> Tensor:
    """Return Σ_b n_b importance(b) / Σ_b n_b over the batches b of an epoch, n_b: samples; as queries are answered."""
    total = torch.zeros_like(learner.parameter_vector())
    with learner.answering():
        for rows in next(Recipe(learner.training).epochs(samples)):
            batch = learner.batch(samples.select(rows))
            total += len(batch) * importance(batch)
    return total / len(samples)


def mean_over_samples(learner: "Learner", samples: Samples, values: Values, magnitude: Magnitude) -> Tensor:
    """Return the mean over samples of the magnitudes of the gradient of each one's value.

    values: (N,) from outputs (N, O), targets and what is answered among; each depends on the outputs of its own sample.
    """
    with learner.answering():
        batch = learner.batch(samples)
        summed = _sum_over_rows if batch.inputs.independent else _sum_one_by_one
        return summed(learner, batch, values, magnitude) / len(batch)


def _sum_over_rows(learner: "Learner", batch: "Batch", values: Values, magnitude: Magnitude) -> Tensor:
    """Return Σᵢ magnitude(∇valueᵢ) where every sample passes through the backbone by itself: many at once."""
    named = learner.model.named_parameters()
    parameters: dict[str, Tensor] = {name: value for name, value in named if value.requires_grad}

    def value_of_one(parameters: dict[str, Tensor], row: Tensor) -> Tensor:
        one = row[None]
        outputs = functional_call(learner.model, parameters, (batch.inputs.rows(one),))
        return values(outputs, batch.targets[one], batch.among[one])[0]

    total = torch.zeros_like(learner.parameter_vector())
    for rows in torch.arange(len(batch), device=learner.device).split(_SAMPLES_AT_ONCE):
        gradients = vmap(grad(value_of_one), in_dims=(None, 0))(parameters, rows)
        total += torch.cat([magnitude(value.detach()).sum(dim=0).flatten() for value in gradients.values()])
    return total


def _sum_one_by_one(learner: "Learner", batch: "Batch", values: Values, magnitude: Magnitude) -> Tensor:
    """Return Σᵢ magnitude(∇valueᵢ) where samples share what passes through the backbone, as nodes of a graph do."""
    each = values(learner.outputs(batch.inputs), batch.targets, batch.among)
    return torch.stack([magnitude(learner.gradient_of(value, retain_graph=True)) for value in each]).sum(dim=0)
