"""What a run achieved, from the values of its steps: accuracies, average accuracy AA, forgetting AF, and what node
benchmarks call AP, INT and FWT.

A run is one order learned to its end. Symbols follow Wei, De Schepper, Mets (2024): a[k, j] is the accuracy on the j-th
task of an order after learning its first k tasks, B the number of tasks; U is the number of units. "Accuracy" stands
for whatever the leading metric of the scenario is. The value of a task is the mean of its units' values; of a micro
metric, weighted by their numbers of queries, which makes it the share of the task's queries answered rightly.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.scores import Scores, choose
from skeleton_cgl.engine.rows import LearnerRow, Values
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order
from skeleton_cgl.scenarios.measures import QUERIED

RUN = ["learner", "repeat", "noise", "floor", "kind", "order"]
"""The columns that name a run."""
DEFINITIONS = ("max", "diagonal")
SIGNS = ("forgetting", "cglb")
STREAMED = ["A_AUC", "A_AUC_pooled", "AF_s"]
"""What is said of runs of streams alone."""
JOINT = "joint"
"""The method that is given all tasks so far, as studies name it."""
_BY_CLASS = ("accuracy", "class")


def task_accuracies(
    by_unit: np.ndarray, tasks: Sequence[Sequence[int]], weights: np.ndarray | None = None
) -> np.ndarray:
    """Return (..., tasks): the mean accuracy of each task's units (macro-average), from accuracies (..., U).

    weights (..., U): what each unit weighs in its task (`Scores.weights`); None for all alike. A unit without queries
    is left out of its task's mean; a task without queries is NaN.
    """
    return _task_means(by_unit, _members([tasks], by_unit.shape[-1])[0], weights)


def accuracy_matrix(by_unit: np.ndarray, order: Order) -> np.ndarray:
    """Return a (B, B) of a run with these accuracies by step and unit (B, U).

    Entries above the diagonal are of tasks not yet learned: 0 wherever answers are confined to the classes seen.
    """
    if by_unit.ndim != 2 or len(by_unit) != len(order):
        raise InputError(f"accuracies: expected (U,) for each of {len(order)} steps, found {by_unit.shape}")
    return task_accuracies(by_unit, order)


def average_accuracy(matrix: np.ndarray) -> np.ndarray:
    """Return (..., B): AA_k = mean over j ≤ k of a[k, j], for k = 1 … B, from a (..., B, B)."""
    return np.tril(matrix).sum(axis=-1) / np.arange(1, matrix.shape[-1] + 1)


def average_forgetting(matrix: np.ndarray, definition: str = "max", sign: str = "forgetting") -> np.ndarray:
    """Return (..., B): AF_k for k = 1 … B, from a (..., B, B); AF_1 is NaN, for there is nothing to forget.

    "max": AF_k = mean over j < k of (max over l < k of a[l, j] − a[k, j]), with l from j on: before a task is learned
    its accuracy is 0, and what stands above the diagonal is not looked at. "diagonal": a[j, j] takes the place of the
    maximum (CGLB, BeGin). Positive means forgotten; the sign "cglb" gives the negative.
    """
    choose("definition of forgetting", definition, DEFINITIONS)
    choose("sign of forgetting", sign, SIGNS)
    learned = np.tril(matrix)
    if definition == "max":
        before = np.maximum.accumulate(learned, axis=-2)[..., :-1, :]
    else:
        before = np.diagonal(learned, axis1=-2, axis2=-1)[..., None, :]
    forgotten = np.tril(before - learned[..., 1:, :])
    forgetting = np.full(learned.shape[:-1], np.nan)
    forgetting[..., 1:] = forgotten.sum(axis=-1) / np.arange(1, learned.shape[-1])
    return forgetting if sign == "forgetting" else -forgetting


def intransigence(matrix: np.ndarray, joint: np.ndarray) -> np.ndarray:
    """Return (...): INT = mean over i of (a_joint[i, i] − a[i, i]), from a and a_joint (..., B, B) of the same orders.

    How much less is learned of a task when its turn comes than by a learner that is given all tasks so far (BeGin).
    """
    difference: np.ndarray = np.diagonal(joint - matrix, axis1=-2, axis2=-1).mean(axis=-1)
    return difference


def forward_transfer(matrix: np.ndarray, untrained: np.ndarray) -> np.ndarray:
    """Return (...): FWT = mean over i ≥ 2 of (a[i−1, i] − r_i), from a (..., B, B) and r (..., B); NaN for B = 1.

    r_i is the accuracy on the i-th task of a learner that has not learned yet (BeGin, domain-incremental learning).
    """
    if matrix.shape[-1] < 2:
        return np.full(matrix.shape[:-2], np.nan)
    before: np.ndarray = np.diagonal(matrix, offset=1, axis1=-2, axis2=-1)
    transfer: np.ndarray = (before - untrained[..., 1:]).mean(axis=-1)
    return transfer


def forgetting_bound(
    average_accuracy: np.ndarray | float, k: np.ndarray | int, last: np.ndarray | float = 1.0
) -> np.ndarray:
    """Return the bound of Theorem 1: AF_k ≤ 1 − k/(k−1)·AA_k + 1/(k−1)·a[k, k], with `last` for a[k, k]; NaN for k = 1.

    It holds for both definitions of AF_k. The default a[k, k] = 1 gives the dotted line of the paper's figures.
    """
    k = np.asarray(k, dtype=float)
    earlier = np.where(k > 1, k - 1, np.nan)
    return 1 - k / earlier * average_accuracy + last / earlier


def accuracy_matrices(scores: Scores, queries: str = "test") -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, for every length B of an order, the places (n,) of its runs among all, and their a (n, B, B).

    Runs of streams, which are examined at other times than after each task, have none.
    """
    return _by_shape(scores, queries, streams=False)


