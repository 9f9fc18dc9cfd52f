"""LwF, learning without forgetting (Li and Hoiem 2016): keep answering old questions as before."""

import copy
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.parameters import check_number
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class LwF(Method):
    """L_new + λ Σ_τ −mean Σ_c softmax(z_teacher[τ]/T)_c · log softmax(z[τ]/T)_c over all past tasks τ.

    L_new is the loss among the current task's outputs; the teacher is the model as the last task left it; z[τ] are the
    outputs of task τ. Past tasks of the same outputs, as domains are, count once: they ask the teacher the same.
    """

    paper: ClassVar[str] = "Li and Hoiem 2016"

    def __init__(self, strength: float = 1, temperature: float = 2) -> None:
        check_number(strength=strength, temperature=temperature)
        if strength < 0 or temperature <= 0:
            raise ValueError("strength must not be negative, and temperature must be positive")
        self.strength = strength
        self.temperature = temperature
        self._teacher: torch.nn.Module | None = None
        self._taught: tuple[Batch, Tensor] | None = None
        self._past: list[list[int]] = []

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:  # noqa: ARG002
        self._taught = None
        self._teacher = None
        past = dict.fromkeys(tuple(learner.columns_of(taught)) for taught in learner.taught[:-1])
        self._past = [list(columns) for columns in past]
        if self.strength and self._past:
            self._teacher = copy.deepcopy(learner.model).eval().requires_grad_(False)

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        outputs = learner.outputs(batch.inputs)
        loss = learner.loss_of(outputs, batch, among=learner.scopes()[-2].to(outputs.device))
        if self._teacher is None:
            return loss
        wanted, distance = self._answers_of(self._teacher, batch), learner.problem.distillation
        for columns in self._past:
            loss = loss + self.strength * distance(wanted[:, columns], outputs[:, columns], self.temperature)
        return loss

    def _answers_of(self, teacher: torch.nn.Module, batch: "Batch") -> Tensor:
        if self._taught is None or self._taught[0] is not batch:
            with torch.no_grad():
                self._taught = (batch, teacher(batch.inputs))
        return self._taught[1]
