"""CGNN: the memory's quotas, what a growing graph changed, and the penalty by the memory's gradient."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.engine.trial import refuse_forgetting
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import make_graph
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.cgnn import CGNN
from skeleton_cgl.methods.changes import Changes, shares_of_others
from skeleton_cgl.methods.importance import Anchor
from skeleton_cgl.methods.quotas import QuotaMemory
from skeleton_cgl.scenarios.scenario import Samples, Scenario
from tests.learning.learners import small_learner, weights_of
from tests.methods.test_er_gnn import SETTINGS, ids_and_labels, taught, training_of
from tests.scenarios.graphs import label_scenario, node_scenario
from tests.scenarios.small import scenario_of


def samples_of(labels: list[int], first: int = 0) -> Samples:
    ids = torch.arange(first, first + len(labels))
    return Samples(None, ids, torch.tensor(labels), torch.full_like(ids, -1))


def met(memory: QuotaMemory, samples: Samples, seed: int = 0, favour: float = 1.0) -> list[int]:
    """Have a memory meet samples; return the ids it keeps then."""
    memory.meet(samples, torch.full((len(samples),), favour), torch.Generator().manual_seed(seed))
    return memory.ids.tolist()


LESSONS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=30), min_size=1, max_size=4)


@given(lessons=LESSONS, count=st.integers(1, 40), p=st.floats(0, 1), seed=st.integers(0, 2**63 - 1))
def test_a_class_has_its_share_of_the_memory_and_no_more(lessons: list, count: int, p: float, seed: int) -> None:
    memory = QuotaMemory(count, p)
    every: list[int] = []
    for number, labels in enumerate(lessons):
        before = memory.of(None).labels
        met(memory, samples_of(labels, len(every)), seed + number if seed < 2**63 - 9 else number)
        every += labels
        kept = memory.of(None)
        assert kept.ids.unique().tolist() == kept.ids.tolist()
        assert kept.labels.tolist() == [every[number] for number in kept.ids.tolist()]
        assert len(memory) <= count
        for label in set(every):
            quota = count * every.count(label) // len(every)
            there = min(int((before == label).sum()), quota) + labels.count(label)
            assert int((kept.labels == label).sum()) == min(quota, there)


def test_what_is_too_many_goes_at_random_and_the_rest_stays() -> None:
    counts = np.zeros(20)
    for seed in range(400):
        memory = QuotaMemory(20, 0.0)
        assert met(memory, samples_of([0] * 20)) == list(range(20))
        kept = met(memory, samples_of([1] * 20, 20), seed)
        assert len(kept) == 20
        counts[[number for number in kept if number < 20]] += 1
    # Expected 200 each, standard deviation 10.
    assert np.abs(counts - 200).max() < 45


@pytest.mark.parametrize(("p", "favour"), [(1.0, 1.0), (0.5, 1.0), (0.5, 3.0)])
def test_a_full_class_gives_places_away_with_the_probability_it_should(p: float, favour: float) -> None:
    """An old one stays if none of 12 new ones takes its place, each with probability p·favour·(4/24)/4."""
    stayed = 0
    for seed in range(600):
        memory = QuotaMemory(4, p)
        old = set(met(memory, samples_of([0] * 12)))
        stayed += len(old & set(met(memory, samples_of([0] * 12, 12), seed, favour)))
    expected = (1 - p * favour / 24) ** 12
    assert abs(stayed / 2400 - expected) < 0.045


def test_without_chance_a_full_class_keeps_what_it_has() -> None:
    memory = QuotaMemory(4, 0.0)
    old = met(memory, samples_of([0] * 12))
    assert met(memory, samples_of([0] * 12, 12)) == old


@pytest.mark.parametrize("fields", SETTINGS.values(), ids=SETTINGS)
def test_the_memory_is_of_past_training_nodes(fields: dict) -> None:
    scenario = node_scenario(**fields)
    learner = small_learner(scenario, "cgnn", {"count": 15}, epochs=1)
    past: set[tuple[int, int]] = set()
    for stage in range(len(scenario.default)):
        training = training_of(scenario, stage)
        taught(learner, scenario, stage + 1)
        past |= ids_and_labels(training)
        kept = ids_and_labels(learner.method.memory.of(training.pool))
        assert kept <= past
        assert 8 < len(kept) == len(learner.method.memory) <= 15
        whole = training.pool.whole()
        grows = whole.numbers is not None and whole.components is None
        assert learner.method.samples_kept() == (len(past) if grows else len(kept))


def test_without_detection_nothing_is_kept_besides_the_memory() -> None:
    scenario = node_scenario(setting="time-il")
    learner = taught(small_learner(scenario, "cgnn", {"count": 15, "share": 0}, epochs=1), scenario)
    assert learner.method.samples_kept() == len(learner.method.memory) <= 15


@pytest.mark.parametrize("fields", [SETTINGS["class-il"], SETTINGS["domain-il"], SETTINGS["own view"]], ids=str)
def test_in_a_graph_that_does_not_grow_nothing_is_detected(fields: dict) -> None:
    """Nor where a lesson is a graph of its own."""
    scenario = node_scenario(**fields)
    learner = taught(small_learner(scenario, "cgnn", {"share": 1.0, "count": 6}), scenario, 1)
    pool = training_of(scenario, 1).pool
    assert len(learner.method.detected(learner, pool)) == 0
    changes = Changes()
    changes.look(pool)
    assert len(changes.most_touched(learner, pool, 1.0)) == 0


def touched_by_hand(learner: Learner, scenario: Scenario) -> dict[int, float]:
    """Return the scores above 0 of nodes by their number, from the graphs of the first two lessons as shown."""
    old, new = (training_of(scenario, lesson).pool.whole() for lesson in range(2))
    edges = set(zip(new.links.sources.tolist(), new.links.targets.tolist(), strict=True))
    neighbours = {node: {s for s, t in edges if t == node and s != node} for node in range(len(new))}
    seen = [number in old.numbers.tolist() for number in new.numbers.tolist()]
    delta = np.zeros(len(new))
    with learner.answering(), torch.no_grad():
        present = learner.model.embed(learner.arranged(new)).numpy()
        past = learner.model.embed(learner.arranged(old)).numpy()
        alone = learner.model.embed(learner.arranged(type(new).alone(new.features))).numpy()
    for node in range(len(new)):
        if any(not (seen[node] and seen[other]) for other in neighbours[node]):
            before = past[old.numbers.tolist().index(int(new.numbers[node]))] if seen[node] else alone[node]
            delta[node] = np.abs(present[node] - before).sum()
    for _ in range(2):
        delta = np.array(
            [np.mean([delta[node], *(delta[other] for other in neighbours[node])]) for node in range(len(new))]
        )
    return {number: score for number, score in zip(new.numbers.tolist(), delta, strict=True) if score > 0}


@pytest.mark.parametrize("share", [0.3, 0.8, 1.0])
def test_what_the_growth_of_a_graph_changed_most_is_detected(share: float) -> None:
    scenario = node_scenario(node_graph_with_few_edges(), setting="time-il")
    learner = taught(small_learner(scenario, "cgnn", {"share": share, "count": 8}), scenario, 1)
    scores = touched_by_hand(learner, scenario)
    assert 20 < len(scores) < len(training_of(scenario, 1).pool.whole())
    most = sorted(scores, key=scores.__getitem__, reverse=True)[: int(share * len(scores))]
    first, second = training_of(scenario, 0), training_of(scenario, 1)
    assert learner.method.changes.most_touched(learner, second.pool, share).tolist() == most
    remembered = ids_and_labels(learner.method.memory.of(second.pool))
    expected = {pair for pair in ids_and_labels(first) if pair[0] in most} - remembered
    assert ids_and_labels(learner.method.detected(learner, second.pool)) == expected
    assert len(expected) > 1
    prefix = scenario.lessons(scenario.default)[:2]
    learned = learner.method.lesson_samples(learner, scenario.experience(prefix))
    assert len(learned) == len(second) + len(remembered) + len(expected)
    assert ids_and_labels(learned) == ids_and_labels(second) | remembered | expected


def node_graph_with_few_edges() -> Any:
    random = np.random.default_rng(1)
    number = 160
    labels, times = random.integers(3, size=number), 2000 + (np.arange(number) >= 110)
    edges = random.integers(number, size=(2, 70))
    return make_graph("sparse", edges, random.normal(size=(number, 5)), labels, times=times, both_ways=True)


def test_new_nodes_at_the_end_of_a_path_touch_what_is_within_two_hops_of_what_they_changed() -> None:
    """Old nodes 0–1–…–10, and 11–12–13 that come later, 11 at 10: changed are 10 to 13."""
    ends = np.arange(14)
    links, features = np.stack([ends[:-1], ends[1:]]), np.random.default_rng(0).normal(size=(14, 4))
    split = np.array([0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 0, 0, 1, 2])
    path = make_graph("path", links, features, ends % 2, times=2000 + (ends > 10), split=split, both_ways=True)
    scenario = node_scenario(path, setting="time-il")
    learner = small_learner(scenario, "bare")
    changes = Changes()
    changes.look(training_of(scenario, 0).pool)
    touched = changes.most_touched(learner, training_of(scenario, 1).pool, 1.0)
    assert sorted(touched.tolist()) == [8, 9, 10, 11, 12, 13]


def shares_by_hand(samples: Samples, labels: dict[int, int]) -> list[float]:
    """Return the share of another class among the neighbours of every sample that have one of these labels."""
    places = samples.pool.whole()
    numbers = range(len(places)) if places.numbers is None else places.numbers.tolist()
    shares = []
    for node, label in zip(samples.ids.tolist(), samples.labels.tolist(), strict=True):
        sources = places.links.sources[places.links.targets == numbers.index(node)].tolist()
        known = [labels[numbers[other]] for other in sources if numbers[other] != node and numbers[other] in labels]
        shares.append(sum(other != label for other in known) / len(known) if known else 0.0)
    return shares


def test_neighbours_of_another_class_are_counted_among_those_that_are_known() -> None:
    training = training_of(node_scenario(), 1)
    expected = shares_by_hand(training, dict(ids_and_labels(training)))
    assert {0, 1} < set(expected)
    assert shares_of_others(training).tolist() == pytest.approx(expected)


class NotingMemory(QuotaMemory):
    def meet(self, training: Samples, favour: Tensor, random: torch.Generator) -> None:
        self.favour = favour.tolist()
        super().meet(training, favour, random)


@pytest.mark.parametrize("setting", ["class-il", "time-il"])
def test_nodes_among_other_classes_are_favoured_by_what_is_known_of_their_neighbours(setting: str) -> None:
    """The labels of the lesson and of the memory are known, and in a growing graph those of all past lessons."""
    scenario = node_scenario(setting=setting)
    learner = small_learner(scenario, "cgnn", {"alpha": 2.0, "count": 30}, epochs=1)
    learner.method.memory = NotingMemory(30, 1.0)
    taught(learner, scenario, 1)
    first, second = (training_of(scenario, lesson) for lesson in range(2))
    known = dict(ids_and_labels(first if setting == "time-il" else learner.method.memory.of(None)))
    taught(learner, scenario, 2)
    shares = np.array(shares_by_hand(second, known | dict(ids_and_labels(second))))
    assert len(set(shares)) > 3
    assert learner.method.memory.favour == pytest.approx(list(1 + 2 / (1 + np.exp(5 - 10 * shares))))


class Watched(CGNN):
    """Notes what every step's loss is, and what it is of."""

    def __init__(self, strength: float = 80.0, count: int = 12, variant: str = "defined", alpha: float = 0.0) -> None:
        super().__init__(strength=strength, count=count, variant=variant, alpha=alpha)
        self.ids: list[list[int]] = []
        self.noted: list[tuple[float, float, Tensor, Anchor | None]] = []

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        with learner.statistics_kept(), torch.no_grad():
            plain = learner.task_loss(batch).item()
        loss = super().loss(learner, batch)
        self.ids.append(batch.inputs.at[:, 0].tolist())
        self.noted.append((loss.item(), plain, weights_of(learner), self._anchor))
        return loss


