"""A body of the 20 joints of N-UCLA that is posed by what it does: where the hips are, how the trunk leans, where hands
and feet go. Elbows and knees follow by two-bone inverse kinematics, so bones keep their length and bend the right way.

World coordinates are metres: y up, and a body of heading 0 faces −z with its left side at smaller x. Offsets from the
body are (right, up, forward) along its heading. Arrays are over T frames.
"""

from dataclasses import dataclass

import numpy as np

from skeleton_cgl.skeletons.layout import UCLA

_LEFT, _RIGHT = -1, 1
_FULL_STRETCH = 0.995


@dataclass(frozen=True)
class Body:
    """The sizes of a body in metres: the bones of one side, and how wide shoulders and hips are."""

    loin: float
    chest: float
    neck: float
    shoulder_width: float
    shoulder_drop: float
    upper_arm: float
    forearm: float
    hand: float
    hip_width: float
    hip_drop: float
    thigh: float
    shin: float
    foot: float
    ankle_height: float

    @classmethod
    def of(cls, height: float, trunk: float = 1, arms: float = 1, legs: float = 1, width: float = 1) -> "Body":
        """Return a body of about `height` metres; the other arguments are factors to the usual proportions."""
        size = height / 1.7
        return cls(
            loin=0.07 * size * trunk,
            chest=0.36 * size * trunk,
            neck=0.20 * size,
            shoulder_width=0.36 * size * width,
            shoulder_drop=0.05 * size,
            upper_arm=0.26 * size * arms,
            forearm=0.24 * size * arms,
            hand=0.08 * size * arms,
            hip_width=0.17 * size * width,
            hip_drop=0.06 * size,
            thigh=0.44 * size * legs,
            shin=0.39 * size * legs,
            foot=0.11 * size,
            ankle_height=0.08 * size,
        )

    @property
    def arm(self) -> float:
        return self.upper_arm + self.forearm

    @property
    def leg(self) -> float:
        return self.thigh + self.shin


@dataclass(frozen=True)
class Motion:
    """What a body does in T frames; angles in radians.

    place (T, 2): where it stands, x and z in metres; heading (T,): turned to its left from facing −z.
    drop (T,): how far the hips are below upright, in leg lengths; shift (T, 2): the hips right and forward of the
    place, in leg lengths.
    lean, tilt, twist, nod (T,): trunk forward, trunk to the right, shoulders to the left, head forward of the trunk.
    left_hand, right_hand (T, 3): wrist from its shoulder, in arm lengths, (outward, up, forward).
    left_foot, right_foot (T, 3): ankle in the world in metres, y counted from where it stands;
    left_toes, right_toes (T,): the heading of each foot.
    """

    place: np.ndarray
    heading: np.ndarray
    drop: np.ndarray
    shift: np.ndarray
    lean: np.ndarray
    tilt: np.ndarray
    twist: np.ndarray
    nod: np.ndarray
    left_hand: np.ndarray
    right_hand: np.ndarray
    left_foot: np.ndarray
    right_foot: np.ndarray
    left_toes: np.ndarray
    right_toes: np.ndarray


def pose(body: Body, motion: Motion) -> np.ndarray:
    """Return (T, V, 3): the joints of `body` in `motion`, the ground at y = 0.

    Hips come down as far as both feet need to stay where they are; a hand out of reach stays at arm's length.
    """
    joints: dict[str, np.ndarray] = {}
    legs = {
        "left": (_LEFT, motion.left_foot, motion.left_toes),
        "right": (_RIGHT, motion.right_foot, motion.right_toes),
    }
    arms = {"left": (_LEFT, motion.left_hand), "right": (_RIGHT, motion.right_hand)}

    ankles = {name: foot + np.array([0, body.ankle_height, 0]) for name, (_, foot, _) in legs.items()}
    base = _base_of_spine(body, motion, ankles)
    joints["base of spine"] = base
    for name, (side, _, toes) in legs.items():
        hip = base + along(motion.heading, _offsets(side * body.hip_width / 2, -body.hip_drop, 0))
        knee, ankle = _two_bones(hip, ankles[name], body.thigh, body.shin, along(toes, _offsets(side * 0.1, 0, 1)))
        foot = ankle + body.foot * along(toes, _offsets(side * 0.2, -0.5, 0.84))
        joints.update({f"{name} hip": hip, f"{name} knee": knee, f"{name} ankle": ankle, f"{name} foot": foot})

    middle = base + body.loin * along(motion.heading, _trunk(motion.lean / 2, motion.tilt / 2))
    top = middle + body.chest * along(motion.heading, _trunk(motion.lean, motion.tilt))
    head = top + body.neck * along(motion.heading, _trunk(motion.lean + motion.nod, motion.tilt))
    joints.update({"middle of spine": middle, "spine at shoulders": top, "head": head})
    across = along(motion.heading, _shoulder_axis(motion))
    down = along(motion.heading, -_trunk(motion.lean, motion.tilt))
    for name, (side, hand) in arms.items():
        shoulder = top + side * body.shoulder_width / 2 * across + body.shoulder_drop * down
        target = shoulder + body.arm * along(motion.heading, hand * np.array([side, 1, 1]))
        elbow_side = along(motion.heading, _offsets(side * 0.6, -0.4, -1))
        elbow, wrist = _two_bones(shoulder, target, body.upper_arm, body.forearm, elbow_side)
        tip = wrist + body.hand / body.forearm * (wrist - elbow)
        joints.update(
            {f"{name} shoulder": shoulder, f"{name} elbow": elbow, f"{name} wrist": wrist, f"{name} hand": tip}
        )
    return np.stack([joints[name] for name in UCLA.joints], axis=1)


