"""Memories: a fraction or a count of every task, chosen once by a seed of the task, kept for good."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import LearningFailed, make_method
from skeleton_cgl.methods.gem import GEM
from skeleton_cgl.methods.memory import Memory
from skeleton_cgl.methods.replay import Replay
from skeleton_cgl.scenarios.lessons import TaskLesson
from skeleton_cgl.scenarios.scenario import Experience, Samples
from tests.learning.learners import ORDER, learn_tasks, seed_for, small_learner
from tests.scenarios.small import SETTINGS, lesson, scenario_of


def experience_of(count: int) -> Experience:
    ids = torch.randperm(1000, generator=torch.Generator().manual_seed(count))[:count]
    samples = Samples(None, ids, ids % 3, ids % 5 - 1)
    return Experience(TaskLesson((0, 1, 2)), ("a", "b", "c"), (0, 1, 2), samples, samples)


@given(count=st.integers(1, 60), fraction=st.floats(0.001, 1), seed=st.integers(0, 2**63 - 1))
def test_a_fraction_is_kept_and_at_least_one(count: int, fraction: float, seed: int) -> None:
    experience = experience_of(count)
    memory = Memory(fraction, None)
    memory.keep(experience, seed)
    (kept,) = memory.of_tasks(None)
    assert abs(len(kept) - fraction * count) <= 0.5 or len(kept) == 1
    assert set(kept.ids.tolist()) <= set(experience.training.ids.tolist())
    assert len(kept.ids.unique()) == len(kept) >= 1
    assert torch.equal(kept.labels, kept.ids % 3)
    assert torch.equal(kept.step, kept.ids % 5 - 1)


@given(count=st.integers(1, 60), wanted=st.integers(1, 80))
def test_a_count_is_kept_or_everything_there_is(count: int, wanted: int) -> None:
    memory = Memory(None, wanted)
    memory.keep(experience_of(count), 0)
    assert len(memory.of_tasks(None)[0]) == min(count, wanted)


def test_everything_is_kept_in_its_order() -> None:
    experience = experience_of(20)
    memory = Memory(1, None)
    memory.keep(experience, 5)
    assert torch.equal(memory.of_tasks(None)[0].ids, experience.training.ids)


def test_the_seed_chooses_and_what_is_kept_stays() -> None:
    def kept(*seeds: int) -> list[list[int]]:
        memory = Memory(0.3, None)
        for seed in seeds:
            memory.keep(experience_of(40), seed)
        return [samples.ids.tolist() for samples in memory.of_tasks(None)]

    assert kept(1, 2)[0] == kept(1)[0] == kept(1, 7)[0]
    assert kept(1) != kept(2)
    assert kept(1, 2) == [kept(1)[0], kept(2)[0]]


def test_every_sample_is_equally_likely_to_be_kept() -> None:
    experience = experience_of(10)
    counts = dict.fromkeys(experience.training.ids.tolist(), 0)
    for seed in range(2000):
        memory = Memory(None, 3)
        memory.keep(experience, seed)
        for sample in memory.of_tasks(None)[0].ids.tolist():
            counts[sample] += 1
    # Expected 600 each, standard deviation √(2000 · 0.3 · 0.7) = 20.
    assert max(abs(count - 600) for count in counts.values()) < 100


@pytest.mark.parametrize("method", ["replay", "gem"])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"fraction": 0}, "fraction 0 is not between 0 and 1"),
        ({"fraction": 1.5}, "fraction 1.5 is not between"),
        ({"fraction": -0.1}, "fraction -0.1 is not between"),
        ({"fraction": float("nan")}, "fraction nan is not between"),
        ({"count": 0}, "count 0 is not"),
        ({"count": -3}, "count -3 is not"),
        ({"count": 2.5}, "count 2.5 is not a whole number"),
        ({"count": 3, "fraction": 0.5}, "give either a fraction or a count"),
        ({"fractions": 0.5}, "unknown parameter 'fractions'; did you mean 'fraction'"),
    ],
)
def test_wrong_memories_are_refused(method: str, parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=rf"method '{method}'.*{message}"):
        make_method(method, parameters)


def test_gem_needs_two_samples_of_a_task_and_a_margin_of_at_least_zero() -> None:
    """A task's memory passes through BatchNorm alone."""
    with pytest.raises(InputError, match="count 1 is not a whole number of at least 2"):
        make_method("gem", {"count": 1})
    with pytest.raises(InputError, match="margin -1 is negative"):
        make_method("gem", {"margin": -1})


