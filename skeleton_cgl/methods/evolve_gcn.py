"""EvolveGCN (Pareja et al. 2020): what is learned is how weights go on from task to task, not only the weights."""

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import Method
from skeleton_cgl.scenarios.scenario import Experience, Need, Queries

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner

Snapshot = dict[str, Tensor]


class EvolveGCN(Method):
    """The task loss, with weights W_t = GRU(X_t, W_{t−1}) from W_0 through the snapshots of all tasks so far.

    Every task is a snapshot: the graph as its lesson sees it, all nodes, without labels. The backbone evolving-gcn has
    the recurrence; with its variant "o", where X_t = W_{t−1}, nothing is kept of a snapshot but that it was. With "h",
    X_t is pooled from what the layers make of the snapshot, which depends on the weights: features and edges of all
    past snapshots are kept, those that are equal once, and every pass goes through all of them.
    """

    paper: ClassVar[str] = "Pareja et al. 2020"
    needs: frozenset[Need] = frozenset(["nodes", "evolving weights"])
    by_content: ClassVar[bool] = True

    def __init__(self) -> None:
        self.graphs: list[Snapshot] = []
        self.sequence: list[int] = []
        """Which of the graphs was the snapshot of every task."""

    def fits(self, learner: "Learner") -> None:
        if not hasattr(learner.backbone, "snapshot_of"):
            kind = type(learner.backbone).__name__
            raise InputError(f"method EvolveGCN needs a backbone with `snapshot_of(inputs)`; {kind} has none")

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        snapshot: Snapshot = _evolving(learner).snapshot_of(learner.inputs(experience.training).content)
        same = [number for number, graph in enumerate(self.graphs) if _equal(graph, snapshot)]
        if not same:
            self.graphs.append(snapshot)
        self.sequence.append(same[0] if same else len(self.graphs) - 1)
        self._tell(learner)

    def answer(self, learner: "Learner", queries: Queries, step: int) -> Tensor:
        # The backbone of a learner that was restored knows the number of snapshots, and not what was in them.
        self._tell(learner)
        return super().answer(learner, queries, step)

    def _tell(self, learner: "Learner") -> None:
        _evolving(learner).evolve([self.graphs[number] for number in self.sequence])

    def samples_kept(self) -> int:
        return sum(len(graph["offsets"]) - 1 for graph in self.graphs if graph)

    def state(self) -> dict[str, Any]:
        return {"graphs": self.graphs, "sequence": self.sequence}

    def restore(self, state: dict[str, Any]) -> None:
        self.graphs, self.sequence = list(state["graphs"]), list(state["sequence"])


def _evolving(learner: "Learner") -> Any:
    """Return the backbone, which has `evolve` and `snapshot_of`: it would have been refused otherwise."""
    return learner.backbone


def _equal(one: Snapshot, other: Snapshot) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name].cpu(), other[name].cpu()) for name in one)
