"""SSM on streams (DRIFT): a reservoir of nodes with a few of the neighbours they had, replayed beside every batch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from skeleton_cgl.graphs.links import Links
from skeleton_cgl.methods.neighbours import (
    Choice,
    Sampling,
    by_chance,
    check_sampling,
    checked_fan_outs,
    spelled_fan_outs,
)
from skeleton_cgl.methods.parameters import check_whole
from skeleton_cgl.methods.remembering import Remembering
from skeleton_cgl.methods.subgraph_reservoir import SubgraphReservoir
from skeleton_cgl.scenarios.scenario import Need, Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class SSMStream(Remembering[SubgraphReservoir]):
    """L(batch) + L(B), B being min(|batch|, b) draws without replacement from a reservoir of centres.

    A centre is kept by content, with a subgraph of at most k_h nodes in hop h, drawn from the in-neighbours of hop
    h − 1, and all edges of the graph in view between them; of neighbours no label is kept or read. B passes through the
    backbone by itself, as a small graph: what is replayed stays the same whatever becomes of the graph in view, and
    BatchNorm's running statistics are of the batches alone. Afterwards the batch is offered to the reservoir, in the
    first epoch alone, so that a sample counts once; as with ER, it is replayed within its own lesson as well.

    count: nodes kept in all, which makes count // Σ k_h centres; as in DRIFT, a centre itself is not counted. fan_outs:
    k_h. sampling: all neighbours are as likely ("random"), or each in proportion to its in-degree ("degree").
    """

    needs: frozenset[Need] = frozenset(["nodes", "one class"])
    paper = "Zhang et al. 2022"
    by_content: ClassVar[bool] = True

    def __init__(self, count: int = 100, fan_outs: Sequence[int] = (5, 5), sampling: Sampling = "random") -> None:
        self.fan_outs = checked_fan_outs(fan_outs)
        check_whole(sum(self.fan_outs), count=count)
        check_sampling(sampling)
        self.sampling = sampling
        self.memory = SubgraphReservoir(count // sum(self.fan_outs), self.fan_outs, self.choice)
        self._replayed: Batch | None = None

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        return spelled_fan_outs(parameters)

    def choice(self, links: Links) -> Choice:
        """Return how neighbours are chosen in a graph."""
        return by_chance(links, self.sampling)

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:
        self._replayed = self.memory.batch(learner, len(samples))
        # What this step replays is drawn already.
        if learner.first_pass:
            self.memory.offer(learner, samples)
        return samples

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        loss, again = learner.task_loss(batch), self._replayed
        return loss if again is None else loss + learner.loss_of(learner.outputs_apart(again.inputs), again)

    def step_done(self, learner: "Learner", batch: "Batch") -> None:  # noqa: ARG002
        self._replayed = None
