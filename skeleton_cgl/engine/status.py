"""What a store has of every study, as values and as text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from skeleton_cgl.durations import duration
from skeleton_cgl.engine.cells import learner_cells
from skeleton_cgl.engine.record import Facts, Made
from skeleton_cgl.engine.rows import LearnerRow, RunRow, StudyRow
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.verification import Verification
from skeleton_cgl.errors import InputError

_NOT_NOTED = "not noted"
"""Of records of older releases."""
_PARTS = ("method", "backbone", "point")
"""What names a learner."""
_SELF_EVIDENT = ("processor", "instructions", "device")
"""Facts of a fingerprint that need no name beside them."""


@dataclass(frozen=True)
class OrdersStatus:
    """How many of the orders planned for a learner in a repeat are finished; noise runs are not counted."""

    learner: str
    repeat: int
    finished: int
    planned: int


@dataclass(frozen=True)
class StudyStatus:
    """How far a study is: its stages and runs, and how many of them are done.

    seconds_left: of one worker; None where no stage is done yet that tells. failures: keys of stages and their reasons.
    notes: on the data. machines: the repeats, each with what its records were computed on, in words. sources: the
    digests of the library's source that the records were made by.
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
    notes: tuple[str, ...] = ()
    orders: tuple[OrdersStatus, ...] = ()
    machines: tuple[tuple[int, tuple[str, ...]], ...] = ()
    sources: tuple[str, ...] = ()


def status_of(path: str | Path) -> list[StudyStatus]:
    """Return how far every study of a store is."""
    with Store(path, must_exist=True) as store:
        done, failed = store.done(), store.failed()
        return [_status(store, study, done, failed) for study in store.studies()]


def verified(path: str | Path) -> Verification:
    """Return what of a store is damaged; of one that cannot even be opened, why not."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such store")
    try:
        with Store(path, must_exist=True) as store:
            return store.verify()
    except InputError as error:
        return Verification((str(error),))


def _status(store: Store, study: StudyRow, done: set[str], failed: dict[str, str]) -> StudyStatus:
    runs = store.runs(study.number)
    learner_of = {key: run.learner for run in runs for key in run.keys}
    left = [learner for key, learner in learner_of.items() if key not in done]
    made = store.made_by_key(key for key in learner_of if key in done)
    seconds: dict[int, list[float]] = {}
    for key, each in made.items():
        seconds.setdefault(learner_of[key], []).append(each.seconds)
    return StudyStatus(
        study=study.name,
        number=study.number,
        created=study.created,
        stages=len(learner_of),
        done=len(learner_of) - len(left),
        runs=len(runs),
        finished_runs=sum(done.issuperset(run.keys) for run in runs),
        seconds_left=_seconds_left(left, {learner: sum(some) / len(some) for learner, some in seconds.items()}),
        failures=tuple((key, failed[key]) for key in learner_of if key in failed),
        notes=study.notes,
        orders=_orders(store.learners(study.number), runs, done),
        machines=_machines(runs, made),
        sources=tuple(dict.fromkeys(dict(each.versions).get("source", _NOT_NOTED) for each in made.values())),
    )


def _orders(learners: Sequence[LearnerRow], runs: Sequence[RunRow], done: set[str]) -> tuple[OrdersStatus, ...]:
    ordinary = [run for run in runs if not run.noise]
    planned = Counter((run.learner, run.repeat) for run in ordinary)
    finished = Counter((run.learner, run.repeat) for run in ordinary if done.issuperset(run.keys))
    named = {learner.number: learner_cells(learner) for learner in learners}
    names = {number: ", ".join(filter(None, (cells[part] for part in _PARTS))) for number, cells in named.items()}
    return tuple(
        OrdersStatus(names[learner], repeat, finished[learner, repeat], number)
        for (learner, repeat), number in planned.items()
    )


def _machines(runs: Sequence[RunRow], made: Mapping[str, Made]) -> tuple[tuple[int, tuple[str, ...]], ...]:
    found: dict[int, dict[str, None]] = {}
    for run in runs:
        words = [described_fingerprint(made[key].fingerprint) for key in run.keys if key in made]
        found.setdefault(run.repeat, {}).update(dict.fromkeys(words))
    return tuple((repeat, tuple(words)) for repeat, words in sorted(found.items()) if words)


@cache
def described_fingerprint(fingerprint: Facts) -> str:
    """Return in words what records were computed on: `AMD EPYC 7B12, AVX2 fma, 1 thread, BLAS mkl, torch 2.13.0`."""
    words = []
    for name, fact in fingerprint:
        if name == "threads":
            words.append(f"{fact} thread{'s' * (fact != '1')}")
        else:
            words.append(fact if name in _SELF_EVIDENT else f"{name} {fact}")
    return ", ".join(words) or _NOT_NOTED


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
        lines += [f"   {line}" for line in _described_orders(study.orders)]
        lines += [f"   {note}" for note in study.notes]
        lines += [f"   repeat {repeat}: {words}" for repeat, machines in study.machines for words in machines]
        if study.sources:
            lines.append(f"   source {', '.join(study.sources)}")
        if study.failures:
            lines.append(f"   {len(study.failures)} failed; `run --retry` tries them again:")
            lines += [f"     {reason}" for reason in sorted({reason for _, reason in study.failures})]
    return "\n".join(lines) if lines else "no study yet"


def _described_orders(orders: Sequence[OrdersStatus]) -> list[str]:
    """Return a line per learner and repeat that is begun and not finished; one for all where all are finished."""
    planned = sorted({each.planned for each in orders})
    if orders and all(each.finished == each.planned for each in orders):
        number = " or ".join(map(str, planned))
        return [f"{number} of {number} planned orders finished, by every learner in every repeat"]
    return [
        f"{each.learner}, repeat {each.repeat}: {each.finished} of {each.planned} planned orders finished"
        for each in orders
        if 0 < each.finished < each.planned
    ]


def describe_verification(path: str | Path, found: Verification) -> str:
    """Return what is damaged, line by line; or what was found intact."""
    rows = ", ".join(f"{number} {table}" for table, number in found.rows)
    stages = f"{found.recorded} of {found.stages} stages recorded, {found.stages - found.recorded} missing"
    if found.damages:
        sound = f"sound: {rows}; {stages}" if found.rows else "nothing of it could be read"
        return "\n".join([f"{path}: damaged", *(f"  {damage}" for damage in found.damages), f"  {sound}"])
    return f"{path}: intact: {rows}; {stages}"


def verification_values(found: Verification) -> dict[str, Any]:
    """Return what reading all of a store came to as plain values for JSON."""
    return {
        "intact": not found.damages,
        "damages": list(found.damages),
        "rows": dict(found.rows),
        "stages": found.stages,
        "recorded": found.recorded,
    }


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
            "notes": list(study.notes),
            "orders": [asdict(each) for each in study.orders],
            "machines": {str(repeat): list(words) for repeat, words in study.machines},
            "sources": list(study.sources),
        }
        for study in studies
    ]
