"""Pre-training without labels: the losses are those of the papers, corruptions what they say, and labels unread."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import LearningFailed, Method
from skeleton_cgl.methods import deep_graph_infomax, pretraining
from skeleton_cgl.methods.deep_graph_infomax import DeepGraphInfomax, corrupted, infomax
from skeleton_cgl.methods.info_graph import InfoGraph, infograph
from skeleton_cgl.methods.pretraining import pretrain
from skeleton_cgl.scenarios.inputs import Clips
from skeleton_cgl.scenarios.made_up import made_up_graph
from skeleton_cgl.scenarios.scenario import Experience, Scenario
from tests.graphs.made_sets import random_graph_set
from tests.learning.learners import small_learner
from tests.scenarios.graphs import NODES, node_graph, node_scenario
from tests.scenarios.sets import prefixes
from tests.scenarios.small import scenario_of
from tests.scenarios.test_graph import graph_scenario
from tests.scenarios.test_link import link_scenario

KINDS = ("clips", "nodes", "links", "graphs")


def scenario_called(kind: str, small: Path) -> Scenario:
    if kind == "clips":
        return scenario_of(small, "task-il")
    return {"nodes": node_scenario, "links": link_scenario, "graphs": graph_scenario}[kind](setting="task-il")


def first_lesson(scenario: Scenario) -> Experience:
    return scenario.experience(prefixes(scenario)[0])


def softplus(value: float) -> float:
    return float(np.logaddexp(0, value))


def weights_and_statistics(learner: Learner) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in learner.backbone.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


def test_the_loss_of_dgi_is_as_computed_number_by_number() -> None:
    random = np.random.default_rng(0)
    right, wrong, weight = (random.normal(size=size) for size in ((5, 3), (4, 3), (3, 3)))
    summary = [1 / (1 + np.exp(-np.mean([row[column] for row in right]))) for column in range(3)]

    def score(row: np.ndarray) -> float:
        return sum(row[i] * weight[i, j] * summary[j] for i in range(3) for j in range(3))

    expected = np.mean([softplus(-score(row)) for row in right]) + np.mean([softplus(score(row)) for row in wrong])
    found = infomax(*(torch.from_numpy(each) for each in (right, wrong, weight)))
    assert found.item() == pytest.approx(expected, rel=1e-12)


def test_the_loss_of_infograph_is_as_computed_pair_by_pair() -> None:
    random = np.random.default_rng(0)
    nodes, graphs, sizes = random.normal(size=(6, 4)), random.normal(size=(3, 4)), [2, 1, 3]
    owner = [0, 0, 1, 2, 2, 2]
    own, others = [], []
    for node in range(6):
        for graph in range(3):
            q = sum(nodes[node, k] * graphs[graph, k] for k in range(4))
            if owner[node] == graph:
                own.append(np.log(2) - softplus(-q))
            else:
                others.append(softplus(-q) + q - np.log(2))
    assert (len(own), len(others)) == (6, 12)
    found = infograph(torch.from_numpy(nodes), torch.from_numpy(graphs), torch.tensor(sizes))
    assert found.item() == pytest.approx(np.mean(others) - np.mean(own), rel=1e-12)


def test_a_graph_alone_is_compared_with_none() -> None:
    nodes = torch.tensor([[1.0, 2.0], [0.5, -1.0]])
    found = infograph(nodes, torch.tensor([[1.0, 1.0]]), torch.tensor([2]))
    assert found.item() == pytest.approx(np.mean([softplus(-3), softplus(0.5)]) - np.log(2), rel=1e-6)


def test_the_networks_of_infograph_are_three_layers_and_a_linear_map_past_them(small: Path) -> None:
    scenario = scenario_called("graphs", small)
    objective = InfoGraph(small_learner(scenario, "bare"), first_lesson(scenario))
    for network in (objective.of_nodes, objective.of_graphs):
        values = {name: value.double().numpy() for name, value in network.state_dict().items()}
        entering = np.random.default_rng(0).normal(size=(5, values["skip.weight"].shape[1]))
        hidden = entering
        for layer in (0, 2, 4):
            hidden = np.maximum(hidden @ values[f"layers.{layer}.weight"].T + values[f"layers.{layer}.bias"], 0)
        expected = hidden + entering @ values["skip.weight"].T + values["skip.bias"]
        np.testing.assert_allclose(network.double()(torch.from_numpy(entering)).detach().numpy(), expected, atol=1e-12)


def test_graphs_come_128_at_once_and_all_else_at_once_where_the_recipe_does_not_say(small: Path) -> None:
    made = random_graph_set(graphs=400, published=False, texts=False)
    whole = graph_scenario(made, setting="task-il", classes_per_task=3)
    graphs = InfoGraph(small_learner(whole, "bare"), first_lesson(whole))
    sizes = [len(rows) for rows in pretraining._batches(graphs._learner, graphs)]
    assert len(sizes) > 1
    assert 64 < min(sizes) <= max(sizes) <= 128
    scenario = scenario_called("nodes", small)
    nodes = DeepGraphInfomax(small_learner(scenario, "bare"), first_lesson(scenario))
    assert [len(rows) for rows in pretraining._batches(nodes._learner, nodes)] == [len(nodes)]


def test_the_weights_of_dgi_are_drawn_from_one_over_the_root_of_the_width(small: Path) -> None:
    scenario = scenario_called("nodes", small)
    learner = small_learner(scenario, "bare")
    drawn = DeepGraphInfomax(learner, first_lesson(scenario)).weight.detach()
    assert drawn.shape == (learner.head.width, learner.head.width)
    assert 0.8 < float(drawn.abs().max()) * learner.head.width**0.5 <= 1


@pytest.mark.parametrize("sparse", [False, True])
def test_the_nodes_of_a_corrupted_graph_exchange_their_features_and_keep_their_edges(sparse: bool) -> None:
    features = np.arange(1, 31, dtype=np.float32).reshape(10, 3)
    edges = np.random.default_rng(0).integers(10, size=(2, 30))
    table = csr_array(features) if sparse else features
    places = Places.of(edges, table, np.arange(10)[:, None], self_loops=True)
    torch.manual_seed(0)
    found = corrupted(places)
    assert isinstance(found, Places)
    moved = found.dense_features[:, 0].numpy()
    assert sorted(moved) == sorted(features[:, 0])
    assert (moved != features[:, 0]).any()
    # Whole rows: what a node has comes from one node.
    assert np.array_equal(found.dense_features.numpy(), features[((moved - 1) / 3).astype(int)])
    assert found.links is places.links
    assert torch.equal(places.dense_features, torch.from_numpy(features))


@pytest.mark.parametrize("actors", [1, 2])
def test_the_joints_of_every_corrupted_clip_exchange_trajectories_in_a_sequence_of_its_own(actors: int) -> None:
    shape = (6, 3, 4, 5) if actors == 1 else (6, 2, 3, 4, 5)
    clips = torch.rand(shape, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(0)
    found = corrupted(Clips(clips, actors)).content.reshape(-1, 3, 4, 5)
    sequences = []
    for before, after in zip(clips.reshape(-1, 3, 4, 5), found, strict=True):
        sequence = [int((before[0, 0] == after[0, 0, joint]).nonzero()) for joint in range(5)]
        assert sorted(sequence) == list(range(5))
        assert torch.equal(after, before[:, :, sequence])
        sequences.append(tuple(sequence))
    assert len(set(sequences)) > 1


def test_inputs_of_another_form_are_refused() -> None:
    with pytest.raises(InputError, match="pre-training: expected clips or places in a graph, found Clips"):
        corrupted(Clips((torch.zeros(2, 3), torch.zeros(2, 3))))


def test_dgi_embeds_every_node_with_a_neighbour_and_no_other() -> None:
    """Nodes without an edge but their own loop neither give features to others nor count."""
    graph = node_graph()
    lonely = np.array([3, 50, 171])
    edges = graph.edges[:, ~np.isin(graph.edges, lonely).any(axis=0)]
    scenario = node_scenario(replace(graph, edges=edges), setting="task-il", view="whole")
    plain = DeepGraphInfomax(small_learner(scenario, "bare"), first_lesson(scenario))._plain
    linked = np.unique(edges[:, edges[0] != edges[1]])
    assert len(linked) == NODES - 3
    assert isinstance(plain, Places)
    assert np.array_equal(plain.dense_features.numpy(), graph.features[linked].astype(np.float32))
    assert torch.equal(plain.at, torch.arange(NODES - 3)[:, None])
    ends = linked[torch.stack([plain.links.sources, plain.links.targets]).numpy()]
    whole = first_lesson(scenario).training.pool.whole().links
    kept = np.isin(whole.sources.numpy(), linked)
    assert {tuple(pair) for pair in ends.T} == set(
        zip(whole.sources.numpy()[kept].tolist(), whole.targets.numpy()[kept].tolist(), strict=True)
    )


def test_every_epoch_has_a_corruption_of_its_own(small: Path) -> None:
    scenario = scenario_called("clips", small)
    objective = DeepGraphInfomax(small_learner(scenario, "bare"), first_lesson(scenario))
    found = []
    for _ in range(2):
        objective.begin_epoch()
        found.append(objective._corrupted.content)
    (first, sums), (second, _) = found
    assert not torch.equal(first, second)
    # What a backbone computes once for all is computed of the corruption.
    adjacency = objective._learner.backbone.adjacency.to(first)
    torch.testing.assert_close(sums, torch.einsum("ij,njf->nif", adjacency, first))


def test_a_graph_without_edges_is_taken_as_it_is() -> None:
    scenario = node_scenario(replace(node_graph(), edges=np.empty((2, 0), dtype=np.int64)), setting="task-il")
    objective = DeepGraphInfomax(small_learner(scenario, "bare"), first_lesson(scenario))
    assert len(objective) > 2


def test_dgi_embeds_every_training_pair_as_it_stands() -> None:
    scenario = link_scenario(setting="task-il")
    experience, learner = first_lesson(scenario), small_learner(scenario, "bare")
    objective = DeepGraphInfomax(learner, experience)
    assert len(objective) == len(experience.training)
    rows = torch.arange(len(objective))
    with learner.answering():
        found, expected = objective.embed(rows), learner.embeddings(learner.inputs(experience.training))
    torch.testing.assert_close(found, expected)


def test_of_graphs_nodes_and_graphs_are_of_one_pass(small: Path) -> None:
    """The networks get what the backbone and what the join give, BatchNorm counts a single batch."""
    scenario = scenario_called("graphs", small)
    learner, experience = small_learner(scenario, "bare"), first_lesson(scenario)
    torch.manual_seed(0)
    objective = InfoGraph(learner, experience)
    rows = torch.tensor([4, 0, 7])
    inputs = learner.inputs(experience.training.select(rows))
    with learner.observing():
        nodes, graphs = learner.backbone(inputs.content), learner.embeddings(inputs)
    expected = infograph(objective.of_nodes(nodes), objective.of_graphs(graphs), inputs.sizes)
    learner.backbone.train()
    torch.testing.assert_close(objective.loss(rows), expected)
    assert {int(norm.num_batches_tracked) for norm in learner.backbone.norms} == {1}


@pytest.mark.parametrize("kind", ["clips", "nodes", "links"])
def test_running_statistics_are_of_clean_passes_alone(kind: str, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However wild the corruption: after one epoch they are those of one pass of what is there."""
    scenario = scenario_called(kind, small)
    learner, twin = (small_learner(scenario, "bare") for _ in range(2))
    experience = first_lesson(scenario)
    usual = deep_graph_infomax.corrupted

    def wild(inputs: Any) -> Any:
        found = usual(inputs)
        name = "parts" if isinstance(found, Clips) else "features"
        return replace(found, **{name: 1000 * getattr(found, name)})

    monkeypatch.setattr(deep_graph_infomax, "corrupted", wild)
    pretrain(learner, experience, epochs=1)
    twin.backbone.train()
    objective = DeepGraphInfomax(twin, experience)
    objective.embed(torch.arange(len(objective)))
    buffers = dict(learner.backbone.named_buffers())
    changed = [name for name in buffers if "running" in name or "tracked" in name]
    assert changed
    for name, expected in twin.backbone.named_buffers():
        torch.testing.assert_close(buffers[name], expected)


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The losses of all steps of pre-training to come."""
    found: list[float] = []
    usual = pretraining._step

    def noted(*given: Any) -> float:
        found.append(usual(*given))
        return found[-1]

    monkeypatch.setattr(pretraining, "_step", noted)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_pre_training_lowers_its_loss(kind: str, small: Path, losses: list[float]) -> None:
    # In the other graph of nodes, edges are drawn at random: there is nothing to be told from a corruption.
    scenario = made_up_graph("task-il") if kind == "nodes" else scenario_called(kind, small)
    pretrain(small_learner(scenario, "bare"), first_lesson(scenario), epochs=60)
    steps = len(losses) // 10
    assert np.mean(losses[-steps:]) < np.mean(losses[:steps]) - 0.04


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_not_read_and_head_and_optimizer_stay(kind: str, small: Path) -> None:
    scenario = scenario_called(kind, small)
    experience = first_lesson(scenario)
    unread = replace(experience.training, labels=torch.full_like(experience.training.labels, 99))
    found, expected = (small_learner(scenario, "bare") for _ in range(2))
    found.head.meet(experience.outputs)
    rows, optimizer = found.head.rows.detach().clone(), found.optimizer
    first = weights_and_statistics(found)
    pretrain(found, replace(experience, training=unread))
    pretrain(expected, experience)
    assert same(weights_and_statistics(found), weights_and_statistics(expected))
    assert not same(weights_and_statistics(found), first)
    assert torch.equal(found.head.rows, rows)
    assert found.optimizer is optimizer
    assert not optimizer.state
    assert all(parameter.grad is None for parameter in found.model.parameters())


def test_what_is_drawn_depends_on_the_learner_and_the_lesson_and_leaves_no_trace(small: Path) -> None:
    scenario = scenario_called("clips", small)
    experience = first_lesson(scenario)
    found = []
    for torch_seed, seed in ((0, 0), (1, 0), (0, 1)):
        learner = small_learner(scenario, "bare")
        learner._seed = seed
        torch.manual_seed(torch_seed)
        before = torch.get_rng_state()
        pretrain(learner, experience)
        assert torch.equal(torch.get_rng_state(), before)
        found.append(weights_and_statistics(learner))
    assert same(found[0], found[1])
    assert not same(found[0], found[2])


def test_the_best_epoch_is_kept(small: Path, losses: list[float]) -> None:
    """A rate so large that the loss rises again: the weights are those of as many epochs as the lowest took."""
    scenario = scenario_called("nodes", small)
    experience = first_lesson(scenario)
    training = {"optimizer": "sgd", "learning_rate": 3.0}
    learner = small_learner(scenario, "bare", **training)
    pretrain(learner, experience, epochs=25)
    best = int(np.argmin(losses)) + 1
    assert 1 < best < 25
    shorter = small_learner(scenario, "bare", **training)
    pretrain(shorter, experience, epochs=best)
    assert same(weights_and_statistics(learner), weights_and_statistics(shorter))


def test_patience_and_plateau_end_it(small: Path, losses: list[float]) -> None:
    scenario = scenario_called("nodes", small)
    for training in ({"patience": 2}, {"plateau": {"patience": 0, "floor": 0.5}}):
        losses.clear()
        learner = small_learner(scenario, "bare", optimizer="sgd", learning_rate=3.0, **training)
        pretrain(learner, first_lesson(scenario), epochs=200)
        assert len(losses) < 100


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_those_of_the_recipe_and_none_has_one_row(kind: str, small: Path) -> None:
    scenario = scenario_called(kind, small)
    learner = small_learner(scenario, "bare", batch_size=2)
    objective = (InfoGraph if kind == "graphs" else DeepGraphInfomax)(learner, first_lesson(scenario))
    batches = pretraining._batches(learner, objective)
    assert torch.equal(torch.cat(batches).sort().values, torch.arange(len(objective)))
    assert {len(rows) for rows in batches} <= {2, 3}
    pretrain(learner, first_lesson(scenario), epochs=1)


def test_a_rest_of_one_row_joins_another_batch(small: Path) -> None:
    scenario = scenario_called("clips", small)
    experience = first_lesson(scenario)
    odd = replace(experience, training=experience.training.select(torch.arange(7)))
    learner = small_learner(scenario, "bare", batch_size=2)
    sizes = sorted(len(rows) for rows in pretraining._batches(learner, DeepGraphInfomax(learner, odd)))
    assert sizes == [2, 2, 3]


def test_where_the_recipe_says_so_running_statistics_are_those_under_the_weights_kept(small: Path) -> None:
    scenario = scenario_called("nodes", small)
    experience = first_lesson(scenario)
    learner = small_learner(scenario, "bare", recalibrate=True)
    pretrain(learner, experience)
    objective = DeepGraphInfomax(learner, experience)
    places = objective._clean.rows(torch.arange(len(objective)))
    first = learner.backbone.layers[0](places.features, places.links, "symmetric")
    torch.testing.assert_close(learner.backbone.norms[0].running_mean, first.mean(dim=0))
    torch.testing.assert_close(learner.backbone.norms[0].running_var, first.var(dim=0))


class PreTrained(Method):
    """Bare after pre-training."""

    def begin_lesson(self, learner: Learner, experience: Experience) -> None:
        pretrain(learner, experience)


def test_a_loss_that_is_not_finite_is_told(small: Path) -> None:
    scenario = scenario_called("nodes", small)
    learner = small_learner(scenario, f"{__name__}:PreTrained", optimizer="sgd", learning_rate=1e30)
    with pytest.raises(LearningFailed, match=r"the loss of pre-training on lesson 1 .* is nan"):
        learner.learn(first_lesson(scenario), 0)