def mirror(positions: np.ndarray) -> np.ndarray:
    """Return (T, V, 3): what a mirror across x = 0 shows, with left and right joints named anew."""
    swapped = [
        UCLA.joints.index(name.replace("left", "right") if "left" in name else name.replace("right", "left"))
        for name in UCLA.joints
    ]
    return positions[:, swapped] * np.array([-1, 1, 1])


def along(heading: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return (T, 3) in the world: the offsets (T or 1, 3) right, up, forward of a heading (T,)."""
    cos, sin = np.cos(heading), np.sin(heading)
    right, up, forward = offsets[..., 0], offsets[..., 1], offsets[..., 2]
    return np.stack(
        [right * cos - forward * sin, np.broadcast_to(up, cos.shape), -right * sin - forward * cos], axis=-1
    )


def _offsets(right: float, up: float, forward: float) -> np.ndarray:
    return np.array([[right, up, forward]], dtype=float)


def _trunk(lean: np.ndarray, tilt: np.ndarray) -> np.ndarray:
    """Return (T, 3) right, up, forward: the direction of a trunk leaning forward and tilting to the right."""
    return np.stack([np.sin(tilt), np.cos(tilt) * np.cos(lean), np.cos(tilt) * np.sin(lean)], axis=-1)


def _shoulder_axis(motion: Motion) -> np.ndarray:
    """Return (T, 3) right, up, forward: from left to right shoulder, square to the trunk, turned by the twist."""
    lean, tilt, twist = motion.lean, motion.tilt, motion.twist
    across = np.stack([np.cos(tilt), -np.sin(tilt) * np.cos(lean), -np.sin(tilt) * np.sin(lean)], axis=-1)
    chest_forward = np.stack([np.zeros_like(lean), -np.sin(lean), np.cos(lean)], axis=-1)
    return across * np.cos(twist)[:, None] + chest_forward * np.sin(twist)[:, None]


def _base_of_spine(body: Body, motion: Motion, ankles: dict[str, np.ndarray]) -> np.ndarray:
    # Who leans forward moves the hips back, or would fall over.
    balance = -0.3 * np.sin(motion.lean) * (body.loin + body.chest) / body.leg
    shift = np.stack([motion.shift[:, 0], np.zeros_like(balance), motion.shift[:, 1] + balance], axis=-1)
    base = along(motion.heading, body.leg * shift)
    base[:, 0] += motion.place[:, 0]
    base[:, 2] += motion.place[:, 1]
    upright = body.ankle_height + body.hip_drop + _FULL_STRETCH * body.leg
    base[:, 1] = upright - motion.drop * body.leg
    for name, side in (("left", _LEFT), ("right", _RIGHT)):
        hip = base + along(motion.heading, _offsets(side * body.hip_width / 2, 0, 0))
        away = ((hip - ankles[name])[:, [0, 2]] ** 2).sum(axis=1)
        in_reach = np.sqrt(np.maximum((_FULL_STRETCH * body.leg) ** 2 - away, 0))
        base[:, 1] = np.minimum(base[:, 1], ankles[name][:, 1] + body.hip_drop + in_reach)
    return base


def _two_bones(
    start: np.ndarray, target: np.ndarray, upper: float, lower: float, bend: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (T, 3) twice: the middle and the end of two bones from `start` to `target`, the middle towards `bend`.

    A target out of reach gives the end in its direction, at the nearest distance the bones allow.
    """
    line = target - start
    wished = np.linalg.norm(line, axis=1, keepdims=True)
    line = line / wished
    distance = np.clip(wished, 1.2 * abs(upper - lower) + 0.3 * min(upper, lower), _FULL_STRETCH * (upper + lower))
    along_line = (upper**2 - lower**2 + distance**2) / (2 * distance)
    aside = bend - (bend * line).sum(axis=1, keepdims=True) * line
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    middle = start + along_line * line + np.sqrt(upper**2 - along_line**2) * aside
    return middle, start + distance * line
