"""AP, AF and INT of graph benchmarks as published, and whether a study of ours is alike enough to compare.

Alike is a study of the same kind, setting and leading score, on the same classes in as many tasks of the same sizes,
and, where the published split is part of the data, with as many test queries of every class. Hyper-parameters are not
compared: the published ones were chosen by validation and are not stated.
"""

import io
from dataclasses import dataclass
from functools import cache

import pandas as pd

from skeleton_cgl.analysis.benchmark_figures import PERCENT
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.analysis.words import scenario_fields
from skeleton_cgl.engine.rows import LearnerRow, StudyRow

MEASURES = ("AP", "AF", "INT")
_BEGIN = "BeGin (2022–24), ten seeds with a random grouping and order each"
_AGALE = "AGALE (TMLR 2024), three random orders; how its deviations are counted is not said, and they are left out"
_CGLB = "CGLB (NeurIPS 2022), five repeats, split 80 : 10 : 10"
_CORA = (130, 91, 144, 319, 149, 103, 64)
_CITESEER = (77, 182, 181, 231, 169, 160)
"""The test nodes of every class in the published splits."""


@dataclass(frozen=True)
class Benchmark:
    """What published figures are of. tasks: their sizes; queries: the test queries of every unit, () for any."""

    source: str
    kind: str
    setting: str
    score: str
    units: int
    tasks: tuple[int, ...]
    repeats: int
    queries: tuple[int, ...] = ()
    remark: str = ""
    backbone: str = "gcn"


def _of_begin(setting: str, queries: tuple[int, ...]) -> Benchmark:
    return Benchmark(_BEGIN, "node", setting, "micro_accuracy", len(queries), (2, 2, 2), 10, queries)


def _of_more(kind: str, setting: str, units: int, size: int, score: str = "micro_accuracy") -> Benchmark:
    return Benchmark(_BEGIN, kind, setting, score, units, (size,) * (units // size), 10)


def _of_cglb(setting: str, units: int, size: int, score: str) -> Benchmark:
    sizes = (size,) * (units // size)
    return Benchmark(_CGLB, "graph", setting, score, units, sizes, 5, backbone="skeleton-gcn")


def _of_agale(setting: str, score: str, remark: str = "") -> Benchmark:
    return Benchmark(_AGALE, "multilabel", setting, score, 15, (2,) * 6 + (3,), 3, (), remark)


BENCHMARKS = {
    "cora-task": _of_begin("task-il", _CORA),
    "cora-class": _of_begin("class-il", _CORA),
    "citeseer-task": _of_begin("task-il", _CITESEER),
    "citeseer-class": _of_begin("class-il", _CITESEER),
    "pcg-task": _of_agale("task-il", "average_precision"),
    "pcg-class": _of_agale(
        "class-il",
        "average_precision_so_far",
        "Its Bare is scored task by task, which is no class-incremental score.",
    ),
    "bitcoin-task": _of_more("link", "task-il", 6, 2),
    "bitcoin-class": _of_more("link", "class-il", 6, 2),
    "bitcoin-time": _of_more("link", "time-il", 7, 1, "roc_auc"),
    "aromaticity-task": _of_more("graph", "task-il", 30, 3),
    "aromaticity-class": _of_more("graph", "class-il", 30, 3),
    "molhiv": _of_more("graph", "domain-il", 20, 1, "roc_auc"),
    "tox21": _of_cglb("task-il", 12, 1, "roc_auc"),
    "sider": _of_cglb("task-il", 27, 1, "roc_auc"),
    "cglb-aromaticity-task": _of_cglb("task-il", 30, 2, "accuracy"),
    "cglb-aromaticity-class": _of_cglb("class-il", 30, 2, "accuracy"),
}


def published_performance() -> pd.DataFrame:
    """Return what was published in percent: dataset, method, and AP, AF and INT with their deviations."""
    return _table().copy()


@cache
def _table() -> pd.DataFrame:
    return pd.read_csv(io.StringIO(PERCENT), sep=r"\s+", na_values="–")


def published_value(dataset: str, learner: LearnerRow) -> dict[str, float] | None:
    """Return what was published of a learner's method, as fractions; None where nothing was."""
    table = _table()
    row = table[(table["dataset"] == dataset) & (table["method"] == learner.method.name)]
    if row.empty or learner.backbone.name != BENCHMARKS[dataset].backbone:
        return None
    return {name: row[name].item() / 100 for name in table.columns[2:]}


def benchmark_note(dataset: str) -> str:
    """Return where the published values of a data set come from."""
    found = BENCHMARKS[dataset]
    told = f"Published: {dataset}, {found.source}. Its AF is by the diagonal; its hyper-parameters are not compared."
    return f"{told} {found.remark}".strip()


def differences(study: StudyRow, scores: Scores, dataset: str) -> list[str]:
    """Return in what a study is other than what was published; nothing if alike. scores: those of one learner."""
    wanted = BENCHMARKS[dataset]
    fields = scenario_fields(study)
    found = {
        "scenario.kind": (fields.get("kind", "skeleton"), wanted.kind),
        "scenario.setting": (fields.get("setting", "class-il"), wanted.setting),
        "score": (scores.metric, wanted.score),
        "number of classes": (len(study.units), wanted.units),
        "sizes of tasks": (tuple(sorted(len(task) for task in study.default)), wanted.tasks),
    }
    lines = [
        f"{name} {_text(ours)}, published {_text(theirs)}" for name, (ours, theirs) in found.items() if ours != theirs
    ]
    if wanted.queries and len(study.units) == wanted.units and not _asked_the_same(scores, wanted.queries):
        lines.append(f"other test queries than those of {dataset.partition('-')[0]}")
    return lines


def _asked_the_same(scores: Scores, queries: tuple[int, ...]) -> bool:
    """Return whether as much is asked of every unit as published, or nothing of one that is left out."""
    if scores.asked is None:
        return False
    asked = scores.asked[:, 0]
    return bool(((asked == queries) | (asked == 0)).all())


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
