"""How latent tasks run into one another, computed anew: by hand, by brute force and over many seeds."""

from collections import Counter
from itertools import pairwise, product
from math import ceil, exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order
from skeleton_cgl.scenarios.transitions import (
    AnyTransition,
    Batches,
    Queue,
    Transition,
    largest_remainders,
    numbers_of_batches,
    overlap_index,
)

SIZE = 10
EQUAL = [60, 60, 60, 60]
UNEQUAL = [43, 120, 65, 88]
ONE_LEFT = [41, 61, 51]
FEW: dict[str, dict[str, Any]] = {
    "hard": {},
    "gaussian": {"sigma": 2},
    "global": {"share": 0.3},
    "boundary": {"batches": 2},
}


def transition(name: str, **fields: Any) -> Transition:
    made: Transition = TypeAdapter(AnyTransition).validate_python({"name": name, **fields})
    return made


def usual(name: str) -> Transition:
    return transition(name, **FEW[name])


def tasks_of(lengths: list[int]) -> Order:
    """Return tasks of a class each, not in the sequence of their classes."""
    return tuple((7 - place,) for place in range(len(lengths)))


def samples_of(lengths: list[int]) -> dict[tuple[int, ...], np.ndarray]:
    """Return the samples of every task, 1000 numbers apart."""
    return {task: 1000 * task[0] + np.arange(length) for task, length in zip(tasks_of(lengths), lengths, strict=True)}


def stream(
    kind: Transition,
    lengths: list[int],
    seed: int = 0,
    size: int = SIZE,
    order: Order | None = None,
    replacement: bool = False,
) -> Batches:
    samples = samples_of(lengths)
    queues = [Queue(task, samples[task], seed, replacement) for task in order or tasks_of(lengths)]
    return kind.batches_of(queues, size, seed)


