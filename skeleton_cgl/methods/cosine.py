"""Cosine prototypes (Gidaris and Komodakis 2018): the class is answered whose mean the features point along."""

from typing import ClassVar

from torch import Tensor
from torch.nn.functional import normalize

from skeleton_cgl.methods.fixed_features import Source
from skeleton_cgl.methods.prototypes import Prototypes
from skeleton_cgl.scenarios.inputs import ReadOut


class Cosine(Prototypes):
    """cos(φ, μ_c) for every class c; by default of a backbone that learned the first task and is frozen then."""

    paper: ClassVar[str] = "Gidaris and Komodakis 2018"

    def __init__(
        self,
        features: Source = "first task",
        hops: int = 0,
        read_out: ReadOut = "mean",
        projection: int = 0,
        unit: bool = True,
    ) -> None:
        super().__init__(features, hops, read_out, projection, unit)

    def near(self, features: Tensor, means: Tensor) -> Tensor:
        # Without the last of them, which is 1 for all samples.
        return normalize(features[:, :-1]) @ normalize(means[:, :-1]).T
