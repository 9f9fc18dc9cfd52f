"""PDGNN-TEM: what is aggregated, what is kept of it, and that all of it kept is Joint."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.backbones.graphs.sgc import SGC
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.study import Component
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.training import Training
from skeleton_cgl.methods.pdgnn_tem import PDGNN, coverage_of
from skeleton_cgl.registry import GRAPH_BACKBONES
from skeleton_cgl.scenarios.node import NodeScenario
from skeleton_cgl.scenarios.scenario import Experience
from tests.learning.learners import seed_for, small_learner, weights_of
from tests.scenarios.graphs import node_graph, node_scenario

AGGREGATIONS = ("sgc", "s2gc", "appnp")
NODES, FEATURES = 60, 7
ALPHA = 0.2


class WatchedPDGNN(PDGNN):
    def __init__(self, per_class: int) -> None:
        super().__init__(per_class)
        self.batches: list[Batch] = []

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        self.batches.append(batch)
        return super().loss(learner, batch)


WATCHED = f"{__name__}:WatchedPDGNN"


def learner_of(
    scenario: NodeScenario, method: str, aggregation: str = "appnp", epochs: int = 4, **parameters: Any
) -> Learner:
    backbone = {"width": 6, "depth": 2, "aggregation": aggregation}
    training = Training(epochs=epochs, learning_rate=0.01, device="cpu")
    return make_learner(scenario, "sgc", method, training, 0, backbone, parameters)


def learn(learner: Learner, scenario: NodeScenario, start: int, end: int) -> Learner:
    prefix = scenario.lessons(scenario.default)
    for stage in range(start, end):
        learner.learn(scenario.experience(prefix[: stage + 1]), seed_for(stage))
    return learner


def by_hand(aggregation: str, hops: int, edges: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return τ(X), by powers of the dense Â = D^−½ (A + I) D^−½."""
    adjacency = np.eye(len(table))
    adjacency[edges[1], edges[0]] = 1
    sums = adjacency / np.sqrt(np.outer(adjacency.sum(axis=1), adjacency.sum(axis=0)))
    powers = [np.linalg.matrix_power(sums, power) @ table for power in range(hops + 1)]
    if aggregation == "sgc":
        return powers[-1]
    if aggregation == "s2gc":
        return sum((1 - ALPHA) * power + ALPHA * table for power in powers[1:]) / hops
    return (1 - ALPHA) ** hops * powers[-1] + ALPHA * sum((1 - ALPHA) ** k * powers[k] for k in range(hops))


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("asked", [range(NODES), (3, 50, 7), (5,)], ids=["all", "few", "one"])
def test_what_is_aggregated_is_its_formula(aggregation: str, hops: int, sparse: bool, asked: Any) -> None:
    random = np.random.default_rng(0)
    ends = random.integers(NODES, size=(2, 70))
    edges = np.unique(np.concatenate([ends, ends[::-1]], axis=1), axis=1)
    table = random.normal(size=(NODES, FEATURES)) * (random.random((NODES, FEATURES)) < 0.5)
    backbone = SGC(FEATURES, hops, 4, 2, aggregation=aggregation, alpha=ALPHA).eval()
    places = Places.of(edges, csr_array(table) if sparse else table, np.array(asked)[:, None], self_loops=True)
    arranged = backbone.arrange(places)
    wanted = torch.from_numpy(by_hand(aggregation, hops, edges, table)[list(asked)]).float()
    with torch.no_grad():
        found = backbone.aggregated(arranged)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
        alone = backbone(backbone.arrange(Places.alone(found)))
        torch.testing.assert_close(backbone(arranged), alone, atol=1e-5, rtol=1e-5)


def test_wide_sparse_features_are_aggregated_part_by_part() -> None:
    random = np.random.default_rng(0)
    table = random.normal(size=(20, 1100)) * (random.random((20, 1100)) < 0.02)
    edges = random.integers(20, size=(2, 40))
    at = np.arange(20)[:, None]
    backbone = SGC(1100, width=2, aggregation="appnp")
    dense, sparse = (Places.of(edges, features, at, True) for features in (table, csr_array(table)))
    with torch.no_grad():
        found = [backbone.aggregated(backbone.arrange(places)) for places in (dense, sparse)]
    torch.testing.assert_close(*found)


def test_keys_of_sgc_stay_what_they_were() -> None:
    def identity(**parameters: object) -> dict:
        return Component(name="sgc", parameters=parameters).identity(GRAPH_BACKBONES)["parameters"]

    assert not identity().keys() & {"aggregation", "alpha"}
    assert identity(alpha=0.3) == identity(aggregation="sgc") == identity()
    assert identity(aggregation="appnp", alpha=0.3) != identity(aggregation="appnp") != identity()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"aggregation": "apnp"}, "aggregation 'apnp'; did you mean 'appnp'"),
        ({"alpha": 1.5}, "alpha must be from 0 to 1, found 1.5"),
        ({"alpha": -0.1}, "alpha must be from 0 to 1"),
    ],
)
def test_wrong_aggregations_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        GRAPH_BACKBONES.make("sgc", parameters, {"features": 3})


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize(("setting", "task_losses"), [("class-il", "sum"), ("task-il", "together")])
def test_all_kept_is_joint(aggregation: str, setting: str, task_losses: str) -> None:
    scenario = node_scenario(setting=setting)
    tem = learner_of(scenario, "pdgnn-tem", aggregation, epochs=20, per_class=10_000, task_losses=task_losses)
    joint, bare = (learner_of(scenario, name, aggregation, epochs=20) for name in ("joint", "bare"))
    found, wanted, other = (weights_of(learn(each, scenario, 0, 3)) for each in (tem, joint, bare))
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    assert (other - wanted).abs().max() > 0.05


