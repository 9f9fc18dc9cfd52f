"""What the backbones for nodes share: named presets, dropout, and leaving out what no place asked about depends on."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.graphs.batches import Features, Paths, Places


class NodeBackbone(Backbone):
    """A backbone for nodes whose parameters stand at None until a preset, or else `usual`, gives them a value.

    presets: by name, the values that differ from the usual ones; what is given explicitly wins over both.
    """

    takes = "graph"
    usual: ClassVar[Mapping[str, Any]] = {}
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def settled(cls, preset: str | None, **given: Any) -> dict[str, Any]:
        """Return the value of every parameter; refuse an unknown preset."""
        if preset is not None and preset not in cls.presets:
            raise ValueError(f"unknown preset {preset!r}{did_you_mean(str(preset), cls.presets)}")
        explicit = {name: value for name, value in given.items() if value is not None}
        return {**cls.usual, **(cls.presets[preset] if preset else {}), **explicit}

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters with what a preset stands for, so that one meaning has one key."""
        return cls.settled(**parameters)

    def paths(self, places: Places, hops: int, whole: bool) -> Paths:
        """Return the links of so many layers; whole: all, as BatchNorm needs them in training for its statistics."""
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
