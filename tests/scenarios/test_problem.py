"""Problems: losses and scores against scikit-learn and by hand; an answer counts among what it may be among."""

from collections.abc import Callable
from math import exp, log

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, confusion_matrix, recall_score, roc_auc_score
from torch import Tensor

from skeleton_cgl.backbones.head import Head
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.labelled import check_shape
from skeleton_cgl.scenarios.lessons import as_task, units_named
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.problem import LinkExists, ManyLabels, OneClass, Problem, Truth, hits_at, scopes
from tests.scenarios.small import SETTINGS

CLASSES = 7
NAN = float("nan")


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


def among_for(truth: Tensor, learned: list[tuple[int, ...]], setting: str) -> Tensor:
    """Return (Q, classes) what queries of these classes are answered among."""
    steps = [
        next((step for step, task in enumerate(learned) if label in task), -1) if setting == "task-il" else -1
        for label in truth.tolist()
    ]
    return scopes(learned, CLASSES)[torch.tensor(steps)]


def truth_of(labels: Tensor, classes: int = CLASSES) -> Truth:
    asked = torch.nn.functional.one_hot(labels, classes).bool()
    return Truth(labels, asked, torch.arange(classes), classes)


def confusion(answers: Tensor, truth: Tensor, learned: list[tuple[int, ...]], setting: str = "class-il") -> np.ndarray:
    (measure,) = OneClass().measure(answers, truth_of(truth), among_for(truth, learned, setting), "test")
    assert measure.counts is not None
    return measure.counts


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@given(order=orders(), setting=st.sampled_from(SETTINGS), seed=st.integers(0, 999))
def test_answering_with_the_true_class_scores_one_on_every_class_seen(order: list, setting: str, seed: int) -> None:
    truth = torch.randint(CLASSES, (40,), generator=torch.Generator().manual_seed(seed))
    answers = torch.nn.functional.one_hot(truth, CLASSES).float()
    for stage in range(1, len(order) + 1):
        counts = confusion(answers, truth, order[:stage], setting)
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
        counts = confusion(answers, truth, learned, setting)
        assert np.trace(counts) == 0
        np.testing.assert_array_equal(counts.sum(axis=1), np.bincount(truth, minlength=CLASSES))


@settings(max_examples=40)
@given(order=orders(), setting=st.sampled_from(SETTINGS), seed=st.integers(0, 999))
def test_counts_are_those_of_the_largest_allowed_answer(order: list, setting: str, seed: int) -> None:
    """Counts and accuracies are scikit-learn's for the class that plain Python finds."""
    truth = torch.randint(CLASSES, (30,), generator=torch.Generator().manual_seed(seed))
    answers = drawn(seed, 30, CLASSES)
    for stage in range(1, len(order) + 1):
        answered = [
            max(allowed_for(label, order[:stage], setting), key=lambda answer: row[answer])
            for label, row in zip(truth.tolist(), answers.tolist(), strict=True)
        ]
        among = among_for(truth, order[:stage], setting)
        (measure,) = OneClass().measure(answers, truth_of(truth), among, "validation")
        labels = list(range(CLASSES))
        np.testing.assert_array_equal(measure.counts, confusion_matrix(truth, answered, labels=labels))
        recalls = recall_score(truth, answered, labels=labels, average=None, zero_division=np.nan)
        np.testing.assert_allclose(measure.values, recalls)
        np.testing.assert_array_equal(measure.asked, np.bincount(truth, minlength=CLASSES))
        assert (measure.part, measure.metric) == ("validation", "accuracy")


@given(order=orders())
def test_what_is_allowed_does_not_depend_on_how_a_task_is_written(order: list) -> None:
    assert torch.equal(scopes(order, CLASSES), scopes([as_task(task) for task in order], CLASSES))


def test_a_scope_per_lesson_and_at_last_all_that_was_met() -> None:
    table = scopes([(3, 0), (2,), (0, 4)], 6)
    assert [row.nonzero()[:, 0].tolist() for row in table] == [[0, 3], [2], [0, 4], [0, 2, 3, 4]]
    assert torch.equal(table[-1], table[3])
    assert scopes([], 4).tolist() == [[False] * 4]


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_class_not_yet_seen_is_ever_counted_as_an_answer(setting: str) -> None:
    truth = torch.arange(CLASSES).repeat(3)
    answers = torch.arange(CLASSES).float().repeat(len(truth), 1)
    counts = confusion(answers, truth, [(0, 3), (1,)], setting)
    assert counts[:, [2, 4, 5, 6]].sum() == 0
    assert counts.sum() == len(truth)
    assert counts.dtype == np.int64


