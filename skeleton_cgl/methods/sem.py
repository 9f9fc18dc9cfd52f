"""SEM (Zhang et al. 2023): SSM that keeps the neighbours at the edges of highest curvature."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from skeleton_cgl.graphs.links import Links
from skeleton_cgl.methods.curvature import Ollivier, Surrogate
from skeleton_cgl.methods.parameters import check_whole
from skeleton_cgl.methods.ssm import SSM
from skeleton_cgl.methods.subgraphs import Neighbours, Scores

_LARGEST = 20


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
        curvature: Literal["ollivier", "surrogate"] = "ollivier",
        largest: int = _LARGEST,
    ) -> None:
        super().__init__(per_class, count, fan_outs)
        if curvature not in ("ollivier", "surrogate"):
            raise ValueError(f"curvature must be ollivier or surrogate, found {curvature!r}")
        check_whole(2, largest=largest)
        self.curvature = curvature
        self.largest = largest

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, `largest` as it is by default where it changes nothing."""
        spelled = super().spelled_out(parameters)
        return {**spelled, "largest": _LARGEST} if parameters["curvature"] == "surrogate" else spelled

    def scores(self, links: Links, random: np.random.Generator) -> Scores:
        """Return how neighbours are chosen: by the highest curvature of their edges to nodes of the hop before."""
        exact = self.curvature == "ollivier"
        curvature = Ollivier(links, self.largest, random) if exact else Surrogate(links)
        neighbours = Neighbours(links)

        def by_curvature(found: np.ndarray, latest: np.ndarray) -> np.ndarray:
            highest = dict.fromkeys(found.tolist(), -np.inf)
            for target in latest.tolist():
                near = np.intersect1d(neighbours.of(target), found)
                if exact and len(near) > self.largest:
                    near = random.choice(near, self.largest, replace=False)
                for source in near.tolist():
                    highest[source] = max(highest[source], curvature.of(source, target))
            values, chances = np.array([*highest.values()]), random.random(len(found))
            ranks = np.empty(len(found))
            ranks[np.lexsort((chances, values))] = np.arange(len(found))
            return ranks

        return by_curvature
