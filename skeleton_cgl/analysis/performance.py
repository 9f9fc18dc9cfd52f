"""What a run achieved, from the confusion counts of its records: accuracies, average accuracy AA, forgetting AF.

A run is one order learned to its end. Symbols follow Wei, De Schepper, Mets (2024): a[k, j] is the accuracy on the j-th
task of an order after learning its first k tasks, B the number of tasks; K is the number of classes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError

Order = tuple[tuple[int, ...], ...]

RUN = ("backbone", "method", "repeat", "noise", "kind", "order")
"""The columns that name a run; `step` and the confusions `test` and `validation` complete a record."""
COLUMNS = (*RUN, "step", "test", "validation")
KINDS = ("task", "class")
QUERIES = ("test", "validation")
DEFINITIONS = ("max", "diagonal")
SIGNS = ("forgetting", "cglb")


def choose(what: str, word: str, known: Sequence[str]) -> str:
    """Return `word` if it is known; refuse it with the nearest known word otherwise."""
    if word not in known:
        raise InputError(f"unknown {what} {word!r}{did_you_mean(str(word), known)}")
    return word


def check_columns(frame: pd.DataFrame, expected: Sequence[str], what: str) -> None:
    """Refuse a frame without rows, or without one of the expected columns."""
    missing = [name for name in expected if name not in frame.columns]
    if missing:
        found = ", ".join(str(name) for name in frame.columns)
        raise InputError(f"{what}: missing columns: {', '.join(missing)}; found: {found}")
    if frame.empty:
        raise InputError(f"{what}: no rows")


def check_records(records: pd.DataFrame) -> None:
    """Refuse records that lack a column or a row, or are of an unknown kind."""
    check_columns(records, COLUMNS, "records")
    for kind in records["kind"].unique():
        choose("kind of order", kind, KINDS)


def class_accuracies(confusion: np.ndarray) -> np.ndarray:
    """Return (..., K) the share of each class's queries answered rightly; NaN where a class has no query.

    `confusion` is (..., K, K), true class by answered class.
    """
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    asked = np.sum(confusion, axis=-1)
    return np.divide(right, asked, out=np.full(right.shape, np.nan), where=asked > 0)


def task_accuracies(by_class: np.ndarray, tasks: Sequence[Sequence[int]]) -> np.ndarray:
    """Return (..., tasks): the mean accuracy of each task's classes (macro-average), from accuracies (..., K).

    A class without queries is left out of its task's mean; a task without queries is NaN.
    """
    return _task_means(by_class, _members([tasks], by_class.shape[-1])[0])


def accuracy_matrix(confusions: np.ndarray, order: Order) -> np.ndarray:
    """Return a (B, B) of a run whose records, in the order of steps, counted `confusions` (B, K, K).

    Entries above the diagonal are of tasks not yet learned: 0 wherever answers are confined to the classes seen.
    """
    confusions = np.asarray(confusions)
    if confusions.ndim != 3 or len(confusions) != len(order):
        raise InputError(f"confusions: expected one (K, K) for each of {len(order)} steps, found {confusions.shape}")
    return task_accuracies(class_accuracies(confusions), order)


def average_accuracy(matrix: np.ndarray) -> np.ndarray:
    """Return (..., B): AA_k = mean over j ≤ k of a[k, j], for k = 1 … B, from a (..., B, B)."""
    return np.tril(matrix).sum(axis=-1) / np.arange(1, matrix.shape[-1] + 1)


def average_forgetting(matrix: np.ndarray, definition: str = "max", sign: str = "forgetting") -> np.ndarray:
    """Return (..., B): AF_k for k = 1 … B, from a (..., B, B); AF_1 is NaN, for there is nothing to forget.

    "max": AF_k = mean over j < k of (max over l < k of a[l, j] − a[k, j]), with l from j on: before a task is learned
    its accuracy is 0, and what stands above the diagonal is not looked at. "diagonal": a[j, j] takes the place of the
    maximum (CGLB, BeGin). Positive means forgotten; the sign "cglb" gives the negative.
    """
    choose("definition of forgetting", definition, DEFINITIONS)
    choose("sign of forgetting", sign, SIGNS)
    learned = np.tril(matrix)
    if definition == "max":
        before = np.maximum.accumulate(learned, axis=-2)[..., :-1, :]
    else:
        before = np.diagonal(learned, axis1=-2, axis2=-1)[..., None, :]
    forgotten = np.tril(before - learned[..., 1:, :])
    forgetting = np.full(learned.shape[:-1], np.nan)
    forgetting[..., 1:] = forgotten.sum(axis=-1) / np.arange(1, learned.shape[-1])
    return forgetting if sign == "forgetting" else -forgetting


def forgetting_bound(
    average_accuracy: np.ndarray | float, k: np.ndarray | int, last: np.ndarray | float = 1.0
) -> np.ndarray:
    """Return the bound of Theorem 1: AF_k ≤ 1 − k/(k−1)·AA_k + 1/(k−1)·a[k, k], with `last` for a[k, k]; NaN for k = 1.

    It holds for both definitions of AF_k. The default a[k, k] = 1 gives the dotted line of the paper's figures.
    """
    k = np.asarray(k, dtype=float)
    earlier = np.where(k > 1, k - 1, np.nan)
    return 1 - k / earlier * average_accuracy + last / earlier


def runs(records: pd.DataFrame, definition: str = "max", sign: str = "forgetting") -> pd.DataFrame:
    """Return one row per run: the columns RUN, then AA, AF, bound and validation_AA after the last step.

    bound is Theorem 1 with the run's own a[B, B]; with the sign "cglb" it is negated like AF, and bounds from below.
    Refused: a run whose records are not one for each of its steps.
    """
    check_records(records)
    by_class = {queries: stacked_class_accuracies(records[queries]) for queries in QUERIES}
    found = _rows_of_runs(records)
    rows_of_runs = list(found.values())
    orders = [run[-1] for run in found]
    results = np.empty((len(found), 4))
    for length in {len(order) for order in orders}:
        alike = [number for number, order in enumerate(orders) if len(order) == length]
        rows = np.array([rows_of_runs[number] for number in alike])
        members = _members([orders[number] for number in alike], by_class["test"].shape[-1])
        matrix, validation = (_task_means(by_class[queries][rows], members) for queries in QUERIES)
        average = average_accuracy(matrix)[:, -1]
        forgetting = average_forgetting(matrix, definition, sign)[:, -1]
        bound = forgetting_bound(average, length, matrix[:, -1, -1]) * (1 if sign == "forgetting" else -1)
        results[alike] = np.stack([average, forgetting, bound, average_accuracy(validation)[:, -1]], axis=1)
    frame = pd.DataFrame(dict(zip(RUN, zip(*found, strict=True), strict=True)))
    frame[["AA", "AF", "bound", "validation_AA"]] = results
    return frame


def accuracies(records: pd.DataFrame, queries: str = "test") -> pd.DataFrame:
    """Return one row per record and class: the columns RUN, then step, class and accuracy, on test or validation."""
    check_records(records)
    by_class = stacked_class_accuracies(records[choose("queries", queries, QUERIES)])
    classes = by_class.shape[-1]
    tidy = records[[*RUN, "step"]].iloc[np.repeat(np.arange(len(records)), classes)].reset_index(drop=True)
    tidy["class"] = np.tile(np.arange(classes), len(records))
    tidy["accuracy"] = by_class.reshape(-1)
    return tidy


def stacked_class_accuracies(confusions: pd.Series, block: int = 4096) -> np.ndarray:
    """Return class accuracies (records, K) of a column of confusions; refuse confusions of different shapes."""
    confusions, name = list(confusions), confusions.name
    shapes = {np.shape(confusion) for confusion in confusions}
    shape = shapes.pop()
    if shapes or len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"records: {name}: expected confusions of one shape (K, K), found {sorted({shape, *shapes})}")
    # In blocks: many records share one confusion, and all of them copied into one array could fill the memory.
    starts = range(0, len(confusions), block)
    return np.concatenate([class_accuracies(np.stack(confusions[start : start + block])) for start in starts])


def _rows_of_runs(records: pd.DataFrame) -> dict[tuple[Any, ...], list[int]]:
    """Return the row numbers of every run's records, in the order of steps."""
    found: dict[tuple[Any, ...], dict[int, int]] = {}
    named = zip(*(records[name] for name in RUN), strict=True)
    for row, (run, step) in enumerate(zip(named, records["step"], strict=True)):
        if found.setdefault(run, {}).setdefault(step, row) != row:
            raise InputError(f"records: two for step {step} of {_described(run)}")
    for run, rows in found.items():
        if set(rows) != set(range(1, len(run[-1]) + 1)):
            raise InputError(f"records: expected steps 1–{len(run[-1])} of {_described(run)}, found {sorted(rows)}")
    return {run: [rows[step] for step in sorted(rows)] for run, rows in found.items()}


def _described(run: tuple[Any, ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(RUN, run, strict=True))


def _members(orders: Sequence[Sequence[Sequence[int]]], classes: int) -> np.ndarray:
    """Return (orders, B, K): 1 where a class belongs to the task at a position, else 0; all orders have B tasks."""
    members = np.zeros((len(orders), len(orders[0]), classes))
    for run, order in enumerate(orders):
        for position, task in enumerate(order):
            if max(task) >= classes:
                raise InputError(f"task {task}: the confusions count only classes 0–{classes - 1}")
            members[run, position, list(task)] = 1
    return members


def _task_means(by_class: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return (..., steps, B) task accuracies, from class accuracies (..., steps, K) and members (..., B, K)."""
    tasks = np.swapaxes(members, -1, -2)
    asked = ~np.isnan(by_class)
    count = asked @ tasks
    total = np.where(asked, by_class, 0) @ tasks
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
