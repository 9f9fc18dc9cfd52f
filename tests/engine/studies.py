"""Small studies for tests of the engine: four tasks of two classes on a few clips, few epochs."""

from functools import cache
from pathlib import Path
from typing import Any

from skeleton_cgl import Study
from skeleton_cgl.engine.record import same_content
from skeleton_cgl.engine.run import run_study
from skeleton_cgl.engine.store import Store
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.skeletons import write_archive
from skeleton_cgl.skeletons.sources.synthetic import SyntheticSource
from tests.core.cases import records_of

METHODS = ["bare", "joint", "replay", "ewc", "mas", "twp", "lwf", "gem"]


@cache
def small_archive(folder: Path) -> Path:
    """Write a small archive with ten classes; return its path."""
    path = folder / "small.h5"
    write_archive(SyntheticSource(subjects=5, views=1, repetitions=3), path)
    return path


def small_study(folder: Path, **changes: object) -> Study:
    fields = {
        "name": "small",
        "scenario": {"data": str(small_archive(folder)), "classes_per_task": 2, "preparation": {"frames": 8}},
        "backbone": {"name": "gcn", "width": 8},
        "methods": ["bare", "replay"],
        "orders": {"given": [[[0, 1], [2, 3], [4, 5]], [[0, 1], [4, 5], [2, 3]], [[2, 3], [0, 1], [4, 5]]]},
        "training": {"epochs": 2, "learning_rate": 0.01, "device": "cpu"},
    }
    return Study(**{**fields, **changes})


def run(study: Study, path: Path, **how: Any) -> Path:
    """Run a study into a store; return its path. Nothing in it may fail."""
    _, summary = run_study(study, path, progress=False, **how)
    assert not summary.failures
    return path


def same_records(one: Path, other: Path) -> bool:
    mine, others = records_of(one), records_of(other)
    return mine.keys() == others.keys() and all(same_content(mine[key], others[key]) for key in mine)


def contents(store: Path) -> dict[str, tuple]:
    """Return all records of a store, as values that can be compared."""
    with Store(store, must_exist=True) as opened:
        return {record.key: tuple(map(_content, record.scores)) for record in opened.records()}


def _content(score: Measure) -> tuple:
    counts = None if score.counts is None else score.counts.tolist()
    return score.part, score.metric, score.values.tobytes(), score.asked.tolist(), counts
