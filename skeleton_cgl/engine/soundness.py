"""What can be seen of studies and records whether they can be true. Each function refuses with a ValueError that says
what does not fit; who calls it says where."""

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from skeleton_cgl.engine.draws import FLOORS
from skeleton_cgl.engine.record import Kept, Record
from skeleton_cgl.engine.rows import PlannedStudy, RunRow, StudyRow
from skeleton_cgl.scenarios.lessons import Order, Task, describe
from skeleton_cgl.scenarios.measures import QUERIED, Measure

_KEY = re.compile(r"[0-9a-f]{32}")
_KINDS = ("task", "class", "domain")
_OF_ONE_CLASS = ("accuracy", "micro_accuracy", "roc_auc")
"""The metrics of one class per query; the leading one has the counts."""
_NEW_SPLIT = ("splits", "both")
"""The floors whose runs have a split of their own."""


def check_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise ValueError(f"expected a key of 32 digits 0–f, found {key[:40]!r}")


def check_record(record: Record) -> None:
    """Refuse numbers that no answers give, and answers that do not give the counts beside them."""
    for score in record.scores:
        _check_score(score)
    made = record.made
    if not 0 <= made.seconds < np.inf:
        raise ValueError(f"expected seconds from 0 on, found {made.seconds}")
    if made.kept is not None:
        _check_kept(made.kept)
    check_answers(record)


def _check_kept(kept: Kept) -> None:
    for name, number in asdict(kept).items():
        if number is not None and number < 0:
            raise ValueError(f"expected a number of {name} kept from 0 on, found {number}")


def check_scores(scores: Iterable[Measure], metrics: Iterable[str], units: int) -> None:
    """Refuse scores that are not a number from 0 to 1 per unit for every metric, on test and on validation."""
    sizes = {}
    for score in scores:
        sizes[score.part, score.metric] = len(score.values)
        _check_score(score)
    for part, metric in itertools.product(QUERIED, metrics):
        if sizes.get((part, metric)) != units:
            found = sizes.get((part, metric), "none")
            raise ValueError(f"{part} {metric}: expected values of {units} units, found {found}")


def _check_score(score: Measure) -> None:
    name = f"{score.part} {score.metric}"
    counts = score.asked if score.counts is None else score.counts
    if min(score.asked.min(initial=0), counts.min(initial=0)) < 0:
        raise ValueError(f"{name}: counts are numbers from 0 on, found {min(score.asked.min(), counts.min())}")
    known = score.values[~np.isnan(score.values)]
    if ((known < 0) | (known > 1)).any():
        raise ValueError(f"{name}: values are numbers from 0 to 1, found {known.min()} to {known.max()}")
    if not np.isnan(score.values[score.asked == 0]).all():
        raise ValueError(f"{name}: there is a value where nothing was asked")


def check_answers(record: Record) -> None:
    """Refuse answers of one class per query that do not give the counts: as often each class, on every part."""
    counted = [score for score in record.scores if score.metric in _OF_ONE_CLASS and score.counts is not None]
    counts = {score.part: score.counts for score in counted}
    answers = record.answers
    if answers is None or answers.dtype.kind != "u" or answers.ndim != 1:
        return
    start = 0
    for part in QUERIED:
        expected = counts.get(part)
        if expected is None:
            return
        own = answers[start : start + int(expected.sum())]
        start += int(expected.sum())
        found = np.bincount(own, minlength=len(expected))
        if not np.array_equal(found, expected.sum(axis=0)):
            raise ValueError(f"{part}: the answers are not those that were counted")
    if start != len(answers):
        raise ValueError(f"{len(answers)} answers, but {start} queries were counted")


