"""Nothing that is handed out of a graph tells the answers, or what is to come: every kind, setting, view and split."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from skeleton_cgl.graphs.graph import Graph, Groups, make_graph
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.lessons import Prefix, Task
from skeleton_cgl.scenarios.multilabel import MultilabelScenario, MultilabelSettings
from skeleton_cgl.scenarios.node import NodeScenario, NodeSettings
from skeleton_cgl.scenarios.opened import Opened, shuffled
from skeleton_cgl.scenarios.scenario import Queries, Samples
from skeleton_cgl.scenarios.views import sequence_of
from tests.core.reach import reached
from tests.scenarios.graphs import CLASSES, label_graph, node_graph
from tests.scenarios.telling import RARE, as_it_stands, content, prefixes, tells, unlikely

VIEWS: dict[str, dict[str, Any]] = {
    "whole": {"view": "whole"},
    "own": {"view": "task"},
    "so far": {"view": "task", "inter_task_edges": True},
    "snapshot": {},
}
AnyScenario = NodeScenario | MultilabelScenario


@dataclass(frozen=True)
class Case:
    """A kind of scenario with its setting, its view and what it is split by."""

    kind: str
    setting: str
    view: str
    split: str

    def __str__(self) -> str:
        return f"{self.kind} {self.setting} {self.view} by {self.split}"

    @property
    def by_domain(self) -> bool:
        return self.setting in ("domain-il", "time-il")

    def graph(self) -> Graph:
        """Return a graph whose nodes stand sorted by part and by class, as in many a file."""
        graph = node_graph() if self.kind == "node" else label_graph(nodes=360)
        parts = np.random.default_rng(1).choice([TRAINING, VALIDATION, TEST], size=len(graph), p=[0.5, 0.2, 0.3])
        first = graph.labels if self.kind == "node" else graph.labels.argmax(axis=1)
        order = np.lexsort([first, parts])
        groups = {"domain": Groups(graph.groups["domain"].numbers[order], tuple("abc"))}
        split = parts[order] if self.split == "published" else None
        times = None if graph.times is None else graph.times[order]
        place = np.argsort(order)
        edges, features, labels = place[graph.edges], graph.features[order], graph.labels[order]
        return make_graph("sorted", edges, features, labels, groups=groups, times=times, split=split)

    def scenario(self, opened: Opened, **fields: Any) -> AnyScenario:
        given = {"setting": self.setting, "split": {"by": self.split}, **VIEWS[self.view], **fields}
        if self.kind == "node":
            node = NodeSettings(kind="node", **given).checked()
            return NodeScenario(opened, node, node.split_for(opened.data, 0))
        labels = MultilabelSettings(kind="multilabel", **given).checked()
        return MultilabelScenario(opened, labels, labels.split_for(opened.data, 0))

    def units_of(self, graph: Graph) -> np.ndarray:
        """Return (N,) the unit of every node, where a node has one."""
        if self.setting == "domain-il":
            return graph.groups["domain"].numbers
        return graph.times - 2000 if self.setting == "time-il" and graph.times is not None else graph.labels

    def within(self, graph: Graph, lesson: Task) -> np.ndarray:
        """Return (N,) whether a node is in a lesson."""
        if self.kind == "multilabel" and not self.by_domain:
            return graph.labels[:, list(lesson)].any(axis=1)
        return np.isin(self.units_of(graph), lesson)


def _cases(*splits: dict[str, tuple[str, ...]]) -> Iterator[Case]:
    for kind, by in (pair for each in splits for pair in each.items()):
        settings = ("class-il", "task-il", "domain-il")
        for setting in settings:
            yield from (Case(kind, setting, view, split) for view in ("whole", "own", "so far") for split in by)
        if kind == "node":
            yield from (Case(kind, "time-il", "snapshot", split) for split in by)


CASES = list(_cases({"node": ("class",), "multilabel": ("task", "node")}))
PUBLISHED = list(_cases({"node": ("published",), "multilabel": ("published",)}))
LABELS = [case for case in CASES if case.kind == "multilabel" and case.setting == "class-il" and case.split == "task"]


def nodes_of(graph: Graph, given: Samples | Queries) -> np.ndarray:
    """Return the nodes that samples or queries are, by their features, of which no two are alike."""
    places = given.pool.whole().rows(given.ids)
    rows = {row.tobytes(): node for node, row in enumerate(graph.features)}
    assert len(rows) == len(graph)
    return np.array([rows[row.tobytes()] for row in places.dense_features[places.at[:, 0]].numpy()])


def parts_of(scenario: Any, case: Case, lesson: Task) -> np.ndarray:
    """Return (N,) the parts of the nodes of a lesson, −1 for the others."""
    if case.kind == "multilabel":
        return scenario._parts_of(lesson)
    return np.where(np.isin(scenario._unit, lesson), scenario._parts, -1)


def pairs_of(scenario: Any, case: Case, prefix: Prefix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the lesson, the part and the query of all that is asked; −1 for a lesson to come.

    On views that all lessons share, a query of class-il may be of several lessons.
    """
    if case.kind == "multilabel":
        steps, parts, _ = scenario._pairs(prefix)
        _, queries, place = scenario._asked(prefix)
        return steps, parts, np.argsort(sequence_of(len(queries)))[place]
    steps, nodes = scenario._pairs(prefix)
    return steps, scenario._parts[nodes], np.argsort(scenario._views.asked(prefix, steps, nodes).sequence)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_array_within_reach_tells_a_test_label(case: Case) -> None:
    opened = shuffled(case.graph())
    scenario, labels = case.scenario(opened), opened.data.labels
    for prefix in prefixes(scenario):
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        arrays = list(reached(experience, queries))
        assert len(arrays) > 5
        asked = nodes_of(opened.data, queries)
        steps, parts, rows = pairs_of(scenario, case, prefix)
        test = np.sort(rows[(parts == TEST) & (steps >= 0)])
        seen = np.concatenate([np.flatnonzero(case.within(opened.data, lesson.units)) for lesson in prefix])
        # As they are asked, as they stand in the whole graph, in what has come so far, and side by side.
        stood = (asked, np.arange(len(labels)), np.unique(seen), seen)
        wanted = [np.unique(asked[test]), asked[test]]
        for array in arrays:
            assert not any(tells(array, labels, nodes, each) for nodes in stood for each in wanted)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_labels_that_are_within_reach_are_found(case: Case) -> None:
    opened = shuffled(case.graph())
    scenario = case.scenario(opened)
    queries = scenario.queries(prefixes(scenario)[-1])
    asked, labels = nodes_of(opened.data, queries), opened.data.labels
    for hidden in (labels, labels[asked], labels.astype(np.float32), (labels == 1).astype(np.int64)):
        assert any(tells(hidden, labels, nodes, asked) for nodes in (asked, np.arange(len(labels))))