def stream_accuracies(scores: Scores, queries: str = "test") -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the places (n,) of runs of streams among all, and a (n, S, B): accuracy at S examinations on B tasks."""
    return _by_shape(scores, queries, streams=True)


def _by_shape(scores: Scores, queries: str, streams: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the places (n,) of runs of B tasks that were examined S times, and their accuracies on tasks (n, S, B)."""
    values, weights = _values(scores, queries), scores.weights(queries)
    shapes: dict[tuple[int, int], list[int]] = {}
    for place, run in enumerate(scores.runs):
        if (run.examinations is not None) == streams:
            shapes.setdefault((run.steps, len(run.order)), []).append(place)
    for (steps, _), places in sorted(shapes.items()):
        members = _members([scores.runs[place].order for place in places], len(scores.units))
        alike = np.array(places)
        yield alike, _task_means(values[alike, :steps], members, None if weights is None else weights[alike, None])


def _values(scores: Scores, queries: str) -> np.ndarray:
    return scores.test if choose("queries", queries, QUERIED) == "test" else scores.validation


def runs(scores: Scores, definition: str = "max", sign: str = "forgetting") -> pd.DataFrame:
    """Return one row per run: the columns RUN, then AA, AF, bound and validation_AA after the last step; AP, which is
    AA as graph benchmarks call it, AF_diagonal, INT and FWT; the columns STREAMED.

    INT is against the run of Joint (`joint_of`) of the same repeat, order and noise, NaN for Joint itself and where
    there is none; FWT is against the untrained learner, NaN where it was not asked. bound is Theorem 1 with the run's
    own a[B, B]; with the sign "cglb" it is negated like AF, and bounds from below. Of a stream, AF is the mean over
    tasks of the best at an earlier examination less what is left at the last; it has no diagonal, no bound, no INT and
    no FWT. A_AUC is the mean over examinations of the mean over tasks, A_AUC_pooled that of the accuracy on all queries
    (`pooled_accuracy`), and AF_s is AF with the last examination among those that can be the best (DRIFT).
    """
    results = np.empty((len(scores.runs), 4))
    diagonal, intransigences, transfers = np.full((3, len(scores.runs)), np.nan)
    streamed = np.full((len(STREAMED), len(scores.runs)), np.nan)
    joint_run = _joint_runs(scores)
    for alike, matrix in accuracy_matrices(scores):
        diagonal[alike] = average_forgetting(matrix, "diagonal", sign)[:, -1]
        row_of = {int(place): row for row, place in enumerate(alike)}
        own = [row for place, row in row_of.items() if place in joint_run]
        joint = [row_of[joint_run[place]] for place in row_of if place in joint_run]
        intransigences[alike[own]] = intransigence(matrix[own], matrix[joint])
        if scores.untrained is not None:
            transfers[alike] = forward_transfer(matrix, _untrained(scores, alike))
        average = average_accuracy(matrix)[:, -1]
        forgetting = average_forgetting(matrix, definition, sign)[:, -1]
        bound = forgetting_bound(average, matrix.shape[-1], matrix[:, -1, -1]) * (1 if sign == "forgetting" else -1)
        results[alike, :3] = np.stack([average, forgetting, bound], axis=1)
    for alike, matrix in accuracy_matrices(scores, "validation"):
        results[alike, 3] = average_accuracy(matrix)[:, -1]
    for alike, by_time in stream_accuracies(scores):
        forgetting = _earlier_forgetting(by_time) if definition == "max" else np.full(len(alike), np.nan)
        results[alike, 0] = by_time[:, -1].mean(axis=-1)
        results[alike, 1] = forgetting if sign == "forgetting" else -forgetting
        results[alike, 2] = np.nan
        along, lost = by_time.mean(axis=(1, 2)), stream_forgetting(by_time)
        pooled = pooled_accuracy(scores, alike).mean(axis=1)
        streamed[:, alike] = along, pooled, lost if sign == "forgetting" else -lost
    for alike, by_time in stream_accuracies(scores, "validation"):
        results[alike, 3] = by_time[:, -1].mean(axis=-1)
    found = run_columns(scores).assign(**dict(zip(("AA", "AF", "bound", "validation_AA"), results.T, strict=True)))
    found = found.assign(AP=found["AA"], AF_diagonal=diagonal, INT=intransigences, FWT=transfers)
    return found.assign(**dict(zip(STREAMED, streamed, strict=True)))


