"""The order disparities of the skeleton study as published, and whether a study of ours is alike enough to compare.

What was published is matched by what a component is, its built-in name and its parameters, never by its label.
"""

import io
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from skeleton_cgl.config import put
from skeleton_cgl.engine.rows import ComponentRow, LearnerRow, StudyRow

SOURCE = (
    "Wei, De Schepper, Mets: Benchmarking sensitivity of continual graph learning for skeleton-based action "
    "recognition (2024)"
)

DATASETS = ("ucla", "ntu")
ORDERS = {"task": 120, "class": 220}
REPEATS = 5
TASKS = (2,) * 5
"""The sizes of the default tasks."""

# Percent, GCN backbone, mean and standard deviation of 5 repeats.
_PERCENT = """
dataset level method  AOPD  AOPD_std  MOPD  MOPD_std
ucla    task  bare    96.74  0.72   100     0
ucla    task  ewc     93.94  0.56   100     0
ucla    task  mas     89.46  1.6     98.7   1.61
ucla    task  twp     85.39  1.93   100     0
ucla    task  lwf     63.21  2.46    75.04  6.46
ucla    task  gem     83.89  1.45   100     0
ucla    task  replay  58.21  7.54    80.25  5.2
ntu     task  bare    92.91  0.38    99.24  0
ntu     task  ewc     85.36  0.88    94.24  1.23
ntu     task  mas     87.88  0.51    95.61  1.3
ntu     task  twp     77.45  1.4     89.24  1.11
ntu     task  lwf     78.36  1.1     93.48  1.13
ntu     task  gem     80.91  0.25    94.09  0.88
ntu     task  replay  39.52  0.94    53.18  2.41
ucla    class bare   100     0      100     0
ucla    class ewc    100     0      100     0
ucla    class mas     99.73  0.33   100     0
ucla    class twp     99.3   0.45   100     0
ucla    class lwf     93.44  1.46   100     0
ucla    class gem     99.59  0.33   100     0
ucla    class replay  82.54  4.56   100     0
ntu     class bare    99.73  0.06   100     0
ntu     class ewc     98.12  0.49   100     0
ntu     class mas     97.61  0.4    100     0
ntu     class twp     95.73  0.74   100     0
ntu     class lwf     94.0   0.61    98.79  0.61
ntu     class gem     95.36  0.49   100     0
ntu     class replay  50.52  1.16    71.82  2.27
"""

_FIRST_CLASS = {"ucla": "pick up with one hand", "ntu": "drink water"}
"""By what a data set is known: the name of its first class, as `prepare` gives it."""
_TRAINING = {"epochs": 100, "learning_rate": 0.001, "batch_size": None, "optimizer": "adam", "weight_decay": 0}
_TRAINING |= {"reset_optimizer": False, "patience": None, "head_steps": "shared", "precision": "float32"}
_TRAINING |= {"plateau": None, "recalibrate": False, "fan_outs": None}
_FULL_BATCH = 10_000
"""The published size of a batch, larger than any task: all samples at once."""
_SCENARIO = {"kind": "skeleton", "setting": "class-il"}
_BACKBONE = {"width": 64, "depth": 2}
_METHODS: dict[str, dict[str, Any]] = {
    "bare": {},
    "ewc": {"strength": 1e6, "importance": "batch"},
    "mas": {"strength": 100, "importance": "squared"},
    "twp": {"lambda_l": 1e4, "lambda_t": 1e4, "beta": 0.01},
    "lwf": {"strength": 1, "temperature": 2},
    "gem": {"margin": 5, "fraction": 0.2},
    "replay": {"fraction": 0.2},
}
"""The parameters published for N-UCLA, which are those that methods have unless given others."""
_ELSEWHERE: dict[str, dict[str, dict[str, Any]]] = {"ntu": {"twp": {"lambda_l": 100}, "lwf": {"strength": 0.1}}}
"""What differs from them on other data sets."""


