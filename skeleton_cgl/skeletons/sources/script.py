"""Scripts of motion and their performance: key poses and steps in, joint positions out.

A script says what hands, trunk and hips do at a few moments, and how many steps are taken. Between the moments
everything moves with least jerk (Flash & Hogan 1985), as human movements nearly do; feet stand where they are put.
"""

from dataclasses import dataclass

import numpy as np

from skeleton_cgl.skeletons.sources.body import Body, Motion, along, pose

Hand = tuple[float, float, float]
Value = float | tuple[float, ...]

HANGING: Hand = (0.12, -0.96, 0.06)
AT_REST: dict[str, Value] = {
    "main": HANGING,
    "idle": HANGING,
    "lean": 3.0,
    "tilt": 0.0,
    "twist": 0.0,
    "nod": 5.0,
    "drop": 0.01,
    "shift": (0.0, 0.0),
    "swing": 0.0,
    "walked": 0.0,
}
"""Standing at ease: every channel and its value where a script says nothing."""

_FIDGET = {"main": 0.03, "idle": 0.03, "lean": 2.0, "tilt": 1.5, "twist": 4.0, "nod": 5.0, "shift": 0.01}
_STANCE = 0.24
_LIFT = 0.1
_SWING_PHASE = 0.8


@dataclass(frozen=True)
class Key:
    """The values of some channels at a moment; 0 is about where a recording begins and 1 about where it ends.

    main, idle: the right and the left hand from its shoulder in arm lengths, (outward, up, forward).
    lean, tilt, twist, nod: of the trunk forward and to the right, of shoulders to the left, of the head, in degrees.
    drop, shift: of the hips down, and (right, forward), in leg lengths.
    walked: the part of all steps taken so far; swing: how far the arms swing in walking, in arm lengths.
    """

    moment: float
    values: dict[str, Value]


def key(moment: float, **values: Value) -> Key:
    """Return the key with these values; refuse a channel that does not exist."""
    unknown = values.keys() - AT_REST.keys()
    if unknown:
        raise ValueError(f"no channel {sorted(unknown)[0]!r}; the channels are {', '.join(AT_REST)}")
    return Key(moment, values)


@dataclass(frozen=True)
class Script:
    """Key poses in order of time, lasting about `frames`; a channel missing from the first key begins at rest.

    `steps` steps of `stride` leg lengths are taken on the way, turning by `turn` degrees to the left over all of them.
    """

    frames: float
    keys: tuple[Key, ...]
    steps: int = 0
    stride: float = 0.0
    turn: float = 0.0


def perform(script: Script, frames: int, body: Body, random: np.random.Generator) -> np.ndarray:
    """Return (frames, V, 3): a performance of `script`, standing at the origin at first and facing about −z.

    `random` decides what differs each time: where the recording begins and ends, the flow of time, which foot
    goes first, the direction faced, how the body sways.
    """
    moments = _moments(frames, random)
    channels = {name: _interpolate(script, name, moments) for name in AT_REST}
    for name, size in _FIDGET.items():
        channels[name] = channels[name] + size * _waves(channels[name].shape, random)
    walk = _walk(script, channels["walked"], body, random)
    angles = {name: np.deg2rad(channels[name]) for name in ("lean", "tilt", "twist", "nod")}
    swing = (walk.swing * channels["swing"])[:, None] * np.array([0, 0.1, 1])
    motion = Motion(
        place=walk.place,
        heading=walk.heading,
        drop=channels["drop"],
        shift=channels["shift"],
        **angles,
        left_hand=channels["idle"] - swing,
        right_hand=channels["main"] + swing,
        left_foot=walk.feet[0],
        right_foot=walk.feet[1],
        left_toes=walk.toes[0],
        right_toes=walk.toes[1],
    )
    return pose(body, motion)


def minimum_jerk(part: np.ndarray) -> np.ndarray:
    """Return the part of a movement's way that is done when `part` of its time has passed; both within 0–1."""
    return part**3 * (10 - 15 * part + 6 * part**2)


def _moments(frames: int, random: np.random.Generator) -> np.ndarray:
    """Return (T,) rising: the moment of every frame; recordings are trimmed loosely, and time flows unevenly."""
    begin, end = random.uniform(-0.1, 0.1), random.uniform(0.9, 1.1)
    part = np.linspace(0, 1, frames)
    warped = part + random.uniform(-0.5, 0.5) * np.sin(2 * np.pi * part) / (2 * np.pi)
    return begin + (end - begin) * warped


