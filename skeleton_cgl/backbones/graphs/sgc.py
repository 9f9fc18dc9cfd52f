"""SGC for nodes (Wu et al. 2019): features summed over neighbours a few times, once for all, then linear layers."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.backbones.convolution import check_size
from skeleton_cgl.backbones.nodes import check_share, dropped
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.links import Links, Weighting, check_weighting

Aggregation = Literal["sgc", "s2gc", "appnp"]

_COLUMNS_AT_ONCE = 512
"""Of sparse features aggregated to dense ones: memory does not grow with nodes × features in between."""


class SGC(Backbone):
    """τ(X) through `depth` linear layers of `width` units, ReLU and dropout between them; K is `hops`.

    aggregation: "sgc" is τ(X) = Â^K·X; "s2gc" (Zhu and Koniusz 2021) is 1/K Σ_k (1−α)·Â^k·X + α·X, k = 1…K; "appnp"
    (Gasteiger et al. 2019) is Z_K of Z_k = (1−α)·Â·Z_{k−1} + α·X, Z_0 = X. With one layer, backbone and head together
    are linear in τ(X), as SGC is; with more it is PDGNN's kind.
    """

    takes = "graph"
    younger: ClassVar[Mapping[str, Any]] = {"aggregation": "sgc", "alpha": 0.05}

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, α as it is by default where there is none in what is aggregated."""
        return {**parameters, "alpha": cls.younger["alpha"]} if parameters["aggregation"] == "sgc" else parameters

    def __init__(
        self,
        features: int,
        hops: int = 2,
        width: int = 256,
        depth: int = 1,
        normalisation: Weighting = "symmetric",
        dropout: float = 0.0,
        aggregation: Aggregation = "sgc",
        alpha: float = 0.05,
    ) -> None:
        super().__init__()
        check_size(depth, width)
        check_share("dropout", dropout)
        check_weighting(normalisation)
        if not isinstance(hops, int) or isinstance(hops, bool) or hops < 0:
            raise ValueError(f"hops must be a whole number, at least 0, found {hops!r}")
        if aggregation not in (known := get_args(Aggregation)):
            raise ValueError(f"aggregation {aggregation!r}{did_you_mean(str(aggregation), known)}")
        if not isinstance(alpha, int | float) or isinstance(alpha, bool) or not 0 <= alpha <= 1:
            raise ValueError(f"alpha must be from 0 to 1, found {alpha!r}")
        self.hops = hops
        self.weighting = normalisation
        self.dropout = dropout
        self.aggregation = aggregation
        self.alpha = alpha
        layers = [nn.Linear(*sizes) for sizes in pairwise([features, *[width] * depth])]
        self.layers: Sequence[nn.Linear] = nn.ModuleList(layers)  # type: ignore[assignment]

    def arrange(self, places: Places) -> Places:
        """Return the places with τ(X), where that is no larger than the features."""
        if not isinstance(places.features, Tensor):
            return places
        return places.keeping(summed=self._aggregate(places.features, (places.links,) * self.hops))

    def forward(self, places: Places) -> Tensor:
        """Return (N·m, width), an embedding per place."""
        first, *others = self.layers
        hidden = self._first_product(places, first.weight.T) + first.bias
        for layer in others:
            hidden = layer(dropped(hidden.relu(), self.dropout, self.training))
        return hidden

    def aggregated(self, places: Places) -> Tensor:
        """Return τ(X) (N·m, F) at every place, dense; nodes alone with these features have the same embeddings."""
        if "summed" in places.kept:
            return places.kept["summed"][places.at.flatten()]
        width = places.features.shape[1]
        units = torch.arange(width, device=places.at.device).split(_COLUMNS_AT_ONCE)
        products = [self._first_product(places, _units(width, columns)) for columns in units]
        return torch.cat(products, dim=1)

    def _first_product(self, places: Places, weight: Tensor) -> Tensor:
        """Return τ(X)·W at every place; τ(X·W) is the same."""
        if "summed" in places.kept:
            return places.kept["summed"][places.at.flatten()].matmul(weight)
        paths = places.towards(self.hops)
        product = paths.rows("features", places.features).matmul(weight)
        return self._aggregate(product, paths.links)[paths.at]

    def _aggregate(self, table: Tensor, layers: Sequence[Links]) -> Tensor:
        """Return τ of a table (nodes, F), whose rows are those of the sources of the first of K links."""
        own, hidden, total = table, table, None
        for links in layers:
            own, hidden = links.own(own), links.sum(hidden, self.weighting)
            if self.aggregation == "appnp":
                hidden = (1 - self.alpha) * hidden + self.alpha * own
            elif self.aggregation == "s2gc":
                total = hidden if total is None else links.own(total) + hidden
        return hidden if total is None else (1 - self.alpha) / len(layers) * total + self.alpha * own


def _units(width: int, columns: Tensor) -> Tensor:
    """Return some columns of the unit matrix (width, columns)."""
    found = torch.zeros(width, len(columns), device=columns.device)
    return found.index_put_((columns, torch.arange(len(columns), device=columns.device)), torch.ones(()).to(found))