WATCHED = f"{__name__}:Watched"


def importance_by_hand(learner: Learner, memory: Samples, outputs: int) -> Tensor:
    """Return the squared gradient of the mean loss, by all parameters, answered among the first columns."""
    with learner.observing():
        found = learner.model(learner.inputs(memory))[:, :outputs]
        loss = functional.cross_entropy(found, learner.head.columns(memory.labels))
        gradients = torch.autograd.grad(loss, learner.parameters())
    return torch.cat([gradient.flatten() for gradient in gradients]).square()


def test_the_loss_is_that_of_task_and_memory_and_a_penalty_by_the_gradient_of_the_memory() -> None:
    scenario = node_scenario(balanced=False)
    learner = taught(small_learner(scenario, WATCHED, {"strength": 7.0}, epochs=5), scenario, 2)
    new = training_of(scenario, 2)
    memory = learner.method.memory.of(new.pool)
    start, importance = weights_of(learner), importance_by_hand(learner, memory, 4)
    learner.method.ids.clear()
    learner.method.noted.clear()
    taught(learner, scenario, 3)
    added = 2 * (learner.head.width + 1)
    assert len(learner.method.noted) == 5
    for ids, (loss, plain, weights, anchor) in zip(learner.method.ids, learner.method.noted, strict=True):
        assert ids == new.ids.tolist() + memory.ids.tolist()
        torch.testing.assert_close(anchor.parameters[:-added], start)
        torch.testing.assert_close(anchor.importance[:-added], importance)
        # What is new in the head is free.
        assert not anchor.importance[-added:].any()
        penalty = 7.0 / 2 * (importance * (weights[:-added] - start).square()).sum().item()
        assert loss == pytest.approx(plain + penalty, rel=1e-5)
    assert learner.method.noted[0][0] == learner.method.noted[0][1]
    assert learner.method.noted[-1][0] > learner.method.noted[-1][1]


