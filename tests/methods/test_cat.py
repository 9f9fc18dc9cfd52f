"""CaT: what a task is condensed to, how, and that nothing else is learned from."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import Method, make_method
from skeleton_cgl.methods.cat import CaT, Matching, shares
from skeleton_cgl.methods.condensed import lowered
from skeleton_cgl.scenarios.scenario import Experience
from tests.methods.on_nodes import SMALL, learned, learner_of, lessons_of, nodes, propagated, unequal_graph
from tests.scenarios.graphs import node_graph


def labels_of(*sizes: int) -> torch.Tensor:
    return torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))


@pytest.mark.parametrize("rows", [3, 4, 10, 57, 200])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (50, 1, 30), (20, 20, 20), (90, 7, 2)])
def test_every_class_gets_a_row_and_none_more_than_it_has(sizes: tuple[int, ...], rows: int) -> None:
    found = shares(labels_of(*sizes), rows)
    assert sum(found.values()) == min(rows, sum(sizes))
    for label, size in enumerate(sizes):
        assert 1 <= found[label] <= size
        assert all(found[label] >= found[other] for other, less in enumerate(sizes) if less < size)


@pytest.mark.parametrize(
    ("sizes", "rows", "expected"),
    [
        ((30, 20, 10), 12, [6, 4, 2]),
        ((30, 20, 10), 6, [3, 2, 1]),
        ((98, 1, 1), 10, [8, 1, 1]),
        ((53, 24, 23), 7, [3, 2, 2]),
    ],
)
def test_classes_get_rows_in_proportion_to_their_size(sizes: tuple, rows: int, expected: list[int]) -> None:
    assert list(shares(labels_of(*sizes), rows).values()) == expected


@pytest.mark.parametrize("total", [6, 17, 100, 10_000])
def test_all_tasks_together_keep_no_more_than_the_total(total: int) -> None:
    scenario = nodes(graph=unequal_graph())
    learner = learner_of(scenario, "cat", {"total": total, "steps": 0})
    expected = 0
    for step, experience in enumerate(lessons_of(scenario)):
        learner.learn(experience, step)
        expected += min(total // 3, len(experience.training))
        assert learner.method.samples_kept() == expected <= total


def test_rows_start_as_different_nodes_of_their_class() -> None:
    """Without a step, they are what they start as."""
    graph = node_graph()
    scenario = nodes(graph=graph)
    learner = learned(learner_of(scenario, "cat", {"count": 70, "steps": 0}), scenario, 2)
    for experience, rows, labels in zip(lessons_of(scenario), *_kept(learner), strict=False):
        training = experience.training.ids.numpy()
        apart = (rows[:, None] - torch.from_numpy(graph.features[training]).float()).abs().sum(dim=2)
        assert (apart.min(dim=1).values == 0).all()
        found = training[apart.argmin(dim=1)]
        assert len(set(found)) == 70
        assert np.array_equal(graph.labels[found], labels)


def _kept(learner: Learner) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    state = learner.state()["method"]
    return state["rows"], state["labels"]


def test_the_first_step_is_down_the_distance_of_class_means_to_nodes_with_their_neighbours() -> None:
    """Adam's first step is one rate in the direction of the gradient, which is computed here class by class."""
    graph = node_graph()
    scenario = nodes(graph=graph)
    start, moved = (
        _kept(learned(learner_of(scenario, "cat", {"count": 8, "steps": steps, "width": 7}), scenario, 1))
        for steps in (0, 1)
    )
    training = lessons_of(scenario)[0].training
    random = torch.Generator().manual_seed(learner_of(scenario, "cat", {}).seed_of_lesson("condensation", _first()))
    for label in training.labels.unique():
        torch.randperm(int((training.labels == label).sum()), generator=random)
    weights = torch.empty(5, 7).uniform_(-1, 1, generator=random).double()
    rows = start[0][0].double().requires_grad_()
    real = propagated(graph, 1)[training.ids].double()
    distance = torch.zeros((), dtype=torch.float64)
    for label in training.labels.unique():
        means = []
        for features, labels in ((real, training.labels), (rows, start[1][0])):
            hidden = (features[labels == label] @ weights).clamp(min=0)
            means.append((hidden / hidden.norm(dim=1, keepdim=True)).mean(dim=0))
        distance = distance + (means[0] - means[1]).pow(2).sum()
    (gradient,) = torch.autograd.grad(distance, rows)
    expected = start[0][0] - 1e-3 * (gradient / (gradient.abs() + 1e-8)).float()
    torch.testing.assert_close(moved[0][0], expected, atol=1e-5, rtol=0)


def _first() -> Experience:
    return lessons_of(nodes())[0]


