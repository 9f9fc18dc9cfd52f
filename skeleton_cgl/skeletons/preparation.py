"""From a recorded sequence to the clip a learner sees: centre, scale, fit to a number of frames, choose a stream.

Sequences are (A, T, V, C) float32 with missing frames all zero, as `recording.tidy` leaves them; missing frames stay
zero through everything here.
"""

from typing import Literal

import numpy as np
from pydantic import Field

from skeleton_cgl.config import Checked
from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons.layout import JointLayout

MOST_FRAMES = 100_000
"""More frames than this no clip has: about an hour of video."""


class Preparation(Checked):
    """How a sequence becomes a clip.

    centre: joint of the first actor whose position in its first frame becomes the origin.
    scale: "axes" maps every axis over all frames and joints to [−1, 1], a zero range to 0; "none" keeps metres.
    fit: "resample" takes frames at floor(linspace(0, T−1, frames)); "repeat" repeats the sequence or cuts it.
    stream: "joint" positions, "bone" joint minus its parent, "motion" next frame minus this one, or "bone-motion".
    """

    frames: int = Field(ge=1, le=MOST_FRAMES)
    centre: int = Field(ge=0)
    scale: Literal["axes", "none"]
    fit: Literal["resample", "repeat"]
    stream: Literal["joint", "bone", "motion", "bone-motion"] = "joint"


class Augmentation(Checked):
    """The random changes of the literature to a training sequence, drawn anew for every clip; by default all three.

    rotation: angles about x and about y drawn from U(−rotation, rotation), in degrees.
    scaling: one factor drawn from U(low, high); scale "axes" undoes it.
    frames: take sorted random frames instead of the evenly spaced ones.
    """

    rotation: float = Field(default=60, ge=0, le=180)
    scaling: tuple[float, float] = (0.5, 1.5)
    frames: bool = True


def presence(sequence: np.ndarray) -> np.ndarray:
    """Return (A, T) bool: the frames an actor is not missing from."""
    return np.asarray(sequence.any(axis=(2, 3)))


def centre(sequence: np.ndarray, joint: int) -> np.ndarray:
    """Return the sequence with the first actor's `joint` in its first real frame at the origin."""
    present = presence(sequence)
    origin = sequence[0, np.argmax(present[0]), joint]
    return np.where(present[..., None, None], sequence - origin, np.float32(0))


def make_clip(
    sequence: np.ndarray,
    layout: JointLayout,
    preparation: Preparation,
    augmentation: Augmentation | None = None,
    random: np.random.Generator | None = None,
) -> np.ndarray:
    """Return (A, frames, V, C) float32: the centred `sequence` scaled, fitted and turned into its stream.

    With an augmentation, the sequence is changed before it is scaled, with draws from `random`.
    """
    length = sequence.shape[1]
    frames = _frames(length, preparation)
    if augmentation is not None:
        if random is None:
            raise ValueError("augmentation needs a random generator")
        if sequence.shape[3] != 3:
            raise InputError(
                f"augmentation turns positions in space: 3 coordinates expected, found {sequence.shape[3]}"
            )
        sequence = _rotate_and_scale(sequence, augmentation, random)
        if augmentation.frames:
            frames = np.sort(random.integers(0, length, preparation.frames))
    if preparation.scale == "axes":
        sequence = _scale_axes(sequence)
    return _stream(sequence[:, frames], layout, preparation.stream)


def _frames(length: int, preparation: Preparation) -> np.ndarray:
    if preparation.fit == "resample":
        return np.floor(np.linspace(0, length - 1, preparation.frames)).astype(np.int64)
    return np.arange(preparation.frames) % length


def _scale_axes(sequence: np.ndarray) -> np.ndarray:
    present = presence(sequence)
    if not present.any():
        # All joints in one place, which centring made the origin.
        return sequence
    values = sequence[present]
    low, high = values.min(axis=(0, 1)), values.max(axis=(0, 1))
    span = high - low
    scaled = 2 * (sequence - low) / np.where(span > 0, span, 1) - 1
    return np.where(present[..., None, None] & (span > 0), scaled, 0).astype(np.float32)


def _rotate_and_scale(sequence: np.ndarray, augmentation: Augmentation, random: np.random.Generator) -> np.ndarray:
    about_x, about_y = np.deg2rad(random.uniform(-augmentation.rotation, augmentation.rotation, 2))
    factor = random.uniform(*augmentation.scaling)
    return sequence @ (factor * turn_about_y(about_y) @ turn_about_x(about_x)).T.astype(np.float32)


def turn_about_x(angle: float) -> np.ndarray:
    """Return (3, 3): the rotation about x by an angle in radians, for positions as columns."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])


def turn_about_y(angle: float) -> np.ndarray:
    """Return (3, 3): the rotation about y by an angle in radians, for positions as columns."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]])


def _stream(clip: np.ndarray, layout: JointLayout, stream: str) -> np.ndarray:
    present = presence(clip)
    if stream in ("bone", "bone-motion"):
        clip = clip - clip[:, :, layout.parents()]
    if stream in ("motion", "bone-motion"):
        both = (present[:, 1:] & present[:, :-1])[..., None, None]
        motion = np.zeros_like(clip)
        motion[:, :-1] = np.where(both, clip[:, 1:] - clip[:, :-1], 0)
        clip = motion
    return clip
