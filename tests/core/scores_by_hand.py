"""What answers are worth, computed anew from the made-up truth: a loop over queries, and scikit-learn."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from skeleton_cgl.parts import TEST, VALIDATION
from skeleton_cgl.registry import SCENARIOS
from skeleton_cgl.scenarios.lessons import Prefix, Segment
from skeleton_cgl.scenarios.scenario import Queries
from tests.core.cases import Case
from tests.core.community import CLASSES, DOMAINS, make_community

Expected = dict[tuple[str, str], list[float]]
"""The values per unit, by part and metric."""


def expected_scores(case: Case, scenario: Any, answers: Tensor, queries: Queries, prefix: Prefix) -> Expected:
    """Return what a scenario should say of answers after a prefix."""
    found, ids, steps = answers.numpy().astype(float), queries.ids.numpy(), queries.step.numpy()
    kind = case.name.split()[0]
    if kind == "links":
        return _links(scenario, found, ids)
    if kind == "labels":
        return _labels(case, found, ids, steps, prefix)
    if kind == "skeletons":
        labels, parts = scenario._labels.numpy(), scenario._parts.numpy()
        domains = None
    else:
        graph = make_community(0)
        labels, parts, domains = graph.labels, graph.parts, graph.domains if kind == "groups" else None
    answered = [_best(found[row], _allowed(case, int(labels[ids[row]]), prefix, labels)) for row in range(len(ids))]
    expected: Expected = {}
    for part, name in ((TEST, "test"), (VALIDATION, "validation")):
        judged = labels if domains is None else domains
        units = CLASSES if domains is None else DOMAINS
        right: list[list[bool]] = [[] for _ in range(units)]
        for row, sample in enumerate(ids):
            if parts[sample] == part:
                right[judged[sample]].append(answered[row] == labels[sample])
        expected[name, "accuracy"] = list(map(_mean, right))
    return expected


def _allowed(case: Case, label: int, prefix: Prefix, labels: np.ndarray) -> list[int]:
    """Return the classes that an answer may be among."""
    if "groups" in case.name:
        return list(range(CLASSES))
    if case.name == "stream":
        batches = [batch for lesson in prefix if isinstance(lesson, Segment) for batch in lesson.batches]
        return sorted({int(labels[sample]) for batch in batches for sample in batch})
    own = [lesson.units for lesson in prefix if label in lesson.units]
    if "task-il" in case.name and own:
        return list(own[0])
    return sorted(unit for lesson in prefix for unit in lesson.units)


def module_of(case: Case) -> ModuleType:
    """Return the file of a made-up scenario as it is loaded."""
    return sys.modules[SCENARIOS.find(case.scenario["kind"]).__module__]


def _best(answers: np.ndarray, allowed: list[int]) -> int:
    return max(allowed, key=lambda label: (answers[label], -label))


def _labels(case: Case, found: np.ndarray, ids: np.ndarray, steps: np.ndarray, prefix: Prefix) -> Expected:
    graph = make_community(0)
    labels = module_of(case).labels_of(graph).numpy()
    met = {label: step for step, lesson in enumerate(prefix) for label in lesson.units}
    expected: Expected = {}
    for part, name in ((TEST, "test"), (VALIDATION, "validation")):
        scores = {"average_precision": average_precision_score, "roc_auc": roc_auc_score}
        for metric, score in scores.items():
            values = []
            for label in range(CLASSES):
                if label not in met:
                    values.append(0.0)
                    continue
                step = met[label] if "task-il" in case.name else -1
                rows = [
                    row
                    for row in range(len(ids))
                    if graph.parts[ids[row]] == part and steps[row] == step and not np.isnan(labels[ids[row], label])
                ]
                values.append(score(labels[ids[rows], label], found[rows, label]))
            expected[name, metric] = values
    return expected


def _links(scenario: Any, found: np.ndarray, ids: np.ndarray) -> Expected:
    graph = make_community(0)
    linked = {(int(one), int(other)) for one, other in graph.edges.T}
    pairs = scenario.queries(()).pool.whole().at.numpy()
    truth = np.array([tuple(pairs[pair]) in linked for pair in ids])
    domains = graph.domains[pairs[ids, 0]]
    assert (domains == graph.domains[pairs[ids, 1]]).all()
    parts = scenario._parts.numpy()[ids]
    expected: Expected = {}
    for part, name in ((TEST, "test"), (VALIDATION, "validation")):
        hits, areas = [], []
        for domain in range(DOMAINS):
            rows = (parts == part) & (domains == domain)
            hits.append(_mean(found[rows & truth, 0] > found[rows & ~truth, 0].max()))
            areas.append(roc_auc_score(truth[rows], found[rows, 0]))
        expected[name, "hits@1"], expected[name, "roc_auc"] = hits, areas
    return expected


def _mean(right: list[bool] | np.ndarray) -> float:
    return float(np.mean(right)) if len(right) else np.nan
