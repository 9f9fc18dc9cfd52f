"""What the backbones for nodes share: dropout of features, and leaving out what no place asked about depends on."""

from torch import Tensor
from torch.nn import functional

from skeleton_cgl.graphs.batches import Features, Paths, Places


def paths_of(places: Places, hops: int, whole: bool) -> Paths:
    """Return the links of so many layers; whole: all of them, of which BatchNorm takes its statistics in training."""
    return Paths.through_all(places.links, places.at.flatten(), hops) if whole else places.towards(hops)


def dropped(features: Features, share: float, training: bool) -> Features:
    """Return features after dropout."""
    if not training or not share:
        return features
    return functional.dropout(features, share) if isinstance(features, Tensor) else features.dropped(share)


def check_share(name: str, share: float) -> None:
    """Refuse a dropout that is no share below 1."""
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, found {share!r}")
