"""MAS, memory aware synapses (Aljundi et al. 2018): stay near weights the outputs depend on."""

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.importance import Anchor, mean_over_samples
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


_OF_THE_MEAN = {"squared": torch.square, "absolute-mean": torch.abs}
_SAMPLES = "absolute-samples"
_FORMER = {"absolute": "absolute-mean"}
"""Names of before, by which studies go on."""

Importance = Literal["squared", "absolute-mean", "absolute-samples", "absolute"]


class MAS(Method):
    """L + λ Σᵢ Ωᵢ (θᵢ − θ*ᵢ)², θ* the latest weights and Ω the mean importance over tasks, weighted by their size.

    A task's importance comes from the gradients gₖ of the mean, over its classes, of the squared outputs of its samples
    k, and from their mean g: "squared" takes g² (CGLB; the published strengths belong to it), "absolute-mean" |g|,
    formerly called "absolute", and "absolute-samples" the mean of |gₖ| (Aljundi et al., who sum over classes), in which
    gradients of unlike samples do not cancel.
    """

    def __init__(self, strength: float = 100, importance: Importance = "squared") -> None:
        if strength < 0:
            raise ValueError(f"strength {strength} is negative")
        kind = _FORMER.get(importance, importance)
        if kind not in (*_OF_THE_MEAN, _SAMPLES):
            raise ValueError(f"unknown importance {kind!r}{did_you_mean(kind, [*_OF_THE_MEAN, _SAMPLES])}")
        self.strength = strength
        self.kind = kind
        self.anchor: Anchor | None = None
        self.samples = 0

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters as keys have them: there, an importance keeps the name that it was first given."""
        names = {name: former for former, name in _FORMER.items()}
        importance = parameters["importance"]
        return {**parameters, "importance": names.get(importance, importance)}

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
        columns = learner.columns_of(learner.taught[-1])
        if self.kind == _SAMPLES:
            return mean_over_samples(
                learner, experience.training, lambda outputs, *_: outputs[:, columns].square().mean(dim=1), torch.abs
            )
        with learner.observing():
            batch = learner.batch(experience.training)
            outputs = learner.outputs(batch.inputs)[:, columns]
            return _OF_THE_MEAN[self.kind](learner.gradient_of(outputs.square().mean()))

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
