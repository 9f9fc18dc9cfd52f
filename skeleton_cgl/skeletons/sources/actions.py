"""The ten actions of the synthetic data set: for every action a function that writes the script of one performance.

They follow the actions of N-UCLA (Wang et al. 2014) and are written for right-handers; left-handers mirror them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from skeleton_cgl.skeletons.sources.body import Body
from skeleton_cgl.skeletons.sources.script import AT_REST, HANGING, Hand, Script, Value, key

_ON_THIGH: Hand = (0.0, -0.62, 0.42)
_UPRIGHT = {name: AT_REST[name] for name in ("lean", "twist", "nod", "drop")}


@dataclass(frozen=True)
class Performer:
    """A subject: its body, and its habits in moving.

    tempo: factor to the usual speed; squat: bends from the back (0) or from the knees (1);
    swing: of the arms in walking, in arm lengths; vigour: factor to how far movements go.
    """

    body: Body
    left_handed: bool
    tempo: float
    squat: float
    swing: float
    vigour: float


def _between(begin: Hand, end: Hand, part: float) -> Hand:
    outward, up, forward = ((1 - part) * b + part * e for b, e in zip(begin, end, strict=True))
    return outward, up, forward


def _near(hand: Hand, random: np.random.Generator, spread: float = 0.08) -> Hand:
    outward, up, forward = np.array(hand) + spread * random.normal(size=3)
    return outward, up, forward


def _pick_up(who: Performer, random: np.random.Generator, idle_joins: float, frames: float) -> Script:
    """Bend down over the thing, grasp it, come up again with it; the idle hand joins in by a part of 0 to 1."""
    depth = who.vigour * random.uniform(0.8, 1.1)
    squat = np.clip(who.squat + random.normal(0, 0.15), 0, 1)
    bent = {"lean": min(depth * (88 - 30 * squat), 100), "drop": depth * (0.12 + 0.4 * squat), "nod": 15.0}
    thing: Hand = _near((-0.12, -0.84, 0.46), random, 0.06)
    carried: Hand = _between(HANGING, _near((-0.1, -0.5, 0.45), random), random.uniform(0, 1))
    rest = _between(HANGING, _ON_THIGH, random.uniform(0, 0.5))
    down = random.normal(0.42, 0.06)
    up = down + random.uniform(0.05, 0.18)
    return Script(
        frames,
        (
            key(-0.4, walked=0, swing=who.swing),
            key(0.0, main=_near(HANGING, random), idle=_near(HANGING, random), **_UPRIGHT),
            key(down - 0.1, walked=1),
            key(down, main=thing, idle=_between(rest, thing, idle_joins), twist=20 * (1 - idle_joins), **bent),
            key(up, main=thing, idle=_between(rest, thing, idle_joins), twist=20 * (1 - idle_joins), **bent),
            key(1.0, main=carried, idle=_between(rest, carried, idle_joins), **_UPRIGHT),
        ),
        steps=int(random.integers(0, 3)),
        stride=random.uniform(0.2, 0.5),
        turn=random.normal(0, 20),
    )


def pick_up_with_one_hand(who: Performer, random: np.random.Generator) -> Script:
    return _pick_up(who, random, idle_joins=random.uniform(0, 0.35), frames=31)


def pick_up_with_two_hands(who: Performer, random: np.random.Generator) -> Script:
    return _pick_up(who, random, idle_joins=random.uniform(0.8, 1), frames=35)


def drop_trash(who: Performer, random: np.random.Generator) -> Script:
    """Step up to the bin, hold the thing out over it with one arm, let go, take the arm back."""
    bin_above: Hand = _near((0.25, -0.5, 0.6), random, 0.2)
    held: Hand = _between(HANGING, (0.0, -0.55, 0.4), random.uniform(0, 1))
    bent = {
        "lean": who.vigour * random.uniform(5, 50),
        "drop": random.uniform(0.02, 0.15),
        "twist": random.normal(10, 8),
    }
    out = random.normal(0.45, 0.06)
    back = out + random.uniform(0.1, 0.2)
    return Script(
        30,
        (
            key(-0.4, walked=0),
            key(0.0, main=held, idle=_near(HANGING, random), **_UPRIGHT),
            key(out - 0.1, walked=1),
            key(out, main=bin_above, **bent),
            key(back, main=_near(bin_above, random, 0.05), **bent),
            key(1.0, main=_near(HANGING, random), **_UPRIGHT),
        ),
        steps=int(random.integers(0, 3)),
        stride=random.uniform(0.2, 0.45),
        turn=random.normal(0, 20),
    )


def walk_around(who: Performer, random: np.random.Generator) -> Script:
    """Walk along a curve with arms swinging; the recording begins and ends amid the walk."""
    arms = _between(HANGING, (0.05, -0.75, 0.3), random.uniform(0, 0.5))
    stroll: dict[str, Value] = {
        "main": _near(arms, random, 0.05),
        "idle": _near(arms, random, 0.05),
        "lean": random.normal(5, 3),
    }
    return Script(
        36,
        (
            key(random.uniform(-0.4, 0), walked=0, swing=who.swing * random.uniform(0.4, 1.2), **stroll),
            key(random.uniform(1, 1.4), walked=1),
        ),
        steps=int(random.integers(3, 6)),
        stride=random.uniform(0.5, 0.75) * who.vigour,
        turn=random.choice([-1, 1]) * random.uniform(20, 150),
    )


def carry(who: Performer, random: np.random.Generator) -> Script:
    """Walk with both forearms held in front, around a thing; the arms give a little at every step."""
    load: Hand = _between(HANGING, (-0.1, -0.45, 0.55), random.uniform(0.35, 1))
    held: dict[str, Value] = {"main": _near(load, random), "idle": _near(load, random), "lean": random.normal(2, 4)}
    return Script(
        33,
        (
            key(random.uniform(-0.4, 0), walked=0, swing=who.swing * random.uniform(0, 0.4), **held),
            key(random.uniform(1, 1.4), walked=1),
        ),
        steps=int(random.integers(3, 6)),
        stride=random.uniform(0.45, 0.7) * who.vigour,
        turn=random.choice([-1, 1]) * random.uniform(0, 120),
    )


class _Hips(TypedDict):
    drop: float
    shift: tuple[float, float]


class _Seated(_Hips):
    lean: float
    main: Hand
    idle: Hand


def _seated(random: np.random.Generator) -> _Seated:
    thighs = _between(_ON_THIGH, (0.15, -0.85, 0.2), random.uniform(0, 0.6))
    return {
        "drop": random.uniform(0.38, 0.55),
        "shift": (random.normal(0, 0.02), -random.uniform(0.35, 0.5)),
        "lean": random.uniform(-8, 18),
        "main": _near(thighs, random),
        "idle": _near(thighs, random),
    }


def _half_up(seated: _Hips, random: np.random.Generator) -> _Hips:
    """Return where the hips are in finding their place on the seat: mostly near it, at times more than half up."""
    part = 1 - 0.7 * random.beta(1, 1.2)
    right, forward = seated["shift"]
    return {"drop": part * seated["drop"], "shift": (part * right, part * forward)}


def sit_down(who: Performer, random: np.random.Generator) -> Script:
    """Lower the hips onto the chair with the trunk bowed for balance, sit up, find the right place on it."""
    low = random.uniform(0.25, 0.75)
    seated = _seated(random)
    return Script(
        28,
        (
            key(max(low - random.uniform(0.3, 0.65), -0.15), main=_near(HANGING, random), idle=_near(HANGING, random)),
            key(low - 0.15, lean=who.vigour * random.uniform(15, 45)),
            key(low, **seated),
            key(1.1, **_half_up(seated, random)),
        ),
    )


def stand_up(who: Performer, random: np.random.Generator) -> Script:
    """Settle on the chair, bow the trunk until the weight is over the feet, rise, let the arms fall."""
    low = random.uniform(0.2, 0.7)
    seated = _seated(random)
    settling: _Seated = {**seated, **_half_up(seated, random)}
    return Script(
        26,
        (
            key(-0.1, **settling),
            key(low, **seated),
            key(low + 0.15, lean=who.vigour * random.uniform(15, 45)),
            key(
                min(low + random.uniform(0.3, 0.65), 1.15),
                drop=0.02,
                shift=(0, 0),
                lean=4,
                main=_near(HANGING, random),
                idle=_near(HANGING, random),
            ),
        ),
    )


_COLLAR: Hand = (-0.15, -0.12, 0.38)
_HEM: Hand = (-0.05, -0.62, 0.35)
_SLEEVE_BEHIND: Hand = (0.5, -0.6, -0.35)
_ARM_THROUGH: Hand = (0.65, -0.3, 0.35)


def _jacket(who: Performer, random: np.random.Generator) -> list[dict[str, Value]]:
    """Return the poses of getting into a jacket one after the other; backwards they get out of it."""
    first, second = ("main", "idle") if random.random() < 0.75 else ("idle", "main")
    turn = who.vigour * random.normal(15, 8) * (1 if first == "main" else -1)
    poses = [
        (_HEM, _HEM, 0.0),
        (_SLEEVE_BEHIND, _COLLAR, -turn),
        (_ARM_THROUGH, _COLLAR, -turn / 3),
        (_COLLAR, _SLEEVE_BEHIND, turn),
        (_COLLAR, _ARM_THROUGH, turn / 3),
        (_COLLAR, _COLLAR, 0.0),
        (_HEM, _HEM, 0.0),
    ]
    return [
        {first: _near(one, random, 0.12), second: _near(other, random, 0.12), "twist": twist}
        for one, other, twist in poses
        if random.random() < 0.8
    ]


def _change(frames: float, poses: list[dict[str, Value]], random: np.random.Generator) -> Script:
    """Go through the poses at uneven times, from hanging arms to hanging arms."""
    waits = random.uniform(0.3, 1.7, len(poses) + 1)
    moments = np.cumsum(waits)[:-1] / waits.sum()
    lean = random.normal(8, 6)
    keys = [key(moment, lean=lean, nod=15, **each) for moment, each in zip(moments, poses, strict=True)]
    return Script(frames, (key(0.0), *keys, key(1.0, main=HANGING, idle=HANGING, twist=0, lean=3, nod=5)))


def donning(who: Performer, random: np.random.Generator) -> Script:
    """Hold the jacket, one arm into its sleeve, the other behind into its own, pull it close at collar and hem."""
    return _change(62, _jacket(who, random), random)


def doffing(who: Performer, random: np.random.Generator) -> Script:
    """Open the jacket at hem and collar, one arm out of its sleeve, then the other, the jacket in both hands."""
    return _change(50, _jacket(who, random)[::-1], random)


def throw(who: Performer, random: np.random.Generator) -> Script:
    """Wind up with the hand behind the head and the trunk turned away, swing it forward and through, step along."""
    high = who.vigour * random.uniform(-0.1, 0.5)
    back = random.normal(0.4, 0.06)
    release = back + random.uniform(0.12, 0.2)
    turn = random.uniform(10, 40)
    return Script(
        29,
        (
            key(-0.1, main=_near((0.05, -0.6, 0.4), random), idle=_near(HANGING, random), walked=0),
            key(
                back,
                main=_near((0.35, high, -0.3), random),
                twist=-turn,
                lean=-8,
                idle=_near((0.15, -0.6, 0.4), random),
            ),
            key(release, main=_near((0.05, high + 0.2, 0.7), random), twist=turn / 2, lean=15),
            key(release + 0.12, main=_near((-0.25, -0.6, 0.5), random), twist=turn, lean=25),
            key(1.0, main=_near(HANGING, random), idle=_near(HANGING, random), twist=0, lean=5, walked=1),
        ),
        steps=int(random.integers(0, 3)),
        stride=random.uniform(0.2, 0.5),
        turn=random.normal(0, 20),
    )


ACTIONS: dict[str, Callable[[Performer, np.random.Generator], Script]] = {
    "pick up with one hand": pick_up_with_one_hand,
    "pick up with two hands": pick_up_with_two_hands,
    "drop trash": drop_trash,
    "walk around": walk_around,
    "sit down": sit_down,
    "stand up": stand_up,
    "donning": donning,
    "doffing": doffing,
    "throw": throw,
    "carry": carry,
}
