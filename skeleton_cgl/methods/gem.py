"""GEM, gradient episodic memory (Lopez-Paz and Ranzato 2017): no step may increase the loss on a remembered task."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from skeleton_cgl.methods.memory import Memory
from skeleton_cgl.methods.method import Method
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.methods.learner import Batch, Learner

_RIDGE = 1e-9
"""ε of the quadratic program, relative to unit gradients: enough to make parallel gradients solvable."""


class GEM(Method):
    """The gradient g is replaced by the nearest vector that agrees with the loss gradient of every remembered task."""

    def __init__(self, margin: float = 5, fraction: float | None = None, count: int | None = None) -> None:
        if margin < 0:
            raise ValueError(f"margin {margin} is negative")
        self.margin = margin
        self.memory = Memory(0.2 if fraction is None and count is None else fraction, count)
        self._remembered: list[Batch] = []

    def begin_task(self, learner: "Learner", experience: Experience) -> None:
        past = self.memory.of_tasks(experience.training.pool)
        self._remembered = [learner.batch(samples) for samples in past]

    def gradients_ready(self, learner: "Learner") -> None:
        if not self._remembered:
            return
        gradient = learner.gradient_vector()
        with learner.statistics_kept():
            memories = torch.stack([learner.gradient_of(learner.task_loss(batch)) for batch in self._remembered])
        projected = project(gradient, memories, self.margin)
        if projected is not gradient:
            learner.set_gradient(projected)

    def end_task(self, learner: "Learner", experience: Experience) -> None:
        self.memory.keep(experience, learner.seed_of_task("memory", experience.task))
        self._remembered = []

    def state(self) -> dict[str, Any]:
        return self.memory.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.memory.restore(state)


def project(gradient: Tensor, memories: Tensor, margin: float) -> Tensor:
    """Return g + Gᵀv with v = argmin ½vᵀ(GGᵀ+εI)v + (Gg)ᵀv, v ≥ margin, for g (P,) and the rows of G (tasks, P).

    `gradient` itself is returned where no ⟨g, g_τ⟩ is negative. Rows and g are brought to length 1 before solving; v
    keeps its meaning, since the bound of each row is scaled along.
    """
    g, rows = gradient.double().numpy(), memories.double().numpy()
    lengths, length = np.linalg.norm(rows, axis=1), np.linalg.norm(g)
    felt = lengths > 0
    if length == 0 or not felt.any() or (rows @ g >= 0).all():
        return gradient
    units = rows[felt] / lengths[felt, None]
    lowest = margin * lengths[felt] / length
    quadratic = units @ units.T + _RIDGE * np.eye(len(units))
    linear = units @ (g / length) + quadratic @ lowest
    # With v = lowest + u, u ≥ 0, and quadratic = LLᵀ, the program is the least-squares problem min ‖Lᵀu + L⁻¹linear‖.
    factor = np.linalg.cholesky(quadratic)
    u, _ = nnls(factor.T, -np.linalg.solve(factor, linear))
    return torch.from_numpy(g + length * (lowest + u) @ units).to(gradient.dtype)