def test_an_ever_stronger_penalty_freezes_what_the_memory_has_a_gradient_for() -> None:
    scenario = node_scenario()
    moved = {}
    for strength in (0.0, 1e3, 1e9):
        learner = small_learner(scenario, "cgnn", {"strength": strength, "count": 20}, epochs=150, learning_rate=0.002)
        taught(learner, scenario, 1)
        memory, start = learner.method.memory.of(training_of(scenario, 1).pool), weights_of(learner)
        felt = importance_by_hand(learner, memory, 2) > 1e-9
        taught(learner, scenario, 2)
        assert felt.float().mean() > 0.5
        change = (weights_of(learner)[: len(start)] - start).abs()[felt]
        moved[strength] = float(change.max()), float(change.mean())
    assert moved[1e9][0] < 0.1 * moved[0.0][0]
    assert moved[1e9][1] < 0.02 * moved[0.0][1]
    assert moved[1e9][1] < moved[1e3][1] < moved[0.0][1]


def test_one_remembered_node_passes_through_batch_norm() -> None:
    scenario = node_scenario(view="task")
    learner = taught(small_learner(scenario, "cgnn", {"count": 8}), scenario, 1)
    memory = learner.method.memory
    memory.replace(memory.of(None).select(torch.tensor([0])))
    taught(learner, scenario, 2)
    # Two of each new class have come to it.
    assert len(memory) == 5


