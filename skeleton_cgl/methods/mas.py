"""MAS, memory aware synapses (Aljundi et al. 2018): stay near weights the outputs depend on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.importance import Anchor, mean_over_batches, mean_over_samples
from skeleton_cgl.methods.parameters import check_choice, check_number
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner, Taught


_OF_THE_MEAN = {"squared": torch.square, "absolute-mean": torch.abs}
_SAMPLES = "absolute-samples"
_FORMER = {"absolute": "absolute-mean"}
"""Names of before, by which studies go on."""

_VARIANTS = ("own", "cglb", "begin")

Importance = Literal["squared", "absolute-mean", "absolute-samples", "absolute"]


class MAS(Method):
    """L + λ Σᵢ Ωᵢ (θᵢ − θ*ᵢ)², θ* the latest weights and Ω the mean importance over tasks, weighted by their size.

    A task's importance comes from the gradients gₖ of the mean, over its classes, of the squared outputs of its samples
    k, and from their mean g: "squared" takes g² (CGLB; the published strengths belong to it), "absolute-mean" |g|,
    formerly called "absolute", and "absolute-samples" the mean of |gₖ| (Aljundi et al., who sum over classes), in which
    gradients of unlike samples do not cancel.

    variant: what public code does instead. "cglb" (graphs in class-IL; in task-IL it does as the default): g² from the
    n samples of the *next* task, when that begins, and Ω ← (NΩ + g² + n) / (N + n), n meant as a factor: from the third
    task on all weights are held, nearly alike. "begin": Ω ← Ω + |g|, a sum over tasks, as queries are answered, |g| the
    mean over an epoch's batches, of the sum over all outputs a sample is answered among; there the strength is 1.
    """

    paper: ClassVar[str] = "Aljundi et al. 2018"

    younger: ClassVar[Mapping[str, Any]] = {"variant": "own"}

    def __init__(
        self,
        strength: float = 100,
        importance: Importance = "squared",
        variant: Literal["own", "cglb", "begin"] = "own",
    ) -> None:
        check_number(least=0, strength=strength)
        kind = _FORMER.get(importance, importance)
        check_choice((*_OF_THE_MEAN, _SAMPLES), importance=kind)
        check_choice(_VARIANTS, variant=variant)
        if variant != "own" and kind != "squared":
            raise ValueError(f"variant {variant!r} has an importance of its own; {importance!r} would not be felt")
        self.strength = strength
        self.kind = kind
        self.variant = variant
        self.anchor: Anchor | None = None
        self.samples = 0
        self.unmet = 0.0

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

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        if self.variant == "cglb" and len(learner.taught) > 1:
            self.consolidate(learner, self.importance(learner, experience, learner.taught[-2]), experience)

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        if self.variant != "cglb":
            self.consolidate(learner, self.importance(learner, experience, learner.taught[-1]), experience)

    def consolidate(self, learner: "Learner", importance: Tensor, experience: Experience) -> None:
        """Take in the importance of one more task, and hold the weights where they are."""
        count = len(experience.training)
        if self.anchor is not None:
            past = torch.full_like(importance, self.unmet)
            past[: len(self.anchor.importance)] = self.anchor.importance
            importance = self.together(past, importance, count)
            if self.variant == "cglb":
                # CGLB's head has all outputs from the beginning, those not met with an importance of n alone.
                self.unmet = (self.samples * self.unmet + count) / (self.samples + count)
        self.anchor = Anchor.at(learner, importance)
        self.samples += count

    def together(self, past: Tensor, new: Tensor, count: int) -> Tensor:
        """Return Ω of all tasks from that of past ones and that of a new one of so many samples."""
        if self.variant == "begin":
            return past + new
        if self.variant == "cglb":
            return (self.samples * past + new + count) / (self.samples + count)
        return (self.samples * past + count * new) / (self.samples + count)

    def importance(self, learner: "Learner", experience: Experience, taught: "Taught") -> Tensor:
        """Return the importance of every parameter for the outputs of a task, from the samples of an experience."""
        if self.variant == "begin":
            return mean_over_batches(learner, experience.training, lambda batch: _of_batch(learner, batch))
        columns = learner.columns_of(taught)
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
            **({"unmet": self.unmet} if self.variant == "cglb" else {}),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.anchor = Anchor(state["parameters"], state["importance"]) if state else None
        self.samples = state["samples"] if state else 0
        self.unmet = state.get("unmet", 0.0)


def _of_batch(learner: "Learner", batch: "Batch") -> Tensor:
    """Return |∇ mean Σ_c z_c²| of a batch, c the outputs that a sample is answered among."""
    squares = learner.outputs(batch.inputs).square().masked_fill(~batch.among, 0)
    return learner.gradient_of(squares.sum(dim=1).mean()).abs()
