"""Influence functions (Koh and Liang 2017) of training samples, over the weights of the head.

The head alone: its loss is convex, so that the Hessian has no negative direction and conjugate gradients find what its
inverse does to a gradient; over all weights of a network neither holds. The embeddings are taken as queries are
answered.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from skeleton_cgl.scenarios.scenario import Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner

_AT_ONCE = 64
"""So many samples' systems are solved together."""
_TOLERANCE = 1e-6
"""The residual that ends conjugate gradients, relative to the gradient."""
_STEPS = 200
"""Conjugate gradients take no more steps than this."""


def self_influence(learner: "Learner", samples: Samples, damping: float) -> Tensor:
    """Return (N,) gᵢᵀ(H + μI)⁻¹gᵢ, gᵢ = ∇ℓᵢ, H = ∇²L the Hessian of the loss L of all samples, μ the damping.

    It is, but for the factor 1/N, by how much the loss ℓᵢ of a sample rises when the head is trained without it. The
    time it takes grows with N², since every sample has a system of its own.
    """
    with learner.answering(), torch.no_grad():
        batch = learner.batch(samples)
        embeddings = learner.embeddings(batch.inputs).double()
    rows, weights = learner.head.rows.detach().double(), batch.weights.double()

    def losses(rows: Tensor, embeddings: Tensor, targets: Tensor, among: Tensor) -> Tensor:
        outputs = functional_call(learner.head, {"rows": rows}, (embeddings,))
        return learner.problem.losses(outputs, targets, among)

    def loss_of_one(rows: Tensor, embedding: Tensor, target: Tensor, among: Tensor) -> Tensor:
        return losses(rows, embedding[None], target[None], among[None])[0]

    def loss_of_all(rows: Tensor) -> Tensor:
        return (losses(rows, embeddings, batch.targets, batch.among) * weights).sum()

    def times_hessian(vector: Tensor) -> Tensor:
        """Return (H + μI)v for one vector (P,)."""
        shaped = vector.view_as(rows)
        product: Tensor = grad(lambda rows: (grad(loss_of_all)(rows) * shaped).sum())(rows)
        return product.flatten() + damping * vector

    found = []
    for some in torch.arange(len(batch), device=learner.device).split(_AT_ONCE):
        parts = embeddings[some], batch.targets[some], batch.among[some]
        gradients = vmap(grad(loss_of_one), in_dims=(None, 0, 0, 0))(rows, *parts).flatten(1)
        found.append((gradients * conjugate_gradients(vmap(times_hessian), gradients)).sum(dim=1))
    return torch.cat(found)


def conjugate_gradients(times: Callable[[Tensor], Tensor], wanted: Tensor) -> Tensor:
    """Return X (N, P) with times(X) = wanted, row by row; times: the product of rows and a positive definite matrix."""
    found, residual = torch.zeros_like(wanted), wanted
    direction, squared = residual, residual.square().sum(dim=1)
    enough = _TOLERANCE**2 * squared
    for _ in range(_STEPS):
        open_rows = squared > enough
        if not open_rows.any():
            break
        product = times(direction)
        # Rows that are solved stay as they are: their steps would divide by what is nearly 0.
        step = torch.where(open_rows, squared / (direction * product).sum(dim=1), 0.0)[:, None]
        found, residual = found + step * direction, residual - step * product
        before, squared = squared, residual.square().sum(dim=1)
        direction = residual + torch.where(open_rows, squared / before, 0.0)[:, None] * direction
    return found
