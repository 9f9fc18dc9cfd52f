"""SEM on streams (DRIFT): SSM on streams that keeps the neighbours at the edges of highest curvature."""

from collections.abc import Sequence
from typing import Any

from skeleton_cgl.graphs.links import Links
from skeleton_cgl.methods.curvature import LARGEST, Curvature, by_curvature, check_curvature, spelled_largest
from skeleton_cgl.methods.neighbours import Choice
from skeleton_cgl.methods.ssm_stream import SSMStream


class SEMStream(SSMStream):
    """SSM on streams in which hop h has the k_h neighbours of highest curvature, ties by chance.

    A neighbour counts by the highest curvature of its edges to nodes kept in the hop before, taken in the graph in view
    when a centre enters. curvature: "surrogate" is that of DRIFT, (|N_in(d) ∩ N_out(s)| + 1) / (max(|N_in(d)|,
    |N_out(s)|) + 1); "ollivier" is κ(u, v) = 1 − W₁(m_u, m_v), m uniform on neighbours. largest: what W₁ may cost; of a
    node with more neighbours than that, so many random ones stand for all in m, and come before the others.
    """

    paper = "Zhang et al. 2023"

    def __init__(
        self,
        count: int = 100,
        fan_outs: Sequence[int] = (5, 5),
        curvature: Curvature = "surrogate",
        largest: int = LARGEST,
    ) -> None:
        super().__init__(count, fan_outs)
        check_curvature(curvature, largest)
        self.curvature = curvature
        self.largest = largest

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, `largest` as it is by default where it changes nothing."""
        return spelled_largest(super().spelled_out(parameters))

    def choice(self, links: Links) -> Choice:
        return by_curvature(links, self.curvature, self.largest)
