"""Learning stages: what a worker does. All it needs comes in, all it found goes out; it writes nothing."""

import socket
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version

import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.blame import blamed
from skeleton_cgl.engine.fingerprint import fingerprint, source_digest
from skeleton_cgl.engine.kept import kept_by
from skeleton_cgl.engine.plan import Stage
from skeleton_cgl.engine.record import Facts, Made, Record
from skeleton_cgl.engine.soundness import check_scores
from skeleton_cgl.engine.study import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.process import settle
from skeleton_cgl.scenarios.measures import Measure, answers_of, untrained
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.seeds import seed_of

_PACKAGES = ("skeleton_cgl", "torch", "numpy")


@dataclass(frozen=True)
class Failure:
    """Why a stage failed, in one line, and the whole way to the error."""

    reason: str
    trace: str


@dataclass(frozen=True)
class Outcome:
    """What became of a stage: its record and, if asked for, the state it left; or why it failed.

    notes: what leaves the worth of its record in doubt; told when it was made, and stored nowhere.
    """

    key: str
    record: Record | None = None
    state: bytes | None = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()


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
    learner = branch.stages[0].new_learner(study, scenario)
    start = None if branch.state is None else from_bytes(branch.state)
    outcomes: list[Outcome] = []
    for stage in branch.stages:
        started = time.perf_counter()
        try:
            if start is not None and not outcomes:
                learner.restore(start)
            told = partial(progress, stage) if progress else None
            experience = scenario.experience(stage.prefix)
            learner.learn(experience, stage.seed(study), told)
            # The prefix is the plan's: nothing that a method can write decides what is asked, or how it is scored.
            answers = learner.answer(scenario.queries(stage.prefix), seed_of("answers", stage.seed(study)))
            scores = (*_scores(scenario, answers, stage), *_untrained(study, scenario, stage))
            seconds = time.perf_counter() - started
            state = to_bytes(learner.state()) if stage.key in branch.kept else None
            kept = kept_by(learner.method, experience)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            # A user's method or backbone may raise anything; it costs this branch, and is told.
            trace = "".join(traceback.format_exception(error))
            reason = blamed(error, learner.method, learner.backbone, scenario)
            outcomes.append(Outcome(stage.key, failure=Failure(reason, trace)))
            break
        made = Made(
            seconds=seconds,
            host=socket.gethostname(),
            versions=_versions(),
            seed=stage.seed(study),
            fingerprint=fingerprint(learner.device),
            kept=kept,
        )
        record = Record(stage.key, scores, made, answers_of(scores))
        outcomes.append(Outcome(stage.key, record, state, notes=tuple(learner.notes)))
    return outcomes


def _scores(scenario: Scenario, answers: Tensor, stage: Stage) -> tuple[Measure, ...]:
    """Return the worth of answers; refuse scores that no table could be made of."""
    # On a stream a learner does not know how many outputs there are: those it never met are not among its answers.
    unmet = max(0, len(scenario.outputs) - answers.shape[1])
    scores = scenario.score(functional.pad(answers, (0, unmet), value=-torch.inf), stage.prefix)
    try:
        check_scores(scores, scenario.problem.metrics, len(scenario.units))
    except ValueError as error:
        raise InputError(f"scenario {type(scenario).__name__}: score: {error}") from error
    return scores


def _untrained(study: Study, scenario: Scenario, stage: Stage) -> tuple[Measure, ...]:
    """Return what the learner of a first stage knew of domains before: what forward transfer is counted from.

    A stream has no first task, after which others would be looked at.
    """
    if scenario.unit_kind != "domain" or len(stage.prefix) > 1 or "borders" not in scenario.offers:
        return ()
    learner = stage.new_learner(study, scenario)
    learner.head.meet(scenario.experience(stage.prefix).outputs)
    answers = learner.answer(scenario.queries(stage.prefix), seed_of("answers", stage.seed(study)))
    return tuple(
        replace(score, metric=untrained(score.metric), counts=None, answered=None)
        for score in _scores(scenario, answers, stage)
    )


@cache
def _versions() -> Facts:
    return (*((package, version(package)) for package in _PACKAGES), ("source", source_digest()))
