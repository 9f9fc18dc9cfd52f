"""Nothing that a learner can reach through what it is given tells it the answers."""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.parts import TEST
from skeleton_cgl.scenarios.lessons import Prefix
from skeleton_cgl.scenarios.scenario import Scenario
from tests.core.cases import CASES, DOMAINS, LINKS, PERIODS, Case, study_of
from tests.core.community import CLASSES, Community, make_community
from tests.core.reach import reached
from tests.core.scores_by_hand import module_of


@dataclass(frozen=True)
class Asked:
    """A scenario, all prefixes of an order of it, and what is true: labels (N,) or (N, K) of the whole pool."""

    scenario: Scenario
    prefixes: list[Prefix]
    labels: np.ndarray
    ids: np.ndarray


def asked(case: Case, folder: Path) -> Asked:
    plan = make_plan(study_of(case, folder, methods=["bare"]))
    scenario: Any = plan.scenarios[0][0]
    prefixes = [plan.stages[key].prefix for key in plan.runs[0].keys]
    ids = (scenario._parts == TEST).nonzero()[:, 0].numpy()
    return Asked(scenario, prefixes, scenario._labels.numpy(), ids)


def tells(array: np.ndarray, labels: np.ndarray, ids: np.ndarray) -> bool:
    """Return whether an array has, at the samples `ids`, their labels, or says of one class which of them have it."""
    if array.ndim not in (1, 2) or array.dtype.kind not in "biuf":
        return False
    truths = [labels[ids] == label for label in np.unique(labels)] if labels.ndim == 1 else list(labels[ids].T == 1)
    truths = [truth for truth in truths if 0 < truth.sum() < len(truth)]
    columns = array[:, None] if array.ndim == 1 else array
    for rows in (columns[ids] if len(columns) == len(labels) else None, columns if len(columns) == len(ids) else None):
        if rows is None:
            continue
        if labels.ndim == 1 and any((column == labels[ids]).all() for column in rows.T):
            return True
        if any(((column == 1) == truth).all() for column in rows.T for truth in truths):
            return True
    return False


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("truth")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_array_within_reach_tells_a_test_label(case: Case, folder: Path) -> None:
    given = asked(case, folder)
    for prefix in given.prefixes:
        experience, queries = given.scenario.experience(prefix), given.scenario.queries(prefix)
        arrays = list(reached(experience, queries))
        assert len(arrays) > 5
        assert not any(tells(array, given.labels, given.ids) for array in arrays)
        order = queries.ids.numpy()
        known = np.isin(order, given.ids)
        assert not any(tells(array[known], given.labels, order[known]) for array in arrays if len(array) == len(order))
        assert not np.isin(experience.training.ids, given.ids).any()
        assert not np.isin(experience.validation.ids, given.ids).any()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_neighbours_in_the_sequence_of_queries_are_alike_as_often_as_chance(case: Case, folder: Path) -> None:
    given = asked(case, folder)
    for prefix in given.prefixes:
        ids = given.scenario.queries(prefix).ids.unique_consecutive().numpy()
        labels = np.nan_to_num(given.labels[ids].reshape(len(ids), -1), nan=2)
        assert _unlikely(labels) < 3
        assert _unlikely(labels[np.lexsort(labels.T)]) > 5


def _unlikely(labels: np.ndarray) -> float:
    """Return by how many standard deviations of chance more neighbours in labels (Q, K) are alike than by chance."""
    random = np.random.default_rng(0)

    def alike(sequence: np.ndarray) -> float:
        return float((sequence[1:] == sequence[:-1]).mean())

    by_chance = [alike(random.permutation(labels)) for _ in range(300)]
    return (alike(labels) - float(np.mean(by_chance))) / float(np.std(by_chance))


