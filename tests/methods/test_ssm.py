"""SSM: what is kept of a node's surroundings, that it stays as it was, and how it is learned from."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.study import Component
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.training import Training
from skeleton_cgl.methods.ssm import SSM
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.node import NodeScenario
from tests.learning.learners import seed_for, weights_of
from tests.scenarios.graphs import node_graph, node_scenario

WATCHED = f"{__name__}:WatchedSSM"


class WatchedSSM(SSM):
    def __init__(self, per_class: int, fan_outs: tuple[int, ...] = (5, 5)) -> None:
        super().__init__(per_class, fan_outs=fan_outs)
        self.batches: list[Batch] = []

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        self.batches.append(batch)
        return super().loss(learner, batch)


def learner_of(scenario: NodeScenario, method: str = "ssm", backbone: dict | None = None, **parameters: Any) -> Learner:
    training = Training(epochs=2, learning_rate=0.01, device="cpu")
    return make_learner(scenario, "gcn", method, training, 0, {"width": 6, **(backbone or {})}, parameters)


def learn(learner: Learner, scenario: NodeScenario, lessons: int) -> Learner:
    prefix = scenario.lessons(scenario.default)
    for stage in range(lessons):
        learner.learn(scenario.experience(prefix[: stage + 1]), seed_for(stage))
    return learner


def subgraphs(method: SSM, graph: Graph) -> list[tuple[list[int], set[tuple[int, int]], int]]:
    """Return, for every centre, the nodes kept, centre first, the edges between them, and the centre's label."""
    number = {row.tobytes(): node for node, row in enumerate(np.asarray(graph.features, dtype=np.float32))}
    found = []
    for task in method.state()["tasks"]:
        nodes = np.array([number[row.tobytes()] for row in task["features"].numpy()])
        edges = nodes[task["edges"].numpy()]
        for row, label in enumerate(task["labels"].tolist()):
            start = int(task["at"][row, 0])
            inside = (task["components"] == task["components"][start]).numpy()
            assert nodes[inside][0] == nodes[start]
            of_centre = inside[task["edges"].numpy()]
            assert (of_centre[0] == of_centre[1]).all(), "an edge leads from one centre's subgraph to another's"
            found.append((nodes[inside].tolist(), set(map(tuple, edges[:, of_centre[0]].T.tolist())), label))
    return found


@pytest.mark.parametrize("method", ["ssm", "sem"])
@pytest.mark.parametrize("fan_outs", [(5, 5), (1,), (2, 3, 1), (200, 200)])
def test_a_centre_has_so_many_neighbours_of_every_hop_and_all_edges_between(method: str, fan_outs: tuple) -> None:
    graph = node_graph()
    near = [set(graph.edges[0, graph.edges[1] == node].tolist()) - {node} for node in range(len(graph))]
    edges = {(source, target) for source, target in graph.edges.T.tolist() if source != target}
    scenario = node_scenario(graph)
    learner = learn(learner_of(scenario, method, per_class=2, fan_outs=fan_outs), scenario, 3)
    prefix = scenario.lessons(scenario.default)
    trained = torch.cat([scenario.experience(prefix[: stage + 1]).training.ids for stage in range(3)]).tolist()
    found = subgraphs(learner.method, graph)
    assert len(found) == learner.method.samples_kept() == 2 * 6
    for nodes, between, label in found:
        assert nodes[0] in trained
        assert graph.labels[nodes[0]] == label
        assert len(set(nodes)) == len(nodes)
        kept, rest, latest = {nodes[0]}, nodes[1:], {nodes[0]}
        for fan_out in fan_outs:
            candidates = set().union(*(near[node] for node in latest)) - kept
            size = min(fan_out, len(candidates))
            latest, rest = set(rest[:size]), rest[size:]
            assert latest <= candidates
            kept |= latest
        assert not rest
        proper = {pair for pair in between if pair[0] != pair[1]}
        assert proper == {(source, target) for source, target in edges if {source, target} <= kept}
        assert {pair[0] for pair in between - proper} == kept, "nodes of the view have loops"


