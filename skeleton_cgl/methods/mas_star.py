"""MAS*, task-free MAS (Aljundi, Kelchtermans, Tuytelaars 2019): what is important is held wherever the loss is low."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.hard_samples import HardSamples
from skeleton_cgl.methods.importance import Anchor
from skeleton_cgl.methods.parameters import check_choice, check_number
from skeleton_cgl.methods.plateaus import PlateauDetector
from skeleton_cgl.scenarios.scenario import Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

_IMPORTANCES = ("hard", "batch")
_WATCHED = ("task", "total")


class MASStar(Method):
    """L + λ/2 Σᵢ Ωᵢ (θᵢ − θ*ᵢ)², Ω and θ* renewed after every step with which L comes to a plateau (`PlateauDetector`).

    At the k-th plateau Ω ← (1 − 1/k) Ω + |∇ mean z²| / k, θ* ← θ; Ω is zero for outputs that had not been met. z are
    the outputs that samples are answered among, taken as queries are answered: nothing is drawn, and the samples, of no
    usual kind, do not become each other's BatchNorm statistics. Before the first plateau MAS* is Bare, and remains so
    where the mean loss never falls below `mean`, as it may with many classes. Borders between lessons are not felt.

    importance: the samples that z are of. "hard": the `hard` hardest of the last `recent`, by the loss each had in its
    step; this is the original, of which 20 and 100 are not verified at their source. "batch": those of the step, as
    DRIFT has it. watched: whether plateaus are those of L, the "task" loss, or of the "total", as in DRIFT.
    """

    paper: ClassVar[str] = "Aljundi et al. 2019"

    def __init__(
        self,
        strength: float = 0.5,
        window: int = 5,
        mean: float = 0.2,
        variance: float = 0.1,
        importance: Literal["hard", "batch"] = "hard",
        hard: int = 20,
        recent: int = 100,
        watched: Literal["task", "total"] = "task",
    ) -> None:
        check_number(least=0, strength=strength)
        check_choice(_IMPORTANCES, importance=importance)
        check_choice(_WATCHED, watched=watched)
        self.strength = strength
        self.kind = importance
        self.watched = watched
        self.detector = PlateauDetector(window, mean, variance)
        self.memory = HardSamples(hard, recent)
        self.anchor: Anchor | None = None
        self.consolidations = 0
        self._samples: Samples | None = None
        self._losses: Tensor | None = None
        self._watched_loss = 0.0

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:  # noqa: ARG002
        self._samples = samples
        return samples

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        outputs = learner.outputs(batch.inputs)
        losses = learner.problem.losses(outputs, batch.targets, batch.among)
        loss = total = (losses * batch.weights).sum()
        if self.strength and self.anchor is not None:
            total = loss + self.strength / 2 * self.anchor.penalty(learner.parameter_vector())
        self._losses = losses.detach()
        self._watched_loss = (loss if self.watched == "task" else total).item()
        return total

    def step_done(self, learner: "Learner", batch: "Batch") -> None:
        assert self._samples is not None
        assert self._losses is not None
        if self.kind == "hard":
            self.memory.see(self._samples, self._losses)
        if self.detector.finds_plateau(self._watched_loss):
            hard = self.kind == "hard"
            self.consolidate(learner, learner.batch(self.memory.hardest(self._samples.pool)) if hard else batch)
        self._samples = self._losses = None
        self._watched_loss = 0.0

    def consolidate(self, learner: "Learner", batch: "Batch") -> None:
        """Take in what is important for the outputs of a batch, and hold the weights where they are."""
        self.consolidations += 1
        with learner.answering():
            squares = learner.outputs(batch.inputs)[batch.among].square()
            importance = learner.gradient_of(squares.mean()).abs() / self.consolidations
        if self.anchor is not None:
            past = torch.zeros_like(importance)
            past[: len(self.anchor.importance)] = self.anchor.importance
            importance += (1 - 1 / self.consolidations) * past
        self.anchor = Anchor.at(learner, importance)

    def samples_kept(self) -> int:
        return len(self.memory)

    def state(self) -> dict[str, Any]:
        anchor = self.anchor
        return {
            "detector": self.detector.state(),
            "memory": self.memory.state(),
            "consolidations": self.consolidations,
            **({} if anchor is None else {"parameters": anchor.parameters, "importance": anchor.importance}),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.detector.restore(state["detector"])
        self.memory.restore(state["memory"])
        self.consolidations = state["consolidations"]
        self.anchor = Anchor(state["parameters"], state["importance"]) if self.consolidations else None
