"""The results of a study: its scores, and tidy frames of them for users, in percent."""

import json
from collections import Counter
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.disparity import disparity
from skeleton_cgl.analysis.names import name_learners, numbered, settings_of, with_names
from skeleton_cgl.analysis.performance import STREAMED, accuracies, runs
from skeleton_cgl.analysis.scores import Costs, ScoredRun, Scores, choose
from skeleton_cgl.analysis.words import Wording, unit_kind, wording
from skeleton_cgl.engine.record import Kept
from skeleton_cgl.engine.rows import LearnerRow, RunRow, StudyRow
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Order, UnitKind
from skeleton_cgl.scenarios.measures import QUERIED, SIZE, untrained

PER_RUN = ["AA", "AF", "bound", "validation_AA", "AP", "AF_diagonal", "INT", "FWT", *STREAMED]
_ENDS = ("", "_std", "_cross", "_cross_std", "_floor", "_floor_splits", "_floor_both")
PER_DISPARITY = [
    *(f"{measure}{end}" for measure in ("AOPD", "MOPD") for end in _ENDS),
    *("expected_AOPD_at_R", "expected_MOPD_at_R", "AOPD_mixed"),
]


class Results:
    """What a store holds of one study; runs that are not finished are left out.

    Repeats of one learner are compared order by order: once one of them is finished, others that are only begun are
    left out too, and `left_out` says which; as long as none is, the furthest one counts. `half_done` says of whom
    planned orders are not finished.

    score: the recorded metric to go by, instead of the leading one. All frames are in percent, and have the columns
    backbone and method (what they are called), learner (its number), and one for every field the study sweeps, such as
    "backbone.width".
    """

    def __init__(self, store: str | Path, study: str | int | None = None, score: str | None = None) -> None:
        with Store(store, must_exist=True) as opened:
            self.study = opened.study(study)
            learners = tuple(opened.learners(self.study.number))
            planned = opened.runs(self.study.number)
            recorded = self.study.metrics
            metric = recorded[0] if score is None else choose("score", score, recorded)
            scores = opened.scores(metric)
            complete, missing = _parted(planned, scores.keys())
            to_go_by, self.left_out = _to_go_by(planned, complete, learners)
            unit = unit_kind(self.study, {run.kind for run in planned})
            asked, trained = _numbers(opened, metric, to_go_by, len(self.study.units), unit)
            costs = _costs(opened, to_go_by)
            before = _untrained(opened, metric, to_go_by, len(self.study.units)) if unit == "domain" else None
        self.path = Path(store)
        self.summary: Any = None
        """What the run that made these results came to; set by whoever ran it."""
        self.planned_runs = len(planned)
        self.finished_runs = len(complete)
        self.scores = Scores(
            learners,
            self.study.units,
            tuple(_scored(self.study, run) for run in to_go_by),
            *_values(to_go_by, scores, len(self.study.units)),
            metric,
            asked,
            tuple(_scored(self.study, run) for run in missing if run.noise == 0),
            unit,
            before,
            costs,
            trained,
        )

    @cached_property
    def half_done(self) -> str:
        """Of which learners planned orders are not finished, and how many of how many are; "" if there are none."""
        named: dict[str, list[str]] = {}
        names = name_learners(self.scores.learners)
        for name in names:
            scores = self.scores.of_learner(name.number)
            there = {run.repeat for run in scores.runs}
            finished = {run.order for run in scores.runs if run.noise == 0}
            # Orders of a repeat that is left out may be none of the others'.
            planned = finished | {run.order for run in scores.missing if run.repeat in there or not there}
            if len(finished) < len(planned):
                called = f"{name.method}, {name.setting}" if len(settings_of(names)) > 1 else name.method
                named.setdefault(f"{len(finished)} of {len(planned)} planned orders", []).append(called)
        return "; ".join(f"{count} ({', '.join(whose)})" for count, whose in named.items())

    @property
    def words(self) -> Wording:
        """The words in which the study is spoken of."""
        return wording(self.study, self.scores.unit, self.scores.metric)

    @property
    def units(self) -> tuple[str, ...]:
        """The names of what orders arrange."""
        return self.study.units

    @property
    def spec(self) -> dict[str, Any]:
        """The study file, as fields."""
        fields: dict[str, Any] = json.loads(self.study.spec)
        return fields

    @property
    def told(self) -> list[str]:
        """What whoever is shown these results must be told: what is half done, and what is left out."""
        return [*([f"half done: {self.half_done}"] if self.half_done else []), *self.left_out]

    def check_finished(self) -> None:
        """Refuse results without a finished ordinary run."""
        if not (self.scores.noise == 0).any():
            raise InputError(f"{self.path}: no run of study {self.study.name!r} is finished")

    def accuracy(self) -> pd.DataFrame:
        """Return one row per run, step and class: what was run, order, step, class, accuracy."""
        return self._shown(accuracies(self.scores), ["accuracy"])

    def runs(self) -> pd.DataFrame:
        """Return one row per run: AA, AF, the bound of Theorem 1, and AA on validation; AP, AF_diagonal, INT, FWT.

        Then, of streams, A_AUC, A_AUC_pooled and AF_s. INT is empty without a run of Joint to hold it against, FWT
        without domains; see `performance.runs`.
        """
        return self._shown(runs(self.scores), PER_RUN)

    def disparity(self, level: str = "task") -> pd.DataFrame:
        """Return one row per learner: AOPD, MOPD, both cross-evaluated, their spread over repeats, noise floors."""
        return self._shown(disparity(self.scores, level), PER_DISPARITY)

    def _shown(self, frame: pd.DataFrame, fractions: list[str]) -> pd.DataFrame:
        return with_names(frame.assign(**(100 * frame[fractions])), self.scores.learners)


