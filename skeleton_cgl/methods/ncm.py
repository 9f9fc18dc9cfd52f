"""NCM, nearest class mean (Mensink et al. 2013): the class is answered whose mean is nearest."""

from typing import ClassVar

import torch
from torch import Tensor

from skeleton_cgl.methods.fixed_features import Source
from skeleton_cgl.methods.prototypes import Prototypes
from skeleton_cgl.scenarios.inputs import ReadOut


class NCM(Prototypes):
    """−‖φ − μ_c‖² for every class c."""

    paper: ClassVar[str] = "Mensink et al. 2013"

    def __init__(
        self,
        features: Source = "data",
        hops: int = 0,
        read_out: ReadOut = "mean",
        projection: int = 0,
        unit: bool = True,
    ) -> None:
        super().__init__(features, hops, read_out, projection, unit)

    def near(self, features: Tensor, means: Tensor) -> Tensor:
        return -torch.cdist(features, means).square()