def check_study(planned: PlannedStudy) -> None:
    """Refuse runs that no plan has: of no learner, of units that are not there, of keys that stand for two stages."""
    numbers = [learner.number for learner in planned.learners]
    if len(set(numbers)) != len(numbers):
        raise ValueError("a learner is there twice")
    units = len(planned.study.units)
    stages: dict[str, tuple[Any, ...]] = {}
    runs: set[tuple[Any, ...]] = set()
    _check_order(planned.study.default, units)
    for run in planned.runs:
        name = f"learner {run.learner}, repeat {run.repeat}, noise {run.noise}, order {describe(run.order)}"
        if run.learner not in numbers:
            raise ValueError(f"nothing is said of learner {run.learner}")
        if run.kind not in _KINDS or run.repeat < 0 or run.noise < 0:
            raise ValueError(f"{name}: no run is of kind {run.kind!r} with these numbers")
        if (run.floor in FLOORS) != (run.noise > 0) or (not run.noise and run.floor):
            raise ValueError(f"{name}: no run of a floor {run.floor!r}")
        _check_order(run.order, units)
        identity = (run.learner, run.kind, run.repeat, run.noise, run.floor, run.order)
        if identity in runs:
            raise ValueError(f"{name}: the run is there twice")
        runs.add(identity)
        for step, key in enumerate(run.keys, start=1):
            # Where lessons are not the tasks of the order, which of them begin alike is not to be seen.
            prefix = run.order[:step] if planned.study.lessons_are_tasks(run) else ()
            stage = (run.repeat, run.noise, run.floor, step, prefix)
            if stages.setdefault(key, stage) != stage:
                raise ValueError(f"{name}, step {step}: key {key} is that of another stage")


def _check_order(order: Order, units: int) -> None:
    found = [unit for task in order for unit in task]
    if not found or min(found) < 0 or max(found) >= units:
        raise ValueError(f"order {describe(order)}: units are 0–{units - 1}")


def check_totals(planned: PlannedStudy, records: Mapping[str, Record]) -> None:
    """Refuse records of a study that were not asked the same: as much of every unit, as often as there are queries.

    Runs of one repeat at one point of a sweep share their data; runs of a floor with splits of its own have their own.
    Of what a period has not reached, nothing is asked. Where no classes are counted, as of many labels, every task may
    divide its data by itself, so that only stages that learned the same tasks are asked the same.
    """
    points = {learner.number: repr(learner.point) for learner in planned.learners}
    expected: dict[tuple[Any, ...], tuple[str, list[Any]]] = {}
    stages = dict.fromkeys(
        (_data_of(run, points[run.learner]), _learned(planned.study, run, step), key)
        for run in planned.runs
        for step, key in enumerate(run.keys, start=1)
    )
    for data, learned, key in stages:
        if key not in records:
            continue
        found = {(score.part, score.metric): _asked(score) for score in records[key].scores}
        _check_metrics(planned, key, {name: len(asked[0]) for name, asked in found.items()})
        for name, asked in found.items():
            reached = tuple(number > 0 for number in asked[0])
            apart = None if asked[1] is not None else learned
            first, wanted = expected.setdefault((data, name, reached, apart), (key, asked))
            if asked != wanted:
                raise ValueError(f"records {first} and {key} of one repeat: {' '.join(name)}: not asked the same")


def _data_of(run: RunRow, point: str) -> tuple[Any, ...]:
    """Return what tells the data of runs apart."""
    return (point, run.repeat, *((run.floor, run.noise) if run.floor in _NEW_SPLIT else ()))


def _learned(study: StudyRow, run: RunRow, step: int) -> frozenset[Task]:
    """Return the tasks that a run has learned after a step; all of its order where lessons are not tasks."""
    return frozenset(run.order[:step] if study.lessons_are_tasks(run) else run.order)


def _asked(score: Measure) -> list[Any]:
    return [score.asked.tolist(), None if score.counts is None else score.counts.sum(axis=1).tolist()]


def _check_metrics(planned: PlannedStudy, key: str, sizes: Mapping[tuple[str, str], int]) -> None:
    """Refuse a record without a value per unit of every metric of its study."""
    units = len(planned.study.units)
    for part in QUERIED:
        for metric in planned.study.metrics:
            if sizes.get((part, metric)) != units:
                raise ValueError(f"record {key}: expected {part} {metric} of {units} units")
