"""Streams seen from their records: how their tasks mixed over time, and what was known along the way (DRIFT).

Letters: K latent tasks of an order, T batches, S examinations. What decides the mixture is in the study file, at the
point of its sweep, and in the numbers of training samples that records of streams tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skeleton_cgl.analysis.names import LearnerName, point_text
from skeleton_cgl.analysis.performance import stream_accuracies
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.analysis.words import scenario_fields
from skeleton_cgl.engine.rows import LearnerRow, StudyRow, Values
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order
from skeleton_cgl.scenarios.transitions import (
    USUAL_BATCH,
    USUAL_TRANSITION,
    Transition,
    examined_after,
    overlap_index,
    transition_of,
)

NO_STREAM = "the study is not one of a stream (scenario.kind: stream)"
_TRANSITION = "scenario.transition"


def is_known_stream(results: Results) -> bool:
    """Return whether a study is of a stream whose mixture can be told."""
    return results.study.is_stream and results.scores.trained is not None


def check_stream(results: Results) -> None:
    """Refuse a study that is not of a stream, or of one whose records do not tell how many samples it has."""
    if not results.study.is_stream:
        raise InputError(NO_STREAM)
    if results.scores.trained is None:
        raise InputError("the records of the stream do not tell how many training samples there are")


def mixture(scores: Scores, study: StudyRow, place: int) -> np.ndarray:
    """Return (T, K): the share of every task of a run's order that is expected in every batch of its stream."""
    assert scores.trained is not None
    run = scores.runs[place]
    fields = scenario_fields(study, _point(scores, run.learner))
    transition = transition_of(fields.get("transition", USUAL_TRANSITION))
    lengths = tuple(int(scores.trained[place, list(task)].sum()) for task in run.order)
    return _mixture(transition, run.order, lengths, fields.get("batch", USUAL_BATCH))


@lru_cache(maxsize=1024)
def _mixture(transition: Transition, order: Order, lengths: tuple[int, ...], size: int) -> np.ndarray:
    # Learners share their streams.
    return transition.mixture(order, lengths, size)


def overlaps(scores: Scores, study: StudyRow | None) -> np.ndarray:
    """Return (N,): the overlap index O of the stream of every run; NaN where it is none, or is not known."""
    if study is None or not study.is_stream or scores.trained is None:
        return np.full(len(scores.runs), np.nan)
    return np.array([overlap_index(mixture(scores, study, place)) for place in range(len(scores.runs))])


def examined_at(scores: Scores, study: StudyRow, place: int) -> np.ndarray:
    """Return (S,): after how many batches a run was examined."""
    run = scores.runs[place]
    every = scenario_fields(study, _point(scores, run.learner)).get("every")
    return np.array(examined_after(len(mixture(scores, study, place)), run.steps, every))


def _point(scores: Scores, learner: int) -> Values:
    return next(each.point for each in scores.learners if each.number == learner)


@dataclass(frozen=True, eq=False)
class Course:
    """What a learner knew along a stream of one order: accuracy (S,), the mean over tasks, mean over repeats.

    spread (S,): its deviation over repeats, NaN of one.
    """

    name: LearnerName
    accuracy: np.ndarray
    spread: np.ndarray


def courses(scores: Scores, names: Sequence[LearnerName], order: Order, steps: int) -> tuple[Course, ...]:
    """Return the courses of learners over one order, of its ordinary runs that were examined so often."""
    chosen = scores.where(lambda run: (run.noise, run.order, run.steps) == (0, order, steps))
    along = np.full((len(chosen.runs), steps), np.nan)
    for alike, by_time in stream_accuracies(chosen):
        along[alike] = by_time.mean(axis=-1)
    found = []
    for name in names:
        own = along[chosen.learner == name.number]
        if len(own):
            spread = own.std(axis=0, ddof=1) if len(own) > 1 else np.full(steps, np.nan)
            found.append(Course(name, own.mean(axis=0), spread))
    return tuple(found)


def sweeps_transition(learners: Sequence[LearnerRow]) -> bool:
    """Return whether learners differ in how their tasks run into one another."""
    return len({repr(_parted(learner.point)[0]) for learner in learners}) > 1


def check_sweep(results: Results) -> None:
    """Refuse a study that is not of streams, or that sweeps nothing of how their tasks run into one another."""
    check_stream(results)
    if not sweeps_transition(results.scores.learners):
        raise InputError(
            "the study sweeps nothing of how tasks run into one another, as scenario.transition.sigma: [5, 20] would"
        )


def is_swept_stream(results: Results) -> bool:
    """Return whether a study is of streams whose mixture can be told and differs."""
    return is_known_stream(results) and sweeps_transition(results.scores.learners)


def of_settings(names: Sequence[LearnerName], only: str) -> tuple[LearnerName, ...]:
    """Return the learners whose setting has a text in it, such as "gaussian"; refuse if there is none."""
    found = tuple(name for name in names if only in name.setting)
    if not found:
        known = ", ".join(dict.fromkeys(name.setting for name in names))
        raise InputError(f"only: no setting has {only!r} in it; there are {known}")
    return found


def by_method(
    names: Sequence[LearnerName], learners: Sequence[LearnerRow], only: str = ""
) -> dict[str, list[list[LearnerName]]]:
    """Return learners that differ in nothing but how tasks run into one another together, method by method.

    only: those of a setting with this text in it.

    They stand by what else tells them apart, as text: their backbone, if there are several, and what else is swept.
    """
    several = len({name.backbone for name in names}) > 1
    found: dict[str, dict[int, list[LearnerName]]] = {}
    chosen = of_settings(names, only)
    for name, learner in zip(names, learners, strict=True):
        if name not in chosen:
            continue
        others = point_text(_parted(learner.point)[1])
        title = ", ".join([*[name.backbone] * several, *[others] * bool(others)])
        found.setdefault(title, {}).setdefault(name.place, []).append(name)
    return {title: [methods[place] for place in sorted(methods)] for title, methods in found.items()}


def _parted(point: Values) -> tuple[Values, Values]:
    """Return what a point of a sweep says of the transition, and all else."""
    of_transition = tuple(each for each in point if _is_of_transition(each[0]))
    return of_transition, tuple(each for each in point if not _is_of_transition(each[0]))


def _is_of_transition(path: str) -> bool:
    return path == "scenario" or path == _TRANSITION or path.startswith(f"{_TRANSITION}.")
