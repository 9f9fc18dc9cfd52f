"""GSS keeps samples whose gradients point away from those it has, and takes a step on them after every step."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import LearningFailed
from skeleton_cgl.methods.gss import GSS
from skeleton_cgl.scenarios.scenario import Samples
from tests.learning.learners import ORDER, learn_tasks, seed_for, small_learner, weights_of
from tests.scenarios.small import SETTINGS, lesson, scenario_of


class WatchedGSS(GSS):
    """GSS that writes down all scores, and what it draws to take a step on."""

    def __init__(self, count: int = 10, replayed: int = 4, directions: int = 2) -> None:
        super().__init__(count, replayed, directions)
        self.found: list[float] = []
        self.stepped: list[Samples] = []

    def scores(self, learner: Learner, samples: Samples) -> list[float]:
        found = super().scores(learner, samples)
        self.found += found
        return found

    def _step_on_memory(self, learner: Learner, samples: Samples) -> None:
        drawn = self.memory.drawn
        super()._step_on_memory(learner, samples)
        after, self.memory.drawn = self.memory.drawn, drawn
        self.stepped.append(self.memory.at(self.memory.draw(learner, self.replayed), samples.pool))
        assert self.memory.drawn == after


WATCHED = f"{__name__}:WatchedGSS"


def filled(learner: Learner, samples: Samples, scores: list[float]) -> GSS:
    """Return the method of a learner with a memory of the first of these samples."""
    method = learner.method
    assert isinstance(method, GSS)
    rows = torch.arange(len(scores))
    method.memory.put(rows, samples.select(rows), score=torch.tensor(scores))
    return method


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("training", [{}, {"batch_size": 5}])
def test_scores_are_between_0_and_2_and_the_first_are_a_tenth(small: Path, setting: str, training: dict) -> None:
    scenario = scenario_of(small, setting)
    learner = learn_tasks(small_learner(scenario, WATCHED, **training), scenario, *ORDER)
    scores = learner.method.found
    assert (
        len(scores)
        == learner.method.memory.seen
        == sum(len(lesson(scenario, *ORDER[: stage + 1]).training) for stage in range(len(ORDER)))
    )
    assert scores[:4] == [0.1] * 4
    assert all(0 <= score <= 2 for score in scores)
    assert min(scores[4:]) < 0.9
    assert max(scores) > 1.1
    assert learner.method.samples_kept() == 10


def test_a_score_is_one_more_than_the_largest_cosine(small: Path) -> None:
    """Of gradients taken one by one, of a memory that makes two mini-batches of two; the fifth is left over."""
    scenario = scenario_of(small)
    learner = learn_tasks(
        small_learner(scenario, "gss", {"replayed": 2, "count": 5, "directions": 9}), scenario, *ORDER
    )
    samples = lesson(scenario, *ORDER).training
    drawn = learner.method.memory.drawn
    found = learner.method.scores(learner, samples.select(torch.arange(6)))

    def gradient(of: Samples) -> np.ndarray:
        learner.backbone.eval()
        return learner.gradient_of(learner.task_loss(learner.batch(of))).double().numpy()

    learner.method.memory.drawn = drawn
    slots = learner.method.memory.draw(learner, 5)
    directions = [gradient(learner.method.memory.at(slots[rows], samples.pool)) for rows in ([0, 1], [2, 3])]
    for row, score in enumerate(found):
        own = gradient(samples.select(torch.tensor([row])))
        cosines = [own @ other / np.linalg.norm(own) / np.linalg.norm(other) for other in directions]
        assert score == pytest.approx(1 + max(cosines), abs=1e-4)


def test_identical_samples_never_replace(small: Path) -> None:
    scenario = scenario_of(small)
    learner = learn_tasks(small_learner(scenario, "gss", {"count": 4}), scenario, *ORDER[:2])
    one = lesson(scenario, *ORDER[:2]).training.select(torch.zeros(60, dtype=torch.int64))
    method = filled(learner, one, [0.5] * 4)
    assert method.scores(learner, one.select(torch.arange(3))) == pytest.approx([2.0] * 3, abs=1e-5)
    method._offer(learner, one)
    assert method.memory["score"].tolist() == [0.5] * 4


def test_a_sample_that_points_elsewhere_replaces_one_and_leaves_its_score(small: Path) -> None:
    """The same sample with another label pulls the head the other way."""
    scenario = scenario_of(small, "task-il")
    learner = learn_tasks(small_learner(scenario, "gss", {"count": 4}), scenario, *ORDER[:1])
    samples = lesson(scenario, *ORDER[:1]).training.select(torch.zeros(4, dtype=torch.int64))
    other = ORDER[0][1] if int(samples.labels[0]) == ORDER[0][0] else ORDER[0][0]
    method = filled(learner, samples, [1.5] * 4)
    opposite = Samples(samples.pool, samples.ids[:1], torch.tensor([other]), samples.step[:1])
    (score,) = method.scores(learner, opposite)
    assert score < 0.01
    method._offer(learner, opposite)
    assert sorted(method.memory["score"].tolist()) == pytest.approx([score, 1.5, 1.5, 1.5])
    replaced = method.memory["score"].argmin()
    assert method.memory["labels"].tolist() == [
        other if slot == replaced else int(samples.labels[0]) for slot in range(4)
    ]


@pytest.mark.parametrize("draw", ["scores", "published"])
def test_who_gives_way_is_drawn_by_score_and_goes_by_the_share_of_its_own(small: Path, draw: str) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, "gss", {"count": 4, "draw": draw})
    scores, score, trials = np.array([0.2, 0.4, 1.0, 1.8]), 0.6, 6000
    method = filled(learner, lesson(scenario, *ORDER).training, scores.tolist())
    generator = torch.Generator().manual_seed(0)
    found = np.bincount([1 + method._giving_way(score, generator) for _ in range(trials)], minlength=5)
    weights = scores - scores.min() if draw == "published" else scores
    gone = weights / weights.sum() * scores / (scores + score)
    # Four standard deviations of at most √(6000/4) = 39.
    np.testing.assert_allclose(found, trials * np.array([1 - gone.sum(), *gone]), atol=4 * 39)
    assert (found[1] == 0) == (draw == "published")


@pytest.mark.parametrize(
    ("draw", "scores", "score"),
    [
        ("scores", [0.5, 0.5], 1.0),
        ("scores", [0.5, 0.5], 1.3),
        ("scores", [0.0, 0.0], 0.2),
        ("published", [0.7, 0.7], 0.2),
    ],
)
def test_nobody_gives_way_to_one_who_agrees_or_where_nobody_can_be_drawn(
    small: Path, draw: str, scores: list[float], score: float
) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, "gss", {"count": 2, "draw": draw})
    method = filled(learner, lesson(scenario, *ORDER).training, scores)
    generator = torch.Generator().manual_seed(0)
    assert {method._giving_way(score, generator) for _ in range(50)} == {-1}


def test_a_step_on_the_memory_follows_the_step_on_the_batch(small: Path) -> None:
    """The second epoch ends with one more step of gradient descent than Bare's, on four of the memory."""
    scenario, rate = scenario_of(small), 0.1
    training = {"epochs": 2, "optimizer": "sgd", "learning_rate": rate}
    experience = lesson(scenario, ORDER[0])
    found, bare = (small_learner(scenario, name, **training) for name in (WATCHED, "bare"))
    for learner in (found, bare):
        learner.learn(experience, seed_for(0))
    (drawn,) = found.method.stepped
    assert len(drawn) == len(drawn.ids.unique()) == 4
    bare.backbone.train()
    step = bare.gradient_of(bare.task_loss(bare.batch(drawn)))
    expected: Tensor = weights_of(bare) - rate * step
    torch.testing.assert_close(weights_of(found), expected, atol=1e-6, rtol=1e-5)
    assert not torch.allclose(weights_of(found), weights_of(bare), atol=1e-5)


