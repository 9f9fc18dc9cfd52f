"""Whether what a scenario hands out tells something: by its arrays, by its sequence, by its numbers."""

import hashlib
from typing import Any

import numpy as np

from skeleton_cgl.graphs.source import GraphData
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.lessons import Prefix
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.scenario import Scenario
from tests.core.reach import reached

RARE = 4
"""So many standard deviations from chance are no chance."""


def prefixes(scenario: Scenario) -> list[Prefix]:
    lessons = scenario.lessons(scenario.default)
    return [lessons[: step + 1] for step in range(len(lessons))]


def as_it_stands(data: GraphData) -> Opened:
    """Return data whose items keep their numbers."""
    return Opened(data, np.arange(len(data)))


def tells(array: np.ndarray, labels: np.ndarray, stood: np.ndarray, wanted: np.ndarray) -> bool:
    """Return whether an array has the labels of the nodes `wanted`, or says of one class which of them have it.

    The array has a row per node in `stood`, or one per node in `wanted`.
    """
    if array.ndim not in (1, 2) or array.dtype.kind not in "biuf" or len(array) not in (len(stood), len(wanted)):
        return False
    columns = array[:, None] if array.ndim == 1 else array
    rows, nodes = columns, stood
    if len(array) == len(stood):
        kept = np.isin(stood, wanted)
        rows, nodes = columns[kept], stood[kept]
    elif len(array) == len(wanted):
        nodes = wanted
    truth = labels[nodes]
    if truth.ndim == 1 and any((column == truth).all() for column in rows.T):
        return True
    marks = [truth == label for label in np.unique(truth)] if truth.ndim == 1 else list(truth.T == 1)
    return any(((column == 1) == mark).all() for column in rows.T for mark in marks if 0 < mark.sum() < len(mark))


def content(scenario: Scenario, prefix: Prefix) -> list[str]:
    """Return digests of all arrays within reach, and those that the pools have of themselves."""
    experience, queries = scenario.experience(prefix), scenario.queries(prefix)
    pools = (experience.training.pool, experience.validation.pool, queries.pool)
    return [*(pool.digest for pool in pools), *digests_of(experience, queries)]


def digests_of(*roots: object) -> list[str]:
    """Return digests of all arrays within reach of some objects, in a sequence of their own."""
    return sorted(
        hashlib.sha256(f"{array.dtype} {array.shape}".encode() + array.tobytes()).hexdigest()
        for array in reached(*roots)
    )


def unlikely(told: np.ndarray, truth: np.ndarray) -> float:
    """Return by how many standard deviations of chance numbers (Q,) are larger or smaller where something is true.

    Of the numbers' ranks, and of how often neighbours in their sequence are alike.
    """
    order = np.argsort(told, kind="stable")
    ranks = np.argsort(order)
    count, true = len(truth), int(truth.sum())
    spread = np.sqrt(true * (count - true) * (count + 1) / 12)
    larger = abs(ranks[truth].sum() - true * (count - 1) / 2) / spread
    random = np.random.default_rng(0)

    def alike(sequence: np.ndarray) -> float:
        return float((sequence[1:] == sequence[:-1]).mean())

    by_chance = [alike(random.permutation(truth)) for _ in range(60)]
    return max(float(larger), (alike(truth[order]) - float(np.mean(by_chance))) / float(np.std(by_chance)))


def assert_no_array_tells_a_test_label(scenario: Any, labels: np.ndarray, parts: np.ndarray) -> None:
    """Walk all within reach after every prefix, of a scenario whose samples have the numbers of their items.

    labels (I,) or (I, L), parts (I,): of all items.
    """
    for prefix in prefixes(scenario):
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        arrays = list(reached(experience, queries))
        assert len(arrays) > 5
        asked = queries.ids.numpy()
        test = asked[parts[asked] == TEST]
        seen = np.unique(np.concatenate([scenario.items_of(lesson.units) for lesson in prefix]))
        for array in arrays:
            for stood in (asked, np.arange(len(labels)), seen):
                assert not any(tells(array, labels, stood, each) for each in (test, np.sort(test)))
        # What would tell is found.
        assert tells(labels[asked], labels, asked, test)


def assert_queries_stand_at_random(scenario: Any, labels: np.ndarray, parts: np.ndarray) -> None:
    """Neither the sequence of queries nor their numbers tell class, label or part."""
    for prefix in prefixes(scenario):
        asked = scenario.queries(prefix).ids.numpy()
        _, once = np.unique(asked, return_index=True)
        own = labels[asked]
        truths = list(own.T == 1) if own.ndim == 2 else [own == label for label in np.unique(own)]
        truths = [truth for truth in [*truths, parts[asked] == TEST] if 0 < truth.sum() < len(truth)]
        assert truths
        for told in (np.arange(len(asked)), asked):
            assert max(unlikely(told[once], truth[once]) for truth in truths) < RARE
    assert min(unlikely(truth.astype(int), truth) for truth in truths) > 1.5 * RARE


def assert_no_test_item_is_learned_from(scenario: Any, parts: np.ndarray) -> None:
    """What is learned from is for training, what is validated on for validation, and neither is in the other."""
    for prefix in prefixes(scenario):
        experience, asked = scenario.experience(prefix), scenario.queries(prefix).ids.numpy()
        assert (parts[experience.training.ids.numpy()] == TRAINING).all()
        assert (parts[experience.validation.ids.numpy()] == VALIDATION).all()
        assert np.isin(parts[asked], (TEST, VALIDATION)).all()
