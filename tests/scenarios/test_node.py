from pathlib import Path

import numpy as np
import pytest
import torch

from skeleton_cgl import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.planetoid import read_planetoid
from skeleton_cgl.scenarios.node import NodeScenario
from skeleton_cgl.scenarios.split import TEST, TRAINING, VALIDATION
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


@needs("planetoid")
def test_tasks_queries_and_graph_are_those_of_class_incremental_cora() -> None:
    scenario = NodeScenario(PLANETOID)
    assert scenario.default_tasks == ((0, 1), (2, 3), (4, 5))
    experience = scenario.experience((2, 3))
    assert len(experience.training) == 40
    assert set(experience.training.labels.tolist()) == {2, 3}
    truth = torch.from_numpy(read_planetoid(PLANETOID, "cora").labels)[scenario.queries().ids]
    assert set(truth.tolist()) == set(range(6))
    score = scenario.score(torch.nn.functional.one_hot(truth, 6).float(), scenario.default_tasks)
    assert score.test.sum() == np.trace(score.test)
    assert score.test.sum() + score.validation.sum() == len(scenario.queries())


@needs("planetoid")
def test_nodes_go_through_orders_tree_and_store_unchanged(tmp_path: Path) -> None:
    study = Study(
        name="cora",
        scenario={"kind": "node", "data": str(PLANETOID)},
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