def test_of_equal_answers_the_lowest_allowed_class_counts() -> None:
    counts = confusion(torch.zeros(1, CLASSES), torch.tensor([4]), [(4, 2), (6,)])
    assert counts[4, 2] == 1


def test_a_class_nothing_was_asked_about_has_no_accuracy() -> None:
    truth = torch.tensor([1, 1, 1])
    answers = torch.nn.functional.one_hot(torch.tensor([1, 1, 0]), CLASSES).float()
    (measure,) = OneClass().measure(answers, truth_of(truth), among_for(truth, [(0, 1)], "class-il"), "test")
    np.testing.assert_array_equal(measure.values, [NAN, 2 / 3, *[NAN] * 5])
    np.testing.assert_array_equal(measure.asked, [0, 3, *[0] * 5])


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
def test_answers_of_another_shape_or_type_are_refused_with_both_shapes(answers: Tensor, found: str) -> None:
    with pytest.raises(InputError, match=found):
        check_shape(answers, 4, CLASSES)


def test_not_a_number_is_refused_where_it_counts() -> None:
    answers = torch.zeros(2, CLASSES)
    answers[1, 5] = torch.nan
    truth = torch.tensor([0, 1])
    assert confusion(answers, truth, [(0, 1)]).sum() == 2
    with pytest.raises(InputError, match="not a number"):
        confusion(answers, truth, [(0, 1), (5,)])


def test_a_query_without_any_possible_answer_is_refused() -> None:
    nothing = torch.full((1, CLASSES), -torch.inf)
    with pytest.raises(InputError, match="no answer"):
        confusion(nothing, torch.tensor([3]), [(3, 4)])
    with pytest.raises(InputError, match="no answer"):
        confusion(torch.zeros(1, CLASSES), torch.tensor([3]), [])


def test_infinite_answers_are_answers() -> None:
    answers = torch.full((2, CLASSES), -torch.inf)
    answers[0, 3], answers[1, 4] = torch.inf, -1e30
    counts = confusion(answers, torch.tensor([3, 3]), [(3, 4)], "task-il")
    assert (counts[3, 3], counts[3, 4]) == (1, 1)


def test_a_task_is_a_set_of_classes() -> None:
    assert as_task((7, 2)) == as_task([2, 7]) == as_task({7, 2}) == (2, 7)
    with pytest.raises(InputError, match="at least one class"):
        as_task(())
    with pytest.raises(InputError, match=r"\(2, 2, 7\): a class is given twice"):
        as_task((2, 7, 2))


def head_of(*outputs: int) -> Head:
    head = Head(3, 0, units_named("abcdef"))
    for output in outputs:
        head.meet([output])
    return head


def test_targets_are_in_the_terms_of_the_heads_columns() -> None:
    head = head_of(4, 1, 3)
    assert OneClass().targets(torch.tensor([1, 4, 3, 1]), head).tolist() == [1, 0, 2, 1]
    with pytest.raises(InputError, match="outside the classes met so far"):
        OneClass().targets(torch.tensor([0]), head)
    labels = torch.tensor([[0, 1, 0, NAN, 1, 0], [1, 0, 1, 1, 0, 1]], dtype=torch.float64)
    torch.testing.assert_close(
        ManyLabels().targets(labels, head), torch.tensor([[1.0, 1, NAN], [0, 0, 1]]), equal_nan=True
    )
    assert LinkExists().targets(torch.tensor([1, 0]), head).tolist() == [1.0, 0.0]


def test_the_loss_of_one_class_is_the_cross_entropy_among_what_is_allowed() -> None:
    found = torch.tensor([[1.0, -2, 0.5], [0, 3, 1]], requires_grad=True)
    among = torch.tensor([[True, False, True], [True, True, True]])
    losses = OneClass().losses(found, torch.tensor([2, 0]), among)
    expected = [log(exp(1) + exp(0.5)) - 0.5, log(1 + exp(3) + exp(1))]
    torch.testing.assert_close(losses, torch.tensor(expected))
    (slope,) = torch.autograd.grad(losses.sum(), found)
    assert slope[0, 1] == 0
    assert slope.isfinite().all()


