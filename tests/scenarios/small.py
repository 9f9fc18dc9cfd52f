"""A small data set for tests of scenarios and learners: five joints, a few frames, unequal classes, random motions."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.scenario import Experience, Scenario
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.skeletons import JointLayout, Preparation, Recording, write_archive
from tests.skeletons.sources import ListSource

LAYOUT = JointLayout(
    name="small",
    joints=("trunk", "neck", "head", "left hand", "right hand"),
    root="trunk",
    bones=(("neck", "trunk"), ("head", "neck"), ("left hand", "neck"), ("right hand", "neck")),
)
PREPARATION = Preparation(frames=4, centre=0, scale="none", fit="resample")
NAMES = ("wave", "nod", "bow", "clap", "point", "shrug")
SUBJECTS, VIEWS = 5, 3
SETTINGS = ("class-il", "task-il")


def small_source(names: Sequence[str] = NAMES, actors: int = 1, fewest: int = 15, seed: int = 0) -> ListSource:
    """Return a source in which class c of NAMES has `fewest` + c recordings around a motion of its own.

    `names` says which number each class has: the recordings are the same, in the same places, whatever their number.
    """
    recordings = []
    for kind, name in enumerate(NAMES):
        if name not in names:
            continue
        random = np.random.default_rng([seed, kind])
        motion = random.normal(size=(1, 5, 3))
        for repetition in range(fewest + kind):
            positions = motion + random.normal(scale=0.8, size=(actors, 4, 5, 3))
            recordings.append(
                Recording(
                    f"{name}{repetition}",
                    positions.astype(np.float32),
                    list(names).index(name),
                    subject=1 + repetition % SUBJECTS,
                    view=1 + (repetition // SUBJECTS) % VIEWS,
                    repetition=repetition,
                )
            )
    return ListSource(recordings, tuple(names), LAYOUT, PREPARATION)


@cache
def scenario_of(archive: Path, setting: str = "class-il") -> SkeletonScenario:
    """Return a scenario with all else by default; made once, since learning leaves it alone."""
    return SkeletonScenario(archive, ClassTasks(setting=setting))


def lesson(scenario: Scenario, *tasks: Sequence[int]) -> Experience:
    """Return what a learner may see of the last of these tasks, taught after the others."""
    return scenario.experience(scenario.lessons(tuple(tuple(task) for task in tasks)))


def write_small(path: Path, **choices: Any) -> Path:
    write_archive(small_source(**choices), path)
    return path