@pytest.mark.parametrize("fraction", [0.001, 0.1])
def test_gem_learns_with_the_smallest_memory(small: Path, fraction: float) -> None:
    scenario = scenario_of(small)
    learner = learn_tasks(small_learner(scenario, "gem", {"fraction": fraction}), scenario, *ORDER)
    kept = learner.method.memory.of_tasks(scenario.queries(()).pool)
    assert all(len(samples) >= 2 for samples in kept)


class WatchedReplay(Replay):
    def __init__(self) -> None:
        super().__init__(fraction=0.25)
        self.batches: list[Batch] = []

    def loss(self, learner: Learner, batch: Batch):
        self.batches.append(batch)
        return super().loss(learner, batch)


class WatchedGEM(GEM):
    def __init__(self) -> None:
        super().__init__(fraction=0.25)
        self.remembered: list[list[tuple]] = []

    def gradients_ready(self, learner: Learner) -> None:
        self.remembered.append([batch.inputs.parts[0].numpy().tobytes() for batch in self._remembered])
        super().gradients_ready(learner)


@pytest.mark.parametrize("setting", SETTINGS)
def test_replay_mixes_what_it_kept_of_past_tasks_into_the_new_one(small: Path, setting: str) -> None:
    scenario = scenario_of(small, setting)
    learner = small_learner(scenario, f"{__name__}:WatchedReplay", epochs=2)
    kept = []
    for stage in range(len(ORDER)):
        learner.method.batches.clear()
        experience = lesson(scenario, *ORDER[: stage + 1])
        training = experience.training
        learner.learn(experience, seed_for(stage))
        expected = [*kept, *zip(training.ids.tolist(), training.labels.tolist(), strict=True)]
        ids = torch.tensor([number for number, _ in expected])
        inputs = training.pool.whole().rows(ids).arranged(learner.backbone.arrange)
        for batch in learner.method.batches:
            assert [learner.head.outputs[column] for column in batch.targets.tolist()] == [
                label for _, label in expected
            ]
            assert torch.equal(batch.inputs.parts[0], inputs.parts[0])
            # What is remembered keeps the step of the task it is of.
            for (_, label), among in zip(expected, batch.among, strict=True):
                task_of = next(task for task in ORDER if label in task)
                allowed = task_of if setting == "task-il" else learner.head.outputs
                assert {learner.head.outputs[column] for column in among.nonzero()[:, 0]} == set(allowed)
        newest = learner.method.memory.of_tasks(training.pool)[-1]
        kept += zip(newest.ids.tolist(), newest.labels.tolist(), strict=True)
        assert len(newest) == round(0.25 * len(training))
        assert set(newest.ids.tolist()) <= set(training.ids.tolist())


def test_gem_remembers_the_same_samples_in_every_epoch_and_every_later_task(small: Path) -> None:
    scenario = scenario_of(small)
    learner = learn_tasks(small_learner(scenario, f"{__name__}:WatchedGEM", epochs=3), scenario, *ORDER)
    first, second, third = (learner.method.remembered[start : start + 3] for start in (0, 3, 6))
    assert first == [[]] * 3
    assert second == [second[0]] * 3
    assert third == [third[0]] * 3
    assert third[0][: len(second[0])] == second[0]
    assert len(third[0]) == 2


def test_what_is_kept_of_a_task_does_not_depend_on_what_came_before(small: Path) -> None:
    scenario = scenario_of(small)
    kept = []
    for order in (((0, 1), (2, 3)), ((4,), (5,), (2, 3))):
        learner = learn_tasks(small_learner(scenario, "replay", epochs=1), scenario, *order)
        kept.append(learner.method.memory.of_tasks(scenario.queries(()).pool)[-1].ids)
    assert torch.equal(*kept)
    other = small_learner(scenario, "replay", epochs=1, seed=1)
    other.learn(lesson(scenario, (2, 3)), 0)
    assert not torch.equal(other.method.memory.of_tasks(scenario.queries(()).pool)[-1].ids, kept[0])


def test_a_memory_whose_gradient_is_not_finite_fails(small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, "gem")
    learner.learn(lesson(scenario, (0, 1)), 0)

    def spoil(epoch: int, _: float) -> None:
        if epoch == 0:
            learner.method._remembered[0].inputs.parts[0].fill_(torch.inf)

    with pytest.raises(LearningFailed, match=r"gradient of lesson 2 \(bow, clap\)"):
        learner.learn(lesson(scenario, (0, 1), (2, 3)), 1, spoil)
