"""Ridge regression on fixed features: what is attainable without any effect of the order, and without a sample kept.

Known as analytic continual learning (Zhuang et al. 2022; with random features McDonnell et al. 2023).
"""

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.fixed_features import FixedFeatures, Source
from skeleton_cgl.methods.parameters import check_number
from skeleton_cgl.scenarios.inputs import ReadOut
from skeleton_cgl.scenarios.scenario import Experience, Queries

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


class Ridge(Method):
    """W = (G + λI)⁻¹Q with G = Σ φφᵀ and Q = Σ φyᵀ over the samples of all tasks so far; answers are φW.

    y is what outputs should be: 1 for the class or label of a sample, 0 for others. The sums do not depend on the order
    of tasks, so that every order gives the answers of training on everything at once, up to rounding; where φ is of a
    backbone that learned from the first task, they depend on which one that was; where lessons show labels or edges of
    those before them, on that as well. G has d² numbers; one matrix serves all outputs as long as all samples tell of
    all of them, otherwise each output has its own.

    features, hops, read_out, projection, unit: what φ is, see `FixedFeatures`. strength: λ.
    """

    paper: ClassVar[str] = "Zhuang et al. 2022, McDonnell et al. 2023"

    def __init__(
        self,
        strength: float = 100,
        features: Source = "data",
        hops: int = 0,
        read_out: ReadOut = "mean",
        projection: int = 2000,
        unit: bool = True,
    ) -> None:
        check_number(above=0, strength=strength)
        self.strength = strength
        self.features = FixedFeatures(features, hops, read_out, projection, unit)
        self.needs = self.features.needs
        self.squares = torch.empty(0, 0, 0, dtype=torch.float64)
        """G (1, d, d) of all outputs, or (outputs, d, d)."""
        self.products = torch.empty(0, 0, dtype=torch.float64)
        """Q (outputs, d)."""
        self._weights: Tensor | None = None

    def learn_lesson(self, learner: "Learner", experience: Experience) -> None:
        self.features.settle(learner, experience)
        self.add(
            self.features.of(learner, experience.training),
            learner.problem.wanted(experience.training.labels, learner.head.span).to(learner.device),
        )

    def add(self, features: Tensor, wanted: Tensor) -> None:
        """Add samples of features (N, d) to the sums; wanted (N, outputs), NaN where it is not known."""
        width, outputs = features.shape[1], wanted.shape[1]
        if not len(self.products):
            self.squares = features.new_zeros(1, width, width)
            self.products = features.new_zeros(outputs, width)
        known = ~wanted.isnan()
        if len(self.squares) == 1 and bool(known.all()):
            self.squares = self.squares.to(features) + features.T @ features
        else:
            each = torch.stack([features[rows].T @ features[rows] for rows in known.T])
            self.squares = self.squares.to(features) + each
        self.products = self.products.to(features) + wanted.nan_to_num(0).T @ features
        self._weights = None

    def weights(self) -> Tensor:
        """Return W (d, outputs)."""
        if self._weights is None:
            ridge = self.strength * torch.eye(self.squares.shape[1], dtype=self.squares.dtype).to(self.squares)
            factors = torch.linalg.cholesky(self.squares + ridge)
            if len(factors) == 1:
                self._weights = torch.cholesky_solve(self.products.T, factors[0])
            else:
                self._weights = torch.cholesky_solve(self.products[:, :, None], factors)[:, :, 0].T
        return self._weights

    def answer(self, learner: "Learner", queries: Queries, step: int) -> Tensor:  # noqa: ARG002
        features = self.features.of(learner, queries)
        if not len(self.products):
            return features.new_zeros(len(features), len(learner.head.outputs))
        return features @ self.weights().to(features)[:, learner.head.outputs]

    def state(self) -> dict[str, Any]:
        return {"squares": self.squares, "products": self.products}

    def restore(self, state: dict[str, Any]) -> None:
        self.squares, self.products = state["squares"], state["products"]
        self._weights = None
