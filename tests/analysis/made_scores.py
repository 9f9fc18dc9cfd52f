"""Scores made up for the tests: runs with chosen accuracies per unit, or random ones confined to units seen."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np

from skeleton_cgl.analysis.scores import ScoredRun, Scores
from skeleton_cgl.engine.rows import ComponentRow, LearnerRow, Values
from skeleton_cgl.scenarios.lessons import Order

UNITS = ("walk", "sit", "stand", "throw", "carry", "drop")
TASKS = ((0, 1), (2, 3), (4, 5))
ORDERS: list[Order] = list(permutations(TASKS))
CLASS_ORDER: Order = ((0, 3), (2, 5), (1, 4))
UNEVEN: Order = ((0, 1, 2), (3, 4), (5,))

MadeRun = tuple[str, str, ScoredRun, np.ndarray]
"""Backbone, method, the run, and its values (B, U)."""


def learner(
    number: int, method: str = "bare", backbone: str = "gcn", point: Values = (), **parameters: object
) -> LearnerRow:
    given = tuple(parameters.items())
    return LearnerRow(number, ComponentRow(backbone), ComponentRow(method, parameters=given), point)


def run(
    final: Sequence[int],
    order: Order,
    kind: str = "task",
    method: str = "bare",
    repeat: int = 0,
    noise: int = 0,
    backbone: str = "gcn",
    floor: str = "seeds",
) -> MadeRun:
    """Return one run that ends with these accuracies per unit, in percent, and varies before.

    floor: what was drawn anew for it, if it is of noise.
    """
    steps = []
    for step in range(1, len(order) + 1):
        seen = [unit for task in order[:step] for unit in task]
        now = (np.asarray(final) + 37 * (len(order) - step)) % 101
        steps.append([accuracy / 100 if unit in seen else 0 for unit, accuracy in enumerate(now)])
    scored = ScoredRun(0, repeat, noise, kind, order, floor=floor if noise else "")
    return backbone, method, scored, np.array(steps, dtype=float)


def as_scores(runs: Iterable[MadeRun], units: Sequence[str] = UNITS) -> Scores:
    """Return runs as scores; a learner for every backbone and method, in the sequence they come in."""
    runs = list(runs)
    numbers: dict[tuple[str, str], int] = {}
    for backbone, method, _, _ in runs:
        numbers.setdefault((backbone, method), len(numbers))
    learners = tuple(learner(number, method, backbone) for (backbone, method), number in numbers.items())
    longest = max((len(values) for *_, values in runs), default=1)
    values = np.full((len(runs), longest, len(units)), np.nan)
    for place, (*_, own) in enumerate(runs):
        values[place, : len(own)] = own
    scored = tuple(replace(each, learner=numbers[backbone, method]) for backbone, method, each, _ in runs)
    return Scores(learners, tuple(units), scored, values, values.copy())


def random_runs(
    seed: int = 0,
    methods: Sequence[str] = ("bare", "replay"),
    repeats: int = 2,
    noise_runs: int = 2,
    kinds: Sequence[str] = ("task", "class"),
    backbone: str = "gcn",
) -> list[MadeRun]:
    """Return runs of all task orders, two class orders, and noise runs of the first order, all at random."""
    generator = np.random.default_rng(seed)
    orders = {"task": ORDERS, "class": [CLASS_ORDER, ((0, 5), (1, 2), (3, 4))]}
    named = [(kind, order, 0) for kind in kinds for order in orders[kind]]
    named += [("task", ORDERS[0], noise) for noise in range(1, noise_runs + 1)]
    return [
        run(generator.integers(0, 101, size=6).tolist(), order, kind, method, repeat, noise, backbone)
        for method in methods
        for repeat in range(repeats)
        for kind, order, noise in named
    ]


def random_scores(seed: int = 0, **options: object) -> Scores:
    return as_scores(random_runs(seed, **options))


def with_halves(scores: Scores, test: np.ndarray, validation: np.ndarray) -> Scores:
    """Return the same runs with other values (runs, units) in the end, on test and on validation."""
    ends = []
    for before, after in ((scores.test, test), (scores.validation, validation)):
        values = before.copy()
        values[np.arange(len(scores.runs)), scores.steps - 1] = after
        ends.append(values)
    return replace(scores, test=ends[0], validation=ends[1])


def without_queries(scores: Scores, *units: int) -> Scores:
    """Return the same scores as if nothing had been asked of some units."""
    test, validation = scores.test.copy(), scores.validation.copy()
    test[..., list(units)] = validation[..., list(units)] = np.nan
    return replace(scores, test=test, validation=validation)


def in_sequence(scores: Scores, places: Sequence[int]) -> Scores:
    """Return the same runs in another sequence."""
    runs = tuple(scores.runs[place] for place in places)
    return replace(scores, runs=runs, test=scores.test[list(places)], validation=scores.validation[list(places)])


def renamed(scores: Scores, renaming: Sequence[int]) -> Scores:
    """Return the same scores with unit u called renaming[u]."""
    back = np.argsort(renaming)
    runs = tuple(
        replace(each, order=tuple(tuple(sorted(renaming[unit] for unit in task)) for task in each.order))
        for each in scores.runs
    )
    units = tuple(scores.units[unit] for unit in back)
    return replace(scores, units=units, runs=runs, test=scores.test[..., back], validation=scores.validation[..., back])
