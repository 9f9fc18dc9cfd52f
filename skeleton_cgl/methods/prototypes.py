"""A class as the mean of its features: what nearest class mean and cosine prototypes have in common."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.fixed_features import FixedFeatures, Source
from skeleton_cgl.scenarios.inputs import ReadOut
from skeleton_cgl.scenarios.scenario import Experience, Need, Queries

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


class Prototypes(Method):
    """μ_c, the mean of φ over the samples of class c in all tasks so far; how near a query is to each is its answer.

    No sample is kept, and the sums do not depend on the order of tasks: with features that do not either, every order
    gives the same answers, up to rounding. features, hops, read_out, projection, unit: what φ is, see `FixedFeatures`.
    """

    def __init__(self, features: Source, hops: int, read_out: ReadOut, projection: int, unit: bool) -> None:
        self.features = FixedFeatures(features, hops, read_out, projection, unit)
        self.needs: frozenset[Need] = self.features.needs | {"one class"}
        self.sums = torch.empty(0, 0, dtype=torch.float64)
        """(outputs, d)"""
        self.counts = torch.empty(0, dtype=torch.float64)
        """(outputs,)"""

    @abstractmethod
    def near(self, features: Tensor, means: Tensor) -> Tensor:
        """Return (N, classes), the larger the nearer, of features (N, d) to means (classes, d)."""

    def learn_lesson(self, learner: "Learner", experience: Experience) -> None:
        self.features.settle(learner, experience)
        features = self.features.of(learner, experience.training)
        wanted = learner.problem.wanted(experience.training.labels, learner.head.span).to(features)
        sums, counts = wanted.T @ features, wanted.sum(dim=0)
        if len(self.sums):
            sums, counts = sums + self.sums.to(sums), counts + self.counts.to(counts)
        self.sums, self.counts = sums, counts

    def answer(self, learner: "Learner", queries: Queries, step: int) -> Tensor:  # noqa: ARG002
        features = self.features.of(learner, queries)
        met = learner.head.outputs
        if not len(self.sums):
            return features.new_zeros(len(features), len(met))
        sums, counts = self.sums.to(features)[met], self.counts.to(features)[met]
        # What was met without a sample, as a class that the first domain has not, is never answered.
        return self.near(features, sums / counts[:, None].clamp(min=1)).masked_fill(counts == 0, -torch.inf)

    def state(self) -> dict[str, Any]:
        return {"sums": self.sums, "counts": self.counts}

    def restore(self, state: dict[str, Any]) -> None:
        self.sums, self.counts = state["sums"], state["counts"]
