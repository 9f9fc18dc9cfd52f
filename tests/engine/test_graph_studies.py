"""Studies of nodes, of every kind, setting and view: sharing beginnings and sharing work change no number."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skeleton_cgl import Study
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.learning.learner import Batch
from skeleton_cgl.scenarios.opened import open_shuffled
from skeleton_cgl.scenarios.scenario import Samples
from tests.core.cases import GROUP_ORDERS, TASK_ORDERS, records_of
from tests.engine.studies import run, same_records
from tests.scenarios.graphs import label_graph, node_graph, write_npz

# Dask's scheduler leaves closing some of its sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

METHODS = ("bare", "replay", "joint", {"name": "joint", "restart": True}, "gem", "ewc", "lwf")
FEW = ("replay", "lwf")
"""With a memory, and without: enough where only the setting or the view is another."""
VIEWS: Mapping[str, dict[str, Any]] = {
    "whole": {"view": "whole"},
    "own": {"view": "task"},
    "so far": {"view": "task", "inter_task_edges": True},
    "snapshot": {},
}


@dataclass(frozen=True)
class Case:
    """A kind of scenario with its setting and its view."""

    kind: str
    setting: str
    view: str

    def __str__(self) -> str:
        return f"{self.kind} {self.setting} {self.view}"

    @property
    def thorough(self) -> bool:
        return (self.setting, self.view) == ("class-il", "own")

    @property
    def orders(self) -> dict[str, Any]:
        """Return two orders that begin alike; periods have one."""
        if self.setting == "time-il":
            return {"tasks": "default"}
        orders = GROUP_ORDERS if self.setting == "domain-il" else TASK_ORDERS
        return {"given": orders if self.thorough else [order[:2] for order in orders]}

    @property
    def methods(self) -> tuple[Any, ...]:
        return METHODS if self.thorough else FEW

    @property
    def stages(self) -> int:
        return 5 if self.thorough else 4 if self.setting == "time-il" else 3

    def study(self, folder: Path, **changes: Any) -> Study:
        graph = node_graph() if self.kind == "node" else label_graph()
        path = folder / f"{self.kind}.npz"
        data = path if path.exists() else write_npz(graph, path)
        fields = {
            "name": str(self),
            "scenario": {"kind": self.kind, "data": str(data), "setting": self.setting, **VIEWS[self.view]},
            "backbone": {"name": "gcn", "width": 8},
            "methods": list(self.methods),
            "orders": self.orders,
            "training": {"epochs": 2, "learning_rate": 0.01, "device": "cpu"},
        }
        return Study(**{**fields, **changes})


CASES = [
    *(
        Case(kind, setting, view)
        for kind in ("node", "multilabel")
        for setting in ("class-il", "task-il", "domain-il")
        for view in ("whole", "own", "so far")
    ),
    Case("node", "time-il", "snapshot"),
]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graph studies")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_tree_gives_the_records_of_every_order_run_alone(case: Case, folder: Path) -> None:
    study = case.study(folder)
    tree = run(study, folder / f"{case}.db")
    alone = run(study, folder / f"{case} alone.db", tree=False)
    assert same_records(tree, alone)
    assert len(records_of(tree)) == case.stages * len(case.methods)


@pytest.mark.parametrize(("kind", "settings", "workers"), [("node", ["class-il", "task-il"], 2), ("multilabel", [], 3)])
def test_any_number_of_workers_gives_the_same_records(
    kind: str, settings: list[str], workers: int, folder: Path, tmp_path: Path
) -> None:
    """Settings and views as one sweep: it is the workers that take their time to start."""
    sweep = {"scenario.view": ["whole", "task"], **({"scenario.setting": settings} if settings else {})}
    study = Case(kind, "class-il", "whole").study(folder, methods=["replay", "joint"], sweep=sweep)
    one, more = (run(study, tmp_path / f"{number}.db", workers=number) for number in (1, workers))
    assert same_records(one, more)
    assert len(records_of(one)) == 2 * (len(settings) or 1) * len(study.methods) * 3


def given_in_the_second_lesson(case: Case, method: Any, folder: Path) -> tuple[list[Places], Graph, list[np.ndarray]]:
    """Return the places that a learner was given to learn from, the graph, and the nodes of both lessons."""
    study = case.study(folder, methods=[method])
    plan = make_plan(study)
    stages = [plan.stages[key] for key in plan.runs[0].keys][:2]
    scenario: Any = plan.setting(stages[0])[1]
    learner = stages[0].new_learner(study, scenario)
    learner.learn(scenario.experience(stages[0].prefix), stages[0].seed(study))
    usual, given = learner.batch, []

    def recorded(samples: Samples, training: bool = False) -> Batch:
        batch = usual(samples, training)
        given.append(batch.inputs)
        return batch

    learner.batch = recorded  # type: ignore[method-assign]
    learner.learn(scenario.experience(stages[1].prefix), stages[1].seed(study))
    data = str(study.scenario["data"])
    return given, open_shuffled(data, {}, Graph).data, [scenario.items_of(lesson.units) for lesson in stages[1].prefix]


def links_of(places: Places, graph: Graph) -> tuple[np.ndarray, set[tuple[int, int]]]:
    """Return the nodes of the places' graph, told by their features, and its links but for loops."""
    rows = {row.tobytes(): node for node, row in enumerate(graph.features)}
    nodes = np.array([rows[row.tobytes()] for row in places.dense_features.numpy()])
    ends = zip(places.links.sources.tolist(), places.links.targets.tolist(), strict=True)
    return nodes, {(source, target) for source, target in ends if source != target}


def within(graph: Graph, nodes: np.ndarray) -> set[tuple[int, int]]:
    """Return the links between nodes, by a walk over all links."""
    own = set(nodes.tolist())
    return {(s, t) for s, t in graph.edges.T.tolist() if s != t and s in own and t in own}


@pytest.mark.parametrize("kind", ["node", "multilabel"])
@pytest.mark.parametrize("method", ["replay", "gem"])
def test_on_the_own_view_remembered_nodes_stand_alone(kind: str, method: str, folder: Path) -> None:
    given, graph, (first, second) = given_in_the_second_lesson(Case(kind, "class-il", "own"), method, folder)
    remembered = 0
    for places in given:
        nodes, links = links_of(places, graph)
        linked = {node for link in links for node in link}
        named = {(int(nodes[source]), int(nodes[target])) for source, target in links}
        # All links are those of the second lesson; who is here from the first, once more or alone, has none.
        assert named in (set(), within(graph, second))
        alone = [place for place in range(len(nodes)) if place not in linked and nodes[place] in first]
        own = sum(places.at.flatten().tolist().count(place) for place in alone)
        remembered += own
        if not named:
            assert len(nodes) == len(places) == own
    expected = round(0.2 * len(first) * (0.8 if kind == "node" else 0.6))
    assert remembered >= expected - 1
    assert any(links_of(places, graph)[1] for places in given)


@pytest.mark.parametrize("kind", ["node", "multilabel"])
def test_on_the_own_view_joint_has_every_lesson_as_it_stood(kind: str, folder: Path) -> None:
    (places,), graph, (first, second) = given_in_the_second_lesson(Case(kind, "class-il", "own"), "joint", folder)
    nodes, links = links_of(places, graph)
    assert np.array_equal(nodes, np.concatenate([first, second]))
    border = len(first)
    assert all((source < border) == (target < border) for source, target in links)
    for here, own in ((range(border), first), (range(border, len(nodes)), second)):
        found = {(int(nodes[source]), int(nodes[target])) for source, target in links if source in here}
        assert found == within(graph, own)
        assert found
