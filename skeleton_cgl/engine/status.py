"""What a store has of every study, as values and as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skeleton_cgl.durations import duration
from skeleton_cgl.engine.rows import StudyRow
from skeleton_cgl.engine.store import Store


@dataclass(frozen=True)
class StudyStatus:
    """How far a study is: its stages and runs, and how many of them are done.

    seconds_left: of one worker; None where no stage is done yet that tells. failures: keys of stages and their reasons.
    """

    study: str
    number: int
    created: str
    stages: int
    done: int
    runs: int
    finished_runs: int
    seconds_left: float | None
    failures: tuple[tuple[str, str], ...]


def status_of(path: str | Path) -> list[StudyStatus]:
    """Return how far every study of a store is."""
    with Store(path, must_exist=True) as store:
        done, failed = store.done(), store.failed()
        return [_status(store, study, done, failed) for study in store.studies()]


def _status(store: Store, study: StudyRow, done: set[str], failed: dict[str, str]) -> StudyStatus:
    runs = store.runs(study.number)
    learner_of = {key: run.learner for run in runs for key in run.keys}
    left = [learner for key, learner in learner_of.items() if key not in done]
    return StudyStatus(
        study=study.name,
        number=study.number,
        created=study.created,
        stages=len(learner_of),
        done=len(learner_of) - len(left),
        runs=len(runs),
        finished_runs=sum(done.issuperset(run.keys) for run in runs),
        seconds_left=_seconds_left(left, store.seconds(study.number)),
        failures=tuple((key, failed[key]) for key in learner_of if key in failed),
    )


def _seconds_left(left: list[int], seconds: dict[int, float]) -> float | None:
    """Return the seconds of stages left, given by their learners; those not timed yet count as the mean of others."""
    known = [seconds[learner] for learner in left if learner in seconds]
    if not left:
        return 0
    return round(sum(known) * len(left) / len(known), 1) if known else None


def describe_status(studies: Sequence[StudyStatus]) -> str:
    """Return a status as text, a few lines per study."""
    lines = []
    for study in studies:
        left = study.stages - study.done
        seconds = study.seconds_left
        time = "" if not left else ", time unknown" if seconds is None else f", about {duration(seconds)} of one worker"
        lines.append(f"{study.number}  {study.study}  ({study.created})")
        lines.append(f"   {study.done} of {study.stages} stages done, {left} left{time}")
        lines.append(f"   {study.finished_runs} of {study.runs} runs finished")
        if study.failures:
            lines.append(f"   {len(study.failures)} failed; `run --retry` tries them again:")
            lines += [f"     {reason}" for reason in sorted({reason for _, reason in study.failures})]
    return "\n".join(lines) if lines else "no study yet"


def status_values(studies: Sequence[StudyStatus]) -> list[dict[str, Any]]:
    """Return a status as plain values for JSON."""
    return [
        {
            "study": study.study,
            "id": study.number,
            "created": study.created,
            "stages": study.stages,
            "done": study.done,
            "runs": study.runs,
            "finished_runs": study.finished_runs,
            "seconds_left": study.seconds_left,
            "failures": dict(study.failures),
        }
        for study in studies
    ]
