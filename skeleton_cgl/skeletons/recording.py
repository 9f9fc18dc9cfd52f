"""What every reader hands over: a source of recordings, each a sequence of skeletons with its class and facts.

Shapes use the letters A actors, T frames, V joints, C coordinates throughout.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons.layout import JointLayout
from skeleton_cgl.skeletons.preparation import Preparation, presence

FACTS = ("subject", "view", "repetition")
"""What may be known of a recording besides its name and class."""

UNKNOWN = -1
"""The value of a fact that the source does not tell."""


@dataclass(frozen=True)
class Recording:
    """One sequence: positions (A, T, V, C) float32, in which a frame an actor is missing from is all zero.

    groups: what else a data set may be split by, such as {"session": 3}; the same names in all its recordings.
    """

    name: str
    positions: np.ndarray = field(repr=False)
    label: int
    subject: int = UNKNOWN
    view: int = UNKNOWN
    repetition: int = UNKNOWN
    groups: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BadRecording:
    """A recording that cannot be used, with the file it stands in and the reason."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


class Source(ABC):
    """Recordings of one data set, read one at a time; what is wrong with the whole is refused when it is made.

    A reader derives from it and sets layout, classes and preparation, for all its objects or when one is made.
    preparation: how clips are made unless asked for otherwise; provenance: what an archive tells of where it came from.
    A reader of files takes their place as `path`.
    """

    layout: JointLayout
    classes: tuple[str, ...]
    preparation: Preparation
    provenance: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of recordings, good and bad."""

    @abstractmethod
    def recordings(self) -> Iterator[Recording | BadRecording]:
        """Yield every recording once, in a fixed order, holding one in memory at a time."""


def tidy(positions: np.ndarray, layout: JointLayout) -> np.ndarray:
    """Return positions (A, T, V, C) as float32 with missing frames zeroed and frames without any actor dropped.

    A frame of an actor is missing when all its values are zero or all are not a number. Refused: another shape than
    the layout's, no frame with a skeleton in it, a single value that is not finite.
    """
    if positions.ndim != 4 or positions.shape[2] != len(layout):
        raise InputError(f"expected (actors, frames, {len(layout)} joints, coordinates), found {positions.shape}")
    with np.errstate(over="ignore"):
        positions = positions.astype(np.float32)
    missing = np.isnan(positions).all(axis=(2, 3))
    positions[missing] = 0
    if not np.isfinite(positions).all():
        actor, frame, joint, _ = np.argwhere(~np.isfinite(positions))[0]
        raise InputError(f"value not finite at actor {actor}, frame {frame}, joint {joint}")
    someone = presence(positions).any(axis=0)
    if not someone.any():
        raise InputError("no frame has a skeleton in it")
    return positions[:, someone]
