"""What the backbones for nodes share: dropout of features, and leaving out what no place asked about depends on."""

from typing import Any

from torch import Tensor, nn

from skeleton_cgl.backbones.products import Times
from skeleton_cgl.graphs.batches import Features, Paths, Places, Table
from skeleton_cgl.graphs.links import Links
from skeleton_cgl.graphs.sparse import dropout


def paths_of(places: Places, hops: int, whole: bool) -> Paths:
    """Return the links of so many layers; whole: all of them, of which BatchNorm takes its statistics."""
    return Paths.through_all(places.links, places.asked, hops) if whole else places.towards(hops)


def normalises(norms: nn.ModuleList | None) -> bool:
    """Return whether BatchNorm takes statistics of what passes: in training, and when these are recalibrated."""
    return norms is not None and any(norm.training for norm in norms)


def sums_first(links: Links, inputs: int, width: int) -> bool:
    """Return whether summing over neighbours before a product by weights (inputs, width) is less work than after it.

    Where it is the same, after: what is summed need not be kept for the gradient then.
    """
    nodes, sources = links.pattern.shape
    return len(links) * inputs + nodes * inputs * width < len(links) * width + sources * inputs * width


def projected(features: Features, weight: Tensor, times: Times) -> Tensor:
    """Return X·W; times: how dense features are multiplied."""
    return times(features, weight) if isinstance(features, Tensor) else features.matmul(weight)


def dropped(features: Table, share: float, training: bool) -> Table:
    """Return features after dropout."""
    if not training or not share:
        return features
    found: Any = dropout(features, share) if isinstance(features, Tensor) else features.dropped(share)
    return found


def check_share(name: str, share: float) -> None:
    """Refuse a dropout that is no share below 1."""
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, found {share!r}")