def joint_of(learner: LearnerRow, learners: Iterable[LearnerRow]) -> LearnerRow | None:
    """Return the learner that is given all tasks so far, with the same backbone at the same point of the sweep.

    None where there is not exactly one, and for such a learner itself.
    """
    if learner.method.name == JOINT:
        return None
    joints = [other for other in learners if other.method.name == JOINT and other.backbone == learner.backbone]
    # Where methods are swept, Joint may be there at another of their points only.
    fits = [other for other in joints if other.point == learner.point] or [
        other for other in joints if _without_methods(other.point) == _without_methods(learner.point)
    ]
    return fits[0] if len(fits) == 1 else None


def _without_methods(point: Values) -> Values:
    return tuple((field, value) for field, value in point if field.split(".")[0] != "methods")


def _joint_runs(scores: Scores) -> dict[int, int]:
    """Return the place of Joint's run beside that of every run that has one: of the same repeat, order and noise."""
    joints = {learner.number: joint_of(learner, scores.learners) for learner in scores.learners}
    numbers = {number: joint.number for number, joint in joints.items() if joint is not None}
    if not numbers:
        return {}
    places = {run: place for place, run in enumerate(scores.runs)}
    wanted = {
        place: replace(run, learner=numbers[run.learner])
        for place, run in enumerate(scores.runs)
        if run.learner in numbers and run.examinations is None
    }
    return {place: places[joint] for place, joint in wanted.items() if joint in places}


def _untrained(scores: Scores, places: np.ndarray) -> np.ndarray:
    """Return r (n, B): what the untrained learner knew of each task of the orders of some runs."""
    assert scores.untrained is not None
    weights = scores.weights()
    members = _members([scores.runs[place].order for place in places], len(scores.units))
    weighing = None if weights is None else weights[places, None]
    return _task_means(scores.untrained[places, None], members, weighing)[:, 0]


def stream_forgetting(by_time: np.ndarray) -> np.ndarray:
    """Return (n,): AF_s = mean over tasks of max over s ≤ S of a[s, j] − a[S, j], from a (n, S, B) (DRIFT).

    Positive means forgotten; what is best at the last examination is not.
    """
    forgotten: np.ndarray = (by_time.max(axis=1) - by_time[:, -1]).mean(axis=-1)
    return forgotten


def pooled_accuracy(scores: Scores, places: np.ndarray) -> np.ndarray:
    """Return (n, S): the share of all test queries that runs of one shape answered rightly, at each examination.

    It follows from the accuracies of units and their numbers of queries; NaN where these are not known, or the metric
    is none of which it follows: the accuracy of a domain, unless micro, counts the classes in it alike.
    """
    steps = int(scores.steps[places[0]])
    if scores.asked is None or not (scores.metric == "micro_accuracy" or (scores.metric, scores.unit) == _BY_CLASS):
        return np.full((len(places), steps), np.nan)
    everything = [[[unit for task in scores.runs[place].order for unit in task]] for place in places]
    members = _members(everything, len(scores.units))
    return _task_means(scores.test[places, :steps], members, scores.asked[places, 0][:, None])[..., 0]


def _earlier_forgetting(by_time: np.ndarray) -> np.ndarray:
    """Return (n,): mean over tasks of max over s < S of a[s, j] − a[S, j], from a (n, S, B); NaN where S = 1."""
    if by_time.shape[1] < 2:
        return np.full(len(by_time), np.nan)
    return (by_time[:, :-1].max(axis=1) - by_time[:, -1]).mean(axis=-1)


def accuracies(scores: Scores, queries: str = "test") -> pd.DataFrame:
    """Return one row per run, step and unit: the columns RUN, then step, class (the unit's number) and accuracy."""
    values = _values(scores, queries)
    run, step = np.nonzero(np.arange(values.shape[1]) < scores.steps[:, None])
    units = len(scores.units)
    tidy = run_columns(scores).iloc[np.repeat(run, units)].reset_index(drop=True)
    return tidy.assign(
        step=np.repeat(step + 1, units),
        **{"class": np.tile(np.arange(units), len(run)), "accuracy": values[run, step].reshape(-1)},
    )


def run_columns(scores: Scores) -> pd.DataFrame:
    """Return the columns RUN of all runs."""
    return pd.DataFrame({name: [getattr(run, name) for run in scores.runs] for name in RUN})


def _members(orders: Sequence[Sequence[Sequence[int]]], units: int) -> np.ndarray:
    """Return (orders, B, U): 1 where a unit belongs to the task at a position, else 0; all orders have B tasks."""
    members = np.zeros((len(orders), len(orders[0]), units))
    for run, order in enumerate(orders):
        for position, task in enumerate(order):
            members[run, position, list(task)] = 1
    return members


def _task_means(by_unit: np.ndarray, members: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return (..., steps, B) task accuracies, from accuracies and weights (..., steps, U) and members (..., B, U)."""
    tasks = np.swapaxes(members, -1, -2)
    asked = ~np.isnan(by_unit)
    if weights is not None:
        by_unit, asked = by_unit * weights, asked * weights
    count = asked @ tasks
    total = np.where(np.isnan(by_unit), 0, by_unit) @ tasks
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
