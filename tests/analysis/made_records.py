"""Records made up for the tests: confusions with chosen class accuracies, or random ones confined to classes seen."""

from collections.abc import Iterable, Sequence
from itertools import permutations

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.performance import COLUMNS, Order

ASKED = 100
TASKS = ((0, 1), (2, 3), (4, 5))
ORDERS: list[Order] = list(permutations(TASKS))
CLASS_ORDER: Order = ((0, 3), (2, 5), (1, 4))


def confusion_of(percent: Sequence[int]) -> np.ndarray:
    """Return (K, K) counts in which so many of 100 queries of each class are answered rightly."""
    right = np.asarray(percent)
    wrong = np.roll(np.diag(ASKED - right), 1, axis=1)
    return np.diag(right) + wrong


def run_records(
    final: Sequence[int], order: Order, kind: str = "task", method: str = "bare", repeat: int = 0, noise: int = 0
) -> list[tuple]:
    """Return the records of one run that ends with these accuracies per class, in percent, and varies before."""
    rows = []
    for step in range(1, len(order) + 1):
        seen = [label for task in order[:step] for label in task]
        now = (np.asarray(final) + 37 * (len(order) - step)) % (ASKED + 1)
        percent = [accuracy if label in seen else 0 for label, accuracy in enumerate(now)]
        rows.append(("gcn", method, repeat, noise, kind, order, step, confusion_of(percent), confusion_of(percent)))
    return rows


def as_records(runs: Iterable[list[tuple]]) -> pd.DataFrame:
    return pd.DataFrame([row for run in runs for row in run], columns=list(COLUMNS))


def random_records(
    seed: int = 0,
    methods: Sequence[str] = ("bare", "replay"),
    repeats: int = 2,
    noise_runs: int = 2,
    kinds: Sequence[str] = ("task", "class"),
) -> pd.DataFrame:
    """Return records of all task orders, two class orders, and noise runs of the first order, all at random."""
    generator = np.random.default_rng(seed)
    orders = {"task": ORDERS, "class": [CLASS_ORDER, ((0, 5), (1, 2), (3, 4))]}
    named = [(kind, order, 0) for kind in kinds for order in orders[kind]]
    named += [("task", ORDERS[0], noise) for noise in range(1, noise_runs + 1)]
    return as_records(
        run_records(generator.integers(0, ASKED + 1, size=6), order, kind, method, repeat, noise)
        for method in methods
        for repeat in range(repeats)
        for kind, order, noise in named
    )