@pytest.mark.parametrize("case", PUBLISHED, ids=str)
def test_other_answers_and_other_lessons_to_come_change_nothing_within_reach(case: Case) -> None:
    graph = case.graph()
    scenario = case.scenario(as_it_stands(graph))
    for prefix in prefixes(scenario):
        other = _other(case, graph, prefix)
        assert not np.array_equal(graph.labels, other.labels[: len(graph)])
        assert content(scenario, prefix) == content(case.scenario(as_it_stands(other)), prefix)


def _other(case: Case, graph: Graph, prefix: Prefix) -> Graph:
    """Return a graph with other labels wherever `prefix` shows none; to come are other nodes, features and edges."""
    to_come = ~np.any([case.within(graph, lesson.units) for lesson in prefix], axis=0)
    labels = _other_labels(case, graph, prefix)
    if case.view == "whole":
        return replace(graph, labels=labels)
    random = np.random.default_rng(2)
    features = np.where(to_come[:, None], random.normal(size=graph.features.shape), graph.features)
    kept = graph.edges[:, ~to_come[graph.edges].any(axis=0)]
    template = random.choice(np.flatnonzero(to_come), 7) if to_come.any() else np.zeros(0, dtype=np.int64)
    nodes = len(graph) + len(template)
    late = np.concatenate([np.flatnonzero(to_come), np.arange(len(graph), nodes)])
    ends = random.integers(nodes, size=(2, 3 * len(late)))
    ends[0] = np.resize(late, ends.shape[1])
    again = np.concatenate([np.arange(len(graph)), template])
    return make_graph(
        "other",
        np.concatenate([kept, ends, ends[::-1]], axis=1),
        features[again],
        labels[again],
        groups={"domain": Groups(graph.groups["domain"].numbers[again], tuple("abc"))},
        times=None if graph.times is None else graph.times[again],
        split=None if graph.split is None else graph.split[again],
    )


def _other_labels(case: Case, graph: Graph, prefix: Prefix) -> np.ndarray:
    last, test = case.within(graph, prefix[-1].units), graph.split == TEST
    if case.by_domain:
        hidden = test | ~last
        if case.kind == "node":
            return np.where(hidden, (graph.labels + 1) % CLASSES, graph.labels)
        return np.where(hidden[:, None], np.roll(graph.labels, 1, axis=1), graph.labels)
    taught = [unit for lesson in prefix for unit in lesson.units]
    if case.kind == "node":
        # The other class of the same task, which a view of lessons and a query of task-il reveal.
        within = np.where(test | ~last, graph.labels ^ 1, graph.labels)
        to_come = np.array([label for label in range(CLASSES) if label not in taught] or [0])
        moved = to_come[(np.searchsorted(to_come, within) + 2) % len(to_come)]
        return np.where(np.isin(graph.labels, taught), within, moved)
    labels = graph.labels.copy()
    for lesson in prefix:
        own = list(lesson.units)
        # In class-il, a node to learn from shows what it has of earlier lessons where it is no query.
        shown = last & (graph.split == TRAINING) if case.setting == "class-il" else np.zeros(len(graph), dtype=bool)
        hidden = test | (~last if lesson is prefix[-1] else ~shown)
        labels[np.ix_(hidden, own)] = graph.labels[np.ix_(hidden, own[::-1])]
    others = [label for label in range(CLASSES) if label not in taught]
    labels[:, others] = np.random.default_rng(3).permutation(graph.labels)[:, others]
    return labels


