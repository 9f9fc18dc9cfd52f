"""Nothing that is handed out of a set of graphs tells the answers, or graphs to come: one class or labels."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.items import Groups
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.graph import GraphScenario, WholeGraphSettings
from skeleton_cgl.scenarios.graph_labels import GraphLabelsScenario, GraphLabelsSettings
from skeleton_cgl.scenarios.lessons import Prefix
from skeleton_cgl.scenarios.opened import Opened, shuffled
from tests.scenarios.telling import (
    as_it_stands,
    assert_no_array_tells_a_test_label,
    assert_no_test_item_is_learned_from,
    assert_queries_stand_at_random,
    content,
    prefixes,
)

CLASSES, DOMAINS, PERIODS = 6, 3, 4
GRAPHS = CLASSES * DOMAINS * PERIODS * 5


def graphs_of(drawn: np.ndarray, **fields: Any) -> GraphSet:
    """Return a path of 2 to 5 nodes for each of the numbers (G,) that it is drawn by."""
    made = [np.random.default_rng(number) for number in drawn]
    sizes = np.array([random.integers(2, 6) for random in made])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    inner = np.setdiff1d(np.arange(starts[-1]), starts[1:] - 1)
    features = np.concatenate([random.normal(size=(size, 3)) for random, size in zip(made, sizes, strict=True)])
    return make_graph_set("paths", starts, np.stack([inner, inner + 1]), features, both_ways=True, **fields)


@dataclass(frozen=True)
class Case:
    """Graphs of one class or of labels, in a setting."""

    setting: str
    labels: bool = False

    def __str__(self) -> str:
        return f"{'labels' if self.labels else 'one class'} {self.setting}"

    def truths(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return labels, and domain, time and part of graphs that stand sorted by part and class, as in many a file."""
        random = np.random.default_rng(0)
        number = random.permutation(GRAPHS)
        labels = number % CLASSES
        parts = random.choice([TRAINING, VALIDATION, TEST], size=GRAPHS, p=[0.5, 0.2, 0.3])
        order = np.lexsort([labels, parts])
        columns = {
            "domain": number // CLASSES % DOMAINS,
            "times": 2000 + number // (CLASSES * DOMAINS) % PERIODS,
            "split": parts,
        }
        if self.labels:
            labels = random.choice([0, 1, np.nan], (GRAPHS, CLASSES), p=[0.5, 0.3, 0.2]).astype(np.float32)
        return labels[order], {name: column[order] for name, column in columns.items()}

    def graphs(
        self, drawn: np.ndarray, labels: np.ndarray, columns: dict[str, np.ndarray], published: bool = True
    ) -> GraphSet:
        return graphs_of(
            drawn,
            labels=labels,
            groups={"domain": Groups(columns["domain"], tuple("abc"))},
            times=columns["times"],
            split=columns["split"] if published else None,
        )

    def scenario(self, opened: Opened) -> GraphScenario | GraphLabelsScenario:
        # So many for test that no few numbers agree with all their classes by chance.
        split = {} if opened.data.split is not None else {"split": {"ratios": (4, 2, 4)}}
        if self.labels:
            of_labels = GraphLabelsSettings(data="", setting=self.setting, **split).checked()
            return GraphLabelsScenario(opened, of_labels, of_labels.split_for(opened.data, 0))
        one = WholeGraphSettings(kind="graph", setting=self.setting, **split).checked()
        return GraphScenario(opened, one, one.split_for(opened.data, 0))

    def within(self, labels: np.ndarray, columns: dict[str, np.ndarray], lessons: Sequence[Any]) -> np.ndarray:
        """Return (G,) whether a graph is in one of some lessons."""
        units = [unit for lesson in lessons for unit in lesson.units]
        if self.setting == "domain-il":
            return np.isin(columns["domain"], units)
        if self.setting == "time-il":
            return np.isin(columns["times"] - 2000, units)
        return ~np.isnan(labels[:, units]).all(axis=1) if self.labels else np.isin(labels, units)


CASES = [
    *(Case(setting) for setting in ("class-il", "task-il", "domain-il", "time-il")),
    *(Case(setting, labels=True) for setting in ("class-il", "task-il", "domain-il")),
]


