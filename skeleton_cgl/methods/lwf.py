"""LwF, learning without forgetting (Li and Hoiem 2016): keep answering old questions as before."""

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.learning.method import Method
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class LwF(Method):
    """L_new + λ Σ_τ −mean Σ_c softmax(z_teacher[τ]/T)_c · log softmax(z[τ]/T)_c over all past tasks τ.

    L_new is the cross-entropy among the current task's classes; the teacher is the model as the last task left it; z[τ]
    are the outputs for the classes of task τ.
    """

    def __init__(self, strength: float = 1, temperature: float = 2) -> None:
        if strength < 0 or temperature <= 0:
            raise ValueError("strength must not be negative, and temperature must be positive")
        self.strength = strength
        self.temperature = temperature
        self._teacher: torch.nn.Module | None = None
        self._taught: tuple[Batch, Tensor] | None = None

    def begin_task(self, learner: "Learner", experience: Experience) -> None:  # noqa: ARG002
        self._taught = None
        self._teacher = None
        if self.strength and len(learner.tasks) > 1:
            self._teacher = copy.deepcopy(learner.model).eval().requires_grad_(False)

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        outputs = learner.outputs(batch.inputs)
        *past, current = (learner.head.columns(torch.tensor(task)) for task in learner.tasks)
        among_current = torch.full_like(outputs, -torch.inf)
        among_current[:, current] = outputs[:, current]
        loss = learner.cross_entropy(among_current, batch)
        if self._teacher is None:
            return loss
        wanted = self._answers_of_teacher(batch)
        return loss + self.strength * sum(self.distillation(wanted[:, task], outputs[:, task]) for task in past)

    def distillation(self, wanted: Tensor, found: Tensor) -> Tensor:
        """Return −mean Σ_c softmax(wanted/T)_c · log softmax(found/T)_c."""
        likely = functional.softmax(wanted / self.temperature, dim=1)
        return -(likely * functional.log_softmax(found / self.temperature, dim=1)).sum(dim=1).mean()

    def _answers_of_teacher(self, batch: "Batch") -> Tensor:
        if self._taught is None or self._taught[0] is not batch:
            with torch.no_grad():
                self._taught = (batch, self._teacher(batch.inputs))
        return self._taught[1]