@pytest.mark.parametrize("case", CASES, ids=str)
def test_neither_sequence_nor_numbers_of_queries_tell_class_lesson_or_part(case: Case) -> None:
    opened = shuffled(case.graph())
    graph, scenario = opened.data, case.scenario(opened)
    for prefix in prefixes(scenario):
        queries = scenario.queries(prefix)
        nodes = nodes_of(graph, queries)
        steps, parts, rows = pairs_of(scenario, case, prefix)
        secrets = [*(rows[steps == step] for step in range(-1, len(scenario.units))), rows[parts == TEST]]
        truths = [np.isin(np.arange(len(nodes)), secret) for secret in secrets]
        by_class = graph.labels[nodes]
        truths += list(by_class.T == 1) if by_class.ndim == 2 else [by_class == label for label in range(CLASSES)]
        truths = [truth for truth in truths if 0 < truth.sum() < len(truth)]
        assert case.setting == "task-il" or (queries.step == -1).all()
        places = queries.pool.whole().rows(queries.ids).at[:, 0].numpy()
        for told in (np.arange(len(nodes)), queries.ids.numpy(), places):
            # In task-il a node is asked about in every lesson it is in, by one number.
            _, once = np.unique(told, return_index=True)
            assert max(unlikely(told[once], truth[once]) for truth in truths) < RARE
    assert min(unlikely(truth.astype(int), truth) for truth in truths) > 1.5 * RARE


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_test_query_is_among_what_its_lesson_is_learned_or_validated_with(case: Case) -> None:
    opened = shuffled(case.graph())
    scenario = case.scenario(opened)
    taught: dict[int, np.ndarray] = {}
    for place, prefix in enumerate(prefixes(scenario)):
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        training, validation = (nodes_of(opened.data, each) for each in (experience.training, experience.validation))
        taught[place] = training
        steps, _, rows = pairs_of(scenario, case, prefix)
        asked = nodes_of(opened.data, queries)[rows]
        own = asked[steps == place]
        assert not np.isin(training, own).any()
        test = np.setdiff1d(own, validation)
        assert np.array_equal(np.sort(test), np.flatnonzero(parts_of(scenario, case, prefix[-1].units) == TEST))
        assert all(not np.isin(taught[earlier], asked[steps == earlier]).any() for earlier in taught)
        if case.split != "task" or case.by_domain:
            # One split for all lessons: who is learned from once is never asked about.
            assert not np.isin(np.concatenate(list(taught.values())), asked).any()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_scenario_that_is_sent_to_a_worker_hands_out_the_same(case: Case) -> None:
    scenario = case.scenario(shuffled(case.graph()))
    sent = pickle.loads(pickle.dumps(scenario))
    for prefix in prefixes(scenario):
        assert content(sent, prefix) == content(scenario, prefix)


@pytest.mark.parametrize("case", [case for case in CASES if case.setting == "class-il" and case.view != "own"], ids=str)
def test_how_often_a_node_is_asked_about_does_not_tell_in_how_many_lessons_it_has_labels(case: Case) -> None:
    opened = shuffled(case.graph())
    scenario = case.scenario(opened)
    queries = scenario.queries(prefixes(scenario)[-1])
    assert len(queries.ids.unique()) == len(queries)


@pytest.mark.parametrize("case", LABELS, ids=str)
def test_a_node_to_learn_from_hides_labels_of_tasks_that_ask_about_it_unless_leaks_are_asked_for(case: Case) -> None:
    opened = shuffled(case.graph())
    labels = opened.data.labels
    for leaks in (False, True):
        scenario = case.scenario(opened, **({"leaking_labels": True} if leaks else {}))
        crossing = 0
        for prefix in prefixes(scenario)[1:]:
            for samples in (scenario.experience(prefix).training, scenario.experience(prefix).validation):
                nodes = nodes_of(opened.data, samples)
                for lesson in prefix[:-1]:
                    asked = np.isin(parts_of(scenario, case, lesson.units)[nodes], (TEST, VALIDATION))
                    shown = samples.labels[torch.from_numpy(asked)][:, list(lesson.units)].numpy()
                    crossing += len(shown)
                    told = labels[nodes[asked]][:, list(lesson.units)]
                    assert np.array_equal(shown, told) if leaks else np.isnan(shown).all()
        assert crossing > 50
