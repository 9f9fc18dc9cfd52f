"""The built-in data set: ten made-up subjects perform ten actions, seen by three cameras with noisy sensors.

It has the shape of N-UCLA (20 joints, metres, three views, lengths) and needs no download. Everything random about a
recording comes from its own key, so that a recording is the same whichever others are made with it.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons.layout import UCLA
from skeleton_cgl.skeletons.preparation import Preparation, turn_about_x, turn_about_y
from skeleton_cgl.skeletons.recording import Recording, Source
from skeleton_cgl.skeletons.sources.actions import ACTIONS, Performer
from skeleton_cgl.skeletons.sources.body import Body, mirror
from skeleton_cgl.skeletons.sources.script import perform

_VIEWS = (0, 45, -45)
_FEWEST_FRAMES, _MOST_FRAMES = 15, 90
_LIMBS = tuple(
    tuple(UCLA.joints.index(f"{side} {joint}") for joint in chain)
    for side in ("left", "right")
    for chain in (("elbow", "wrist", "hand"), ("knee", "ankle", "foot"))
)
_UNSTEADINESS = np.array(
    [2.0 if any(part in name for part in ("hand", "wrist", "foot", "ankle")) else 1.0 for name in UCLA.joints]
)
# The first number of every random key, so that no two purposes share their draws.
_SUBJECT, _PERFORMANCE, _CAMERA = 1, 2, 3


class SyntheticSource(Source):
    """The recordings of the synthetic data set; action by action, subject, repetition, view.

    `views` of one repetition show the same performance. Refused: a count below 1, more than three views.
    """

    layout = UCLA.model_copy(update={"name": "synthetic"})
    classes = tuple(ACTIONS)
    preparation = Preparation(frames=52, centre=1, scale="axes", fit="resample")

    def __init__(self, seed: int = 0, subjects: int = 10, views: int = 3, repetitions: int = 5) -> None:
        for name, count, most in (
            ("subjects", subjects, 99),
            ("views", views, len(_VIEWS)),
            ("repetitions", repetitions, 99),
        ):
            if not 1 <= count <= most:
                raise InputError(f"synthetic: {name} must be 1–{most}, found {count}")
        if seed < 0:
            raise InputError(f"synthetic: seed must be 0 or more, found {seed}")
        self.seed = seed
        self.subjects, self.views, self.repetitions = subjects, views, repetitions
        self.provenance = {
            "source": "synthetic",
            "seed": str(seed),
            "subjects": str(subjects),
            "views": str(views),
            "repetitions": str(repetitions),
        }

    def __len__(self) -> int:
        return len(self.classes) * self.subjects * self.views * self.repetitions

    def recordings(self) -> Iterator[Recording]:
        performers = [make_performer(self.seed, subject) for subject in range(1, self.subjects + 1)]
        for label in range(len(self.classes)):
            for subject, performer in enumerate(performers, start=1):
                for repetition in range(self.repetitions):
                    performance = make_performance(self.seed, label, subject, repetition, performer)
                    for view in range(1, self.views + 1):
                        random = np.random.default_rng([_CAMERA, self.seed, label, subject, repetition, view])
                        positions = sense(look(performance, view, random), random)
                        yield Recording(
                            f"a{label + 1:02}_s{subject:02}_e{repetition:02}_v{view:02}",
                            # A tenth of a millimetre hides how processors differ in the last bit.
                            positions.round(4).astype(np.float32)[None],
                            label,
                            subject,
                            view,
                            repetition,
                        )


def make_performer(seed: int, subject: int) -> Performer:
    """Return the subject of this number, the same whatever else is made from the seed."""
    random = np.random.default_rng([_SUBJECT, seed, subject])
    trunk, arms, legs, width = random.normal(1, 0.05, 4).clip(0.88, 1.12)
    return Performer(
        body=Body.of(random.uniform(1.52, 1.90), trunk, arms, legs, width),
        left_handed=bool(random.random() < 0.2),
        tempo=random.lognormal(0, 0.15),
        squat=random.uniform(0, 1),
        swing=random.uniform(0.15, 0.35),
        vigour=random.uniform(0.85, 1.15),
    )


def make_performance(seed: int, label: int, subject: int, repetition: int, performer: Performer) -> np.ndarray:
    """Return (T, V, 3): the true motion of one performance in metres, y = 0 the ground, before any camera."""
    random = np.random.default_rng([_PERFORMANCE, seed, label, subject, repetition])
    script = tuple(ACTIONS.values())[label](performer, random)
    frames = round(script.frames / performer.tempo * random.lognormal(0, 0.25))
    frames = min(max(frames, _FEWEST_FRAMES), _MOST_FRAMES)
    positions = perform(script, frames, performer.body, random)
    return mirror(positions) if performer.left_handed else positions


def look(positions: np.ndarray, view: int, random: np.random.Generator) -> np.ndarray:
    """Return (T, V, 3) in the coordinates of the camera of this view: origin at its lens, z away from it."""
    about_y = np.deg2rad(_VIEWS[view - 1] + random.normal(0, 8))
    about_x = np.deg2rad(random.normal(0, 3))
    middle = positions[:, 0].mean(axis=0) * np.array([1, 0, 1])
    stand = np.array([random.normal(0, 0.3), -random.normal(0.75, 0.08), random.uniform(2.4, 3.6)])
    return (positions - middle) @ (turn_about_x(about_x) @ turn_about_y(about_y)).T + stand


def sense(positions: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return (T, V, 3): what a depth sensor makes of true positions.

    Errors drift over time; hands and feet are less steady than the trunk, and what is behind the trunk is less steady
    than what is before it; now and then a limb is lost for a while and found beside where it is.
    """
    frames, joints, _ = positions.shape
    behind = positions[..., 2] - positions[:, 2, None, 2]
    size = 0.017 * _UNSTEADINESS * (1 + 2 * np.clip(behind / 0.2, 0, 1))
    white = random.normal(size=(frames, joints * 3))
    drift = (_drifting(frames) @ white).reshape(positions.shape)
    sensed = positions + size[..., None] * drift
    for limb in _LIMBS:
        if random.random() < 0.25:
            middle, width = random.uniform(0, frames), random.uniform(2, 8)
            lost = np.exp(-(((np.arange(frames) - middle) / width) ** 4))
            beside = random.normal(0, 0.12, 3)
            for joint, share in zip(limb, (0.5, 1, 1), strict=True):
                sensed[:, joint] += share * lost[:, None] * beside
    return sensed


@cache
def _drifting(frames: int, memory: float = 0.8) -> np.ndarray:
    """Return (T, T): the matrix that makes white noise an autoregressive process x_t = ρ x_(t−1) + √(1 − ρ²) ε_t."""
    lag = np.subtract.outer(np.arange(frames), np.arange(frames))
    weights = np.where(lag >= 0, memory ** np.maximum(lag, 0), 0) * np.sqrt(1 - memory**2)
    weights[:, 0] = memory ** np.arange(frames)
    return weights
