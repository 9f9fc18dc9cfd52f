"""MAS, memory aware synapses (Aljundi et al. 2018): stay near weights the outputs depend on."""

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.importance import Anchor
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


_IMPORTANCES = {"squared": torch.square, "absolute": torch.abs}


class MAS(Method):
    """L + λ Σᵢ Ωᵢ (θᵢ − θ*ᵢ)², θ* the latest weights and Ω the mean importance over tasks, weighted by their size.

    A task's importance comes from the gradient g of the mean, over its samples and classes, of the squared outputs:
    "squared" takes g² (CGLB; the published strengths belong to it), "absolute" |g| (Aljundi et al.).
    """

    def __init__(self, strength: float = 100, importance: Literal["squared", "absolute"] = "squared") -> None:
        if strength < 0:
            raise ValueError(f"strength {strength} is negative")
        if importance not in _IMPORTANCES:
            raise ValueError(f"unknown importance {importance!r}{did_you_mean(importance, _IMPORTANCES)}")
        self.strength = strength
        self.importance_of = _IMPORTANCES[importance]
        self.anchor: Anchor | None = None
        self.samples = 0

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        loss = learner.task_loss(batch)
        if not self.strength or self.anchor is None:
            return loss
        return loss + self.strength * self.anchor.penalty(learner.parameter_vector())

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        importance = self.importance(learner, experience)
        count = len(experience.training)
        if self.anchor is not None:
            past = torch.zeros_like(importance)
            past[: len(self.anchor.importance)] = self.anchor.importance
            importance = (self.samples * past + count * importance) / (self.samples + count)
        self.anchor = Anchor.at(learner, importance)
        self.samples += count

    def importance(self, learner: "Learner", experience: Experience) -> Tensor:
        """Return the importance of every parameter for the outputs of the task just learned."""
        with learner.observing():
            batch = learner.batch(experience.training)
            outputs = learner.outputs(batch.inputs)[:, learner.columns_of(learner.taught[-1])]
            return self.importance_of(learner.gradient_of(outputs.square().mean()))

    def state(self) -> dict[str, Any]:
        if self.anchor is None:
            return {}
        return {
            "parameters": self.anchor.parameters,
            "importance": self.anchor.importance,
            "samples": self.samples,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.anchor = Anchor(state["parameters"], state["importance"]) if state else None
        self.samples = state["samples"] if state else 0
