"""Scoring answers: which classes the setting allows, and how often each was answered for each true class."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Task


def allowed_classes(truth: Tensor, learned: Sequence[Task], classes: int, setting: str) -> Tensor:
    """Return (N, K) bool: the classes among which each query is answered after the tasks `learned`.

    class-il: all classes seen. task-il: the classes of the query's own task; a query of a task not yet learned has no
    task to reveal, and is answered among all classes seen.
    """
    seen = torch.zeros(classes, dtype=torch.bool)
    for task in learned:
        seen[list(task)] = True
    by_class = seen.repeat(classes, 1)
    if setting == "task-il":
        for task in learned:
            own = torch.zeros(classes, dtype=torch.bool)
            own[list(task)] = True
            by_class[list(task)] = own
    return by_class[truth]


def check_shape(answers: Tensor, queries: int, classes: int) -> None:
    """Refuse answers that are not floating-point numbers of shape (queries, classes)."""
    if tuple(answers.shape) != (queries, classes) or not answers.is_floating_point():
        raise InputError(
            f"answers: expected floating-point numbers of shape {(queries, classes)} (queries, classes), "
            f"found {answers.dtype} of shape {tuple(answers.shape)}"
        )


def confusion(answers: Tensor, truth: Tensor, learned: Sequence[Task], classes: int, setting: str) -> np.ndarray:
    """Return (K, K) int64 counts, true class by answered class; of equal answers the lowest class counts.

    Refused: answers of another shape than (N, K), NaN for a class allowed, −∞ for all classes allowed.
    """
    check_shape(answers, len(truth), classes)
    allowed = allowed_classes(truth, learned, classes, setting)
    if answers[allowed].isnan().any():
        raise InputError("answers: not a number")
    largest, answered = answers.masked_fill(~allowed, -torch.inf).max(dim=1)
    if largest.isneginf().any():
        raise InputError("answers: a query has no answer above −∞ among the classes allowed")
    counts = torch.bincount(truth * classes + answered, minlength=classes * classes)
    return counts.reshape(classes, classes).numpy()