def _values(
    runs: list[RunRow], values: dict[str, tuple[np.ndarray, np.ndarray]], units: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values (N, S, U) of runs on test and on validation."""
    steps = max((len(run.keys) for run in runs), default=1)
    test = np.full((len(runs), steps, units), np.nan)
    validation = test.copy()
    for place, run in enumerate(runs):
        for step, key in enumerate(run.keys):
            test[place, step], validation[place, step] = values[key]
    return test, validation


def _untrained(store: Store, metric: str, runs: list[RunRow], units: int) -> np.ndarray:
    """Return (N, U): the test values of every run's learner before it learned, NaN where they were not recorded."""
    found = store.scores(untrained(metric))
    nothing = np.full(units, np.nan)
    return np.array([found.get(run.keys[0], (nothing,))[0] for run in runs]).reshape(len(runs), units)


def _costs(store: Store, runs: list[RunRow]) -> Costs:
    """Return what every run cost: the seconds of all its stages, also those that it shares, and what the last keeps."""
    made = store.made_by_key(dict.fromkeys(key for run in runs for key in run.keys))
    seconds = np.array([sum(made[key].seconds for key in run.keys) for run in runs], dtype=float)
    kept = [made[run.keys[-1]].kept for run in runs]
    # Of what older releases counted, the inputs of samples are missing.
    known = np.array([_kept_numbers(each) for each in kept], dtype=float).reshape(len(runs), 3)
    return Costs(seconds, *known.T)


def _kept_numbers(kept: Kept | None) -> tuple[float, float, float]:
    if kept is None or kept.samples is None or kept.floats is None:
        return np.nan, np.nan, np.nan
    return kept.samples, kept.floats, kept.bytes


def _scored(study: StudyRow, run: RunRow) -> ScoredRun:
    examinations = None if study.lessons_are_tasks(run) else len(run.keys)
    return ScoredRun(run.learner, run.repeat, run.noise, run.kind, run.order, examinations, run.floor)


def _numbers(
    store: Store, metric: str, runs: list[RunRow], units: int, unit: UnitKind
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return (N, 2, U) the number of test and of validation queries of every run, and (N, U) of training samples.

    Of those only streams tell; None for others. All are read from one record for every split: learners have their own,
    repeats, the noise floors that draw splits, and, where units are labels, whose nodes may be divided task by task,
    the tasks of an order.
    """
    drawn_anew = ("splits", "both")
    splits = [
        (
            *(run.learner, run.repeat),
            *((run.floor, run.noise) if run.floor in drawn_anew else ("", 0)),
            frozenset(run.order) if unit == "label" else None,
        )
        for run in runs
    ]
    keys = {split: run.keys[-1] for split, run in zip(splits, runs, strict=True)}
    asked, trained = {}, {}
    for record in store.records(keys.values()):
        asked[record.key] = [record.measure(part, metric).asked for part in QUERIED]
        trained[record.key] = next((score.asked for score in record.scores if score.metric == SIZE), None)
    queries = np.array([asked[keys[split]] for split in splits], dtype=int).reshape(len(runs), len(QUERIED), units)
    samples = [trained[keys[split]] for split in splits]
    known = [numbers for numbers in samples if numbers is not None]
    return queries, np.array(known) if known and len(known) == len(runs) else None


def _parted(planned: list[RunRow], done: Collection[str]) -> tuple[list[RunRow], list[RunRow]]:
    """Return the runs of which all stages are done, and the others."""
    complete: list[RunRow] = []
    missing: list[RunRow] = []
    for run in planned:
        (complete if all(key in done for key in run.keys) else missing).append(run)
    return complete, missing


def _to_go_by(
    planned: list[RunRow], complete: list[RunRow], learners: tuple[LearnerRow, ...]
) -> tuple[list[RunRow], list[str]]:
    """Return the complete runs to go by, and a line on all that is finished in part and left out.

    Of the repeats of a learner the whole ones count; while there is none, the one of most finished orders. A noise
    floor counts if it is whole and its ordinary run counts.
    """
    asked, done = (Counter(map(_group_of, some)) for some in (planned, complete))
    fit: set[_Group] = set()
    for learner in learners:
        begun = [group for group in done if group.learner == learner.number and not group.floor]
        whole = [group for group in begun if done[group] == asked[group]]
        fit.update(whole or sorted(begun, key=lambda group: (-done[group], group.repeat))[:1])
    ordinary = {(run.learner, run.repeat, run.order) for run in complete if _group_of(run) in fit}
    for group in done:
        if group.floor and done[group] == asked[group] and (group.learner, group.repeat, group.order) in ordinary:
            fit.add(group)
    names = numbered(name_learners(learners))
    unfit: dict[tuple[int, int, bool], list[_Group]] = {}
    for group in done:
        if group not in fit:
            unfit.setdefault((group.learner, group.repeat, bool(group.floor)), []).append(group)
    lines = [
        f"{names[learner].setting}, {names[learner].method}, repeat {repeat}: {sum(done[each] for each in groups)} of "
        f"{sum(asked[each] for each in groups)} {'noise runs' if noisy else 'runs'} finished, left out"
        for (learner, repeat, noisy), groups in unfit.items()
    ]
    return [run for run in complete if _group_of(run) in fit], lines


class _Group(NamedTuple):
    """What a run is part of: a repeat of its learner, or there the noise floor of an order."""

    learner: int
    repeat: int
    floor: str
    order: Order


def _group_of(run: RunRow) -> _Group:
    return _Group(run.learner, run.repeat, run.floor, run.order if run.floor else ())
