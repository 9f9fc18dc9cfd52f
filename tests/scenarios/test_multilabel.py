"""Many labels per node as a scenario: AGALE's tasks, what nodes show, what is asked and how it is judged."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.parts import TEST, VALIDATION
from skeleton_cgl.scenarios.lessons import Prefix
from skeleton_cgl.scenarios.many_labels import SO_FAR
from skeleton_cgl.scenarios.multilabel import MultilabelScenario
from skeleton_cgl.scenarios.scenario import Queries, Samples
from tests.scenarios.graphs import CLASSES, DOMAINS, label_graph, label_scenario, node_graph

VIEWS: dict[str, dict[str, Any]] = {
    "whole": {"view": "whole"},
    "own": {},
    "so far": {"inter_task_edges": True},
}
SPLITS = ("task", "node")
CASES = [(setting, view, split) for setting in ("class-il", "task-il") for view in VIEWS for split in SPLITS]


def scenario_of(setting: str, view: str, split: str = "task", graph: Graph | None = None, **fields: Any) -> Any:
    return label_scenario(graph, setting=setting, split={"by": split}, **VIEWS[view], **fields)


def nodes_of(graph: Graph, given: Samples | Queries) -> np.ndarray:
    places = given.pool.whole().rows(given.ids)
    apart = np.abs(places.dense_features[places.at[:, 0]].numpy()[:, None] - graph.features[None]).sum(axis=2)
    assert (apart.min(axis=1) == 0).all()
    return apart.argmin(axis=1)


def prefixes(scenario: MultilabelScenario) -> list[Prefix]:
    lessons = scenario.lessons(scenario.default)
    return [lessons[: step + 1] for step in range(len(lessons))]


@pytest.mark.parametrize(("setting", "view", "split"), CASES)
def test_a_lesson_has_the_nodes_with_one_of_its_labels_each_in_one_part(setting: str, view: str, split: str) -> None:
    graph = label_graph()
    scenario = scenario_of(setting, view, split, graph)
    for prefix in prefixes(scenario):
        experience = scenario.experience(prefix)
        training, validation = (nodes_of(graph, each) for each in (experience.training, experience.validation))
        test = np.flatnonzero(scenario._parts_of(prefix[-1].units) == TEST)
        found = np.sort(np.concatenate([training, validation, test]))
        assert np.array_equal(found, np.flatnonzero(graph.labels[:, list(prefix[-1].units)].any(axis=1)))


@pytest.mark.parametrize(("setting", "view", "split"), CASES)
def test_nodes_show_the_labels_they_may(setting: str, view: str, split: str) -> None:
    graph = label_graph()
    scenario = scenario_of(setting, view, split, graph)
    for prefix in prefixes(scenario):
        samples = scenario.experience(prefix).training
        nodes = nodes_of(graph, samples)
        shown = samples.labels.numpy()
        own = list(prefix[-1].units)
        assert np.array_equal(shown[:, own], graph.labels[nodes][:, own])
        for lesson in prefix[:-1]:
            hidden = setting == "task-il" or np.isin(scenario._parts_of(lesson.units)[nodes], (TEST, VALIDATION))
            for label in lesson.units:
                expected = np.where(hidden, np.nan, graph.labels[nodes, label])
                assert np.array_equal(shown[:, label], expected, equal_nan=True)
        met = [unit for lesson in prefix for unit in lesson.units]
        assert np.isnan(np.delete(shown, met, axis=1)).all()


def test_labels_of_earlier_tasks_leak_only_where_that_is_asked_for() -> None:
    graph = label_graph()
    scenario = scenario_of("class-il", "own", graph=graph, leaking_labels=True)
    prefix = prefixes(scenario)[-1]
    samples = scenario.experience(prefix).training
    assert np.array_equal(samples.labels.numpy(), graph.labels[nodes_of(graph, samples)])


@pytest.mark.parametrize(("setting", "view", "split"), CASES)
def test_scores_are_those_of_scikit_learn_on_the_queries_of_each_task(setting: str, view: str, split: str) -> None:
    graph = label_graph()
    scenario = scenario_of(setting, view, split, graph)
    prefix = prefixes(scenario)[1]
    queries = scenario.queries(prefix)
    nodes = nodes_of(graph, queries)
    met = [unit for lesson in prefix for unit in lesson.units]
    answers = torch.full((len(nodes), CLASSES), -torch.inf)
    # The same answer to the same node, so that it does not matter in which task it is asked about.
    answers[:, met] = torch.from_numpy(np.random.default_rng(0).normal(size=(len(graph), len(met))))[nodes].float()
    found = {(each.part, each.metric): each for each in scenario.score(answers, prefix)}
    by_node = np.full((len(graph), CLASSES), np.nan)
    by_node[nodes] = answers.numpy()
    pairs = [np.flatnonzero(np.isin(scenario._parts_of(lesson.units), (TEST, VALIDATION))) for lesson in prefix]
    # In class-il, where all lessons share a view, one answer serves all lessons that a node is in.
    shared = setting == "class-il" and view != "own"
    assert len(nodes) == len(np.unique(np.concatenate(pairs)) if shared else np.concatenate(pairs))
    for name, part in (("test", TEST), ("validation", VALIDATION)):
        for step, lesson in enumerate(prefix):
            asked = np.flatnonzero(scenario._parts_of(lesson.units) == part)

            def of(label: int, score: Any, asked: np.ndarray = asked) -> float:
                return float(score(graph.labels[asked, label], by_node[asked, label]))

            for label in lesson.units:
                assert found[name, "average_precision"].values[label] == pytest.approx(
                    of(label, average_precision_score)
                )
                assert found[name, "roc_auc"].values[label] == pytest.approx(of(label, roc_auc_score))
                assert found[name, "average_precision"].asked[label] == len(asked)
            if setting == "class-il":
                known = [label for earlier in prefix[: step + 1] for label in earlier.units]
                expected = np.mean([of(label, average_precision_score) for label in known])
                assert found[name, SO_FAR].values[list(lesson.units)] == pytest.approx([expected] * len(lesson.units))
        others = [label for label in range(CLASSES) if label not in met]
        assert np.isnan(found[name, "average_precision"].values[others]).all()


def test_domains_are_judged_label_by_label() -> None:
    graph = label_graph()
    scenario = label_scenario(graph, setting="domain-il", view="whole")
    assert [unit.name for unit in scenario.units] == ["a", "b", "c"]
    prefix = prefixes(scenario)[0]
    queries = scenario.queries(prefix)
    nodes = nodes_of(graph, queries)
    domain = graph.groups["domain"].numbers
    assert set(domain[nodes]) == set(range(DOMAINS))
    answers = torch.from_numpy(np.random.default_rng(0).normal(size=(len(nodes), CLASSES)))
    found = {(each.part, each.metric): each for each in scenario.score(answers, prefix)}
    for number in range(DOMAINS):
        here = (domain[nodes] == number) & (scenario._parts_of((number,))[nodes] == TEST)
        scores = [
            average_precision_score(graph.labels[nodes[here], label], answers[torch.from_numpy(here), label].numpy())
            for label in range(CLASSES)
            if 0 < graph.labels[nodes[here], label].mean() < 1
        ]
        assert found["test", "average_precision"].values[number] == pytest.approx(np.mean(scores))
    training = scenario.experience(prefix).training
    assert np.array_equal(training.labels.numpy(), graph.labels[nodes_of(graph, training)])


def test_domains_learned_together_are_asked_about_once_and_not_where_they_are_learned_from() -> None:
    scenario = label_scenario(setting="domain-il", view="whole")
    prefix = scenario.lessons(((0, 1), (2,)))[:1]
    queries = scenario.queries(prefix).ids
    assert len(queries.unique()) == len(queries)
    assert not torch.isin(scenario.experience(prefix).training.ids, queries).any()


def test_a_split_that_is_given_is_the_same_whatever_the_seed() -> None:
    """So that no noise floor draws splits where there is nothing to draw."""
    graph = label_graph()
    published = replace(graph, split=np.random.default_rng(0).integers(3, size=len(graph)))
    other = replace(graph, split=np.random.default_rng(1).integers(3, size=len(graph)))
    assert label_scenario(published).digest == label_scenario(published, seed=1).digest
    by_published = {"by": "published"}
    assert label_scenario(published, split=by_published).digest != label_scenario(other, split=by_published).digest


def test_an_odd_last_label_joins_the_task_before_and_rare_ones_are_in_none() -> None:
    graph = label_graph()
    labels = graph.labels.copy()
    labels[np.flatnonzero(labels[:, 2])[5:], 2] = 0
    scenario = label_scenario(replace(graph, labels=labels), fewest_nodes=20)
    assert scenario.default == ((0, 1), (3, 4, 5))
    assert "in no task, neither learned nor asked about: label 2" in scenario.notes


def test_one_split_of_nodes_is_the_same_in_all_tasks_and_one_by_task_is_not() -> None:
    for split, agrees in (("node", True), ("task", False)):
        scenario = scenario_of("class-il", "own", split)
        first, second = (scenario._parts_of(task) for task in scenario.default[:2])
        both = (first >= 0) & (second >= 0)
        assert both.sum() > 20
        assert (first[both] == second[both]).all() == agrees


def test_divided_lessons_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = label_scenario(label_graph(nodes=200))
    monkeypatch.setattr("skeleton_cgl.scenarios.many_labels._MOST_DIVIDED", 1000)
    for task in itertools.combinations(range(CLASSES), 2):
        scenario._parts_of(task)
        assert sum(parts.nbytes for parts in scenario._divided.values()) <= 1000


def test_a_task_is_divided_the_same_whatever_was_divided_before() -> None:
    one, other = (scenario_of("class-il", "own") for _ in range(2))
    mixed = ((0, 3), (1, 2), (4, 5))
    backwards = [other._parts_of(task) for task in mixed[::-1]][::-1]
    for task, parts in zip(mixed, backwards, strict=True):
        assert np.array_equal(one._parts_of(task), parts)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"setting": "domain-il", "fewest_nodes": 3}, "fewest_nodes: all labels are learned in every domain"),
        ({"domains": "domain"}, "domains: there are none in class-il"),
        ({"fewest_nodes": 10_000}, "no label of small has 10000 nodes"),
        ({"fewest_nodes": 80, "classes": (2, 3, 4, 5)}, "fewest_nodes: 'label 2' is among `classes` and has 78 nodes"),
        ({"split": {"by": "class"}}, "take by: task or by: node"),
        ({"split": {"by": "task", "test": (1,)}}, "name groups; they mean nothing with by: task"),
        ({"classes_per_task": 1, "rest": "own"}, "every test node has 'label 0'"),
    ],
)
def test_what_means_nothing_is_refused_by_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        label_scenario(**fields)


def test_kinds_of_graphs_are_told_apart() -> None:
    with pytest.raises(InputError, match="one class per node; that is kind: node"):
        label_scenario(node_graph())


def test_the_digest_follows_all_that_decides_what_is_learned_and_asked() -> None:
    graph = label_graph()
    digests = [scenario_of(setting, view, split, graph).digest for setting, view, split in CASES]
    digests += [label_scenario(graph, setting="domain-il").digest, label_scenario(graph, leaking_labels=True).digest]
    digests += [label_scenario(graph, seed=1).digest, label_scenario(graph, score="roc_auc").digest]
    digests += [label_scenario(graph, split={"ratios": (8, 1, 1)}).digest, label_scenario(label_graph(1)).digest]
    assert len(set(digests)) == len(digests)
