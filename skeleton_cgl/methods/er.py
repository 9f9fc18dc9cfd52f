"""ER, experience replay (Chaudhry et al. 2019): an even sample of all that has passed, replayed beside every batch."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from skeleton_cgl.methods.remembering import Remembering
from skeleton_cgl.methods.reservoir import Reservoir
from skeleton_cgl.scenarios.scenario import Samples, join

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class ER(Remembering[Reservoir]):
    """L(batch) + L(B), B being min(|batch|, b) draws without replacement from a reservoir of `count` samples.

    Both pass through the backbone together; afterwards the batch is offered to the reservoir, in the first epoch alone,
    so that a sample counts once. It is replayed from its second step on, within its own lesson as well: unlike methods
    that wait for the end of a lesson, ER is not Bare in the first one. Where a batch has all samples of a lesson, the
    whole memory is replayed beside it.
    """

    paper = "Chaudhry et al. 2019"

    def __init__(self, count: int = 100) -> None:
        self.memory = Reservoir(count)

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:
        drawn = self.memory.draw(learner, len(samples))
        parts = [samples, self.memory.at(drawn, samples.pool)] if len(drawn) else [samples]
        # What this step replays is drawn already.
        if learner.first_pass:
            self.memory.offer(learner, samples)
        return join(parts)

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        return torch.stack(learner.losses_of_parts(learner.outputs(batch.inputs), batch)).sum()
