"""DER, dark experience replay (Buzzega et al. 2020): answer remembered samples as they were answered when learned."""

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from skeleton_cgl.methods.parameters import check_choice, check_number
from skeleton_cgl.methods.remembering import Remembering
from skeleton_cgl.methods.reservoir import Reservoir
from skeleton_cgl.scenarios.scenario import Samples, join

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

_PASSES = ("every", "first")

Passes = Literal["every", "first"]


class DER(Remembering[Reservoir]):
    """L(batch) + α · mean ‖z − z₀‖²/K over min(|batch|, b) draws from a reservoir of `count` samples with their z₀.

    z₀ are the outputs of the forward pass in which a sample was offered, before the step; K is how many there were, all
    of them, whatever its answer may be among. Outputs that the head has met since are free. Batch and draws pass
    through the backbone together, and α = 0 is Bare.

    passes: where a lesson has several epochs, the batch is offered to the reservoir in "every" one (as the authors
    train), so that z₀ come from all of the lesson and a sample counts once per epoch; or in the "first" alone, with the
    outputs of one who knows nothing yet of the lesson: with all samples in a batch, those of before its first step. On
    a stream there is one pass.
    """

    paper = "Buzzega et al. 2020"

    def __init__(self, alpha: float = 0.3, count: int = 100, passes: Passes = "every") -> None:
        if not alpha >= 0:
            raise ValueError(f"alpha {alpha} is not a number of at least 0")
        check_number(alpha=alpha)
        check_choice(_PASSES, passes=passes)
        self.alpha = alpha
        self.beta = 0.0
        self.passes = passes
        self.memory = Reservoir(count)
        self._offered: Samples | None = None
        self._answers: Tensor | None = None
        self._wanted: Tensor | None = None

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:
        self._offered = samples
        if not len(self.memory):
            return samples
        draws = [self.memory.draw(learner, len(samples)) for strength in (self.alpha, self.beta) if strength]
        if self.alpha:
            self._wanted = self.memory["outputs"][draws[0]]
        return join([samples, *(self.memory.at(slots, samples.pool) for slots in draws)])

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        outputs = learner.outputs(batch.inputs)
        loss, *replayed = learner.losses_of_parts(outputs, batch)
        own, *again = outputs.split(list(batch.sizes or (len(batch),)))
        self._answers = own.detach()
        if again and self._wanted is not None:
            loss = loss + self.alpha * distance(again[0], self._wanted.to(outputs.device))
        if again and self.beta:
            loss = loss + self.beta * replayed[-1]
        return loss

    def step_done(self, learner: "Learner", batch: "Batch") -> None:  # noqa: ARG002
        assert self._offered is not None
        assert self._answers is not None
        if learner.first_pass or self.passes == "every":
            self.memory.offer(learner, self._offered, outputs=self._answers)
        self._offered = self._answers = self._wanted = None


def distance(found: Tensor, wanted: Tensor) -> Tensor:
    """Return the mean over samples of the mean square of z (N, O) − z₀ (N, ≤ O), NaN in z₀ being free."""
    known = ~wanted.isnan()
    apart = torch.where(known, found[:, : wanted.shape[1]] - wanted.nan_to_num(0), 0.0)
    return (apart.square().sum(dim=1) / known.sum(dim=1)).mean()