def test_classes_count_equally_and_other_samples_do() -> None:
    targets = torch.tensor([2, 0, 2, 2, 5, 0])
    weights = OneClass().weights(targets)
    torch.testing.assert_close(weights, torch.tensor([1 / 9, 1 / 6, 1 / 9, 1 / 9, 1 / 3, 1 / 6]))
    for problem in (ManyLabels(), LinkExists()):
        assert problem.weights(torch.zeros(4, 2)).tolist() == [0.25] * 4


@settings(max_examples=25)
@given(seed=st.integers(0, 999), columns=st.integers(1, 4))
def test_the_yes_and_the_no_of_a_balanced_label_count_equally_whatever_other_labels_say(
    seed: int, columns: int
) -> None:
    random = torch.Generator().manual_seed(seed)
    targets = (torch.rand(30, columns, generator=random) < 0.2).float()
    targets[0], targets[1] = 1, 0
    found = torch.zeros(30, columns, requires_grad=True)
    problem, among = ManyLabels(balanced=True), torch.ones(30, columns).bool()
    (problem.losses(found, targets, among) * problem.weights(targets)).sum().backward()
    # Where all answers are alike, the slope by each is what it counts.
    counted = found.grad.abs()
    for label in range(columns):
        yes = targets[:, label] == 1
        assert float(counted[yes, label].sum()) == pytest.approx(float(counted[~yes, label].sum()), rel=1e-4)
    assert torch.equal(problem.weights(targets), torch.full((30,), 1 / 30))


def test_a_balanced_label_counts_as_with_the_weight_of_a_yes_that_is_usual() -> None:
    """With pos_weight = no/yes, as published code has it, but for the scale of the loss."""
    targets = torch.tensor([1.0, 0, 0, 1, 0, 0, 0])[:, None]
    found = drawn(2, 7, 1)
    problem = ManyLabels(balanced=True)
    among = torch.ones(7, 1).bool()
    loss = (problem.weights(targets) * problem.losses(found, targets, among)).sum()
    usual = torch.nn.functional.binary_cross_entropy_with_logits(
        found, targets, pos_weight=torch.tensor(5 / 2), reduction="sum"
    )
    torch.testing.assert_close(loss, usual / (2 * 5))
    alike = torch.ones(3, 1)
    plain, balanced = (each.losses(found[:3], alike, among[:3]) for each in (ManyLabels(), problem))
    assert torch.equal(plain, balanced), "where all say the same, there is nothing to balance"


def test_the_loss_of_many_labels_is_the_mean_over_those_known_and_allowed() -> None:
    found = torch.tensor([[0.3, -1.0, 2.0], [1.0, 0.5, -0.7], [4.0, 4.0, 4.0]], requires_grad=True)
    targets = torch.tensor([[1.0, NAN, 0.0], [0.0, 1.0, 1.0], [NAN, 1.0, NAN]])
    among = torch.tensor([[True, True, True], [True, False, True], [True, False, True]])

    def negative_log(value: float, label: int) -> float:
        probability = 1 / (1 + exp(-value))
        return -log(probability if label else 1 - probability)

    expected = [
        (negative_log(0.3, 1) + negative_log(2.0, 0)) / 2,
        (negative_log(1.0, 0) + negative_log(-0.7, 1)) / 2,
        0.0,
    ]
    losses = ManyLabels().losses(found, targets, among)
    torch.testing.assert_close(losses, torch.tensor(expected))
    (slope,) = torch.autograd.grad(losses.sum(), found)
    assert (slope != 0).tolist() == [[True, False, True], [True, False, True], [False] * 3]


def test_the_loss_of_a_link_is_the_binary_cross_entropy() -> None:
    losses = LinkExists().losses(torch.tensor([[0.4], [-1.0]]), torch.tensor([1.0, 0.0]), torch.ones(2, 1).bool())
    torch.testing.assert_close(losses, torch.tensor([log(1 + exp(-0.4)), log(1 + exp(-1.0))]))


@pytest.mark.parametrize("temperature", [0.5, 1, 2])
@pytest.mark.parametrize("problem", [ManyLabels(), LinkExists()], ids=["labels", "link"])
def test_binary_distillation_is_the_cross_entropy_of_softened_answers(problem: Problem, temperature: float) -> None:
    wanted, found = drawn(0, 2, 5, 3)
    total = 0.0
    for one, other in zip(wanted.flatten().tolist(), found.flatten().tolist(), strict=True):
        likely, answered = (1 / (1 + exp(-value / temperature)) for value in (one, other))
        total -= likely * log(answered) + (1 - likely) * log(1 - answered)
    torch.testing.assert_close(problem.distillation(wanted, found, temperature), torch.tensor(total / 15))