@dataclass(frozen=True)
class PublishedValue:
    """A row of the published table, as fractions."""

    AOPD: float
    AOPD_std: float
    MOPD: float
    MOPD_std: float


def published_disparity() -> pd.DataFrame:
    """Return the table of SOURCE in percent: dataset, backbone, level, method, AOPD, AOPD_std, MOPD, MOPD_std."""
    return _table().copy()


def published_value(dataset: str, level: str, learner: LearnerRow) -> PublishedValue | None:
    """Return what was published of a learner's backbone and method, None where nothing was."""
    table = _table()
    names = [dataset, learner.backbone.name, level, learner.method.name]
    row = table[(table[["dataset", "backbone", "level", "method"]] == names).all(axis=1)]
    if row.empty:
        return None
    return PublishedValue(**{name: row[name].item() / 100 for name in ("AOPD", "AOPD_std", "MOPD", "MOPD_std")})


@cache
def _table() -> pd.DataFrame:
    table = pd.read_csv(io.StringIO(_PERCENT), sep=r"\s+")
    table.insert(1, "backbone", "gcn")
    return table


def published_note(dataset: str, level: str) -> str:
    """Return where published values come from, and over how many orders and repeats they are."""
    return f"Published: {dataset}, over {ORDERS[level]} orders, {REPEATS} repeats, {SOURCE}."


def differences(study: StudyRow, learner: LearnerRow, dataset: str, level: str, orders: int) -> list[str]:
    """Return what a learner of a study was given or shown otherwise than the published one; nothing if alike.

    That are the recipe, the setting, what the split divides, the tasks, parameters of backbone and method, and the
    number of orders, `orders`.
    """
    spec = json.loads(study.spec)
    for field, value in learner.point:
        if field.split(".")[0] in ("training", "scenario"):
            put(spec, field, value)
    scenario, training = spec.get("scenario", {}), spec.get("training", {})
    found = _other_values("training", {**_TRAINING, **training}, _TRAINING)
    if (training.get("batch_size") or 0) >= _FULL_BATCH:
        found = [line for line in found if not line.startswith("training.batch_size")]
    found += _other_values("scenario", {**_SCENARIO, **scenario}, _SCENARIO)
    # Studies of older releases say nothing of it; their clips were divided class by class, as the published ones.
    by = scenario.get("split", {}).get("by", "class")
    if by != "class":
        found.append(f"scenario.split.by {by}, published class")
    sizes = tuple(len(task) for task in study.default)
    if sizes != TASKS:
        found.append(f"tasks of {_sizes(sizes)} units, published {_sizes(TASKS)}")
    if study.units[0] != _FIRST_CLASS[dataset] or scenario.get("data", "synthetic") == "synthetic":
        found.append(f"other data than {dataset}")
    found += _other_parameters("backbone", learner.backbone, _BACKBONE, _BACKBONE)
    usual = _METHODS[learner.method.name]
    theirs = {**usual, **_ELSEWHERE.get(dataset, {}).get(learner.method.name, {})}
    found += _other_parameters("method", learner.method, usual, theirs)
    if orders != ORDERS[level]:
        found.append(f"{orders} orders, published {ORDERS[level]}")
    return found


def _other_parameters(
    what: str, component: ComponentRow, usual: dict[str, Any], published: dict[str, Any]
) -> list[str]:
    return _other_values(f"{what} {component.name}", {**usual, **dict(component.parameters)}, published)


def _other_values(where: str, ours: dict[str, Any], published: dict[str, Any]) -> list[str]:
    """Return the published values that ours differ from, and parameters of ours that were not published."""
    unknown = [] if where in ("training", "scenario") else [name for name in ours if name not in published]
    lines = [
        f"{where}.{name} {ours[name]}, published {published[name]}"
        for name in published
        if ours[name] != published[name]
    ]
    return [*lines, *(f"{where}.{name} {ours[name]}, not published" for name in unknown)]


def _sizes(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes))