@pytest.mark.parametrize("case", [case for case in CASES if "kind" in case.scenario and case is not LINKS], ids=str)
def test_other_answers_and_other_lessons_to_come_change_nothing_within_reach(
    case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = asked(case, folder)
    for prefix in usual.prefixes:
        taught = sorted({unit for lesson in prefix for unit in lesson.units})
        monkeypatch.setattr(module_of(case), "make_community", _other(case, taught))
        other = asked(case, folder)
        monkeypatch.undo()
        assert not np.array_equal(usual.labels, other.labels)
        assert _content(usual.scenario, prefix) == _content(other.scenario, prefix)


def _other(case: Case, taught: list[int]) -> Callable[[int], Community]:
    """Return a maker of the same graph with other labels of test nodes, and of those that no lesson has taught yet."""

    def make(seed: int) -> Community:
        graph = make_community(seed)
        if case in (DOMAINS, PERIODS):
            changed = (graph.parts == TEST) | ~np.isin(graph.domains, taught)
            return replace(graph, labels=np.where(changed, (graph.labels + 1) % CLASSES, graph.labels))
        changed = graph.parts == TEST
        if case.name.startswith("nodes"):
            changed |= ~np.isin(graph.labels, taught)
        # The other class of the same task, which a query of task-il reveals.
        return replace(graph, labels=np.where(changed, graph.labels ^ 1, graph.labels))

    return make


def _content(scenario: Scenario, prefix: Prefix) -> list[str]:
    arrays = reached(scenario.experience(prefix), scenario.queries(prefix))
    return sorted(
        hashlib.sha256(f"{array.dtype} {array.shape}".encode() + array.tobytes()).hexdigest() for array in arrays
    )


@pytest.mark.parametrize("case", [case for case in CASES if case.name.startswith("labels")], ids=str)
def test_labels_to_come_are_not_shown(case: Case, folder: Path) -> None:
    given = asked(case, folder)
    for prefix in given.prefixes:
        experience = given.scenario.experience(prefix)
        shown = prefix[-1:] if "task-il" in case.name else prefix
        known = {unit for lesson in shown for unit in lesson.units}
        for samples in (experience.training, experience.validation):
            assert {int(label) for label in (~samples.labels.isnan()).any(dim=0).nonzero()[:, 0]} == known


def test_hidden_links_are_in_no_graph_within_reach(folder: Path) -> None:
    given = asked(LINKS, folder)
    queries = given.scenario.queries(given.prefixes[0])
    places: Any = queries.pool.whole()
    seen = {(int(one), int(other)) for one, other in zip(*places.graph.edges(), strict=True)}
    pairs = places.at[queries.ids]
    assert not any((int(one), int(other)) in seen or (int(other), int(one)) in seen for one, other in pairs)


def test_periods_to_come_are_in_no_graph_within_reach(folder: Path) -> None:
    given = asked(PERIODS, folder)
    graph = make_community(0)
    for period, prefix in enumerate(given.prefixes):
        places: Any = given.scenario.queries(prefix).pool.whole()
        nodes = torch.cat(places.graph.edges()).unique().numpy()
        assert graph.domains[nodes].max() == period
        assert not places.features[graph.domains > period].any()


class _Slotted:
    __slots__ = ("kept",)

    def __init__(self, kept: object) -> None:
        self.kept = kept


@pytest.mark.parametrize(
    "hidden",
    [
        lambda labels: SimpleNamespace(kept=labels),
        lambda labels: {"a": [{1: (labels,)}]},
        lambda labels: tuple(labels.tolist()),
        lambda labels: lambda: labels,
        lambda labels: functools.partial(print, labels),
        lambda labels: _Slotted(labels),
        lambda labels: lambda row=labels: row,
        lambda labels: SimpleNamespace(truth=lambda: labels).truth,
        lambda labels: (label for label in [labels]),
        lambda labels: torch.nn.functional.one_hot(torch.from_numpy(labels)),
        lambda labels: type("Hiding", (), {"__module__": "tests", "kept": labels})(),
    ],
)
def test_labels_that_are_within_reach_are_found(hidden: Callable[[np.ndarray], object], folder: Path) -> None:
    given = asked(CASES[2], folder)
    assert any(tells(array, given.labels, given.ids) for array in reached(hidden(given.labels)))