@pytest.mark.parametrize("problem", [OneClass(), ManyLabels(), LinkExists()], ids=["class", "labels", "link"])
def test_nothing_is_nearer_to_the_teacher_than_its_own_answers(problem: Problem) -> None:
    wanted = drawn(1, 6, 4)
    found = wanted.clone().requires_grad_()
    distance = problem.distillation(wanted, found, 1.7)
    (slope,) = torch.autograd.grad(distance, found)
    torch.testing.assert_close(slope, torch.zeros_like(slope), atol=1e-7, rtol=0)
    assert all(problem.distillation(wanted, wanted + drawn(seed, 6, 4), 1.7) > distance for seed in range(2, 12))


def many_labels(
    answers: Tensor, labels: Tensor, asked: Tensor | None = None, among: Tensor | None = None
) -> dict[str, Measure]:
    count = labels.shape[1]
    truth = Truth(labels, ~labels.isnan() if asked is None else asked, torch.arange(count), count)
    allowed = torch.ones_like(labels).bool() if among is None else among
    return {measure.metric: measure for measure in ManyLabels().measure(answers, truth, allowed, "test")}


def area_by_hand(labels: list[float], found: list[float]) -> float:
    """Return the share of pairs of a 1 and a 0 that are the right way round; equal ones count half."""
    ones = [value for label, value in zip(labels, found, strict=True) if label]
    zeros = [value for label, value in zip(labels, found, strict=True) if not label]
    return sum((one > zero) + (one == zero) / 2 for one in ones for zero in zeros) / (len(ones) * len(zeros))


def precision_by_hand(labels: list[float], found: list[float]) -> float:
    """Return Σ (recall − the one before) · precision over the values of the answers, from the highest down."""
    total, before = 0.0, 0.0
    for level in sorted(set(found), reverse=True):
        above = [label for label, value in zip(labels, found, strict=True) if value >= level]
        recall = sum(above) / sum(labels)
        total += (recall - before) * sum(above) / len(above)
        before = recall
    return total


@settings(max_examples=25)
@given(seed=st.integers(0, 999), levels=st.sampled_from([2, 4, 100]))
def test_many_labels_are_scored_as_by_hand_and_by_scikit_learn(seed: int, levels: int) -> None:
    """With ties (few levels), and labels that are not known, each of which leaves its query out of that label."""
    random = torch.Generator().manual_seed(seed)
    answers = torch.randint(levels, (30, 3), generator=random).float()
    labels = torch.randint(2, (30, 3), generator=random).double()
    labels[torch.rand(30, 3, generator=random) < 0.3] = torch.nan
    labels[:2] = torch.tensor([[1.0] * 3, [0.0] * 3])
    found = many_labels(answers, labels)
    for label in range(3):
        known = ~labels[:, label].isnan()
        truth, given_answers = labels[known, label].tolist(), answers[known, label].tolist()
        assert found["average_precision"].values[label] == pytest.approx(precision_by_hand(truth, given_answers))
        assert found["roc_auc"].values[label] == pytest.approx(area_by_hand(truth, given_answers))
        assert found["average_precision"].values[label] == average_precision_score(truth, given_answers)
        assert found["roc_auc"].values[label] == roc_auc_score(truth, given_answers)
        assert [measure.asked[label] for measure in found.values()] == [int(known.sum())] * 2


def test_a_label_never_met_is_worth_nothing_and_one_nobody_asked_about_has_no_score() -> None:
    labels = torch.tensor([[1.0, 1, NAN, 1], [0, 0, NAN, 1], [1, 0, NAN, 1]])
    answers = torch.tensor([[3.0, -torch.inf, 0, 1], [1, -torch.inf, 0, 2], [2, -torch.inf, 0, 3]])
    among = torch.tensor([True, False, True, True]).expand(3, 4)
    found = many_labels(answers, labels, among=among)
    for measure in found.values():
        # Met and right; never met; never asked; asked, but of one kind only.
        np.testing.assert_array_equal(measure.values, [1, 0, NAN, NAN])
        np.testing.assert_array_equal(measure.asked, [3, 3, 0, 3])


def test_a_query_that_may_not_be_answered_with_a_label_comes_below_all_that_may() -> None:
    labels = torch.tensor([[1.0], [0], [1], [0]])
    among = torch.tensor([[True], [True], [False], [False]])
    found = many_labels(torch.tensor([[2.0], [1], [9], [9]]), labels, among=among)
    assert found["roc_auc"].values[0] == area_by_hand([1, 0, 1, 0], [2, 1, 0, 0])
    assert found["average_precision"].values[0] == pytest.approx(precision_by_hand([1, 0, 1, 0], [2, 1, 0, 0]))


