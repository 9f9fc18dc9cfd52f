"""From the text of one NTU `.skeleton` file to at most two actors: pure computation on bytes and arrays.

The text is a number of frames; per frame a number of bodies; per body a line with its tracking id and nine state
values, the number of joints, and a line per joint whose first three values are x y z.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import whole_number
from skeleton_cgl.skeletons.layout import NTU

ACTORS = 2
"""The most actors a recording has."""

_JOINTS, _AXES = len(NTU), 3
_STATE_VALUES = 10  # the tracking id and nine more
_SHORT = 11  # a body seen in no more frames than this is short-lived
_NOISY_SPAN = 0.8  # a frame is noisy when the body is wider than this share of its height
_NOISY_SHARE = 0.69754  # a body is noisy when this share of its frames is


@dataclass(frozen=True)
class Body:
    """One tracked body: its positions (n, V, C) float32 in the frames (n,) it was seen in.

    Frames are numbered over those that have any body.
    """

    frames: np.ndarray
    positions: np.ndarray

    def motion(self) -> float:
        """Return the variance of the joints' positions over all frames and joints, summed over the axes."""
        return float(np.var(self.positions.reshape(-1, _AXES), axis=0, dtype=np.float64).sum())

    def noisy_share(self) -> float:
        """Return the share of frames in which x-span > 0.8 · y-span."""
        span = np.ptp(self.positions, axis=1)
        return float(np.mean(span[:, 0] > _NOISY_SPAN * span[:, 1]))


def choose_actors(bodies: Sequence[Body]) -> np.ndarray:
    """Return (2, T, V, C) float32: the bodies as at most two actors, zero where an actor is missing.

    Short-lived and noisy bodies are dropped; if all are, the most moving stays. Of the rest, the most moving first,
    each joins the first actor, or else the second, if it shares no frame with what that actor already has, and is left
    out otherwise. Refused: no body at all.
    """
    if not bodies:
        raise InputError("no body in any frame")
    kept = sorted(bodies, key=Body.motion, reverse=True)
    kept = _without(kept, lambda body: len(body.frames) <= _SHORT)
    kept = _without(kept, lambda body: body.noisy_share() >= _NOISY_SHARE)
    frames = 1 + max(body.frames[-1] for body in bodies)
    positions = np.zeros((ACTORS, frames, _JOINTS, _AXES), dtype=np.float32)
    present = np.zeros((ACTORS, frames), dtype=bool)
    for body in kept:
        for actor in range(ACTORS):
            if not present[actor, body.frames].any():
                present[actor, body.frames] = True
                positions[actor, body.frames] = body.positions
                break
    return positions


def _without(bodies: list[Body], unwanted: Callable[[Body], bool]) -> list[Body]:
    """Return the bodies without the unwanted; if all are unwanted, the first of them."""
    return [body for body in bodies if not unwanted(body)] or bodies[:1]


def read_bodies(content: bytes) -> list[Body]:
    """Return the bodies in the text of a `.skeleton` file, in the order they appear; lines may end with LF or CRLF.

    Refused, with the number of the line: a file that ends early or goes on after its end, another number of joints than
    25, joint lines of unequal length, what is no finite number, one tracking id twice in a frame.
    """
    lines = _Lines(content)
    seen: dict[str, list[tuple[int, int]]] = {}
    frame = block = 0
    for _ in range(lines.take_count("number of frames")):
        bodies = lines.take_count("number of bodies")
        for _ in range(bodies):
            appearances = seen.setdefault(lines.take_tracking_id(), [])
            if appearances and appearances[-1][0] == frame:
                raise lines.error("the tracking id occurs twice in one frame")
            joints = lines.take_count("number of joints")
            if joints != _JOINTS:
                raise lines.error(f"expected {_JOINTS} joints, found {joints}")
            lines.take_joints()
            appearances.append((frame, block))
            block += 1
        frame += bodies > 0
    lines.end()
    positions = lines.positions()
    bodies_seen = []
    for appearances in seen.values():
        frames, blocks = np.array(appearances).T
        bodies_seen.append(Body(frames, positions[blocks]))
    return bodies_seen


class _Lines:
    """The lines of a `.skeleton` file, taken one after the other; joint lines are collected and converted in one go."""

    def __init__(self, content: bytes) -> None:
        try:
            text = content.decode("ascii")
        except UnicodeDecodeError as error:
            line = 1 + content.count(b"\n", 0, error.start)
            raise InputError(f"line {line}: not text, byte {content[error.start]:#x}") from error
        self._lines = text.rstrip().splitlines()
        self._taken = 0
        self._width = 0
        self._blocks: list[int] = []
        self._joints: list[list[str]] = []

    def error(self, message: str, line: int | None = None) -> InputError:
        """Return an error about the line taken last, or the one given, counted from 1."""
        return InputError(f"line {self._taken if line is None else line}: {message}")

    def _take(self, what: str) -> str:
        if self._taken == len(self._lines):
            raise self.error(f"the file ends here, expected the {what}", self._taken + 1)
        self._taken += 1
        return self._lines[self._taken - 1]

    def take_count(self, what: str) -> int:
        line = self._take(what).strip()
        count = whole_number(line)
        if count is None:
            raise self.error(f"expected the {what}, found {line[:40]!r}")
        return count

    def take_tracking_id(self) -> str:
        values = self._take("line of a body").split()
        if len(values) != _STATE_VALUES or not values[0].isdigit():
            found = " ".join(values)[:40]
            raise self.error(f"expected a tracking id and {_STATE_VALUES - 1} state values, found {found!r}")
        return values[0]

    def take_joints(self) -> None:
        self._blocks.append(self._taken)
        for _ in range(_JOINTS):
            values = self._take("line of a joint").split()
            self._width = self._width or max(len(values), _AXES)
            if len(values) != self._width:
                raise self.error(f"expected a joint's {self._width} values, found {len(values)}")
            self._joints.append(values[:_AXES])

    def end(self) -> None:
        if self._taken < len(self._lines):
            raise self.error("the file goes on after its last frame", self._taken + 1)

    def positions(self) -> np.ndarray:
        """Return (blocks, V, C) float32: the joints of every body in every frame, in the order taken."""
        try:
            with np.errstate(over="ignore"):
                positions = np.array(self._joints, dtype=np.float32)
        except ValueError:
            positions = np.array([[_number(value) for value in joint] for joint in self._joints])
        wrong = np.argwhere(~np.isfinite(positions))
        if len(wrong):
            joint, axis = wrong[0]
            line = self._blocks[joint // _JOINTS] + joint % _JOINTS + 1
            raise self.error(f"{self._joints[joint][axis][:40]!r} is not a finite number", line)
        return positions.reshape(-1, _JOINTS, _AXES)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
