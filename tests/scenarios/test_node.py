"""Node classification as a scenario: the citation graphs as they are known, asked about without a hint."""

from pathlib import Path

import numpy as np
import pytest
import torch

from skeleton_cgl import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.planetoid import read_planetoid
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.node import NodeScenario
from tests.graphs.planetoid_files import write_planetoid
from tests.scenarios.small import SETTINGS, lesson
from tests.shared_data import FOLDER, needs

PLANETOID = FOLDER / "planetoid"


@needs("planetoid")
@pytest.mark.parametrize(
    ("name", "nodes", "links", "features", "classes"),
    [("cora", 2708, 5278, 1433, 7), ("citeseer", 3327, 4552, 3703, 6)],
)
def test_the_citation_graphs_have_their_known_sizes(
    name: str, nodes: int, links: int, features: int, classes: int
) -> None:
    graph = read_planetoid(PLANETOID, name)
    assert graph.features.shape == (nodes, features)
    assert graph.edges.shape[1] == 2 * links + nodes
    assert graph.labels.max() + 1 == classes
    counts = [int((graph.parts == part).sum()) for part in (TRAINING, VALIDATION, TEST)]
    assert counts == [20 * classes, 500, 1000]
    assert np.bincount(graph.labels[graph.parts == TRAINING]).tolist() == [20] * classes


def labels_by_id(scenario: NodeScenario, folder: Path) -> torch.Tensor:
    """Return the label of every sample, by the node its place is at."""
    return torch.from_numpy(read_planetoid(folder, "cora").labels)[scenario.queries(()).pool.whole().at[:, 0]]


@needs("planetoid")
def test_tasks_queries_and_graph_are_those_of_class_incremental_cora() -> None:
    scenario = NodeScenario(PLANETOID)
    assert scenario.default == ((0, 1), (2, 3), (4, 5), (6,))
    experience = lesson(scenario, (2, 3))
    assert len(experience.training) == 40
    assert set(experience.training.labels.tolist()) == {2, 3}
    truth = labels_by_id(scenario, PLANETOID)[scenario.queries(()).ids]
    assert set(truth.tolist()) == set(range(7))
    answers = torch.nn.functional.one_hot(truth, 7).float()
    test, validation = scenario.score(answers, scenario.lessons(scenario.default))
    assert (test.part, validation.part) == ("test", "validation")
    for measure in (test, validation):
        assert measure.values.tolist() == [1.0] * 7
    assert (test.asked.sum(), validation.asked.sum()) == (1000, 500)
    assert len(scenario.queries(())) == 1500


@needs("planetoid")
def test_six_classes_of_cora_are_three_tasks_and_the_seventh_is_not_asked_about() -> None:
    scenario = NodeScenario(PLANETOID, tasks=ClassTasks(classes=tuple(range(6))))
    assert scenario.default == ((0, 1), (2, 3), (4, 5))
    assert set(labels_by_id(scenario, PLANETOID)[scenario.queries(()).ids].tolist()) == set(range(6))
    assert len(scenario.queries(()).pool.whole()) == 2708


@needs("planetoid")
def test_neighbours_in_the_sequence_of_queries_share_a_class_as_often_as_chance() -> None:
    """In the files, nodes come sorted by part and partly by class; 1499 pairs have a standard deviation of 0.01."""
    scenario = NodeScenario(PLANETOID)
    truth = labels_by_id(scenario, PLANETOID)[scenario.queries(()).ids]
    chance = float((torch.bincount(truth) / len(truth)).square().sum())
    alike = float((truth[1:] == truth[:-1]).double().mean())
    assert abs(alike - chance) < 0.05
    # Nor does the part show: test and validation are mixed.
    validation = torch.isin(scenario.queries(()).ids, lesson(scenario, range(7)).validation.ids).double()
    assert abs(float((torch.arange(1500) * validation).sum() / validation.sum()) / 1499 - 0.5) < 0.05


@pytest.mark.parametrize("setting", SETTINGS)
def test_samples_are_the_nodes_they_say_with_the_labels_of_the_files(tmp_path: Path, setting: str) -> None:
    folder = write_planetoid(tmp_path)
    scenario, graph = NodeScenario(folder, tasks=ClassTasks(setting=setting)), read_planetoid(folder, "cora")
    truth = labels_by_id(scenario, folder)
    nodes = scenario.queries(()).pool.whole().at[:, 0]
    assert sorted(nodes.tolist()) == list(range(len(truth)))
    everything = lesson(scenario, range(4))
    for samples, part in ((everything.training, TRAINING), (everything.validation, VALIDATION)):
        assert torch.equal(samples.labels, truth[samples.ids])
        assert sorted(nodes[samples.ids].tolist()) == np.flatnonzero(graph.parts == part).tolist()
    asked = nodes[scenario.queries(()).ids]
    assert sorted(asked.tolist()) == np.flatnonzero(np.isin(graph.parts, (TEST, VALIDATION))).tolist()
    assert torch.equal(scenario.queries(()).pool.whole().features, torch.from_numpy(graph.features))


def test_the_digest_follows_graph_and_setting(tmp_path: Path) -> None:
    digests = []
    for seed in (0, 1):
        (tmp_path / str(seed)).mkdir()
        folder = write_planetoid(tmp_path / str(seed), seed=seed)
        digests += [NodeScenario(folder).digest, NodeScenario(folder, tasks=ClassTasks(setting="task-il")).digest]
        digests += [NodeScenario(folder, tasks=ClassTasks(classes=(0, 1, 3))).digest]
        assert NodeScenario(folder, tasks=ClassTasks(classes_per_task=1)).digest == digests[-3]
    assert len(set(digests)) == 6


def test_nodes_go_through_orders_tree_and_store_unchanged(tmp_path: Path) -> None:
    study = Study(
        name="cora",
        scenario={"kind": "node", "data": str(write_planetoid(tmp_path, classes=6))},
        backbone={"name": "gcn", "width": 8, "depth": 1},
        methods=["bare", "ewc", {"name": "replay", "count": 12}],
        training={"epochs": 2},
    )
    results = study.run(tmp_path / "tree.db", progress=False)
    assert results.summary.learned == 3 * 15
    assert results.finished_runs == 3 * 6
    alone = study.run(tmp_path / "alone.db", progress=False, tree=False)
    assert alone.disparity("class").equals(results.disparity("class"))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ind\.cora\.x: cannot be read"):
        NodeScenario(tmp_path)