def test_the_answers_of_labels_not_met_may_be_anything_and_those_of_met_ones_numbers() -> None:
    labels, answers = torch.tensor([[1.0, 0], [0, 1]]), torch.tensor([[1.0, NAN], [0, NAN]])
    first = torch.tensor([True, False]).expand(2, 2)
    assert many_labels(answers, labels, among=first)["roc_auc"].values.tolist() == [1, 0]
    with pytest.raises(InputError, match="not a number"):
        many_labels(answers, labels)


def test_a_label_is_judged_in_each_domain_it_is_asked_in() -> None:
    """Groups that judge one output, each of other queries; a unit here is a domain and has the mean of its labels."""
    labels = (drawn(5, 30, 2) > 0).double()
    answers = drawn(6, 30, 2)
    domain = torch.arange(30) % 3
    asked = torch.stack([domain == place for place in range(3) for _ in range(2)], dim=1)
    truth = Truth(labels, asked, torch.tensor([0, 0, 1, 1, 2, 2]), 3, output=torch.tensor([0, 1] * 3))
    for measure in ManyLabels().measure(answers, truth, torch.ones(30, 2).bool(), "test"):
        score = {"average_precision": average_precision_score, "roc_auc": roc_auc_score}[measure.metric]
        expected = [
            np.mean([score(labels[domain == place, label], answers[domain == place, label]) for label in range(2)])
            for place in range(3)
        ]
        np.testing.assert_allclose(measure.values, expected)
        np.testing.assert_array_equal(measure.asked, [20] * 3)


def test_the_labels_of_samples_tell_of_outputs() -> None:
    assert OneClass().outputs_of(torch.tensor([4, 1, 4])) == [1, 4]
    assert ManyLabels().outputs_of(torch.tensor([[NAN, 0, NAN, 1], [NAN, NAN, NAN, 0]])) == [1, 3]
    assert LinkExists().outputs_of(torch.tensor([0, 1])) == [0]


def hits_by_hand(k: int, linked: list[float], free: list[float]) -> float:
    """Hits@K as OGB defines it: the share of links strictly above the K-th highest of the pairs without one."""
    border = sorted(free, reverse=True)[k - 1]
    return sum(value > border for value in linked) / len(linked)


@given(seed=st.integers(0, 999), k=st.integers(1, 8), levels=st.sampled_from([3, 1000]))
def test_hits_are_those_of_the_definition(seed: int, k: int, levels: int) -> None:
    random = torch.Generator().manual_seed(seed)
    found = torch.randint(levels, (20,), generator=random).float()
    labels = torch.arange(20) % 5 < 2
    expected = hits_by_hand(k, found[labels].tolist(), found[~labels].tolist())
    assert hits_at(k, labels.long(), found) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("k", "labels", "found", "expected"),
    [
        (2, [1, 1, 0, 0, 0], [5.0, 3.0, 4.0, 3.0, 1.0], 0.5),
        (1, [1, 1, 0, 0], [2.0, 2.0, 2.0, 1.0], 0.0),
        (3, [1, 0, 0], [-9.0, 1.0, 2.0], 1.0),
        (2, [1, 0, 0], [-9.0, 1.0, 2.0], 0.0),
        (1, [1], [0.0], 1.0),
        (1, [0, 0], [0.0, 1.0], NAN),
        (1, [1, 0], [-torch.inf, -torch.inf], 0.0),
    ],
    ids=["some", "ties are no hits", "fewer than k", "exactly k", "no free pair", "no link", "never met"],
)
def test_hits_at_the_borders(k: int, labels: list[int], found: list[float], expected: float) -> None:
    assert hits_at(k, torch.tensor(labels), torch.tensor(found)) == pytest.approx(expected, nan_ok=True)