def shares(batches: Batches, order: Order) -> np.ndarray:
    """Return (T, K) the share of every task in every batch."""
    return np.array([[(batch // 1000 == task[0]).mean() for task in order] for batch in batches])


def flat(batches: Batches) -> list[int]:
    return np.concatenate(batches).tolist()


def test_the_shares_of_a_gaussian_mixture_are_those_of_the_formula() -> None:
    """Of 4, 2 and 3 batches, the centres are 2, 5 and 7.5."""
    found = transition("gaussian", sigma=1.5).mixture(((0,), (1,), (2,)), [40, 11, 25], 10)
    centres = (2, 5, 7.5)
    assert found.shape == (9, 3)
    for step in range(9):
        weights = [exp(-((step - centre) ** 2) / (2 * 1.5**2)) for centre in centres]
        np.testing.assert_allclose(found[step], [weight / sum(weights) for weight in weights])


@pytest.mark.parametrize("sigma", [1e-200, 5e-324])
def test_however_narrow_a_gaussian_is_the_nearest_centre_has_the_batch(sigma: float) -> None:
    order, lengths = ((0,), (1,), (2,)), [40, 90, 60]
    narrow, usual = (transition("gaussian", sigma=each).mixture(order, lengths, 10) for each in (sigma, 1e-3))
    assert np.array_equal(narrow, usual)


def test_a_narrow_gaussian_far_from_all_centres_still_has_shares() -> None:
    """All densities are 0 there in floating point, and 0/0 no share."""
    found = transition("gaussian", sigma=1e-3).mixture(tasks_of(EQUAL), [2000] * 4, 10)
    np.testing.assert_allclose(found.sum(axis=1), 1)


MIXTURES = st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any)


@given(weights=MIXTURES, size=st.integers(1, 40))
def test_numbers_of_samples_are_by_the_largest_remainders_and_sum_to_the_batch(weights: list[int], size: int) -> None:
    mixture = np.array(weights) / sum(weights)
    (found,) = largest_remainders(mixture[None], size)
    assert found.sum() == size
    wanted = mixture * size
    assert (found >= np.floor(wanted)).all()
    assert (found <= np.floor(wanted) + 1).all()
    more = found > np.floor(wanted)
    remainders = wanted - np.floor(wanted)
    assert not more.any() or more.all() or remainders[more].min() >= remainders[~more].max()


EIGHTHS = [eighths for eighths in product(range(5), repeat=4) if sum(eighths) == 8]


@pytest.mark.parametrize("size", [1, 3, 4, 6])
def test_of_equal_remainders_later_tasks_get_the_sample(size: int) -> None:
    """By brute force: of all ways to give out the missing ones, the one with the largest remainders, latest first."""
    for eighths in EIGHTHS:
        mixture = np.array(eighths) / 8
        wanted = mixture * size
        low = np.floor(wanted).astype(int)
        ways = [way for way in product((0, 1), repeat=4) if sum(way) == size - low.sum()]
        best = max(ways, key=lambda way: (np.dot(way, wanted - low), way[::-1]))
        assert largest_remainders(mixture[None], size)[0].tolist() == (low + best).tolist()


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(10, 70), min_size=2, max_size=5),
    sigma=st.floats(0.05, 30),
    seed=st.integers(0, 2**40),
)
def test_every_batch_of_a_gaussian_stream_is_full_and_there_are_as_many_as_of_all_tasks(
    lengths: list[int], sigma: float, seed: int
) -> None:
    kind = transition("gaussian", sigma=sigma)
    batches = stream(kind, lengths, seed)
    assert [len(batch) for batch in batches] == [SIZE] * sum(ceil(length / SIZE) for length in lengths)
    counts = largest_remainders(kind.mixture(tasks_of(lengths), lengths, SIZE), SIZE)
    np.testing.assert_array_equal(shares(batches, tasks_of(lengths)) * SIZE, counts)


def test_the_overlap_index_is_the_share_of_steps_without_a_task_that_prevails() -> None:
    mixture = np.array([[1, 0], [0.9, 0.1], [0.89, 0.11], [0.5, 0.5], [0.05, 0.95]])
    assert overlap_index(mixture) == pytest.approx(2 / 5)
    assert overlap_index(mixture, below=0.95) == pytest.approx(3 / 5)


@pytest.mark.parametrize(("sigma", "published"), [(3, 0.04), (10, 0.38), (20, 0.92)])
def test_tasks_as_long_as_those_of_corafull_overlap_about_as_published(sigma: float, published: float) -> None:
    """35 tasks in 1201 batches: equal ones of 34 or 35 come near the published index, whose tasks are not equal.

    Between two equal tasks, d batches apart, neither has 9/10 within σ² log 9/d of the middle; that is a share of
    2 σ² log 9/d² of the steps for as long as no third task has a say.
    """
    lengths = [350] * 11 + [340] * 24
    found = overlap_index(transition("gaussian", sigma=sigma).mixture(tasks_of(lengths), lengths, 10))
    by_hand = 2 * sigma**2 * np.log(9) / (1201 / 35) ** 2
    assert sum(numbers_of_batches(lengths, 10)) == 1201
    assert found == pytest.approx(min(by_hand, 1), abs=0.03)
    assert found == pytest.approx(published, abs=0.1)


def test_a_hard_stream_has_every_task_whole_before_the_next() -> None:
    batches = stream(usual("hard"), UNEQUAL)
    assert [len(batch) for batch in batches] == [*[10] * 4, 3, *[10] * 12, *[10] * 6, 5, *[10] * 8, 8]
    samples, start = samples_of(UNEQUAL), 0
    for task, length in zip(tasks_of(UNEQUAL), UNEQUAL, strict=True):
        own = flat(batches)[start : start + length]
        assert sorted(own) == samples[task].tolist()
        assert own != sorted(own)
        start += length


@pytest.mark.parametrize("lengths", [UNEQUAL, ONE_LEFT], ids=["unequal", "one left"])
@pytest.mark.parametrize("name", ["hard", "global", "boundary"])
def test_every_sample_comes_exactly_once(name: str, lengths: list[int]) -> None:
    everything = np.concatenate(list(samples_of(lengths).values()))
    assert sorted(flat(stream(usual(name), lengths))) == sorted(everything.tolist())


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(20, 45), min_size=2, max_size=4),
    size=st.integers(2, 5),
    name=st.sampled_from(list(FEW)),
)
def test_no_batch_is_of_one_sample_and_as_many_come_as_are_expected(lengths: list[int], size: int, name: str) -> None:
    """BatchNorm needs two: a rest of one joins the batch before it."""
    batches = stream(usual(name), lengths, size=size)
    assert {2, size, size + 1} >= {len(batch) for batch in batches} - set(range(3, size))
    assert len(batches) == len(usual(name).mixture(tasks_of(lengths), lengths, size))


