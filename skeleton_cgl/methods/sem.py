"""SEM (Zhang et al. 2023): SSM that keeps the neighbours at the edges of highest curvature."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from skeleton_cgl.graphs.links import Links
from skeleton_cgl.methods.curvature import LARGEST, Curvature, by_curvature, check_curvature, spelled_largest
from skeleton_cgl.methods.neighbours import Scores
from skeleton_cgl.methods.ssm import SSM


class SEM(SSM):
    """SSM in which hop h has the k_h neighbours of highest curvature, ties by chance.

    A neighbour counts by the highest curvature of its edges to nodes kept in the hop before. curvature: "ollivier" is
    κ(u, v) = 1 − W₁(m_u, m_v), m uniform on neighbours; "surrogate" is that of DRIFT, (|N_in(d) ∩ N_out(s)| + 1) /
    (max(|N_in(d)|, |N_out(s)|) + 1), taken in the graph in view. largest: what W₁ may cost; of a node with more
    neighbours than that, so many random ones stand for all in m, and come before the others.
    """

    paper = "Zhang et al. 2023"

    def __init__(
        self,
        per_class: int | None = None,
        count: int | None = None,
        fan_outs: Sequence[int] = (5, 5),
        curvature: Curvature = "ollivier",
        largest: int = LARGEST,
    ) -> None:
        super().__init__(per_class, count, fan_outs)
        check_curvature(curvature, largest)
        self.curvature = curvature
        self.largest = largest

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, `largest` as it is by default where it changes nothing."""
        return spelled_largest(super().spelled_out(parameters))

    def scores(self, links: Links, random: np.random.Generator) -> Scores:
        """Return how neighbours are chosen: by the highest curvature of their edges to nodes of the hop before."""
        return by_curvature(links, self.curvature, self.largest)(random)
