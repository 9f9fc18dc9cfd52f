"""Dividing nodes of several labels: task by task as AGALE does it (Zhao et al. 2024), or once for all tasks."""

import numpy as np

from skeleton_cgl.parts import TEST, TRAINING, UNUSED, VALIDATION


def divide_labels(labels: np.ndarray, ratios: tuple[float, float, float], random: np.random.Generator) -> np.ndarray:
    """Return (N,) the part of every node from labels (N, L): the rarest label is divided first.

    Of n nodes of a label ⌊n·r₁⌋ are for training, ⌊(n − those)·r₂/(r₂+r₃)⌋ for validation and the rest for test, r
    being the shares. What labels before it have put into each part counts; the rest is filled up at random. A node
    without a label is divided with the others of its kind, in the end.
    """
    parts = np.full(len(labels), UNUSED)
    present = labels.astype(bool)
    counts = present.sum(axis=0)
    unlabelled = ~present.any(axis=1)
    columns = [present[:, label] for label in np.argsort(counts, kind="stable")]
    for members in [*columns, unlabelled]:
        wanted = _sizes(int(members.sum()), ratios)
        free = random.permutation(np.flatnonzero(members & (parts == UNUSED)))
        for part in (TRAINING, VALIDATION):
            there = int((members & (parts == part)).sum())
            taken, free = np.split(free, [min(max(wanted[part] - there, 0), len(free))])
            parts[taken] = part
        parts[free] = TEST
    return parts


def _sizes(number: int, ratios: tuple[float, float, float]) -> dict[int, int]:
    first, second, third = ratios
    training = int(number * first / (first + second + third))
    return {TRAINING: training, VALIDATION: int((number - training) * second / (second + third))}
