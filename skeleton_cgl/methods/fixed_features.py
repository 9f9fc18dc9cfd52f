"""Features that learning does not change, or not after the first lesson: what references are computed on.

φ(x) = x, of the data or of a frozen backbone, or ReLU(xP), P of random numbers (Huang et al. 2006; McDonnell et al.
2023). Samples are known by them alone, and sums over samples do not depend on the order in which these came.
"""

from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor

from skeleton_cgl.methods.parameters import check_choice, check_flag, check_whole
from skeleton_cgl.methods.pretraining import pretrain
from skeleton_cgl.scenarios.inputs import ReadOut
from skeleton_cgl.scenarios.scenario import Experience, Need, Queries, Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner

Source = Literal["data", "untrained", "first task", "self-supervised"]
_AT_ONCE = 1024
_WIDEST = 32768
"""Of so many features, the matrix of ridge regression takes 8 GB."""


class FixedFeatures:
    """φ of samples and queries.

    source: "data" takes what is known of a sample without a backbone, with hops > 0 Â^hops·X of a graph's nodes, read
    out over a graph by its mean or sum, multiplied over the ends of a pair. The others are embeddings of the learner's
    backbone, frozen with its first weights ("untrained"), after the first task was learned, or after it was trained on
    the first lesson without labels: these two depend on which task came first, and on nothing else of the order.
    unit: whether x is brought to the length √d. projection: how many random features there are; 0 for none.
    """

    def __init__(self, source: Source, hops: int, read_out: ReadOut, projection: int, unit: bool) -> None:
        check_choice(get_args(Source), features=source)
        check_choice(get_args(ReadOut), read_out=read_out)
        check_whole(0, hops=hops, projection=projection)
        check_flag(unit=unit)
        if projection > _WIDEST:
            raise ValueError(f"projection must be at most {_WIDEST}, found {projection}")
        if hops and source != "data":
            raise ValueError(f"hops: features of the data are summed over neighbours, and features is {source!r}")
        self.source = source
        self.hops = hops
        self.read_out: ReadOut = read_out
        self.projection = projection
        self.unit = unit
        self._random: Tensor | None = None

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset(["graphs"] if self.hops else [])

    def settle(self, learner: "Learner", experience: Experience) -> None:
        """Train the backbone in the first lesson, if it is to be trained at all."""
        if len(learner.taught) > 1:
            return
        if self.source == "first task":
            learner.train(experience.training)
        elif self.source == "self-supervised":
            pretrain(learner, experience)

    def of(self, learner: "Learner", asked: Samples | Queries) -> Tensor:
        """Return φ (N, d + 1) in double precision, the last of them 1."""
        found = self._known(learner, asked).double()
        if self.unit:
            found = torch.nn.functional.normalize(found) * found.shape[1] ** 0.5
        if self.projection:
            found = (found @ self._drawn(learner, found)).relu()
        return torch.nn.functional.pad(found, (0, 1), value=1.0)

    def _known(self, learner: "Learner", asked: Samples | Queries) -> Tensor:
        if self.source == "data":
            return learner.plain(asked, self.hops, self.read_out)
        with torch.no_grad(), learner.answering():
            inputs = learner.inputs(asked)
            if not inputs.independent:
                return learner.embeddings(inputs)
            rows = torch.arange(len(inputs)).split(_AT_ONCE)
            return torch.cat([learner.embeddings(inputs.rows(some)) for some in rows])

    def _drawn(self, learner: "Learner", found: Tensor) -> Tensor:
        """Return P (d, projection), normal with a variance of 1/d; the same for all orders that start alike."""
        if self._random is None:
            generator = torch.Generator().manual_seed(learner.seed_of("projection"))
            drawn = torch.randn(found.shape[1], self.projection, generator=generator, dtype=torch.float64)
            self._random = (drawn / found.shape[1] ** 0.5).to(found)
        return self._random
