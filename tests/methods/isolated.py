"""What the tests of parameter isolation share: tasks of every kind, and the answers to each after every later one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.scenario import Queries, Scenario
from tests.graphs.made_sets import random_graph_set
from tests.learning.learners import seed_for
from tests.scenarios.graphs import label_scenario, node_scenario
from tests.scenarios.small import scenario_of
from tests.scenarios.test_graph import graph_scenario
from tests.scenarios.test_link import link_scenario


@dataclass(frozen=True)
class Case:
    """A kind of problem in task-il, and a backbone with parameters."""

    kind: str
    backbone: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.kind, self.backbone, *self.parameters])

    def scenario(self, small: Path) -> Scenario:
        return scenario_of(small, "task-il") if self.kind == "clips" else _scenario(self.kind)

    def learner(self, small: Path, method: str, parameters: dict[str, Any] | None = None, **training: Any) -> Learner:
        recipe = Training(**{"epochs": 3, "learning_rate": 0.02, "device": "cpu"} | training)
        return make_learner(self.scenario(small), self.backbone, method, recipe, 0, self.parameters, parameters or {})


CLIPS = Case("clips", "gcn", {"width": 6})
NODES = Case("nodes", "gcn", {"width": 6})
CASES = [
    CLIPS,
    Case("clips", "stgcn", {"width": 5, "kernel": 3}),
    NODES,
    Case("nodes", "gcn", {"width": 6, "preset": "agale"}),
    Case("nodes", "gat", {"width": 6, "heads": 2}),
    Case("nodes", "gin", {"width": 6}),
    Case("nodes", "skeleton-gcn", {"width": 6}),
    Case("labels", "gcn", {"width": 6}),
    Case("links", "gcn", {"width": 6, "after": [5, 4]}),
    Case("links", "gin", {"width": 6}),
    Case("graphs", "gcn", {"width": 6, "encoder": True, "read_out": "gated", "after": [5, 4]}),
    Case("graphs", "gat", {"width": 6, "heads": 2, "encoder": True, "after": [5]}),
    Case("graphs", "gin", {"width": 6, "batch_norm": False, "after": [5]}),
    Case("graphs", "skeleton-gcn", {"width": 6}),
    Case("molecules", "gcn", {"width": 6, "after": [5]}),
    Case("molecules", "gat", {"width": 6, "heads": 2}),
    Case("molecules", "gin", {"width": 6}),
    Case("measured edges", "gcn", {"width": 6, "batch_norm": False}),
    Case("measured edges", "gin", {"width": 6}),
]


@cache
def _scenario(kind: str) -> Scenario:
    fields = {"setting": "task-il", "classes_per_task": 2}
    if kind == "nodes":
        return node_scenario(**fields)
    if kind == "labels":
        return label_scenario(setting="task-il", classes_per_task=2)
    if kind == "links":
        return link_scenario(**fields)
    if kind == "graphs":
        return graph_scenario(**fields)
    codes = kind == "molecules"
    made = random_graph_set(graphs=90, codes=codes, edge_features=True, published=False, texts=False)
    return graph_scenario(made, setting="task-il", classes_per_task=1)


def own_queries(scenario: Scenario) -> list[Queries]:
    """Return the queries of every task, as they are asked after the last."""
    queries = scenario.queries(scenario.lessons(scenario.default))
    tasks = [(queries.step == step).nonzero()[:, 0] for step in range(len(scenario.lessons(scenario.default)))]
    return [Queries(queries.pool, queries.ids[rows], queries.step[rows]) for rows in tasks]


def learning(learner: Learner, scenario: Scenario) -> Iterator[int]:
    """Learn the default tasks one after the other; yield the step of each when it was learned."""
    prefix = scenario.lessons(scenario.default)
    for step in range(len(prefix)):
        learner.learn(scenario.experience(prefix[: step + 1]), seed_for(step))
        yield step


def answers_to_known_tasks(learner: Learner, scenario: Scenario) -> list[list[Tensor]]:
    """Return, for every task, its own answers after itself and after every later one."""
    asked = own_queries(scenario)
    found: list[list[Tensor]] = [[] for _ in asked]
    for step in learning(learner, scenario):
        for task in range(step + 1):
            answers = learner.answer(asked[task])
            found[task].append(answers[:, list(learner.taught[task].outputs)])
    return found


def largest_change(found: list[list[Tensor]]) -> float:
    """Return how much any answer to a task differs from the first ones to it."""
    return max(float((later - first).abs().max()) for first, *rest in found for later in rest)


def assert_old_answers_stay(found: list[list[Tensor]]) -> None:
    assert any(len(answers) > 1 for answers in found)
    for task, (first, *rest) in enumerate(found):
        assert first.isfinite().all()
        for later in rest:
            assert torch.equal(later, first), f"task {task}: {(later - first).abs().max()}"