def test_no_label_of_a_neighbour_is_kept_or_read() -> None:
    """Other labels of all nodes that are not learned from, by hundreds neighbours of those that are: no bit changes."""
    graph = node_graph()
    split = np.random.default_rng(1).integers(0, 3, len(graph))
    poisoned = graph.labels.copy()
    poisoned[split > 0] = np.random.default_rng(2).permutation(poisoned[split > 0])
    states, weights = [], []
    for labels in (graph.labels, poisoned):
        made = node_graph()
        made = make_graph("small", made.edges, made.features, labels, split=split)
        scenario = node_scenario(made)
        learner = learn(learner_of(scenario, per_class=4), scenario, 3)
        states.append(learner.method.state()["tasks"])
        weights.append(weights_of(learner))
        for nodes, _, _ in subgraphs(learner.method, made):
            assert split[nodes[0]] == 0
        assert sum(split[node] > 0 for nodes, _, _ in subgraphs(learner.method, made) for node in nodes) > 50
    assert (graph.labels != poisoned).sum() > 100
    for one, other in zip(*states, strict=True):
        assert one.keys() == other.keys() == {"features", "sparse", "edges", "at", "components", "labels", "step"}
        assert all(torch.equal(one[name], other[name]) for name in one.keys() - {"sparse"})
        assert len(one["labels"]) == len(one["step"]) == len(one["at"]) < len(one["features"])
    assert torch.equal(*weights)


@pytest.mark.parametrize("fields", [{"view": "task"}, {"view": "task", "inter_task_edges": True}])
def test_what_is_replayed_stays_the_same_when_the_graph_changes(fields: dict) -> None:
    scenario = node_scenario(**fields)
    learner = learn(learner_of(scenario, WATCHED, per_class=3, fan_outs=(3, 3)), scenario, 3)
    second, third = learner.method.batches[2], learner.method.batches[4]
    kept = 2 * 3
    assert second.inputs.links.nodes != third.inputs.links.nodes
    with learner.answering(), torch.no_grad():
        outputs = [learner.outputs(batch.inputs)[:kept] for batch in (second, third)]
        (alone,) = (
            learner.outputs(learner.batch_of(each.places, each.labels, each.step).inputs)
            for each in learner.method._kept[:1]
        )
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(outputs[0], alone)


def test_a_centre_with_all_that_its_embedding_is_made_of_has_the_embedding_it_has_in_the_graph() -> None:
    """Two layers need two hops, and a third for the degrees of the last."""
    scenario = node_scenario()
    parameters = {"per_class": 2, "fan_outs": (1000,) * 3}
    learner = learn(learner_of(scenario, WATCHED, {"depth": 2}, **parameters), scenario, 2)
    experience = scenario.experience(scenario.lessons(scenario.default)[:1])
    batch = learner.method.batches[2]
    features = batch.inputs.dense_features[batch.inputs.at[:4, 0]]
    whole = experience.training.pool.whole()
    nodes = torch.tensor([int((whole.dense_features == row).all(dim=1).nonzero()) for row in features])
    with learner.answering(), torch.no_grad():
        found = learner.outputs(batch.inputs)[:4]
        wanted = learner.outputs(whole.rows(nodes).arranged(learner.backbone.arrange))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("setting", ["class-il", "task-il"])
def test_the_loss_is_that_of_both_with_classes_balanced_each_among_its_own_outputs(setting: str) -> None:
    """By hand, each graph by itself."""
    scenario = node_scenario(setting=setting)
    learner = learn(learner_of(scenario, WATCHED, per_class=3), scenario, 2)
    memory, batch = learner.method._kept[0], learner.method.batches[2]
    training = scenario.experience(scenario.lessons(scenario.default)[:2]).training
    with learner.answering(), torch.no_grad():
        parts = [
            learner.batch_of(memory.places, memory.labels, memory.step),
            learner.batch(training),
        ]
        outputs = torch.cat([learner.outputs(part.inputs) for part in parts])
        found = learner.task_loss(batch)
    labels = torch.cat([memory.labels, training.labels])
    columns = torch.tensor([learner.head.outputs.index(label) for label in labels.tolist()])
    if setting == "task-il":
        outputs[: len(memory), 2:] = -torch.inf
        outputs[len(memory) :, :2] = -torch.inf
    losses = functional.cross_entropy(outputs, columns, reduction="none")
    by_class = [losses[labels == label].mean() for label in labels.unique()]
    assert len(by_class) == 4
    torch.testing.assert_close(found, torch.stack(by_class).mean())


def test_batchnorm_sees_the_graph_and_the_memory_at_once() -> None:
    scenario = node_scenario()
    learner = learn(learner_of(scenario, WATCHED, per_class=3), scenario, 2)
    memory, batch = learner.method._kept[0], learner.method.batches[-1]
    assert batch.inputs.links.nodes == len(node_graph()) + memory.places.links.nodes


