"""Memories filled step by step: all that passed is kept with the same probability, all that is kept is drawn alike."""

from pathlib import Path

import pytest
import torch

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.reservoir import Reservoir, Slots
from skeleton_cgl.scenarios.scenario import Samples
from tests.learning.learners import small_learner
from tests.scenarios.small import scenario_of


@pytest.fixture
def learner(small: Path) -> Learner:
    return small_learner(scenario_of(small))


def samples_of(*ids: int) -> Samples:
    numbers = torch.tensor(ids)
    return Samples(None, numbers, numbers % 3, numbers % 5 - 1)


def test_every_sample_that_passed_is_kept_with_probability_m_over_all(learner: Learner) -> None:
    """Whether it came early or late, among the first five or with ten others: 5/30."""
    trials, batches = 3000, [samples_of(*range(start, end)) for start, end in ((0, 3), (3, 7), (7, 17), (17, 30))]
    counts = torch.zeros(30)
    for trial in range(trials):
        learner._seed = trial
        memory = Reservoir(5)
        for batch in batches:
            memory.offer(learner, batch)
        counts[memory["ids"]] += 1
    assert counts.sum() == 5 * trials
    # The standard deviation is √(3000 · 1/6 · 5/6) = 20. Drawn from one value less, early samples come to 411.
    assert (counts - trials / 6).abs().max() < 4 * 20


def test_what_there_is_room_for_is_kept_in_its_sequence_with_all_that_is_known_of_it(learner: Learner) -> None:
    memory = Reservoir(10)
    memory.offer(learner, samples_of(4, 8), score=torch.tensor([0.4, 0.8]))
    memory.offer(learner, samples_of(6, 2, 9), score=torch.tensor([0.6, 0.2, 0.9]))
    assert memory.seen == len(memory) == 5
    assert memory["ids"].tolist() == [4, 8, 6, 2, 9]
    torch.testing.assert_close(memory["score"], memory["ids"] / 10)
    kept = memory.at(torch.tensor([3, 0]), None)
    assert (kept.ids.tolist(), kept.labels.tolist(), kept.step.tolist()) == ([2, 4], [2, 1], [1, 3])


def test_columns_stay_with_their_sample_when_others_are_replaced(learner: Learner) -> None:
    memory = Reservoir(4)
    for start in range(0, 60, 6):
        batch = samples_of(*range(start, start + 6))
        memory.offer(learner, batch, score=batch.ids / 10)
    assert memory.seen == 60
    assert len(memory) == len(memory["ids"].unique()) == 4
    assert memory["ids"].max() > 6
    torch.testing.assert_close(memory["score"], memory["ids"] / 10)
    assert torch.equal(memory["labels"], memory["ids"] % 3)


def test_of_several_for_one_slot_the_last_stays() -> None:
    memory = Slots(2)
    memory.put(torch.tensor([0, 1, 0, 0]), samples_of(5, 6, 7, 8))
    assert memory["ids"].tolist() == [8, 6]


def test_a_column_that_comes_to_be_wider_has_nothing_in_its_earlier_rows() -> None:
    memory = Slots(3)
    memory.put(torch.tensor([0, 1]), samples_of(5, 6), outputs=torch.tensor([[1.0, 2], [3, 4]]))
    memory.put(torch.tensor([2, 0]), samples_of(7, 8), outputs=torch.tensor([[5.0, 6, 7], [8, 9, 10]]))
    expected = torch.tensor([[8.0, 9, 10], [3, 4, torch.nan], [5, 6, 7]])
    torch.testing.assert_close(memory["outputs"], expected, equal_nan=True)


def test_every_slot_is_drawn_alike_and_none_twice(learner: Learner) -> None:
    memory = Slots(6)
    memory.put(torch.arange(6), samples_of(*range(6)))
    counts = torch.zeros(6)
    for _ in range(3000):
        drawn = memory.draw(learner, 2)
        assert len(drawn) == len(drawn.unique()) == 2
        counts[drawn] += 1
    # 1000 each; the standard deviation is √(3000 · 1/3 · 2/3) = 26.
    assert (counts - 1000).abs().max() < 4 * 26
    assert memory.draw(learner, 50).sort().values.tolist() == list(range(6))
    assert len(Slots(6).draw(learner, 2)) == 0


def test_what_comes_back_from_a_state_draws_and_keeps_as_if_it_had_never_been_saved(learner: Learner) -> None:
    memory, restored = Reservoir(4), Reservoir(4)
    memory.offer(learner, samples_of(*range(9)), outputs=torch.rand(9, 2))
    memory.draw(learner, 2)
    restored.restore(from_bytes(to_bytes(memory.state())))
    for each in (memory, restored):
        each.offer(learner, samples_of(*range(9, 30)), outputs=torch.ones(21, 3))
    assert torch.equal(memory.draw(learner, 3), restored.draw(learner, 3))
    assert to_bytes(memory.state()) == to_bytes(restored.state())


def test_draws_follow_the_seed_of_the_learner_and_leave_torchs_generator_alone(learner: Learner, small: Path) -> None:
    def kept(by: Learner) -> list[int]:
        memory = Reservoir(5)
        memory.offer(by, samples_of(*range(40)))
        return [*memory["ids"].tolist(), *memory.draw(by, 5).tolist()]

    before = torch.random.get_rng_state()
    assert kept(learner) == kept(learner) != kept(small_learner(scenario_of(small), seed=1))
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        *((name, {"count": 0}, "count 0 is not a whole number of at least") for name in ("er", "a-gem", "der", "gss")),
        *((name, {"count": 2.5}, "count 2.5 is not a whole number") for name in ("er", "a-gem", "der-pp", "gss")),
        *((name, {"count": 1}, "count 1 is not a whole number of at least 2") for name in ("a-gem", "gss")),
        *((name, {"alpha": -0.1}, "alpha -0.1 is not a number of at least 0") for name in ("der", "der-pp")),
        *((name, {"passes": "evry"}, "unknown passes 'evry'; did you mean 'every'") for name in ("der", "der-pp")),
        ("der", {"beta": 1}, "unknown parameter 'beta'"),
        ("der-pp", {"beta": -1}, "beta -1 is not a number of at least 0"),
        ("der", {"alpha": float("nan")}, "alpha nan is not a number of at least 0"),
        ("gss", {"replayed": 1}, "replayed 1 is not a whole number of at least 2"),
        ("gss", {"directions": 0}, "directions 0 is not a whole number of at least 1"),
        ("gss", {"draw": "publish"}, "unknown draw 'publish'; did you mean 'published'"),
    ],
)
def test_wrong_parameters_are_refused_in_words(method: str, parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=rf"method '{method}': {message}"):
        make_method(method, parameters)
