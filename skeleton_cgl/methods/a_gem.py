"""A-GEM, averaged gradient episodic memory (Chaudhry et al. 2019): no step against the mean gradient of the memory."""

from typing import TYPE_CHECKING

from torch import Tensor

from skeleton_cgl.learning.method import LearningFailed
from skeleton_cgl.methods.remembering import Remembering
from skeleton_cgl.methods.reservoir import Reservoir
from skeleton_cgl.scenarios.scenario import Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner

_TOO_SHORT = 1e-8
"""Of a reference gradient whose square is smaller, the direction says nothing."""


class AGEM(Remembering[Reservoir]):
    """g ← g − ⟨g, g_ref⟩/⟨g_ref, g_ref⟩ · g_ref wherever ⟨g, g_ref⟩ < 0.

    g_ref is the gradient of the loss of min(|batch|, b) samples, drawn without replacement from a reservoir of `count`.
    The batch is offered to it in the first epoch alone, so that a sample counts once; from its second step on it may be
    drawn, within its own lesson as well.
    """

    paper = "Chaudhry et al. 2019"

    def __init__(self, count: int = 100) -> None:
        # What is drawn passes through the backbone alone, and BatchNorm needs two.
        self.memory = Reservoir(count, fewest=2)
        self._drawn: Samples | None = None

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:
        drawn = self.memory.draw(learner, len(samples))
        self._drawn = self.memory.at(drawn, samples.pool) if len(drawn) else None
        # What this step is compared with is drawn already.
        if learner.first_pass:
            self.memory.offer(learner, samples)
        return samples

    def gradients_ready(self, learner: "Learner") -> None:
        if self._drawn is None:
            return
        gradient = learner.gradient_vector()
        with learner.statistics_kept():
            reference = learner.gradient_of(learner.task_loss(learner.batch(self._drawn, training=True)))
        self._drawn = None
        if not (gradient.isfinite().all() and reference.isfinite().all()):
            raise LearningFailed(f"a gradient of {learner.lesson_in_words()} or of its memory is not finite")
        projected = project(gradient, reference)
        if projected is not gradient:
            learner.set_gradient(projected)


def project(gradient: Tensor, reference: Tensor) -> Tensor:
    """Return g (P,) without its part along −g_ref (P,); `gradient` itself where it has none, or g_ref is too short."""
    g, along = gradient.double(), reference.double()
    agreement, square = g @ along, along @ along
    if agreement >= 0 or square < _TOO_SHORT:
        return gradient
    return (g - agreement / square * along).to(gradient.dtype)
