"""SGC for nodes (Wu et al. 2019): features summed over neighbours a few times, once for all, then linear layers."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.backbones.convolution import check_size
from skeleton_cgl.backbones.nodes import check_share, dropped
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.links import Weighting, check_weighting


class SGC(Backbone):
    """Â^K·X through `depth` linear layers of `width` units, ReLU and dropout between them; K is `hops`.

    With one layer, backbone and head together are linear in Â^K·X, as SGC is; with more it is PDGNN's kind.
    """

    takes = "graph"

    def __init__(
        self,
        features: int,
        hops: int = 2,
        width: int = 256,
        depth: int = 1,
        normalisation: Weighting = "symmetric",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_size(depth, width)
        check_share("dropout", dropout)
        check_weighting(normalisation)
        if not isinstance(hops, int) or isinstance(hops, bool) or hops < 0:
            raise ValueError(f"hops must be a whole number, at least 0, found {hops!r}")
        self.hops = hops
        self.weighting = normalisation
        self.dropout = dropout
        layers = [nn.Linear(*sizes) for sizes in pairwise([features, *[width] * depth])]
        self.layers: Sequence[nn.Linear] = nn.ModuleList(layers)  # type: ignore[assignment]

    def arrange(self, places: Places) -> Places:
        """Return the places with Â^K·X, where that is no larger than the features."""
        if not isinstance(places.features, Tensor):
            return places
        summed = places.features
        for _ in range(self.hops):
            summed = places.links.sum(summed, self.weighting)
        return places.keeping(summed=summed)

    def forward(self, places: Places) -> Tensor:
        """Return (N·m, width), an embedding per place."""
        first, *others = self.layers
        hidden = self._first_product(places, first.weight.T) + first.bias
        for layer in others:
            hidden = layer(dropped(hidden.relu(), self.dropout, self.training))
        return hidden

    def _first_product(self, places: Places, weight: Tensor) -> Tensor:
        """Return Â^K·X·W at every place."""
        if "summed" in places.kept:
            return places.kept["summed"][places.at.flatten()].matmul(weight)
        paths = places.towards(self.hops)
        hidden = paths.rows("features", places.features).matmul(weight)
        for links in paths.links:
            hidden = links.sum(hidden, self.weighting)
        return hidden[paths.at]
