"""How well answers rank queries with a yes before those with a no: average precision and the area under the ROC curve.

Both are scikit-learn's, to the bit, without its checks and its second of loading: a stage may ask for hundreds of them.
Letters: Q queries, T different answers, falling.
"""

import numpy as np


def average_precision(labels: np.ndarray, answers: np.ndarray) -> float:
    """Return Σₙ (Rₙ − Rₙ₋₁)·Pₙ over the different answers, with precision P and recall R from each on.

    labels (Q,) of 0 and 1, both there; answers (Q,).
    """
    right, wrong = _counts_from_the_top(labels, answers)
    # From the lowest answer to the highest, as sums in another sequence would round otherwise.
    precision = np.append((right / (right + wrong))[::-1], 1)
    recall = np.append((right / right[-1])[::-1], 0)
    return float(max(0.0, -np.sum(np.diff(recall) * precision[:-1])))


def roc_area(labels: np.ndarray, answers: np.ndarray) -> float:
    """Return the area under the shares of right over wrong answers above every threshold, by trapezoids.

    labels (Q,) of 0 and 1, both there; answers (Q,).
    """
    right, wrong = _counts_from_the_top(labels, answers)
    if len(right) > 2:
        # Between corners the curve is straight.
        corner = np.concatenate([[True], (np.diff(wrong, 2) != 0) | (np.diff(right, 2) != 0), [True]])
        right, wrong = right[corner], wrong[corner]
    right, wrong = np.append(0, right), np.append(0, wrong)
    return float(np.trapezoid(right / right[-1], wrong / wrong[-1]))


def _counts_from_the_top(labels: np.ndarray, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (T,) how many with a yes, and how many with a no, have each of the different answers or a higher one."""
    sequence = np.argsort(answers, kind="stable")[::-1]
    ranked = answers[sequence]
    last = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    right = np.cumsum(labels[sequence], dtype=np.float64)[last]
    return right, 1 + last - right