def test_condensing_brings_rows_nearer_as_encoders_see_them_that_were_not_drawn() -> None:
    random = torch.Generator().manual_seed(0)
    real, labels = torch.randn(60, 12, generator=random), torch.arange(60) % 3
    start, of_rows = real[:6] + 1, labels[:6]
    made = lowered(Matching(real, labels, of_rows, 32, random).loss, start, steps=200, rate=0.01)
    unseen = [Matching(real, labels, of_rows, 32, torch.Generator().manual_seed(9)) for _ in range(2)]
    before, after = (
        torch.stack([matching.loss(rows) for _ in range(20)]).mean()
        for matching, rows in zip(unseen, (start, made), strict=True)
    )
    assert after < before / 2


class Watched:
    """A pool that counts how often it is asked for."""

    augmented = False

    def __init__(self, pool: Any) -> None:
        self.asked = 0
        self._pool = pool

    @property
    def digest(self) -> str:
        self.asked += 1
        return self._pool.digest

    def whole(self) -> Any:
        return self._pool.whole()


class AskedOf(Method):
    """Notes how often a pool is asked for before and after a lesson is trained."""

    def learn_lesson(self, learner: Learner, experience: Experience) -> None:
        before = experience.training.pool.asked
        super().learn_lesson(learner, experience)
        self.asked = before, experience.training.pool.asked


class WatchedCaT(AskedOf, CaT):
    pass


@pytest.mark.parametrize("training", [{}, {"batch_size": 4}, {"patience": 2}])
def test_training_reads_the_rows_alone_and_nothing_of_the_task(training: dict) -> None:
    scenario = nodes()
    found = {}
    for kind in (WatchedCaT, AskedOf):
        parameters = SMALL["cat"] if kind is WatchedCaT else {}
        learner = learner_of(scenario, f"{__name__}:{kind.__name__}", parameters, **training)
        for step, experience in enumerate(lessons_of(scenario)[:2]):
            watched = Watched(experience.training.pool)
            learner.learn(replace(experience, training=replace(experience.training, pool=watched)), step)
            found[kind] = learner.method.asked
    assert found[WatchedCaT][0] == found[WatchedCaT][1] > 0
    assert found[AskedOf][0] < found[AskedOf][1]


def test_the_rows_of_all_tasks_are_learned_the_new_ones_included() -> None:
    """The loss of a step is the mean over all rows, each a node without neighbours."""
    scenario = nodes(balanced=False)
    learner = learned(learner_of(scenario, "cat", SMALL["cat"]), scenario, 2)
    samples = learner.method.memory.samples()
    assert samples.sizes == (7, 7)
    assert set(samples.labels.tolist()) == {0, 1, 2, 3}
    learner.backbone.eval()
    batch = learner.batch(samples)
    singly = [learner.batch(samples.select(torch.tensor([row]))) for row in range(14)]
    expected = torch.stack([learner.task_loss(one) for one in singly]).mean()
    torch.testing.assert_close(learner.task_loss(batch), expected)


def test_a_lesson_is_as_long_as_epochs_says() -> None:
    scenario = nodes()
    for parameters, expected in (({}, 3), ({"epochs": 5}, 5)):
        told: list[int] = []
        learner = learner_of(scenario, "cat", {**SMALL["cat"], **parameters})
        learner.learn(lessons_of(scenario)[0], 0, progress=lambda epoch, _, told=told: told.append(epoch))
        assert told == list(range(expected))


def test_fewer_rows_than_classes_are_refused_before_anything_is_condensed() -> None:
    scenario = nodes(classes_per_task=3)
    for parameters in ({"count": 2}, {"total": 4}):
        with pytest.raises(InputError, match=r"CaT: 2 rows are too few for the 3 classes of lesson 1"):
            learner_of(scenario, "cat", {**parameters, "steps": 0}).learn(lessons_of(scenario)[0], 0)


def test_a_total_that_leaves_next_to_nothing_to_a_task_is_refused_before_anything_is_learned() -> None:
    with pytest.raises(InputError, match="CaT: a total of 5 leaves fewer than 2 rows to 3 tasks"):
        learner_of(nodes(), "cat", {"total": 5})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"count": 1}, "count 1 is not a whole number of at least 2"),
        ({"count": 2.5}, "count 2.5 is not a whole number"),
        ({"total": 0}, "total 0 is not a whole number"),
        ({"count": 4, "total": 12}, "either a count per task or a total"),
        ({"steps": -1}, "steps -1 is not"),
        ({"rate": 0}, "rate 0 is not positive"),
        ({"width": 0}, "width 0 is not"),
        ({"epochs": 0}, "epochs 0 is not"),
    ],
)
def test_parameters_without_meaning_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_method("cat", parameters)


def test_what_is_not_said_has_the_key_of_what_it_stands_for() -> None:
    assert CaT.spelled_out({"count": None, "total": None})["count"] == CaT().count
    assert CaT.spelled_out({"count": None, "total": 12}) == {"count": None, "total": 12}
