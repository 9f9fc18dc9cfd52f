"""Scoring answers: an answer counts among the classes the setting allows, and right answers score 1 in any order."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from skeleton_cgl.scenarios.evaluator import allowed_classes, confusion

from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import as_task
from skeleton_cgl.scenarios.scenario import SETTINGS

CLASSES = 7


@st.composite
def orders(draw: st.DrawFn, fewest: int = 1) -> list[tuple[int, ...]]:
    """Draw an order of tasks of any sizes from `fewest` on, each task's classes in any order."""
    classes = draw(st.permutations(range(CLASSES)))
    tasks = []
    while len(classes) >= fewest:
        size = draw(st.integers(fewest, len(classes)))
        tasks.append(tuple(classes[:size]))
        classes = classes[size:]
    return tasks


def allowed_for(label: int, learned: list[tuple[int, ...]], setting: str) -> set[int]:
    own = [task for task in learned if label in task]
    return set(own[0]) if setting == "task-il" and own else {seen for task in learned for seen in task}


@given(order=orders(), setting=st.sampled_from(SETTINGS), seed=st.integers(0, 999))
def test_answering_with_the_true_class_scores_one_on_every_class_seen(order: list, setting: str, seed: int) -> None:
    truth = torch.randint(CLASSES, (40,), generator=torch.Generator().manual_seed(seed))
    answers = torch.nn.functional.one_hot(truth, CLASSES).float()
    for stage in range(1, len(order) + 1):
        counts = confusion(answers, truth, order[:stage], CLASSES, setting)
        totals = np.bincount(truth, minlength=CLASSES)
        for label in (label for task in order[:stage] for label in task):
            assert counts[label, label] == totals[label] == counts[label].sum()


@given(order=orders(fewest=2), setting=st.sampled_from(SETTINGS), seed=st.integers(0, 999))
def test_answering_one_class_off_among_those_allowed_scores_zero(order: list, setting: str, seed: int) -> None:
    truth = torch.randint(CLASSES, (40,), generator=torch.Generator().manual_seed(seed))
    for stage in range(1, len(order) + 1):
        learned = order[:stage]
        answers = torch.zeros(len(truth), CLASSES)
        for row, label in enumerate(truth.tolist()):
            allowed = sorted(allowed_for(label, learned, setting))
            off = allowed[(allowed.index(label) + 1) % len(allowed)] if label in allowed else allowed[0]
            answers[row, off] = 1
        counts = confusion(answers, truth, learned, CLASSES, setting)
        assert np.trace(counts) == 0
        np.testing.assert_array_equal(counts.sum(axis=1), np.bincount(truth, minlength=CLASSES))


@given(order=orders(), setting=st.sampled_from(SETTINGS), seed=st.integers(0, 999))
def test_counts_are_those_of_the_largest_allowed_answer(order: list, setting: str, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    truth = torch.randint(CLASSES, (30,), generator=generator)
    answers = torch.randn(30, CLASSES, generator=generator)
    for stage in range(1, len(order) + 1):
        expected = np.zeros((CLASSES, CLASSES), dtype=np.int64)
        for label, row in zip(truth.tolist(), answers.tolist(), strict=True):
            expected[label, max(allowed_for(label, order[:stage], setting), key=lambda answer: row[answer])] += 1
        np.testing.assert_array_equal(confusion(answers, truth, order[:stage], CLASSES, setting), expected)


@given(order=orders(), setting=st.sampled_from(SETTINGS))
def test_what_is_allowed_does_not_depend_on_how_a_task_is_written(order: list, setting: str) -> None:
    truth = torch.arange(CLASSES)
    written = allowed_classes(truth, order, CLASSES, setting)
    assert torch.equal(written, allowed_classes(truth, [as_task(task) for task in order], CLASSES, setting))


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_class_not_yet_seen_is_ever_counted_as_an_answer(setting: str) -> None:
    truth = torch.arange(CLASSES).repeat(3)
    answers = torch.arange(CLASSES).float().repeat(len(truth), 1)
    counts = confusion(answers, truth, [(0, 3), (1,)], CLASSES, setting)
    assert counts[:, [2, 4, 5, 6]].sum() == 0
    assert counts.sum() == len(truth)
    assert counts.dtype == np.int64


def test_of_equal_answers_the_lowest_allowed_class_counts() -> None:
    counts = confusion(torch.zeros(1, CLASSES), torch.tensor([4]), [(4, 2), (6,)], CLASSES, "class-il")
    assert counts[4, 2] == 1


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (torch.zeros(3, CLASSES), r"\(4, 7\).*torch.float32 of shape \(3, 7\)"),
        (torch.zeros(4, 6), r"\(4, 7\).*of shape \(4, 6\)"),
        (torch.zeros(4), r"\(4, 7\).*of shape \(4,\)"),
        (torch.tensor(1.0), r"\(4, 7\).*of shape \(\)"),
        (torch.zeros(4, CLASSES, dtype=torch.int64), r"floating-point.*\(4, 7\).*torch.int64 of shape \(4, 7\)"),
    ],
)
def test_answers_of_another_shape_or_type_are_refused_with_both_shapes(answers: torch.Tensor, found: str) -> None:
    with pytest.raises(InputError, match=found):
        confusion(answers, torch.arange(4), [(0, 1)], CLASSES, "class-il")


def test_not_a_number_is_refused_where_it_counts() -> None:
    answers = torch.zeros(2, CLASSES)
    answers[1, 5] = torch.nan
    truth = torch.tensor([0, 1])
    assert confusion(answers, truth, [(0, 1)], CLASSES, "class-il").sum() == 2
    with pytest.raises(InputError, match="not a number"):
        confusion(answers, truth, [(0, 1), (5,)], CLASSES, "class-il")


def test_a_query_without_any_possible_answer_is_refused() -> None:
    nothing = torch.full((1, CLASSES), -torch.inf)
    with pytest.raises(InputError, match="no answer"):
        confusion(nothing, torch.tensor([3]), [(3, 4)], CLASSES, "class-il")
    with pytest.raises(InputError, match="no answer"):
        confusion(torch.zeros(1, CLASSES), torch.tensor([3]), [], CLASSES, "class-il")


def test_infinite_answers_are_answers() -> None:
    answers = torch.full((2, CLASSES), -torch.inf)
    answers[0, 3], answers[1, 4] = torch.inf, -1e30
    counts = confusion(answers, torch.tensor([3, 3]), [(3, 4)], CLASSES, "task-il")
    assert (counts[3, 3], counts[3, 4]) == (1, 1)


def test_a_task_is_a_set_of_classes() -> None:
    assert as_task((7, 2)) == as_task([2, 7]) == as_task({7, 2}) == (2, 7)
    with pytest.raises(InputError, match="at least one class"):
        as_task(())
    with pytest.raises(InputError, match=r"\(2, 2, 7\): a class is given twice"):
        as_task((2, 7, 2))
