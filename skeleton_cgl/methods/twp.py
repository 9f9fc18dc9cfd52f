"""TWP, topology-aware weight preserving (Liu et al. 2021): stay near weights that matter to loss or to topology."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from skeleton_cgl.methods.ewc import EWC
from skeleton_cgl.methods.importance import Anchor, mean_over_batches, squared_gradient_of_loss
from skeleton_cgl.methods.parameters import check_choice, check_number
from skeleton_cgl.scenarios.scenario import Experience, Need, Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

_VARIANTS = ("own", "cglb", "begin")


class TWP(EWC):
    """L + β‖∇L‖₁ + Σ_τ Σᵢ (λ_l F_loss + λ_t F_topology)ᵢ (θᵢ − θ*_τ,i)² over all past tasks τ.

    F_loss is the importance of EWC. F_topology is the squared gradient of the 2-norm of the attention coefficients of
    all edges: softmax over the in-edges of i of LeakyReLU₀.₂(Σ_d (h_j W)_d tanh((h_i W)_d)), which the backbone gives
    in `edge_attention`.

    variant: what public code does instead. In both, β has no effect, a step follows the gradient of 2L + penalty, and
    F_topology is (∇L + ∇norm)², of the first layer alone. Besides, "cglb" (graphs; for nodes it does without): every
    step follows the sum of the task's gradients so far, beginning with ∇L + ∇norm of the task before; "begin": both F
    as queries are answered, with BatchNorm on running statistics, and their mean over an epoch's batches.
    """

    paper: ClassVar[str] = "Liu et al. 2021"

    needs: frozenset[Need] = frozenset(["edge attention"])

    def __init__(
        self,
        lambda_l: float = 1e4,
        lambda_t: float = 1e4,
        beta: float = 0.01,
        variant: Literal["own", "cglb", "begin"] = "own",
    ) -> None:
        check_number(lambda_l=lambda_l, lambda_t=lambda_t, beta=beta)
        if min(lambda_l, lambda_t, beta) < 0:
            raise ValueError("lambda_l, lambda_t and beta must not be negative")
        check_choice(_VARIANTS, variant=variant)
        super().__init__(strength=float(bool(lambda_l or lambda_t)))
        self.lambda_l = lambda_l
        self.lambda_t = lambda_t
        self.beta = beta
        self.variant = variant
        self.importance = self.of_batches if variant == "begin" else self.loss_and_topology
        self.summed: Tensor | None = None

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, with one β for all where it has no effect."""
        return parameters if parameters["variant"] == "own" else {**parameters, "beta": 0.0}

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        task_loss = learner.task_loss(batch)
        if self.variant != "own":
            # L is differentiated by itself first, for its norm, and the gradient left where that of the whole is added.
            return self.with_penalty(learner, 2 * task_loss)
        loss = self.with_penalty(learner, task_loss)
        return loss + self.beta * self.gradient_norm(learner, task_loss) if self.beta else loss

    def gradient_norm(self, learner: "Learner", task_loss: Tensor) -> Tensor:
        """Return ‖∇L‖₁ of the task loss, differentiably."""
        gradients = torch.autograd.grad(task_loss, learner.parameters(), create_graph=True, allow_unused=True)
        return torch.stack([gradient.abs().sum() for gradient in gradients if gradient is not None]).sum()

    def gradients_ready(self, learner: "Learner") -> None:
        if self.variant == "cglb":
            gradient = learner.gradient_vector()
            if self.summed is not None:
                gradient[: len(self.summed)] += self.summed.to(gradient)
            self.summed = gradient
            learner.set_gradient(gradient)

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        if self.variant != "cglb":
            return super().end_lesson(learner, experience)
        with learner.observing():
            importance, self.summed = self.mixed(learner, learner.batch(experience.training))
        self.anchors.append(Anchor.at(learner, importance))

    def mixed(self, learner: "Learner", batch: "Batch") -> tuple[Tensor, Tensor]:
        """Return λ_l (∇L)² + λ_t (∇L + ∇norm)², and ∇L + ∇norm."""
        of_loss = learner.gradient_of(learner.task_loss(batch))
        of_both = of_loss + learner.gradient_of(learner.edge_attention(batch.inputs)[0].norm())
        return self.lambda_l * of_loss.square() + self.lambda_t * of_both.square(), of_both

    def of_batches(self, learner: "Learner", samples: Samples) -> Tensor:
        """Return the mean of what is mixed over the batches of an epoch."""
        return mean_over_batches(learner, samples, lambda batch: self.mixed(learner, batch)[0])

    def state(self) -> dict[str, Any]:
        return super().state() | ({} if self.summed is None else {"summed": self.summed})

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.summed = state.get("summed")

    def loss_and_topology(self, learner: "Learner", samples: Samples) -> Tensor:
        """Return λ_l F_loss + λ_t F_topology."""
        with learner.observing():
            coefficients = learner.edge_attention(learner.batch(samples).inputs)
            norm = torch.cat([layer.flatten() for layer in coefficients]).norm()
            topology = learner.gradient_of(norm).square()
        return self.lambda_l * squared_gradient_of_loss(learner, samples) + self.lambda_t * topology
