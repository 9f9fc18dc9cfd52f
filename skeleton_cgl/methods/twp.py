"""TWP, topology-aware weight preserving (Liu et al. 2021): stay near weights that matter to loss or to topology."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from skeleton_cgl.methods.ewc import EWC
from skeleton_cgl.methods.importance import squared_gradient_of_loss
from skeleton_cgl.scenarios.scenario import Need, Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class TWP(EWC):
    """L + β‖∇L‖₁ + Σ_τ Σᵢ (λ_l F_loss + λ_t F_topology)ᵢ (θᵢ − θ*_τ,i)² over all past tasks τ.

    F_loss is the importance of EWC. F_topology is the squared gradient of the 2-norm of the attention coefficients of
    all edges: softmax over the in-edges of i of LeakyReLU₀.₂(Σ_d (h_j W)_d tanh((h_i W)_d)), which the backbone gives
    in `edge_attention`.
    """

    needs: frozenset[Need] = frozenset(["edge attention"])

    def __init__(self, lambda_l: float = 1e4, lambda_t: float = 1e4, beta: float = 0.01) -> None:
        if min(lambda_l, lambda_t, beta) < 0:
            raise ValueError("lambda_l, lambda_t and beta must not be negative")
        super().__init__(strength=float(bool(lambda_l or lambda_t)))
        self.lambda_l = lambda_l
        self.lambda_t = lambda_t
        self.beta = beta
        self.importance = self.loss_and_topology

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        task_loss = learner.task_loss(batch)
        loss = self.with_penalty(learner, task_loss)
        return loss + self.beta * self.gradient_norm(learner, task_loss) if self.beta else loss

    def gradient_norm(self, learner: "Learner", task_loss: Tensor) -> Tensor:
        """Return ‖∇L‖₁ of the task loss, differentiably."""
        gradients = torch.autograd.grad(task_loss, learner.parameters(), create_graph=True, allow_unused=True)
        return torch.stack([gradient.abs().sum() for gradient in gradients if gradient is not None]).sum()

    def loss_and_topology(self, learner: "Learner", samples: Samples) -> Tensor:
        """Return λ_l F_loss + λ_t F_topology."""
        with learner.observing():
            coefficients = learner.edge_attention(learner.batch(samples).inputs)
            norm = torch.cat([layer.flatten() for layer in coefficients]).norm()
            topology = learner.gradient_of(norm).square()
        return self.lambda_l * squared_gradient_of_loss(learner, samples) + self.lambda_t * topology
