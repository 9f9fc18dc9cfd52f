"""GEM, gradient episodic memory (Lopez-Paz and Ranzato 2017): no step may increase the loss on a remembered task."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from scipy.optimize import nnls
from torch import Tensor

from skeleton_cgl.learning.method import LearningFailed
from skeleton_cgl.methods.memory import Memory, with_fraction
from skeleton_cgl.methods.parameters import check_choice, check_number
from skeleton_cgl.methods.remembering import Remembering
from skeleton_cgl.scenarios.scenario import Experience, Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

_RIDGE = 1e-9
"""ε of the quadratic program, relative to unit gradients: enough to make parallel gradients solvable."""
_PUBLIC_RIDGE = 1e-3
"""ε of public code, whatever the length of gradients; those of length 0.03 and less hardly count beside it."""
_VARIANTS = ("own", "cglb", "begin")


class GEM(Remembering[Memory]):
    """The gradient g is replaced by the nearest vector that agrees with the loss gradient of every remembered task.

    variant: what public code does instead. In both, ε is 1e-3 however long gradients are, and memories pass before the
    batch of a step and count in BatchNorm's running statistics; this is "begin". Besides, "cglb" (graphs): a memory is
    *places* in a shuffled task, so that other samples are drawn, once in every epoch; the whole task passes, and its
    classes weigh as in all of it; and they are answered among the outputs known when it was learned.
    """

    paper: ClassVar[str] = "Lopez-Paz and Ranzato 2017"

    younger: ClassVar[Mapping[str, Any]] = {"variant": "own"}

    def __init__(
        self,
        margin: float = 5,
        fraction: float | None = None,
        count: int | None = None,
        variant: Literal["own", "cglb", "begin"] = "own",
    ) -> None:
        check_number(least=0, margin=margin)
        check_choice(_VARIANTS, variant=variant)
        self.margin = margin
        self.variant = variant
        # A task's memory passes through the backbone alone, and BatchNorm needs two.
        self.memory = Memory(**with_fraction({"fraction": fraction, "count": count}), fewest=2)
        self._remembered: list[Batch] = []
        self._gradients: Tensor | None = None
        self._epoch = self._left = 0

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        return with_fraction(parameters)

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        past = self.memory.of_tasks(experience.training.pool)
        self._remembered = [learner.batch(samples) for samples in past]
        self._epoch, self._left = len(experience.training), 0

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:
        if self._remembered and self.variant != "own":
            if self.variant == "begin" or self._left <= 0:
                self._gradients = self.gradients_of_memories(learner)
                self._left = self._epoch
            self._left -= len(samples)
        return samples

    def gradients_of_memories(self, learner: "Learner") -> Tensor:
        """Return (tasks, P) the loss gradients of what is remembered of every past task."""
        loss_of = self.loss_of_drawn if self.variant == "cglb" else self.loss_of_memory
        return torch.stack([learner.gradient_of(loss_of(learner, task)) for task in range(len(self._remembered))])

    def loss_of_memory(self, learner: "Learner", task: int) -> Tensor:
        """Return the loss of what is remembered of a task."""
        return learner.task_loss(self._remembered[task])

    def loss_of_drawn(self, learner: "Learner", task: int) -> Tensor:
        """Return the loss of samples of a task that are drawn for this once, as CGLB comes to it."""
        batch = self._remembered[task]
        drawn = torch.randperm(len(batch))[: self.memory.wanted(len(batch))]
        weights = torch.zeros_like(batch.weights)
        weights[drawn] = batch.weights[drawn] / batch.weights[drawn].sum()
        outputs = learner.outputs(batch.inputs)
        known = torch.zeros(outputs.shape[1], dtype=torch.bool, device=outputs.device)
        for taught in learner.taught[: task + 1]:
            known[learner.columns_of(taught)] = True
        return learner.loss_of(outputs, replace(batch, weights=weights), known)

    def gradients_ready(self, learner: "Learner") -> None:
        if not self._remembered:
            return
        gradient, memories = learner.gradient_vector(), self._gradients
        if memories is None:
            with learner.statistics_kept():
                memories = self.gradients_of_memories(learner)
        if not (gradient.isfinite().all() and memories.isfinite().all()):
            raise LearningFailed(f"a gradient of {learner.lesson_in_words()} or of its memory is not finite")
        projected = project(gradient, memories, self.margin, 0 if self.variant == "own" else _PUBLIC_RIDGE)
        if projected is not gradient:
            learner.set_gradient(projected)

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        if self.variant == "cglb":
            self.memory.keep_all(experience)
        else:
            self.memory.keep(experience, learner.seed_of_lesson("memory", experience))
        self._remembered, self._gradients, self._epoch, self._left = [], None, 0, 0

    def keeps_all(self, taught: Sequence[Tensor]) -> bool:
        # "cglb" draws other samples of a past task in every epoch, and so has all of them at hand.
        return self.variant == "cglb" or super().keeps_all(taught)


def project(gradient: Tensor, memories: Tensor, margin: float, ridge: float = 0) -> Tensor:
    """Return g + Gᵀv with v = argmin ½vᵀ(GGᵀ+εI)v + (Gg)ᵀv, v ≥ margin, for g (P,) and the rows of G (tasks, P).

    `gradient` itself is returned where no ⟨g, g_τ⟩ is negative. Rows and g are brought to length 1 before solving; v
    keeps its meaning, since the bound of each row is scaled along. ε is relative to unit rows; `ridge` comes on top of
    it, as of the rows that are given.
    """
    g, rows = gradient.double(), memories.double()
    lengths, length = rows.norm(dim=1), g.norm()
    felt = lengths > 0
    if length == 0 or not felt.any() or (rows @ g >= 0).all():
        return gradient
    units = rows[felt] / lengths[felt, None]
    lowest = margin * lengths[felt] / length
    quadratic = units @ units.T + torch.diag(_RIDGE + ridge / lengths[felt] / lengths[felt])
    linear = units @ (g / length) + quadratic @ lowest
    # With v = lowest + u, u ≥ 0, and quadratic = LLᵀ, the program is the least-squares problem min ‖Lᵀu + L⁻¹linear‖.
    factor = torch.linalg.cholesky(quadratic)
    target = -torch.linalg.solve_triangular(factor, linear[:, None], upper=False)[:, 0]
    u, _ = nnls(factor.T.cpu().numpy(), target.cpu().numpy())
    return (g + length * (lowest + torch.from_numpy(u).to(lowest)) @ units).to(gradient.dtype)