def drawn_split(case: Case) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a scenario that divides graphs itself, with their labels and parts."""
    labels, columns = case.truths()
    opened = shuffled(case.graphs(np.arange(GRAPHS), labels, columns, published=False))
    scenario: Any = case.scenario(opened)
    return scenario, opened.data.labels, scenario._once if case.labels else scenario._parts


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_array_within_reach_tells_a_test_label(case: Case) -> None:
    assert_no_array_tells_a_test_label(*drawn_split(case))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_neither_sequence_nor_numbers_of_queries_tell_label_or_part(case: Case) -> None:
    assert_queries_stand_at_random(*drawn_split(case))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_test_graph_is_learned_from_and_a_scenario_sent_to_a_worker_hands_out_the_same(case: Case) -> None:
    scenario, _, parts = drawn_split(case)
    assert_no_test_item_is_learned_from(scenario, parts)
    sent = pickle.loads(pickle.dumps(scenario))
    assert all(content(sent, prefix) == content(scenario, prefix) for prefix in prefixes(scenario))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_other_answers_and_other_graphs_to_come_change_nothing_within_reach(case: Case) -> None:
    labels, columns = case.truths()
    scenario = case.scenario(as_it_stands(case.graphs(np.arange(GRAPHS), labels, columns)))
    for prefix in prefixes(scenario):
        other = _other_labels(case, labels, columns, prefix)
        assert not np.array_equal(labels, other, equal_nan=True)
        drawn, more = np.arange(GRAPHS), columns
        if case.setting == "time-il":
            late = np.flatnonzero(~case.within(labels, columns, prefix))
            drawn[late] += GRAPHS
            again = np.concatenate([np.arange(GRAPHS), late[:7]])
            drawn = np.concatenate([drawn, 9 * GRAPHS + np.arange(len(again) - GRAPHS)])
            other, more = other[again], {name: column[again] for name, column in columns.items()}
        changed = case.scenario(as_it_stands(case.graphs(drawn, other, more)))
        assert content(changed, prefix) == content(scenario, prefix)


def _other_labels(case: Case, labels: np.ndarray, columns: dict[str, np.ndarray], prefix: Prefix) -> np.ndarray:
    """Return other labels wherever a prefix shows none."""
    last = case.within(labels, columns, prefix[-1:])
    test, training = columns["split"] == TEST, columns["split"] == TRAINING
    if not case.labels:
        if case.setting in ("domain-il", "time-il"):
            return np.where(test | ~last, (labels + 1) % CLASSES, labels)
        # The other class of the same task, which a query of task-il reveals.
        return np.where(test | ~last, labels ^ 1, labels)
    if case.setting == "domain-il":
        return np.where((test | ~last)[:, None], 1 - labels, labels)
    other = labels.copy()
    for lesson in prefix:
        own = list(lesson.units)
        # In class-il, a graph to learn from shows what it has of earlier lessons.
        shown = training & last if case.setting == "class-il" else np.zeros(len(labels), dtype=bool)
        hidden = test | (~last if lesson is prefix[-1] else ~shown)
        other[np.ix_(hidden, own)] = 1 - labels[np.ix_(hidden, own)]
    taught = [unit for lesson in prefix for unit in lesson.units]
    to_come = [label for label in range(CLASSES) if label not in taught]
    # Also which of them are known.
    other[:, to_come] = np.random.default_rng(3).permutation(labels)[:, to_come]
    return other


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_pool_has_the_graphs_that_have_come_in_time_il_and_all_elsewhere(case: Case) -> None:
    labels, columns = case.truths()
    graphs = case.graphs(np.arange(GRAPHS), labels, columns)
    scenario = case.scenario(as_it_stands(graphs))
    for prefix in prefixes(scenario):
        here = np.arange(GRAPHS)
        if case.setting == "time-il":
            here = np.flatnonzero(case.within(labels, columns, prefix))
        experience, queries = scenario.experience(prefix), scenario.queries(prefix)
        for pool in (experience.training.pool, experience.validation.pool, queries.pool):
            held = pool.whole()
            assert isinstance(held, Graphs)
            assert np.array_equal(held.sizes.numpy(), graphs.sizes[here])
            nodes = np.concatenate([np.arange(*graphs.starts[each : each + 2]) for each in here])
            assert np.array_equal(held.content.dense_features.numpy(), graphs.features[nodes])
        asked = np.isin(columns["split"], (TEST, VALIDATION))
        if case.setting == "time-il" or (case.labels and case.setting != "domain-il"):
            asked &= case.within(labels, columns, prefix)
        assert np.array_equal(np.unique(queries.ids.numpy()), np.flatnonzero(asked))
        assert len(queries.ids.unique()) == len(queries) or case == Case("task-il", labels=True)