def _interpolate(script: Script, name: str, moments: np.ndarray) -> np.ndarray:
    """Return (T,) or (T, 2 or 3): one channel at every moment."""
    marks = [(entry.moment, entry.values[name]) for entry in script.keys if name in entry.values]
    first = script.keys[0].moment
    if not marks or marks[0][0] > first:
        marks.insert(0, (first, AT_REST[name]))
    times = np.array([moment for moment, _ in marks])
    values = np.array([value for _, value in marks], dtype=float)
    before = np.clip(np.searchsorted(times, moments, side="right") - 1, 0, max(len(times) - 2, 0))
    after = np.minimum(before + 1, len(times) - 1)
    span = np.where(after > before, times[after] - times[before], 1)
    part = np.clip((moments - times[before]) / span, 0, 1)
    # Steps have their own ease; between them a walk goes on evenly.
    done = part if name == "walked" else minimum_jerk(part)
    done = done.reshape(-1, *[1] * (values.ndim - 1))
    return values[before] * (1 - done) + values[after] * done


def _waves(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Return an array of `shape`, frames first: slow random waves of variance about 1."""
    seconds = np.arange(shape[0])[:, None, None] / 15
    width = int(np.prod(shape[1:]))
    rate, begin = random.uniform(0.1, 0.9, (3, width)), random.uniform(0, 2 * np.pi, (3, width))
    return np.sqrt(2 / 3) * np.sin(2 * np.pi * rate * seconds + begin).sum(axis=1).reshape(shape)


@dataclass(frozen=True)
class _Walk:
    """Where place, feet and headings are in T frames, and how far the right arm is in its swing, −1 to 1."""

    place: np.ndarray
    heading: np.ndarray
    feet: tuple[np.ndarray, np.ndarray]
    toes: tuple[np.ndarray, np.ndarray]
    swing: np.ndarray


def _walk(script: Script, walked: np.ndarray, body: Body, random: np.random.Generator) -> _Walk:
    """Return the walk of a script. Both feet stand at footprint 0 at first and at footprint `steps` in the end.

    Step k brings a foot from footprint k − 2 to footprint k; one more step brings the other foot beside it.
    """
    steps = script.steps
    stance = body.leg * _STANCE * random.uniform(0.8, 1.4)
    right_first = random.random() < 0.5
    heading_at_first = np.deg2rad(random.normal(0, 25))
    progress = (steps + 1) * walked if steps else np.zeros_like(walked)

    prints = np.linspace(0, max(steps, 1), 64)
    headings = heading_at_first + np.deg2rad(script.turn) * prints / max(steps, 1)
    ways = script.stride * body.leg * along(headings, np.array([[0, 0, 1]]))[:, [0, 2]]
    middle = (ways[1:] + ways[:-1]) / 2 * np.diff(prints)[:, None]
    path = np.vstack([np.zeros((1, 2)), np.cumsum(middle, axis=0)])

    def at(footprint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        where = np.stack([np.interp(footprint, prints, path[:, axis]) for axis in (0, 1)], axis=-1)
        return where, np.interp(footprint, prints, headings)

    # The body gathers way during the first step and loses it during the last.
    way = np.clip(progress - 0.5, 0, steps)
    way = np.where(progress < 1, progress**2 / 2, way)
    way = np.where(progress > steps, steps - (steps + 1 - progress) ** 2 / 2, way) if steps else 0 * progress
    place, heading = at(way)

    step = np.floor(progress).astype(int) + 1
    part = np.clip((progress % 1 - (1 - _SWING_PHASE) / 2) / _SWING_PHASE, 0, 1)
    feet, toes = [], []
    for side in (-1, 1):
        moves = (step % 2 == 1) == ((side == 1) == right_first)
        begin = np.clip(np.where(moves, step - 2, step - 1), 0, steps)
        end = np.clip(np.where(moves, step, step - 1), 0, steps)
        done = np.where(moves, part, 0)
        where, direction = at(begin + (end - begin) * minimum_jerk(done))
        lift = _LIFT * body.leg * np.sin(np.pi * done) ** 2
        foot = np.stack([where[:, 0], lift, where[:, 1]], axis=-1)
        feet.append(foot + along(direction, np.array([[side * stance / 2, 0, 0]])))
        toes.append(direction)
    speed = np.clip(np.minimum(progress, steps + 1 - progress), 0, 1)
    swing = speed * np.cos(np.pi * progress) * (1 if right_first else -1)
    return _Walk(place, heading, (feet[0], feet[1]), (toes[0], toes[1]), swing)