def test_links_are_scored_in_each_group_they_are_asked_in() -> None:
    """A unit has the mean over its groups; pairs without a link may count in several groups."""
    random = torch.Generator().manual_seed(3)
    labels, answers = torch.arange(24) % 3 == 0, torch.randn(24, 1, generator=random)
    asked = torch.zeros(24, 3, dtype=torch.bool)
    asked[:10, 0], asked[10:24, 1], asked[5:20, 2] = True, True, True
    truth = Truth(labels.long(), asked, torch.tensor([2, 0, 2]), 4)
    problem = LinkExists(k=3)
    found = {
        measure.metric: measure for measure in problem.measure(answers, truth, torch.ones(24, 1).bool(), "validation")
    }
    assert tuple(found) == problem.metrics == ("hits@3", "roc_auc")
    for metric, score in (
        ("hits@3", lambda one, other: hits_by_hand(3, other[one].tolist(), other[~one].tolist())),
        ("roc_auc", lambda one, other: roc_auc_score(one, other)),
    ):
        first, second, third = (score(labels[rows], answers[rows, 0]) for rows in asked.T)
        np.testing.assert_allclose(found[metric].values, [second, NAN, (first + third) / 2, NAN])
        np.testing.assert_array_equal(found[metric].asked, [14, 0, 25, 0])
        assert found[metric].part == "validation"
        assert found[metric].counts is None


def test_links_that_are_all_alike_have_no_area() -> None:
    truth = Truth(torch.ones(3).long(), torch.ones(3, 1).bool(), torch.tensor([0]), 1)
    hits, area = LinkExists(k=1).measure(torch.rand(3, 1), truth, torch.ones(3, 1).bool(), "test")
    assert hits.values.tolist() == [1.0]
    assert np.isnan(area.values).all()


def test_a_unit_has_the_mean_of_its_groups_that_have_a_value() -> None:
    truth = Truth(torch.zeros(2), torch.tensor([[True, True, False], [True, False, False]]), torch.tensor([1, 1, 0]), 3)
    measure = truth.measure("test", "worth", torch.tensor([0.2, NAN, NAN], dtype=torch.float64))
    np.testing.assert_array_equal(measure.values, [NAN, 0.2, NAN])
    np.testing.assert_array_equal(measure.asked, [0, 3, 0])


def one_class_case(seed: int) -> tuple[Tensor, Truth, Tensor]:
    labels = torch.randint(5, (40,), generator=torch.Generator().manual_seed(seed))
    among = scopes([(0, 3), (1, 4)], 5)[torch.where(torch.isin(labels, torch.tensor([1, 4])), 1, -1)]
    return drawn(seed, 40, 5), truth_of(labels, 5), among


def many_labels_case(seed: int) -> tuple[Tensor, Truth, Tensor]:
    labels = (drawn(seed + 1, 40, 5) > 0).float()
    asked = drawn(seed + 2, 40, 5) > -1
    return drawn(seed, 40, 5), Truth(labels, asked, torch.arange(5), 5), scopes([(0, 3, 4)], 5)[torch.full((40,), -1)]


@pytest.mark.parametrize(
    ("problem", "case"), [(OneClass(), one_class_case), (ManyLabels(), many_labels_case)], ids=["class", "labels"]
)
@settings(max_examples=25)
@given(seed=st.integers(0, 99), new=st.permutations(range(5)))
def test_permuting_the_classes_permutes_the_measures(
    problem: Problem, case: Callable[[int], tuple[Tensor, Truth, Tensor]], seed: int, new: list[int]
) -> None:
    answers, truth, among = case(seed)
    old = torch.tensor(new).argsort()
    labels = torch.tensor(new)[truth.labels] if truth.labels.ndim == 1 else truth.labels[:, old]
    renamed = Truth(labels, truth.asked[:, old], torch.arange(5), 5)
    before = problem.measure(answers, truth, among, "test")
    after = problem.measure(answers[:, old], renamed, among[:, old], "test")
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(other.values[new], one.values)
        np.testing.assert_array_equal(other.asked[new], one.asked)
        if one.counts is not None and other.counts is not None:
            np.testing.assert_array_equal(other.counts[np.ix_(new, new)], one.counts)
    assert not np.isnan(before[0].values).all()


@settings(max_examples=25)
@given(seed=st.integers(0, 99), new=st.permutations(range(4)))
def test_permuting_the_groups_of_links_permutes_the_measures(seed: int, new: list[int]) -> None:
    answers, labels = drawn(seed, 40, 1), (drawn(seed + 1, 40) > 0).long()
    asked, among = drawn(seed + 2, 40, 4) > 0, torch.ones(40, 1).bool()
    before = LinkExists(k=2).measure(answers, Truth(labels, asked, torch.arange(4), 4), among, "test")
    after = LinkExists(k=2).measure(answers, Truth(labels, asked, torch.tensor(new), 4), among, "test")
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(other.values[new], one.values)
        np.testing.assert_array_equal(other.asked[new], one.asked)
