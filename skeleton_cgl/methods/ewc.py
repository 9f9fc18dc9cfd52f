"""EWC, elastic weight consolidation (Kirkpatrick et al. 2017): stay near weights that mattered."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from torch import Tensor

from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.importance import (
    Anchor,
    sample_fisher,
    squared_gradient_of_loss,
    squared_gradients_of_batches,
)
from skeleton_cgl.methods.parameters import check_choice, check_number
from skeleton_cgl.scenarios.scenario import Experience

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


_IMPORTANCES = {"batch": squared_gradient_of_loss, "sample": sample_fisher}
_VARIANTS = ("own", "cglb", "begin")


class EWC(Method):
    """L + λ Σ_τ Σᵢ F_τ,i (θᵢ − θ*_τ,i)² over all past tasks τ.

    importance: "batch" squares the gradient of the mean loss over the task (CGLB; the published strengths belong to
    it), "sample" averages the squared gradients of single samples (Kirkpatrick et al.).

    variant: what public code does instead. "cglb": nothing else, it is the default by another name. "begin": "batch" as
    queries are answered, with BatchNorm on running statistics, and its mean over an epoch's batches.
    """

    paper: ClassVar[str] = "Kirkpatrick et al. 2017"

    younger: ClassVar[Mapping[str, Any]] = {"variant": "own"}

    def __init__(
        self,
        strength: float = 1e6,
        importance: Literal["batch", "sample"] = "batch",
        variant: Literal["own", "cglb", "begin"] = "own",
    ) -> None:
        check_number(least=0, strength=strength)
        check_choice(_IMPORTANCES, importance=importance)
        check_choice(_VARIANTS, variant=variant)
        if variant != "own" and importance != "batch":
            raise ValueError(f"variant {variant!r} takes the importance 'batch', not {importance!r}")
        self.strength = strength
        self.importance = squared_gradients_of_batches if variant == "begin" else _IMPORTANCES[importance]
        self.anchors: list[Anchor] = []

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters without a variant that changes nothing."""
        as_before = parameters["variant"] in ("own", "cglb")
        return {name: value for name, value in parameters.items() if name != "variant" or not as_before}

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        return self.with_penalty(learner, learner.task_loss(batch))

    def with_penalty(self, learner: "Learner", loss: Tensor) -> Tensor:
        """Return the loss plus the penalty of leaving what past tasks need."""
        if not self.strength or not self.anchors:
            return loss
        parameters = learner.parameter_vector()
        return loss + self.strength * sum(anchor.penalty(parameters) for anchor in self.anchors)

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        self.anchors.append(Anchor.at(learner, self.importance(learner, experience.training)))

    def state(self) -> dict[str, Any]:
        return {
            "parameters": [anchor.parameters for anchor in self.anchors],
            "importance": [anchor.importance for anchor in self.anchors],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.anchors = [Anchor(*pair) for pair in zip(state["parameters"], state["importance"], strict=True)]