@pytest.mark.parametrize("fields", [{"view": "task", "inter_task_edges": True}, {"setting": "time-il"}])
def test_what_is_replayed_stays_the_same_when_the_graph_changes(fields: dict) -> None:
    """With the weights of the first lesson: as its nodes were answered then, not as in the graph they are in now."""
    scenario = node_scenario(**fields)
    prefix = scenario.lessons(scenario.default)
    learner = learn(learner_of(scenario, WATCHED, per_class=10_000), scenario, 0, 1)
    first, second = (scenario.experience(prefix[: stage + 1]).training for stage in range(2))
    with learner.answering(), torch.no_grad():
        then = learner.embeddings(learner.inputs(first))
    weights = {name: value.clone() for name, value in learner.backbone.state_dict().items()}
    learn(learner, scenario, 1, 2)
    learner.backbone.load_state_dict(weights)
    with learner.answering(), torch.no_grad():
        replayed = learner.embeddings(learner.method.batches[-1].inputs)[: len(first)]
        now = learner.embeddings(learner.inputs(replace(first, pool=second.pool)))
    torch.testing.assert_close(replayed, then)
    assert (now - then).abs().max() > 0.01


def test_in_task_il_every_tasks_loss_counts_whole() -> None:
    scenario = node_scenario(setting="task-il")
    learner = learn(learner_of(scenario, WATCHED, per_class=3), scenario, 0, 3)
    batch = learner.method.batches[-1]
    with learner.answering(), torch.no_grad():
        found = PDGNN().loss(learner, batch)
        outputs = learner.outputs(batch.inputs)
    by_task = []
    for columns in ([0, 1], [2, 3], [4, 5]):
        rows = (batch.targets // 2) == columns[0] // 2
        losses = functional.cross_entropy(outputs[rows][:, columns], batch.targets[rows] - columns[0], reduction="none")
        of_classes = [losses[batch.targets[rows] == column].mean() for column in columns]
        by_task.append(torch.stack(of_classes).mean())
    torch.testing.assert_close(found, torch.stack(by_task).sum())
    with learner.answering(), torch.no_grad():
        torch.testing.assert_close(PDGNN(task_losses="together").loss(learner, batch), learner.task_loss(batch))
    assert (found - learner.task_loss(batch)).abs() > 0.1


def test_in_class_il_there_is_one_loss_of_the_task_and_the_memory() -> None:
    scenario = node_scenario()
    learner = learn(learner_of(scenario, WATCHED, per_class=3), scenario, 0, 2)
    batch = learner.method.batches[-1]
    assert len(batch) == 6 + len(scenario.experience(scenario.lessons(scenario.default)[:2]).training)
    assert torch.equal(PDGNN().loss(learner, batch), learner.task_loss(batch))


def test_nodes_are_drawn_in_proportion_to_what_they_cover() -> None:
    """One of every class is kept, again and again: nodes of higher in-degree are so the more often."""
    scenario = node_scenario()
    experience = scenario.experience(scenario.lessons(scenario.default)[:1])
    training, pool = experience.training, experience.training.pool.whole()
    # The view has a loop at every node, which counts once: itself.
    covered = pool.links.in_degrees[training.ids].double()
    chance = torch.zeros(len(training)).double()
    for label in training.labels.unique():
        rows = training.labels == label
        chance[rows] = covered[rows] / covered[rows].sum()
    drawn, draws = torch.zeros(len(training)), 1500
    table = learner_of(scenario, "pdgnn-tem").aggregated
    learner = learner_of(scenario, "pdgnn-tem", per_class=1)
    vectors = table(learner.inputs(training))
    for seed in range(draws):
        learner._seed = seed
        learner.method.end_lesson(learner, experience)
        (kept,) = learner.method.state()["tasks"]
        drawn += (vectors[:, None] == kept["vectors"]).all(dim=2).any(dim=1)
        learner.method.restore({"tasks": []})
    assert drawn.sum() == 2 * draws
    deviation = (draws * chance * (1 - chance)).sqrt()
    assert ((drawn - draws * chance) / deviation).abs().max() < 4.5
    assert chance.max() > 3 * chance.min()


@pytest.mark.parametrize("self_loops", [True, False])
def test_a_node_covers_itself_and_those_it_hears_from(self_loops: bool) -> None:
    graph = node_graph()
    training = scenario_with(self_loops).training
    wanted = [len({node, *graph.edges[0, graph.edges[1] == node].tolist()}) for node in training.ids.tolist()]
    assert coverage_of(training).tolist() == wanted
    assert len(set(wanted)) > 5


def scenario_with(self_loops: bool) -> Experience:
    scenario = node_scenario(self_loops=self_loops)
    return scenario.experience(scenario.lessons(scenario.default)[:1])


def test_so_many_of_every_class_are_kept_each_once() -> None:
    scenario = node_scenario()
    learner = learn(learner_of(scenario, "pdgnn-tem", per_class=5), scenario, 0, 3)
    assert learner.method.samples_kept() == 6 * 5
    tasks = learner.method.state()["tasks"]
    assert torch.cat([task["labels"] for task in tasks]).bincount().tolist() == [5] * 6
    assert all(len(task["vectors"].unique(dim=0)) == 10 for task in tasks)


def test_a_backbone_that_aggregates_nothing_beforehand_is_refused() -> None:
    with pytest.raises(InputError, match=r"PDGNN needs a backbone with `aggregated\(inputs\)`; GCN has none"):
        small_learner(node_scenario(node_graph()), "pdgnn-tem")
