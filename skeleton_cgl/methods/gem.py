"""GEM, gradient episodic memory (Lopez-Paz and Ranzato 2017): no step may increase the loss on a remembered task."""

from typing import TYPE_CHECKING, Any

import torch
from scipy.optimize import nnls
from torch import Tensor

from skeleton_cgl.learning.method import LearningFailed, Method
from skeleton_cgl.methods.memory import Memory, with_fraction
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

_RIDGE = 1e-9
"""ε of the quadratic program, relative to unit gradients: enough to make parallel gradients solvable."""


class GEM(Method):
    """The gradient g is replaced by the nearest vector that agrees with the loss gradient of every remembered task."""

    def __init__(self, margin: float = 5, fraction: float | None = None, count: int | None = None) -> None:
        if margin < 0:
            raise ValueError(f"margin {margin} is negative")
        self.margin = margin
        # A task's memory passes through the backbone alone, and BatchNorm needs two.
        self.memory = Memory(**with_fraction({"fraction": fraction, "count": count}), fewest=2)
        self._remembered: list[Batch] = []

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        return with_fraction(parameters)

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        past = self.memory.of_tasks(experience.training.pool)
        self._remembered = [learner.batch(samples) for samples in past]

    def gradients_ready(self, learner: "Learner") -> None:
        if not self._remembered:
            return
        gradient = learner.gradient_vector()
        with learner.statistics_kept():
            memories = torch.stack([learner.gradient_of(learner.task_loss(batch)) for batch in self._remembered])
        if not (gradient.isfinite().all() and memories.isfinite().all()):
            raise LearningFailed(f"a gradient of {learner.lesson_in_words()} or of its memory is not finite")
        projected = project(gradient, memories, self.margin)
        if projected is not gradient:
            learner.set_gradient(projected)

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        self.memory.keep(experience, learner.seed_of_lesson("memory", experience))
        self._remembered = []

    def samples_kept(self) -> int:
        return len(self.memory)

    def state(self) -> dict[str, Any]:
        return self.memory.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.memory.restore(state)


def project(gradient: Tensor, memories: Tensor, margin: float) -> Tensor:
    """Return g + Gᵀv with v = argmin ½vᵀ(GGᵀ+εI)v + (Gg)ᵀv, v ≥ margin, for g (P,) and the rows of G (tasks, P).

    `gradient` itself is returned where no ⟨g, g_τ⟩ is negative. Rows and g are brought to length 1 before solving; v
    keeps its meaning, since the bound of each row is scaled along.
    """
    g, rows = gradient.double(), memories.double()
    lengths, length = rows.norm(dim=1), g.norm()
    felt = lengths > 0
    if length == 0 or not felt.any() or (rows @ g >= 0).all():
        return gradient
    units = rows[felt] / lengths[felt, None]
    lowest = margin * lengths[felt] / length
    quadratic = units @ units.T + _RIDGE * torch.eye(len(units), dtype=units.dtype, device=units.device)
    linear = units @ (g / length) + quadratic @ lowest
    # With v = lowest + u, u ≥ 0, and quadratic = LLᵀ, the program is the least-squares problem min ‖Lᵀu + L⁻¹linear‖.
    factor = torch.linalg.cholesky(quadratic)
    target = -torch.linalg.solve_triangular(factor, linear[:, None], upper=False)[:, 0]
    u, _ = nnls(factor.T.cpu().numpy(), target.cpu().numpy())
    return (g + length * (lowest + torch.from_numpy(u).to(lowest)) @ units).to(gradient.dtype)
