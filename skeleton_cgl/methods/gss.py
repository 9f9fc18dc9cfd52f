"""GSS-greedy, gradient-based sample selection (Aljundi et al. 2019): keep samples whose gradients point elsewhere."""

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from skeleton_cgl.learning.method import LearningFailed
from skeleton_cgl.learning.optimizers import clear_gradients
from skeleton_cgl.methods.parameters import check_choice, check_whole
from skeleton_cgl.methods.remembering import Remembering
from skeleton_cgl.methods.reservoir import Slots
from skeleton_cgl.scenarios.scenario import Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

_FIRST = 0.1
"""The score of samples that there was nothing to compare with."""
_SHORTEST = 1e-8
"""Gradients are taken to be so long at least, so that one of zero has cosines of 0."""
_DRAWS = ("scores", "published")

Draw = Literal["scores", "published"]


class GSS(Remembering[Slots]):
    """A step on the batch, then one on `replayed` samples of the memory; then the batch is offered to the memory.

    A sample's score is c = 1 + max cos(g, G) ∈ [0, 2]: g is the gradient of its loss, G those of at most `directions`
    mini-batches of `replayed` samples, drawn from the memory without replacement. While there is room it is kept with
    its score. Afterwards it needs c < 1, i is drawn with probability C_i/ΣC, and gives way with C_i/(C_i + c); C_i ← c.
    Gradients are those of the learner as it answers, so that a sample's does not depend on who is beside it.

    Samples are offered `replayed` at a time, as they come on a stream, however large a batch is, and in the first epoch
    alone; the step on the memory follows every step.

    draw: "published" has the authors' code draw i in proportion to C_i − min C: the sample most unlike the others never
    goes, and where all scores are equal none does.
    """

    paper = "Aljundi et al. 2019"
    version = 2

    def __init__(self, count: int = 100, replayed: int = 10, directions: int = 5, draw: Draw = "scores") -> None:
        # What is replayed passes through the backbone alone, and BatchNorm needs two.
        check_whole(2, replayed=replayed)
        check_whole(1, directions=directions)
        check_choice(_DRAWS, draw=draw)
        self.memory = Slots(count, fewest=2)
        self.replayed = replayed
        self.directions = directions
        self.draw = draw
        self._offered: Samples | None = None

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:  # noqa: ARG002
        self._offered = samples
        return samples

    def step_done(self, learner: "Learner", batch: "Batch") -> None:  # noqa: ARG002
        samples, self._offered = self._offered, None
        assert samples is not None
        if len(self.memory):
            self._step_on_memory(learner, samples)
        if learner.first_pass:
            for rows in torch.arange(len(samples)).split(min(self.replayed, self.memory.count)):
                self._offer(learner, samples.select(rows))

    def _step_on_memory(self, learner: "Learner", samples: Samples) -> None:
        drawn = self.memory.at(self.memory.draw(learner, self.replayed), samples.pool)
        clear_gradients(learner.optimizer)
        loss = learner.task_loss(learner.batch(drawn, training=True))
        if not isfinite(loss.item()):
            raise LearningFailed(f"the loss of the memory in {learner.lesson_in_words()} is {loss.item()}")
        loss.backward()
        learner.optimizer.step()

    def _offer(self, learner: "Learner", samples: Samples) -> None:
        """Score some samples, and keep those that there is room or reason for."""
        generator = torch.Generator().manual_seed(learner.seed_of_draw("selection", self.memory.seen))
        for row, score in enumerate(self.scores(learner, samples)):
            slot = len(self.memory)
            if slot == self.memory.count:
                slot = self._giving_way(score, generator)
            if slot >= 0:
                one = torch.tensor([row])
                self.memory.put(torch.tensor([slot]), samples.select(one), score=torch.tensor([score]))
        self.memory.seen += len(samples)

    def scores(self, learner: "Learner", samples: Samples) -> list[float]:
        """Return 1 + max cos(g, G) for every sample, of what the memory holds now."""
        if not len(self.memory):
            return [_FIRST] * len(samples)
        size = min(self.replayed, len(self.memory))
        drawn = self.memory.draw(learner, self.directions * size)
        # A rest that does not make a mini-batch is not compared with.
        past = [self.memory.at(slots, samples.pool) for slots in drawn.split(size) if len(slots) == size]
        with learner.answering():
            own = learner.gradients_of(self._losses_apart(learner, samples))
            # Each by itself: a gradient is looked for among what its mini-batch depends on, and nothing else.
            others = learner.gradients_of([learner.task_loss(learner.batch(some)) for some in past])
        scores: list[float] = (1 + _cosines(own, others).amax(dim=1)).clamp(0, 2).tolist()
        if not all(map(isfinite, scores)):
            raise LearningFailed(f"a gradient of {learner.lesson_in_words()} or of its memory is not finite")
        return scores

    def _losses_apart(self, learner: "Learner", samples: Samples) -> list[Tensor]:
        """Return the loss of every sample by itself."""
        batch = replace(learner.batch(samples), sizes=(1,) * len(samples))
        return learner.losses_of_parts(learner.outputs(batch.inputs), batch)

    def _giving_way(self, score: float, generator: torch.Generator) -> int:
        """Return the slot of the sample that goes for one of this score, −1 where none does."""
        scores = self.memory["score"].double()
        weights = scores - scores.min() if self.draw == "published" else scores
        if score >= 1 or not weights.any():
            return -1
        slot = int(torch.multinomial(weights, 1, generator=generator))
        stays = torch.rand((), dtype=torch.float64, generator=generator) >= scores[slot] / (scores[slot] + score)
        return -1 if stays else slot


def _cosines(left: Tensor, right: Tensor) -> Tensor:
    """Return (n, m) the cosines between the rows of two tables (n, P) and (m, P); 0 where a row is."""
    of_left, of_right = (torch.linalg.vector_norm(rows, dim=1).clamp(min=_SHORTEST) for rows in (left, right))
    return left @ right.T / of_left[:, None] / of_right
