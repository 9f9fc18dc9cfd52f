"""AP, AF and INT of node benchmarks as published, and whether a study of ours is alike enough to compare.

Alike is a study of the same kind, setting and leading score, on the same classes in as many tasks of the same sizes,
and, where the published split is part of the data, with as many test queries of every class. Hyper-parameters are not
compared: the published ones were chosen by validation and are not stated.
"""

import io
from dataclasses import dataclass
from functools import cache

import pandas as pd

from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.analysis.words import scenario_fields
from skeleton_cgl.engine.rows import LearnerRow, StudyRow

MEASURES = ("AP", "AF", "INT")
BACKBONE = "gcn"
_BEGIN = "BeGin (2022–24), ten seeds with a random grouping and order each"
_AGALE = "AGALE (TMLR 2024), three random orders; how its deviations are counted is not said, and they are left out"
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


def _of_begin(setting: str, queries: tuple[int, ...]) -> Benchmark:
    return Benchmark(_BEGIN, "node", setting, "micro_accuracy", len(queries), (2, 2, 2), 10, queries)


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
}

# Percent; AF is by the diagonal, positive for what was forgotten (AGALE prints its negative); – for what is not stated.
_PERCENT = """
dataset        method     AP    AP_std AF    AF_std INT   INT_std
cora-task      bare       90.3  1.8    2.6   2.3    0.1   1.3
cora-task      lwf        91.5  1.2    1.2   1.9    -0.1  0.5
cora-task      ewc        91.2  1.3    2.0   1.4    -0.5  1.1
cora-task      mas        91.8  1.7    0.5   0.7    -0.1  1.0
cora-task      gem        88.2  3.1    6.0   5.7    -0.1  0.7
cora-task      twp        91.0  1.5    2.5   1.8    -0.6  0.9
cora-task      er-gnn     89.0  3.1    5.2   5.9    -0.3  1.1
cora-task      cgnn       91.1  1.5    2.3   1.6    -0.5  0.9
cora-task      packnet    93.3  1.8    0     –      -1.2  0.9
cora-task      piggyback  93.8  1.6    0     –      -1.7  1.2
cora-task      hat        92.4  1.5    -2.1  1.9    1.5   1.6
cora-task      joint      92.4  1.5    –     –      –     –
cora-class     bare       54.1  3.6    56.5  3.9    -6.4  1.8
cora-class     lwf        55.0  2.1    53.4  2.5    -5.2  2.0
cora-class     ewc        56.7  5.2    50.8  8.7    -5.2  2.3
cora-class     mas        74.1  1.4    22.7  3.9    -3.8  2.8
cora-class     gem        61.8  2.9    44.4  4.6    -6.0  1.8
cora-class     twp        56.4  3.1    52.4  4.1    -5.9  2.1
cora-class     er-gnn     60.9  2.6    44.7  4.5    -5.3  1.8
cora-class     cgnn       72.3  1.7    25.1  3.4    -3.7  1.1
cora-class     joint      80.0  2.0    –     –      –     –
citeseer-task  bare       83.6  2.9    4.2   3.0    -2.3  5.2
citeseer-task  lwf        85.9  1.8    1.1   1.7    -2.6  5.2
citeseer-task  ewc        83.7  2.9    4.1   3.3    -2.4  5.4
citeseer-task  mas        84.3  2.3    2.1   1.3    -1.6  5.0
citeseer-task  gem        83.4  2.9    4.1   2.6    -2.1  5.1
citeseer-task  twp        83.6  2.6    3.8   2.4    -2.2  5.3
citeseer-task  er-gnn     82.9  2.1    5.0   2.4    -2.2  5.3
citeseer-task  cgnn       82.9  3.2    5.0   3.4    -2.2  5.2
citeseer-task  packnet    84.5  1.7    0     –      2.2   2.3
citeseer-task  piggyback  84.6  2.4    0     –      2.0   2.0
citeseer-task  hat        83.3  4.3    -1.3  1.8    4.2   3.9
citeseer-task  joint      85.1  2.7    –     –      –     –
citeseer-class bare       44.7  4.0    55.0  6.6    -12.9 5.3
citeseer-class lwf        46.4  3.9    53.9  6.0    -13.9 5.2
citeseer-class ewc        45.2  3.7    54.2  6.5    -12.9 5.2
citeseer-class mas        56.0  2.4    28.3  5.0    -6.4  5.0
citeseer-class gem        48.2  3.3    50.7  5.3    -13.5 5.3
citeseer-class twp        45.0  3.7    54.5  6.3    -12.8 5.3
citeseer-class er-gnn     45.7  4.3    51.8  5.8    -11.8 5.6
citeseer-class cgnn       53.1  3.5    38.4  5.5    -10.2 5.1
citeseer-class joint      55.6  4.0    –     –      –     –
pcg-task       bare       54.34 –      6.11  –      –     –
pcg-task       lwf        58.12 –      2.84  –      –     –
pcg-task       ewc        56.17 –      3.77  –      –     –
pcg-task       mas        56.26 –      2.64  –      –     –
pcg-task       er-gnn     53.64 –      1.39  –      –     –
pcg-task       joint      22.47 –      –     –      –     –
pcg-class      bare       56.70 –      2.48  –      –     –
pcg-class      lwf        38.13 –      -3.48 –      –     –
pcg-class      ewc        35.12 –      -2.17 –      –     –
pcg-class      mas        33.00 –      -0.98 –      –     –
pcg-class      er-gnn     29.80 –      2.82  –      –     –
pcg-class      joint      22.47 –      –     –      –     –
"""


def published_performance() -> pd.DataFrame:
    """Return what was published in percent: dataset, method, and AP, AF and INT with their deviations."""
    return _table().copy()


@cache
def _table() -> pd.DataFrame:
    return pd.read_csv(io.StringIO(_PERCENT), sep=r"\s+", na_values="–")


def published_value(dataset: str, learner: LearnerRow) -> dict[str, float] | None:
    """Return what was published of a learner's method, as fractions; None where nothing was."""
    table = _table()
    row = table[(table["dataset"] == dataset) & (table["method"] == learner.method.name)]
    if row.empty or learner.backbone.name != BACKBONE:
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