@pytest.mark.parametrize("sigma", [0.5, 4, 1000])
def test_no_sample_of_a_task_comes_again_before_all_came(sigma: float) -> None:
    """Where a queue runs out it is shuffled anew: among N_k samples in a row, none is twice."""
    batches = stream(transition("gaussian", sigma=sigma), UNEQUAL)
    again = 0
    for task, samples in samples_of(UNEQUAL).items():
        # Batches are shuffled: only between them is the sequence that of the queue.
        counts: Counter[int] = Counter()
        for batch in batches:
            counts.update(batch[batch // 1000 == task[0]].tolist())
            drawn = sum(counts.values())
            assert set(counts.values()) <= {drawn // len(samples), ceil(drawn / len(samples))}
        again += max(counts.values(), default=0) > 1
    assert sigma < 1000 or again


def test_a_queue_that_runs_out_begins_in_another_sequence() -> None:
    queue = Queue((0,), np.arange(20), 3, replacement=False)
    first, second = queue.next(20).tolist(), queue.next(20).tolist()
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    assert [*Queue((0,), np.arange(20), 3, replacement=False).next(27)] == [*first, *second[:7]]


@pytest.mark.parametrize("name", ["hard", "gaussian"])
def test_with_replacement_some_samples_come_again_before_all_came(name: str) -> None:
    drawn = flat(stream(usual(name), EQUAL, replacement=True))
    own = [sample for sample in drawn if sample < 5000]
    assert max(Counter(own[:60]).values()) > 1
    assert {sample // 1000 for sample in drawn} == {4, 5, 6, 7}


def test_global_mixing_leaves_most_samples_where_they_are_and_deals_the_others_in_equal_numbers() -> None:
    for share in (0.1, 0.3, 1):
        batches = stream(transition("global", share=share), UNEQUAL)
        staying = [round((1 - share) * length * 1000) // 1000 for length in UNEQUAL]
        dealt = sum(UNEQUAL) - sum(staying)
        start, given_to = 0, []
        for task, stays in zip(tasks_of(UNEQUAL), staying, strict=True):
            # A task has its blocks in batches of its own: a short batch ends it, or none is short.
            sizes = (stays + dealt // 4, stays + ceil(dealt / 4))
            taken = next(size for size in sizes if _ends_at(batches, start, size))
            block = np.array(flat(batches)[start : start + taken])
            assert (block // 1000 == task[0]).sum() >= stays
            given_to.append(taken - stays)
            start += taken
        assert start == sum(UNEQUAL)
        assert max(given_to) - min(given_to) <= 1


def _ends_at(batches: Batches, start: int, length: int) -> bool:
    return start + length in np.cumsum([len(batch) for batch in batches])


def test_a_share_that_is_no_binary_fraction_leaves_as_many_as_it_says() -> None:
    """(1 − 0.9) · 30 is 2.999…96 in floating point, and 3 by what is meant."""
    assert int((1 - 0.9) * 30) == 2
    mixture = transition("global", share=0.9).mixture(tasks_of([30, 30]), [30, 30], 10)
    np.testing.assert_allclose(mixture[0], [(3 + 27 / 2) / 30, 27 / 2 / 30])


def test_global_mixing_of_nothing_is_hard_up_to_the_sequence_within_a_task() -> None:
    for lengths in (EQUAL, UNEQUAL):
        mixed, hard = stream(transition("global", share=0), lengths), stream(usual("hard"), lengths)
        assert [len(batch) for batch in mixed] == [len(batch) for batch in hard]
        start = 0
        for length in lengths:
            ours, theirs = (sorted(flat(each)[start : start + length]) for each in (mixed, hard))
            assert ours == theirs
            start += length


def test_only_the_batches_around_a_border_change_and_keep_their_sizes() -> None:
    hard = stream(usual("hard"), UNEQUAL)
    mixed = stream(transition("boundary", batches=2), UNEQUAL)
    borders = np.cumsum(numbers_of_batches(UNEQUAL, SIZE))[:-1]
    assert [len(batch) for batch in mixed] == [len(batch) for batch in hard]
    around = {border + offset for border in borders for offset in (-2, -1, 0, 1)}
    for place, (ours, theirs) in enumerate(zip(mixed, hard, strict=True)):
        assert (ours.tolist() != theirs.tolist()) == (place in around)
    for border in borders:
        window = slice(border - 2, border + 2)
        assert sorted(flat(mixed[window])) == sorted(flat(hard[window]))
        assert any(len(set((batch // 1000).tolist())) > 1 for batch in mixed[window])


def test_windows_may_meet_in_the_middle_of_a_task_and_no_further() -> None:
    assert len(stream(transition("boundary", batches=3), EQUAL)) == 24
    with pytest.raises(
        InputError, match=r"batches: 4 on either side of a border are more than half a task, the sh.* 6$"
    ):
        stream(transition("boundary", batches=4), EQUAL)


@pytest.mark.parametrize("lengths", [EQUAL, UNEQUAL, ONE_LEFT], ids=["equal", "unequal", "one left"])
@pytest.mark.parametrize("name", FEW)
def test_the_expected_mixture_is_the_mean_of_what_comes(name: str, lengths: list[int]) -> None:
    """Within 5 standard errors: a share of a batch of b is off by at most √(1/4b) in one stream."""
    seeds, order = 100, tasks_of(lengths)
    found = [stream(usual(name), lengths, seed) for seed in range(seeds)]
    expected = usual(name).mixture(order, lengths, SIZE)
    sizes = np.array([len(batch) for batch in found[0]])
    assert expected.shape == (len(found[0]), len(lengths))
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    mean = np.mean([shares(batches, order) for batches in found], axis=0)
    bound = 5 * np.sqrt(1 / (4 * sizes * seeds))
    # Of a gaussian mixture whole samples are drawn, the same numbers for every seed.
    rounding = 1 / SIZE if name == "gaussian" else 0
    assert (np.abs(mean - expected) <= bound[:, None] + rounding).all()


def test_a_narrow_gaussian_stream_of_equal_tasks_is_hard_up_to_the_batch_at_a_border() -> None:
    """At t = 6, 12 and 18 two centres are as near as one another: half of the batch is of either task."""
    found = shares(stream(transition("gaussian", sigma=1e-3), EQUAL), tasks_of(EQUAL))
    expected = usual("hard").mixture(tasks_of(EQUAL), EQUAL, SIZE)
    expected[[6, 12, 18]] = (expected[[5, 11, 17]] + expected[[6, 12, 18]]) / 2
    np.testing.assert_array_equal(found, expected)


def test_a_narrow_gaussian_stream_of_unequal_tasks_goes_by_the_nearest_centre() -> None:
    """As published: of 12 batches and 2, with centres at 6 and 13, the change comes at 9.5 and not at 12."""
    found = shares(stream(transition("gaussian", sigma=1e-3), [120, 20]), tasks_of([120, 20]))
    assert found[:, 0].tolist() == [1.0] * 10 + [0.0] * 4


@pytest.mark.parametrize("name", FEW)
def test_the_same_seed_is_the_same_stream_and_another_seed_another_one(name: str) -> None:
    one, again, other = (stream(usual(name), UNEQUAL, seed) for seed in (5, 5, 6))
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(one, again, strict=True))
    assert flat(one) != flat(other)


@pytest.mark.parametrize("name", ["hard", "global"])
def test_in_another_order_the_same_blocks_come_in_another_sequence(name: str) -> None:
    order = tasks_of(UNEQUAL)
    one, other = (stream(usual(name), UNEQUAL, order=each) for each in (order, order[::-1]))
    as_values = [[tuple(batch.tolist()) for batch in batches] for batches in (one, other)]
    assert as_values[0] != as_values[1]
    assert sorted(as_values[0]) == sorted(as_values[1])
    # Backwards block by block, and forwards within one.
    ends = np.cumsum([0, *_block_sizes(usual(name), order)])
    blocks = [as_values[0][start:end] for start, end in pairwise(ends)]
    assert [batch for block in blocks[::-1] for batch in block] == as_values[1]


def _block_sizes(kind: Transition, order: Order) -> list[int]:
    """Return the numbers of batches that are alike in their expected shares."""
    mixture = kind.mixture(order, UNEQUAL, SIZE)
    changes = np.flatnonzero((np.diff(mixture, axis=0) != 0).any(axis=1)) + 1
    return np.diff([0, *changes, len(mixture)]).tolist()


@pytest.mark.parametrize(("name", "shared"), [("hard", 17), ("boundary", 15)])
def test_orders_that_begin_alike_have_streams_that_begin_alike(name: str, shared: int) -> None:
    """Of 5 and 12 batches; the last ones before a border depend on what comes after it, if they mix."""
    first, second, *others = tasks_of(UNEQUAL)
    one, other = (
        stream(usual(name), UNEQUAL, order=(first, second, *rest)) for rest in (tuple(others), tuple(others[::-1]))
    )
    alike = [np.array_equal(ours, theirs) for ours, theirs in zip(one, other, strict=False)]
    assert alike[:shared] == [True] * shared
    assert not any(alike[shared:])


def test_a_gaussian_stream_begins_alike_for_as_long_as_the_tasks_to_come_have_no_share() -> None:
    order = tasks_of(EQUAL)
    kind = transition("gaussian", sigma=0.8)
    one, other = (stream(kind, EQUAL, order=each) for each in (order, (*order[:2], *order[:1:-1])))
    alike = [np.array_equal(ours, theirs) for ours, theirs in zip(one, other, strict=True)]
    counts = largest_remainders(kind.mixture(order, EQUAL, SIZE), SIZE)
    first = int(np.flatnonzero(counts[:, 2:].any(axis=1))[0])
    assert alike == [place < first for place in range(24)]
