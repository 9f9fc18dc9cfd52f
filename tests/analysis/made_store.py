"""Stores made up for the tests: a study and its records as if learned, without learning."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.engine.record import Made, Record
from skeleton_cgl.engine.rows import RunRow, StudyRow
from skeleton_cgl.engine.store import Store
from skeleton_cgl.scenarios.lessons import describe
from skeleton_cgl.scenarios.measures import SIZE, Measure

VERSIONS = (("skeleton_cgl", "0.1.0"), ("torch", "2.13.0"))


def made_store(
    path: Path, scores: Scores, name: str = "made", made: Callable[[str, Made], Made] | None = None, **fields: Any
) -> Path:
    """Write a store of one study with these scores, 1.5 seconds a stage on two machines, and a run never finished.

    `fields` are those of its study file. What is missing in the scores is planned. made: changes how a record came
    about, given its key, which is the place of its run and the step, 16 digits each.
    """
    repeats = len({run.repeat for run in scores.runs})
    default = tuple(sorted(next((run.order for run in scores.runs if run.kind == "task"), scores.runs[0].order)))
    spec = {"name": name, "scenario": {"data": "made.h5"}, "repeats": repeats, "seed": 3, "noise_floor": 0, **fields}
    study = StudyRow(
        number=0,
        name=name,
        spec=json.dumps(spec),
        digests=tuple(f"digest of repeat {repeat}" for repeat in range(repeats)),
        units=scores.units,
        default=default,
        created="2026-01-02T03:04:05+00:00",
    )
    runs = [RunRow(scores.learners[0].number, "task", 99, 0, default, ("absent",) * len(default))]
    records = []
    for place, run in enumerate(scores.runs):
        keys = tuple(f"{place:016}{step:016}" for step in range(run.steps))
        runs.append(RunRow(run.learner, run.kind, run.repeat, run.noise, run.order, keys, run.floor))
        for step, key in enumerate(keys):
            parts = {"test": scores.test[place, step], "validation": scores.validation[place, step]}
            measures = tuple(_measure(part, scores.metric, values) for part, values in parts.items())
            measures += () if scores.trained is None else (_size(scores.trained[place]),)
            number = len(records)
            usual = Made(
                1.5, f"machine-{number % 2}", VERSIONS, number, created=f"2026-01-02T04:00:{number % 60:02}+00:00"
            )
            own = usual if made is None else made(key, usual)
            records.append((describe(run.order[: step + 1]), Record(key, measures, own)))
    for run in scores.missing:
        runs.append(RunRow(run.learner, run.kind, run.repeat, 0, run.order, ("absent",) * run.steps))
    with Store(path) as store:
        store.add_study(replace(study, metrics=(scores.metric,)), scores.learners, runs)
        store.add(records)
    return path


def made_results(folder: Path, scores: Scores, name: str = "made", **fields: Any) -> Results:
    """Return the results of a store with these scores."""
    return Results(made_store(folder / f"{name}.db", scores, name, **fields))


def _size(trained: np.ndarray) -> Measure:
    return Measure("training", SIZE, trained / trained.sum(), trained)


def _measure(part: str, metric: str, values: np.ndarray) -> Measure:
    return Measure(part, metric, values, np.where(np.isnan(values), 0, 100).astype(np.int64))
