"""Whole graphs as a scenario, of one class each or of labels some of which are not known: by hand."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.graph import GraphScenario, WholeGraphSettings
from skeleton_cgl.scenarios.graph_labels import GraphLabelsScenario
from skeleton_cgl.scenarios.opened import Opened
from tests.scenarios.sets import (
    CLASSES,
    DOMAINS,
    ITEMS,
    graph_set,
    graphs_of,
    measure_of,
    prefixes,
    units_of,
)

SETTINGS = ("class-il", "task-il", "domain-il", "time-il")


def graph_scenario(graphs: GraphSet | None = None, seed: int = 0, repeat: int = 0, **fields: Any) -> Any:
    """Return the scenario of graphs as they stand: they keep their numbers."""
    graphs = graphs or graph_set()
    settings = WholeGraphSettings(kind="graph", **fields).of_repeat(repeat).checked()
    opened = Opened(graphs, np.arange(len(graphs)))
    if graphs.many_labels:
        of_labels = settings._of_labels(graphs)
        return GraphLabelsScenario(opened, of_labels, of_labels.split_for(graphs, seed))
    return GraphScenario(opened, settings, settings.split_for(graphs, seed))


def labelled(seed: int = 0, unknown: float = 0.3, **changes: Any) -> GraphSet:
    """Return graphs with three binary labels, of which some are not known."""
    random = np.random.default_rng(seed)
    labels = (random.random((ITEMS, 3)) < 0.4).astype(np.float32)
    labels[random.random(labels.shape) < unknown] = np.nan
    return graph_set(labels=labels, classes=("p", "q", "r"), **changes)


@pytest.mark.parametrize("setting", SETTINGS)
def test_lessons_and_queries_divide_the_graphs(setting: str) -> None:
    graphs = graph_set()
    scenario, unit = graph_scenario(graphs, setting=setting), units_of(graphs, setting)
    taught: set[int] = set()
    for step, prefix in enumerate(prefixes(scenario)):
        taught |= set(prefix[-1].units)
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        asked = graphs_of(graphs, queries)
        assert len(np.unique(asked)) == len(asked)
        assert set(unit[asked]) == (taught if setting == "time-il" else set(unit))
        own = np.isin(unit, prefix[-1].units)
        handed = []
        for samples, queried in ((experience.training, False), (experience.validation, True)):
            found = graphs_of(graphs, samples)
            assert np.array_equal(samples.labels.numpy(), graphs.labels[found])
            assert own[found].all()
            assert (np.isin(found, asked) == queried).all()
            assert samples.step.unique().tolist() == [step if setting == "task-il" else -1]
            handed.append(found)
        assert np.array_equal(np.union1d(handed[0], asked[own[asked]]), np.flatnonzero(own))
        steps = {number: place for place, lesson in enumerate(prefix) for number in lesson.units}
        revealed = [steps.get(each, -1) if setting == "task-il" else -1 for each in unit[asked].tolist()]
        assert queries.step.tolist() == revealed
        assert experience.outputs == (
            prefix[-1].units if setting.startswith(("class", "task")) else tuple(range(CLASSES))
        )


def test_a_pool_has_no_graph_of_a_period_to_come() -> None:
    graphs = graph_set()
    scenario = graph_scenario(graphs, setting="time-il")
    for prefix in prefixes(scenario):
        pool = scenario.experience(prefix).training.pool.whole()
        assert len(pool) == (units_of(graphs, "time-il") <= prefix[-1].units[0]).sum()


@pytest.mark.parametrize("setting", SETTINGS)
def test_scores_are_the_shares_of_right_answers(setting: str) -> None:
    graphs = graph_set()
    scenario, unit = graph_scenario(graphs, setting=setting), units_of(graphs, setting)
    prefix = prefixes(scenario)[1]
    queries = scenario.queries(prefix)
    asked = graphs_of(graphs, queries)
    taught = [number for lesson in prefix for number in lesson.units]
    met = taught if scenario.unit_kind == "class" else list(range(CLASSES))
    answers = torch.full((len(asked), CLASSES), -torch.inf)
    answers[:, met] = torch.from_numpy(np.random.default_rng(0).normal(size=(len(asked), len(met)))).float()
    allowed = answers.clone()
    for row, step in enumerate(queries.step.tolist()):
        if step >= 0:
            allowed[row, [each for each in range(CLASSES) if each not in prefix[step].units]] = -torch.inf
    labels = graphs.labels[asked]
    right = allowed.argmax(dim=1).numpy() == labels
    measures = scenario.score(answers, prefix)
    for part, number in (("test", TEST), ("validation", VALIDATION)):
        for each in taught:
            own = (scenario._parts[asked] == number) & (unit[asked] == each)
            by_class = [right[own & (labels == label)].mean() for label in np.unique(labels[own])]
            assert measure_of(measures, part, "accuracy").values[each] == pytest.approx(np.mean(by_class))
            micro = measure_of(measures, part, "micro_accuracy")
            assert (micro.values[each], micro.asked[each]) == (pytest.approx(right[own].mean()), own.sum())


def test_two_classes_have_a_roc_auc_in_every_domain() -> None:
    graphs = graph_set(labels=(graph_set().labels == 0).astype(np.int64))
    scenario = graph_scenario(graphs, setting="domain-il", score="roc_auc")
    assert scenario.problem.metrics == ("roc_auc", "accuracy", "micro_accuracy")
    prefix = prefixes(scenario)[0]
    asked = graphs_of(graphs, scenario.queries(prefix))
    answers = torch.from_numpy(np.random.default_rng(1).normal(size=(len(asked), 2)).round(1))
    found = measure_of(scenario.score(answers, prefix), "test", "roc_auc")
    for domain in range(DOMAINS):
        own = (scenario._parts[asked] == TEST) & (units_of(graphs, "domain-il")[asked] == domain)
        expected = roc_auc_score(graphs.labels[asked[own]], (answers[:, 1] - answers[:, 0])[own])
        assert found.values[domain] == pytest.approx(expected)


@pytest.mark.parametrize("setting", ["class-il", "task-il"])
@pytest.mark.parametrize("by", ["graph", "task"])
def test_a_graph_without_a_known_label_of_a_task_is_neither_learned_nor_asked_about_in_it(
    setting: str, by: str
) -> None:
    graphs = labelled()
    scenario = graph_scenario(graphs, setting=setting, classes_per_task=1, split={"by": by})
    asked_so_far: set[int] = set()
    for step, prefix in enumerate(prefixes(scenario)):
        (own,) = prefix[-1].units
        known = ~np.isnan(graphs.labels[:, own])
        parts = scenario._parts_of((own,))
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        training, validation = (graphs_of(graphs, each) for each in (experience.training, experience.validation))
        assert set(training) == set(np.flatnonzero(known & (parts == TRAINING)))
        assert set(validation) == set(np.flatnonzero(known & (parts == VALIDATION)))
        asked_so_far |= set(np.flatnonzero(known & ((parts == TEST) | (parts == VALIDATION))).tolist())
        assert set(graphs_of(graphs, queries).tolist()) == asked_so_far
        if setting == "task-il":
            of_step = graphs_of(graphs, queries)[queries.step.numpy() == step]
            assert set(of_step) == set(np.flatnonzero(known & (parts >= VALIDATION)))


@pytest.mark.parametrize("setting", ["class-il", "task-il", "domain-il"])
def test_graphs_show_the_known_labels_so_far_or_of_their_task_or_all(setting: str) -> None:
    graphs = labelled()
    tasks: dict[str, Any] = {} if setting == "domain-il" else {"classes_per_task": 1}
    scenario = graph_scenario(graphs, setting=setting, **tasks)
    for prefix in prefixes(scenario):
        training = scenario.experience(prefix).training
        found = graphs_of(graphs, training)
        shown = {
            "class-il": [label for lesson in prefix for label in lesson.units],
            "task-il": list(prefix[-1].units),
            "domain-il": [0, 1, 2],
        }[setting]
        expected = np.full((len(found), 3), np.nan)
        expected[:, shown] = graphs.labels[found][:, shown]
        np.testing.assert_array_equal(training.labels.numpy(), expected)


@pytest.mark.parametrize("setting", ["class-il", "task-il", "domain-il"])
def test_labels_are_judged_where_they_are_known_as_scikit_learn_does(setting: str) -> None:
    graphs = labelled()
    tasks: dict[str, Any] = {} if setting == "domain-il" else {"classes_per_task": 2}
    scenario = graph_scenario(graphs, setting=setting, **tasks)
    assert scenario.problem.metrics[0] == "roc_auc"
    prefix = prefixes(scenario)[-1]
    queries = scenario.queries(prefix)
    asked = graphs_of(graphs, queries)
    answers = torch.from_numpy(np.random.default_rng(2).normal(size=(len(asked), 3)).round(1))
    measures = scenario.score(answers, prefix)
    for metric, score in (("roc_auc", roc_auc_score), ("average_precision", average_precision_score)):
        found = measure_of(measures, "test", metric)

        def expected(label: int, rows: np.ndarray, score: Any = score) -> float:
            here = rows & ~np.isnan(graphs.labels[asked, label]) & (scenario._once[asked] == TEST)
            return float(score(graphs.labels[asked[here], label], answers[here, label]))

        if setting == "domain-il":
            domains = graphs.groups["domain"].numbers[asked]
            by_hand = [np.mean([expected(label, domains == each) for label in range(3)]) for each in range(DOMAINS)]
        else:
            every = np.ones(len(asked), dtype=bool)
            rows = [queries.step.numpy() == label // 2 if setting == "task-il" else every for label in range(3)]
            by_hand = [expected(label, rows[label]) for label in range(3)]
        assert found.values == pytest.approx(by_hand)


def test_the_digest_changes_with_what_is_handed_out_asked_or_scored_and_stays_otherwise() -> None:
    graphs = graph_set()
    others: list[dict[str, Any]] = [
        {"setting": "task-il"},
        {"setting": "domain-il"},
        {"setting": "time-il"},
        {"setting": "time-il", "periods": 2},
        {"self_loops": False},
        {"score": "micro_accuracy"},
        {"balanced": False},
        {"classes": (0, 1, 2, 3)},
        {"split": {"seed": 1}},
        {"split": {"ratios": (6, 2, 2)}},
        {"split": {"by": "domain"}},
    ]
    digests = [graph_scenario(graphs, **each).digest for each in ({}, *others)]
    digests += [graph_scenario(graphs, seed=2).digest, graph_scenario(graph_set(seed=1)).digest]
    assert len(set(digests)) == len(digests)
    assert graph_scenario(graph_set(notes=("read",), texts=("C",) * ITEMS)).digest == digests[0]
    assert graph_scenario(graphs, classes_per_task=3).digest == digests[0]
    labels = labelled()
    of_labels: list[dict[str, Any]] = [
        {"setting": "task-il"},
        {"setting": "domain-il"},
        {"self_loops": False},
        {"score": "average_precision"},
        {"balanced": False},
        {"split": {"by": "task"}},
        {"split": {"seed": 1}},
    ]
    digests = [graph_scenario(labels, **each).digest for each in ({}, *of_labels)]
    digests += [graph_scenario(labels, seed=2).digest, graph_scenario(labelled(1)).digest]
    assert len(set(digests)) == len(digests)
    assert graph_scenario(labels, split={"by": "graph"}).digest == digests[0]


def test_a_published_split_is_taken_and_its_seed_decides_nothing() -> None:
    split = np.random.default_rng(3).choice([TRAINING, VALIDATION, TEST], size=ITEMS)
    for graphs in (graph_set(split=split), labelled(split=split)):
        scenario = graph_scenario(graphs, setting="domain-il")
        prefix = prefixes(scenario)[0]
        own = graphs.groups["domain"].numbers == prefix[-1].units[0]
        training = graphs_of(graphs, scenario.experience(prefix).training)
        assert set(training) == set(np.flatnonzero(own & (split == TRAINING)))
        assert set(graphs_of(graphs, scenario.queries(prefix))) == set(np.flatnonzero(split != TRAINING))
        assert graph_scenario(graphs, seed=1, setting="domain-il").digest == scenario.digest


def test_which_classes_make_a_task_is_drawn_by_repeat_or_by_a_seed_of_its_own() -> None:
    drawn = [graph_scenario(repeat=repeat, grouping="random").default for repeat in range(4)]
    assert len(set(drawn)) > 1
    fixed = [graph_scenario(repeat=repeat, grouping="random", grouping_seed=5).default for repeat in range(4)]
    assert len(set(fixed)) == 1
    of_labels = [graph_scenario(labelled(), repeat=repeat, grouping="random").default for repeat in range(6)]
    assert len(set(of_labels)) > 1
