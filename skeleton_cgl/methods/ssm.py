"""SSM, sparsified subgraph memory (Zhang et al. 2022): replay nodes with a few of the neighbours they had."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.graphs.links import Links
from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.neighbours import (
    Sampling,
    Scores,
    by_chance,
    check_sampling,
    checked_fan_outs,
    spelled_fan_outs,
)
from skeleton_cgl.methods.parameters import check_whole
from skeleton_cgl.methods.subgraphs import Remembered, beside
from skeleton_cgl.scenarios.scenario import Experience, Need, Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner

_PER_CLASS = 100


class SSM(Method):
    """The loss on D_t ∪ B, B being e random nodes of every class of every past task, each with its subgraph.

    A node's subgraph has at most k_h nodes in hop h, drawn from the in-neighbours of hop h − 1, and all edges of the
    graph in view between them. It is kept by content, features and edges, so that what is replayed stays the same
    whatever becomes of the graph; of neighbours no label is kept or read. D_t and B pass in one graph, the subgraphs as
    parts of it without an edge to the rest. Classes are balanced as the problem has it, over D_t ∪ B.

    BatchNorm takes its statistics of both, and so mostly of neighbours that lack their own, once these outnumber the
    nodes in view: a backbone without it forgets less.

    per_class: e, by default 100; of a class with fewer, all are kept. count: instead, how many are kept in all, as many
    of each class as of any other, give or take one; with more classes than that, the latest have none. fan_outs: k_h.
    sampling: all neighbours are as likely ("random"), or each in proportion to its in-degree ("degree").
    """

    needs: frozenset[Need] = frozenset(["nodes", "one class"])
    paper = "Zhang et al. 2022"
    by_content: ClassVar[bool] = True

    def __init__(
        self,
        per_class: int | None = None,
        count: int | None = None,
        fan_outs: Sequence[int] = (5, 5),
        sampling: Sampling = "random",
    ) -> None:
        if per_class is not None and count is not None:
            raise ValueError("give either per_class or count")
        check_whole(1, optional=True, per_class=per_class, count=count)
        self.fan_outs = checked_fan_outs(fan_outs)
        check_sampling(sampling)
        self.per_class = _PER_CLASS if per_class is None and count is None else per_class
        self.count = count
        self.sampling = sampling
        self._kept: list[Remembered] = []

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        spelled = spelled_fan_outs(parameters)
        unsaid = parameters["per_class"] is None and parameters["count"] is None
        return {**spelled, "per_class": _PER_CLASS} if unsaid else spelled

    def lesson_samples(self, learner: "Learner", experience: Experience) -> Samples:  # noqa: ARG002
        return beside(experience.training, [kept for kept in self._kept if len(kept)])

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        random = np.random.default_rng(learner.seed_of_lesson("subgraphs", experience))
        training = experience.training
        quotas = self._quotas([*(kept.labels for kept in self._kept), training.labels])
        # In a random sequence: what comes first is a random part of it, whenever less is to be kept.
        drawn = training.select(torch.from_numpy(random.permutation(len(training))))
        drawn = drawn.select(first_of_each(drawn.labels, quotas[-1]))
        self._kept = [
            kept if len(rows := first_of_each(kept.labels, quota)) == len(kept) else kept.select(rows)
            for kept, quota in zip(self._kept, quotas, strict=False)
        ]
        self._kept.append(Remembered.around(drawn, self.fan_outs, lambda links: self.scores(links, random)))

    def scores(self, links: Links, random: np.random.Generator) -> Scores:
        """Return how neighbours are chosen."""
        return by_chance(links, self.sampling)(random)

    def _quotas(self, labels: Sequence[Tensor]) -> list[dict[int, int]]:
        """Return, for every task, how many nodes of each of its classes are kept."""
        classes = [each.unique().tolist() for each in labels]
        if self.count is None:
            return [dict.fromkeys(each, self.per_class or 0) for each in classes]
        share, more = divmod(self.count, max(sum(map(len, classes)), 1))
        sizes = iter([share + 1] * more + [share] * sum(map(len, classes)))
        return [{label: next(sizes) for label in each} for each in classes]

    def samples_kept(self) -> int:
        """Return the number of nodes kept for their labels, not counting neighbours."""
        return sum(map(len, self._kept))

    def keeps_all(self, taught: Sequence[Tensor]) -> bool:
        quotas = zip(taught, self._quotas(taught), strict=True)
        return all(len(first_of_each(of_task, quota)) == len(of_task) for of_task, quota in quotas)

    def state(self) -> dict[str, Any]:
        return {"tasks": [kept.contents() for kept in self._kept]}

    def restore(self, state: dict[str, Any]) -> None:
        self._kept = [Remembered.of(contents) for contents in state["tasks"]]


def first_of_each(labels: Tensor, quotas: dict[int, int]) -> Tensor:
    """Return, ascending, the rows of the first samples of every class, as many as its quota has."""
    rows = [(labels == label).nonzero()[:quota, 0] for label, quota in quotas.items()]
    return torch.cat([labels.new_zeros(0), *rows]).sort().values