def test_begin_learns_all_of_the_task_before_and_a_memory_that_comes_late_without_a_penalty() -> None:
    scenario = node_scenario(tasks=[[0], [1, 2], [3], [4, 5]])
    learner = small_learner(scenario, WATCHED, {"variant": "begin"}, epochs=2)
    memories: list[list[int]] = [[], []]
    for stage in range(4):
        new = training_of(scenario, stage).ids.tolist()
        before = training_of(scenario, stage - 1).ids.tolist() if stage else []
        learner.method.ids.clear()
        learner.method.noted.clear()
        taught(learner, scenario, stage + 1)
        assert learner.method.ids == [[*new, *before, *memories[-2]]] * 2
        assert all(loss == plain for loss, plain, _, _ in learner.method.noted)
        memories.append(learner.method.memory.ids.tolist())
        assert learner.method.samples_kept() == len({*new, *memories[-1], *memories[-2]})
    assert memories[-2]


CHOICES = [{}, {"alpha": 0.7}, {"variant": "begin"}]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("training", [{}, {"batch_size": 8}, {"patience": 1}], ids=str)
def test_the_first_task_is_learned_as_bare_learns_it(choice: dict, training: dict) -> None:
    scenario = node_scenario()
    methods = (("bare",), ("cgnn", choice))
    bare, own = (taught(small_learner(scenario, *each, **training), scenario, 1) for each in methods)
    states = [{**learner.state(), "method": None} for learner in (bare, own)]
    assert to_bytes(states[0]) == to_bytes(states[1])