def test_looking_at_gradients_leaves_no_trace(small: Path) -> None:
    scenario = scenario_of(small)
    learner = learn_tasks(small_learner(scenario, "gss", {"count": 5}), scenario, *ORDER[:2])
    before, state = weights_of(learner), {name: value.clone() for name, value in learner.model.state_dict().items()}
    learner.backbone.train()
    learner.method.scores(learner, lesson(scenario, *ORDER[:2]).training)
    assert learner.backbone.training
    assert torch.equal(weights_of(learner), before)
    assert all(torch.equal(value, state[name]) for name, value in learner.model.state_dict().items())


def test_a_memory_whose_loss_is_not_finite_fails_and_says_so(small: Path) -> None:
    scenario = scenario_of(small)
    learner = learn_tasks(small_learner(scenario, "gss", {"count": 5}), scenario, ORDER[0])
    samples = lesson(scenario, ORDER[0]).training
    with torch.no_grad():
        learner.head.rows.fill_(torch.inf)
    with pytest.raises(LearningFailed, match=r"the loss of the memory in lesson 1 .* is nan"):
        learner.method._step_on_memory(learner, samples)
    with pytest.raises(LearningFailed, match=r"a gradient of lesson 1 .* or of its memory is not finite"):
        learner.method.scores(learner, samples)
