"""Nodes of several labels divided as AGALE defines it: rarest label first, no node in two parts."""

import numpy as np
import pytest

from skeleton_cgl.parts import TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.scenarios.label_split import divide_labels

RATIOS = (6.0, 1.0, 3.0)


def some_labels(seed: int, nodes: int = 200, labels: int = 5) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (random.random((nodes, labels)) < random.uniform(0.05, 0.5, labels)).astype(np.uint8)


def by_the_book(labels: np.ndarray, parts: np.ndarray) -> None:
    """Follow the algorithm label by label: what is found of each must be what the earlier ones left it to fill."""
    placed = np.full(len(labels), False)
    for label in np.argsort(labels.sum(axis=0), kind="stable"):
        members = labels[:, label] == 1
        number = int(members.sum())
        training = int(0.6 * number)
        validation = int(0.25 * (number - training))
        wanted = {TRAINING: training, VALIDATION: validation}
        free = int((members & ~placed).sum())
        for part in (TRAINING, VALIDATION):
            there = int((members & placed & (parts == part)).sum())
            new = int((members & ~placed & (parts == part)).sum())
            assert new == min(max(wanted[part] - there, 0), free)
            free -= new
        assert int((members & ~placed & (parts == TEST)).sum()) == free
        placed |= members


@pytest.mark.parametrize("seed", range(5))
def test_every_label_is_filled_up_by_what_rarer_ones_left(seed: int) -> None:
    labels = some_labels(seed)
    by_the_book(labels, divide_labels(labels, RATIOS, np.random.default_rng(seed)))


def test_the_rarest_label_is_divided_exactly_by_the_ratios() -> None:
    labels = some_labels(0)
    rarest = labels[:, np.argmin(labels.sum(axis=0))] == 1
    parts = divide_labels(labels, RATIOS, np.random.default_rng(0))[rarest]
    training = int(0.6 * rarest.sum())
    assert [int((parts == part).sum()) for part in (TRAINING, VALIDATION)] == [
        training,
        int(0.25 * (rarest.sum() - training)),
    ]


def test_every_node_is_in_one_part_also_those_without_a_label() -> None:
    labels = some_labels(1)
    labels[:40] = 0
    parts = divide_labels(labels, RATIOS, np.random.default_rng(1))
    assert UNUSED not in parts
    bare = parts[~labels.any(axis=1)]
    training = int(0.6 * len(bare))
    wanted = [training, int(0.25 * (len(bare) - training))]
    assert [int((bare == part).sum()) for part in (TRAINING, VALIDATION)] == wanted


def test_another_seed_divides_otherwise_and_the_same_alike() -> None:
    labels = some_labels(2)
    first, again, other = (divide_labels(labels, RATIOS, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