@pytest.mark.parametrize(
    ("parameters", "sizes"),
    [
        ({"per_class": 3}, [6, 12, 18]),
        ({"per_class": 1000}, None),
        ({"count": 7}, [7, 7, 7]),
        ({"count": 3}, [3, 3, 3]),
        ({"count": 10_000}, None),
        ({}, None),
    ],
)
def test_so_many_are_kept_of_every_class_or_in_all_or_all_there_are(parameters: dict, sizes: list[int] | None) -> None:
    scenario = node_scenario()
    prefix = scenario.lessons(scenario.default)
    learner = learner_of(scenario, **{**parameters, "fan_outs": (2,)})
    everything = 0
    for stage in range(3):
        experience = scenario.experience(prefix[: stage + 1])
        everything += len(experience.training)
        learner.learn(experience, stage)
        restored = learner_of(scenario, **parameters)
        restored.restore(learner.state())
        assert restored.method.samples_kept() == learner.method.samples_kept()
        assert learner.method.samples_kept() == (everything if sizes is None else sizes[stage])
        labels = torch.cat([task["labels"] for task in learner.method.state()["tasks"]])
        counts = labels.unique(return_counts=True)[1]
        if sizes is not None:
            assert counts.max() - counts.min() <= 1


def test_every_node_of_a_class_is_as_likely_a_centre() -> None:
    graph = node_graph()
    scenario = node_scenario(graph)
    experience = scenario.experience(scenario.lessons(scenario.default)[:1])
    learner, draws = learner_of(scenario, per_class=1, fan_outs=(1,)), 600
    drawn = np.zeros(len(graph), dtype=int)
    for seed in range(draws):
        learner._seed = seed
        learner.method.end_lesson(learner, experience)
        for nodes, _, _ in subgraphs(learner.method, graph):
            drawn[nodes[0]] += 1
        learner.method.restore({"tasks": []})
    for label in (0, 1):
        nodes = experience.training.ids[experience.training.labels == label].numpy()
        expected = draws / len(nodes)
        assert np.abs(drawn[nodes] - expected).max() < 4.5 * np.sqrt(expected)
    assert drawn.sum() == 2 * draws


def test_less_of_the_old_is_a_part_of_it() -> None:
    graph = node_graph()
    scenario = node_scenario(graph)
    before = subgraphs(learn(learner_of(scenario, count=9), scenario, 1).method, graph)
    after = subgraphs(learn(learner_of(scenario, count=9), scenario, 2).method, graph)
    old = [each for each in after if each[2] in (0, 1)]
    assert len(old) == 5 < len(before) == 9
    assert all(each in before for each in old)


@pytest.mark.parametrize("sampling", ["random", "degree"])
def test_neighbours_are_drawn_alike_or_in_proportion_to_their_degree(sampling: str) -> None:
    """Node 0 has neighbours 1 to 4, of in-degree 1 to 4."""
    edges = [(node, 0) for node in (1, 2, 3, 4)] + [(5 + more, node) for node in (1, 2, 3, 4) for more in range(node)]
    places = Places.of(np.array(edges).T, np.eye(9), np.zeros((1, 1)), self_loops=False)
    scores = SSM(sampling=sampling).scores(places.links, np.random.default_rng(0))
    found, draws = np.array([1, 2, 3, 4]), 4000
    first = np.bincount([found[np.argmax(scores(found, np.array([0])))] for _ in range(draws)], minlength=5)[1:]
    wanted = np.array([0.1, 0.2, 0.3, 0.4] if sampling == "degree" else [0.25] * 4) * draws
    # Standard deviations are at most √(4000 · 0.4 · 0.6) = 31.
    assert np.abs(first - wanted).max() < 125


def test_one_meaning_has_one_key() -> None:
    same = [
        {"name": "ssm"},
        {"name": "ssm", "per_class": 100},
        {"name": "ssm", "fan_outs": [5, 5], "sampling": "random"},
    ]
    assert len({Component(**_spelled(each)).row(METHODS).digest for each in same}) == 1
    others = [{"name": "ssm", "count": 100}, {"name": "ssm", "fan_outs": [5]}]
    assert len({Component(**_spelled(each)).row(METHODS).digest for each in [*same, *others]}) == 3


def _spelled(written: dict[str, Any]) -> dict[str, Any]:
    parameters = {name: value for name, value in written.items() if name != "name"}
    return {"name": written["name"], "parameters": parameters}
