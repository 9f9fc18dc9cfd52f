import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skeleton_cgl.engine.orders import Orders, make_orders, stages_of_all
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import describe, parse

TASKS = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))


def orders(**asked: object) -> list[tuple]:
    return [each.order for each in make_orders(Orders(**asked), TASKS)]


def test_all_orders_of_the_tasks_are_there_once() -> None:
    assert set(orders(tasks="all")) == set(itertools.permutations(TASKS))
    assert len(orders(tasks="all")) == 120
    assert all(each.kind == "task" for each in make_orders(Orders(tasks="all"), TASKS))


@given(small=st.integers(1, 40), more=st.integers(0, 60), seed=st.integers(0, 5))
def test_samples_grow_and_are_reproducible(small: int, more: int, seed: int) -> None:
    assert orders(tasks=small + more, seed=seed)[:small] == orders(tasks=small, seed=seed)
    for sampling in ("uniform", "balanced", "antithetic"):
        larger = orders(classes=small + more, class_sampling=sampling, seed=seed)
        assert larger[:small] == orders(classes=small, class_sampling=sampling, seed=seed)
        assert len(set(larger)) == small + more


def test_another_seed_gives_another_sample() -> None:
    assert orders(tasks=20, seed=0) != orders(tasks=20, seed=1)
    assert orders(classes=20, seed=0) != orders(classes=20, seed=1)


def test_class_orders_arrange_all_classes_in_tasks_of_the_same_size() -> None:
    for order in orders(classes=50):
        assert sorted(itertools.chain(*order)) == list(range(10))
        assert all(len(task) == 2 and task == tuple(sorted(task)) for task in order)


def test_uniform_class_orders_are_uniform() -> None:
    places = Counter(step for order in orders(classes=2000) for step, task in enumerate(order) if 0 in task)
    expected = 2000 / 5
    assert sum((count - expected) ** 2 / expected for count in places.values()) < 18.5  # χ² with 4 degrees, p = 0.001


@pytest.mark.parametrize("number", [10, 50, 100])
def test_balanced_class_orders_put_every_class_at_every_step_equally_often(number: int) -> None:
    counts = np.zeros((10, 5))
    for order in orders(classes=number, class_sampling="balanced"):
        for step, task in enumerate(order):
            counts[list(task), step] += 1
    assert np.abs(counts - number / 5).max() <= 1


def test_antithetic_class_orders_come_with_their_reverse() -> None:
    sample = orders(classes=40, class_sampling="antithetic")
    assert all(second == first[::-1] for first, second in zip(sample[::2], sample[1::2], strict=True))


def test_unions_hold_every_order_once_and_know_task_orders_among_class_orders() -> None:
    given_order = [[5, 4], [0, 1], [2, 3], [6, 7], [9, 8]]
    mixed = [[0, 2], [1, 3], [4, 5], [6, 7], [8, 9]]
    asked = make_orders(Orders(tasks="all", classes=30, given=[given_order, mixed]), TASKS)
    assert len({each.order for each in asked}) == len(asked) == 151
    kinds = Counter(each.kind for each in asked)
    assert kinds == {"task": 120, "class": 31}
    assert asked[-1].order == ((0, 2), (1, 3), (4, 5), (6, 7), (8, 9))


def test_the_number_of_stages_of_all_orders_is_that_of_the_tree() -> None:
    prefixes = {order[:step] for order in orders(tasks="all") for step in range(1, 6)}
    assert stages_of_all(5) == len(prefixes) == 325
    assert stages_of_all(7) == 13699


@given(st.permutations(range(10)))
def test_an_order_comes_back_from_its_text(classes: list[int]) -> None:
    order = tuple(tuple(sorted(classes[start : start + 2])) for start in range(0, 10, 2))
    assert parse(describe(order)) == order


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({}, "none is asked for"),
        ({"tasks": 0}, "0 of 120 orders cannot be drawn"),
        ({"tasks": 121}, "121 of 120 orders cannot be drawn"),
        ({"classes": 113_401}, "only 113,400 class orders"),
        ({"given": [[[0, 10]]]}, "class 10 is unknown; classes are 0–9"),
        ({"given": [[[0, 1], [1, 2]]]}, "a class is given twice"),
    ],
)
def test_orders_that_cannot_be_are_refused(asked: dict, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        orders(**asked)


def test_too_many_orders_are_refused_with_their_number_and_a_way_out() -> None:
    tasks = tuple((label,) for label in range(10))
    with pytest.raises(InputError, match=r"3,628,800, 9,864,100 stages, too many.*tasks: 100"):
        make_orders(Orders(tasks="all"), tasks)
