"""The hardest of the samples seen last are those of a search through all that was seen."""

import random

import pytest
import torch

from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.hard_samples import HardSamples
from skeleton_cgl.scenarios.scenario import Samples
from tests.methods.test_reservoir import samples_of

Seen = list[tuple[int, float]]


def see(memory: HardSamples, batch: Seen) -> None:
    ids, losses = zip(*batch, strict=True)
    memory.see(samples_of(*ids), torch.tensor(losses))


def hardest(memory: HardSamples) -> list[int]:
    return memory.hardest(samples_of(0).pool).ids.tolist()


def searched(seen: list[Seen], hard: int, recent: int) -> list[int]:
    """Return the hardest of the last distinct samples, by sorting and by a dict in which the latest sight counts."""
    latest: dict[int, float] = {}
    for batch in seen:
        for sample, loss in sorted(batch, key=lambda one: one[1]):
            latest.pop(sample, None)
            latest[sample] = loss
    last = list(latest.items())[-recent:]
    return [sample for sample, _ in sorted(last, key=lambda one: -one[1])][:hard]


def batches(draw: random.Random, samples: int, sizes: tuple[int, ...]) -> list[Seen]:
    return [[(one, draw.random()) for one in draw.sample(range(samples), draw.choice(sizes))] for _ in range(30)]


@pytest.mark.parametrize(("hard", "recent"), [(1, 1), (3, 8), (8, 8), (20, 100)])
@pytest.mark.parametrize("sizes", [(1,), (4,), (1, 5, 12)])
def test_the_hardest_are_those_of_a_search_through_all_that_was_seen(
    hard: int, recent: int, sizes: tuple[int, ...]
) -> None:
    seen = batches(random.Random(hard), 25, sizes)
    memory = HardSamples(hard, recent)
    for number, batch in enumerate(seen, start=1):
        see(memory, batch)
        assert hardest(memory) == searched(seen[:number], hard, recent)
        assert len(memory) == min(recent, len({one for each in seen[:number] for one, _ in each}))
        memory.restore(from_bytes(to_bytes(memory.state())))


def test_what_was_hard_is_forgotten_when_enough_has_been_seen_since() -> None:
    memory = HardSamples(hard=1, recent=3)
    see(memory, [(7, 9.0)])
    see(memory, [(1, 0.1), (2, 0.2)])
    assert hardest(memory) == [7]
    see(memory, [(3, 0.05)])
    assert hardest(memory) == [2]


def test_samples_keep_their_own_labels_and_steps() -> None:
    memory = HardSamples(hard=2, recent=5)
    made = samples_of(4, 5, 6, 7)
    labels = torch.tensor([[0.0, 1.0], [1.0, torch.nan], [1.0, 1.0], [0.0, 0.0]])
    memory.see(Samples(made.pool, made.ids, labels, torch.tensor([0, 1, 0, 2])), torch.tensor([0.4, 0.9, 0.1, 0.8]))
    found = memory.hardest(made.pool)
    assert found.ids.tolist() == [5, 7]
    torch.testing.assert_close(found.labels, labels[[1, 3]], equal_nan=True, rtol=0, atol=0)
    assert found.step.tolist() == [1, 2]
