"""Along an order and over many: accuracy step by step, mean accuracy matrices, AA and AF of an order, growth of AOPD.

Runs of noise floors (noise > 0) count nowhere but in the growth of AOPD over them. What differs between orders is taken
inside one repeat and averaged over repeats afterwards. Of orders of different lengths, those that got so far are
averaged at a step.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.disparity import ONE_ORDER, expected_opd
from skeleton_cgl.analysis.finals import Finals, final_accuracies
from skeleton_cgl.analysis.performance import (
    accuracy_matrices,
    average_accuracy,
    run_columns,
    runs,
    stream_accuracies,
)
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.engine.draws import FLOORS
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, describe


def accuracy_by_step(scores: Scores) -> pd.DataFrame:
    """Return one row per learner and step k: AA_k as mean, lowest, quartiles and highest over the orders.

    The columns are learner, step, AA, lowest, lower_quartile, upper_quartile, highest; each is the mean over repeats.
    Of a stream, steps are its examinations, and AA is over all its tasks.
    """
    scores = scores.ordinary()
    averages = np.full(scores.test.shape[:2], np.nan)
    for alike, matrix in accuracy_matrices(scores):
        averages[alike, : matrix.shape[-1]] = average_accuracy(matrix)
    for alike, by_time in stream_accuracies(scores):
        averages[alike, : by_time.shape[1]] = by_time.mean(axis=-1)
    run, step = np.nonzero(np.arange(scores.test.shape[1]) < scores.steps[:, None])
    rows = pd.DataFrame({"learner": scores.learner[run], "step": step + 1, "repeat": scores.repeat[run]})
    by_repeat = rows.assign(AA=averages[run, step]).groupby(["learner", "step", "repeat"], sort=False)["AA"]
    spread = {"lowest": 0, "lower_quartile": 0.25, "upper_quartile": 0.75, "highest": 1}
    inside = pd.DataFrame({"AA": by_repeat.mean(), **{name: by_repeat.quantile(q) for name, q in spread.items()}})
    return inside.groupby(["learner", "step"], sort=False).mean().reset_index()


def mean_accuracy_matrices(scores: Scores, order: Order | None = None) -> pd.DataFrame:
    """Return one row per learner, step and position ≤ step: accuracy, the mean of a[step, position] over runs.

    The runs are those of all orders, or of one; refused are an order that was not run, and streams.
    """
    scores = scores.ordinary()
    if order is not None:
        scores = scores.where(lambda run: run.order == order)
        if not scores.runs:
            raise InputError(f"order {describe(order)} was not run")
    if scores.has_streams:
        raise InputError("a stream is not examined after each of its tasks; there is no step for each to show")
    rows = []
    for alike, matrices in accuracy_matrices(scores):
        step, position = np.tril_indices(matrices.shape[-1])
        rows.append(
            pd.DataFrame(
                {
                    "learner": np.repeat(scores.learner[alike], len(step)),
                    "step": np.tile(step + 1, len(alike)),
                    "position": np.tile(position + 1, len(alike)),
                    "accuracy": matrices[:, step, position].reshape(-1),
                }
            )
        )
    return _means(pd.concat(rows), ["learner", "step", "position"], ["accuracy"])


def mean_over_repeats(scores: Scores) -> pd.DataFrame:
    """Return one row per learner, kind and order: AA and AF of its ordinary runs, averaged over repeats."""
    return _means(runs(scores.ordinary()), ["learner", "kind", "order"], ["AA", "AF"])


def aopd_growth(scores: Scores, level: str = "task") -> pd.DataFrame:
    """Return one row per learner, varied and r: AOPD expected of r runs, exact, the mean over repeats.

    varied "order": r of the orders, up to as many as every repeat has. varied "seeds", "splits" or "both": r of the
    runs of one order with that drawn anew, the noise floor, mean over its orders too; its rows are there if such runs
    are. Refused if r never exceeds 1.
    """
    rows = []
    for finals in final_accuracies(scores, level):
        varying = {"order": _by_order(finals)}
        for kind in FLOORS:
            varying[kind] = [finals.values[places] for places in finals.floors(kind).values()]
        for varied, samples in varying.items():
            shortest = min(map(len, samples), default=0)
            curves = [pd.DataFrame(expected_opd(values)).mean(axis=1)[:shortest] for values in samples]
            for r, aopd in enumerate(np.mean(curves, axis=0) if curves else [], start=1):
                rows.append((finals.learner, varied, r, aopd))
    growth = pd.DataFrame(rows, columns=["learner", "varied", "r", "AOPD"])
    if growth["r"].max() < 2:
        raise InputError(ONE_ORDER)
    return growth


def orders_by_repeat(scores: Scores) -> pd.DataFrame:
    """Return one row per ordinary run and position: the columns RUN, AA, validation_AA, position, a[B, position]."""
    scores = scores.ordinary()
    rows = []
    both = zip(_in_the_end(scores, "test"), _in_the_end(scores, "validation"), strict=True)
    for (alike, finals), (_, on_validation) in both:
        length = finals.shape[-1]
        of_runs = run_columns(scores).iloc[np.repeat(alike, length)]
        rows.append(
            of_runs.assign(
                AA=np.repeat(finals.mean(axis=-1), length),
                validation_AA=np.repeat(on_validation.mean(axis=-1), length),
                position=np.tile(np.arange(1, length + 1), len(alike)),
                accuracy=finals.reshape(-1),
            )
        )
    return pd.concat(rows, ignore_index=True)


def _in_the_end(scores: Scores, queries: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the places (n,) of runs of one shape among all, and a (n, B) in the end, of tasks by position."""
    for alike, by_step in chain(accuracy_matrices(scores, queries), stream_accuracies(scores, queries)):
        yield alike, by_step[:, -1]


def _by_order(finals: Finals) -> list[np.ndarray]:
    """Return the final accuracies (orders, T) of every repeat."""
    ordinary = finals.noise == 0
    return [finals.values[ordinary & (finals.repeat == repeat)] for repeat in np.unique(finals.repeat[ordinary])]


def _means(frame: pd.DataFrame, groups: list[str], columns: list[str]) -> pd.DataFrame:
    return frame.groupby(groups, sort=False)[columns].mean().reset_index()