@pytest.mark.parametrize("fields", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_all_that_is_remembered_is_saved(fields: dict, choice: dict) -> None:
    scenario = node_scenario(**fields)
    prefix = scenario.lessons(scenario.default)

    def new() -> Learner:
        return small_learner(scenario, "cgnn", {"count": 12, **choice})

    refuse_forgetting(new, scenario.experience(prefix[:1]), scenario.experience(prefix[:2]))


@pytest.mark.parametrize(
    "training",
    [{"batch_size": 8}, {"patience": 1}, {"plateau": {"patience": 0}}, {"reset_optimizer": True}],
    ids=str,
)
@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("setting", ["class-il", "time-il"])
def test_a_learner_goes_on_from_a_saved_state_as_if_it_had_never_stopped(
    training: dict, choice: dict, setting: str
) -> None:
    scenario = node_scenario(setting=setting)

    def new() -> Learner:
        return small_learner(scenario, "cgnn", {"count": 10, **choice}, **training)

    straight = taught(new(), scenario, 2)
    resumed = new()
    resumed.restore(from_bytes(to_bytes(straight.state())))
    assert to_bytes(taught(resumed, scenario).state()) == to_bytes(taught(straight, scenario).state())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"strength": -1}, "strength -1 is negative"),
        ({"strength": float("nan")}, "strength nan is negative"),
        ({"alpha": -0.5}, "alpha -0.5 is negative"),
        ({"share": 1.5}, "share 1.5 is not between 0 and 1"),
        ({"p": -0.1}, "p -0.1 is not between 0 and 1"),
        ({"count": 0}, "count 0 is not a whole number of at least 1"),
        ({"count": 2.5}, "count 2.5 is not a whole number"),
        ({"variant": "begn"}, "unknown variant 'begn'; did you mean 'begin'"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=f"method 'cgnn': {message}"):
        make_method("cgnn", parameters)


def test_samples_that_are_no_nodes_or_have_many_labels_are_refused(small: Any) -> None:
    with pytest.raises(InputError, match="method CGNN needs samples that are nodes of one graph"):
        small_learner(scenario_of(small), "cgnn")
    with pytest.raises(InputError, match="method CGNN needs samples of one class each"):
        small_learner(label_scenario(), "cgnn")


def test_where_a_task_is_seen_alone_nothing_is_kept_for_changes_that_cannot_come() -> None:
    scenario = node_scenario(view="task")
    learner = small_learner(scenario, "cgnn", {"count": 12})
    taught(learner, scenario, 3)
    assert learner.method.samples_kept() <= 12
