"""Learning stages: what a worker does. All it needs comes in, all it found goes out; it writes nothing."""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version

from skeleton_cgl.engine.record import Record
from skeleton_cgl.engine.study import Stage, Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import LearningFailed
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.process import settle
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.seeds import seed_of

_PACKAGES = ("skeleton_cgl", "torch", "numpy")


@dataclass(frozen=True)
class Outcome:
    """A stage's record and, if asked for, the state it left; or why it failed."""

    key: str
    record: Record | None = None
    state: bytes | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Branch:
    """Stages that follow one another, and the state their first one starts from; None where it starts anew.

    kept: the stages whose own states are asked for.
    """

    stages: tuple[Stage, ...]
    state: bytes | None
    kept: frozenset[str] = frozenset()


EpochProgress = Callable[[Stage, int, float], None]
"""Told of every epoch of a stage and its loss."""


def learn_branch(
    study: Study, scenario: Scenario, branch: Branch, progress: EpochProgress | None = None
) -> list[Outcome]:
    """Learn the stages of a branch one after the other; a failed stage ends it."""
    settle()
    learner = study.make_learner(scenario, branch.stages[0])
    if branch.state is not None:
        learner.restore(from_bytes(branch.state))
    queries = scenario.queries()
    outcomes = []
    for stage in branch.stages:
        started = time.perf_counter()
        seed = seed_of("stage", study.learner_seed(stage), *stage.prefix)
        try:
            told = partial(progress, stage) if progress else None
            learner.learn(scenario.experience(stage.prefix[-1]), seed, told)
            score = scenario.score(learner.answer(queries, len(scenario.units)), learner.tasks)
        except (LearningFailed, MemoryError, RuntimeError, InputError) as error:
            # Torch reports running out of memory as a RuntimeError.
            outcomes.append(Outcome(stage.key, failure=f"{type(error).__name__}: {error}"))
            break
        record = Record(
            key=stage.key,
            test=score.test,
            validation=score.validation,
            seconds=time.perf_counter() - started,
            host=socket.gethostname(),
            versions=_versions(),
            seed=seed,
        )
        state = to_bytes(learner.state()) if stage.key in branch.kept else None
        outcomes.append(Outcome(stage.key, record, state))
    return outcomes


@cache
def _versions() -> dict[str, str]:
    return {package: version(package) for package in _PACKAGES}
