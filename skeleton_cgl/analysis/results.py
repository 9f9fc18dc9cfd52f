"""The results of a study: its scores, and tidy frames of them for users, in percent."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.disparity import disparity
from skeleton_cgl.analysis.names import name_learners, numbered, with_names
from skeleton_cgl.analysis.performance import accuracies, runs
from skeleton_cgl.analysis.scores import ScoredRun, Scores, choose
from skeleton_cgl.engine.rows import LearnerRow, RunRow
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError

PER_DISPARITY = [
    *(f"{measure}{part}" for measure in ("AOPD", "MOPD") for part in ("", "_std", "_low", "_high", "_floor")),
    *("expected_AOPD_at_R", "AOPD_mixed"),
]


class Results:
    """What a store holds of one study; runs that are not finished are left out.

    Repeats of one learner are compared order by order: once one of them is finished, others that are only begun are
    left out too, and `left_out` says which.

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
        self.path = Path(store)
        self.summary: Any = None
        """What the run that made these results came to; set by whoever ran it."""
        self.planned_runs = len(planned)
        complete = [run for run in planned if all(key in scores for key in run.keys)]
        self.finished_runs = len(complete)
        complete, self.left_out = _without_begun_repeats(planned, complete, learners)
        self.scores = _scores(learners, self.study.units, complete, scores, metric)

    @property
    def units(self) -> tuple[str, ...]:
        """The names of what orders arrange."""
        return self.study.units

    @property
    def spec(self) -> dict[str, Any]:
        """The study file, as fields."""
        fields: dict[str, Any] = json.loads(self.study.spec)
        return fields

    def check_finished(self) -> None:
        """Refuse results without a finished ordinary run."""
        if not (self.scores.noise == 0).any():
            raise InputError(f"{self.path}: no run of study {self.study.name!r} is finished")

    def accuracy(self) -> pd.DataFrame:
        """Return one row per run, step and class: what was run, order, step, class, accuracy."""
        return self._shown(accuracies(self.scores), ["accuracy"])

    def runs(self) -> pd.DataFrame:
        """Return one row per run: AA, AF, the bound of Theorem 1, and AA on validation."""
        return self._shown(runs(self.scores), ["AA", "AF", "bound", "validation_AA"])

    def disparity(self, level: str = "task") -> pd.DataFrame:
        """Return one row per learner: AOPD, MOPD, their spread over repeats, intervals, the noise floor."""
        found = disparity(self.scores, level, bootstrap=np.random.default_rng(0))
        return self._shown(found, PER_DISPARITY)

    def _shown(self, frame: pd.DataFrame, fractions: list[str]) -> pd.DataFrame:
        return with_names(frame.assign(**(100 * frame[fractions])), self.scores.learners)


def _scores(
    learners: tuple[LearnerRow, ...],
    units: tuple[str, ...],
    runs: list[RunRow],
    values: dict[str, tuple[np.ndarray, np.ndarray]],
    metric: str,
) -> Scores:
    steps = max((len(run.keys) for run in runs), default=1)
    test = np.full((len(runs), steps, len(units)), np.nan)
    validation = test.copy()
    for place, run in enumerate(runs):
        for step, key in enumerate(run.keys):
            test[place, step], validation[place, step] = values[key]
    scored = tuple(
        ScoredRun(run.learner, run.repeat, run.noise, run.kind, run.order, _examinations(run)) for run in runs
    )
    return Scores(learners, units, scored, test, validation, metric)


def _examinations(run: RunRow) -> int | None:
    return None if len(run.keys) == len(run.order) else len(run.keys)


def _without_begun_repeats(
    runs: list[RunRow], complete: list[RunRow], learners: tuple[LearnerRow, ...]
) -> tuple[list[RunRow], list[str]]:
    """Return the complete runs to go by, and a line on every repeat left out; noise runs are repeats of their own."""

    def repeat_of(run: RunRow) -> tuple[int, bool, int]:
        return run.learner, run.noise > 0, run.repeat

    planned, finished = (Counter(map(repeat_of, some)) for some in (runs, complete))
    with_a_whole_one = {repeat[:-1] for repeat in planned if finished[repeat] == planned[repeat]}
    unfit = {repeat for repeat in planned if repeat[:-1] in with_a_whole_one and finished[repeat] < planned[repeat]}
    # Noise runs are compared with an ordinary one of their repeat.
    unfit |= {(learner, True, repeat) for learner, _, repeat in unfit}
    names = numbered(name_learners(learners))
    lines = [
        f"{names[learner].setting}, {names[learner].method}, repeat {number}: {finished[repeat]} of {planned[repeat]} "
        f"{'noise runs' if noisy else 'runs'} finished, left out"
        for repeat in finished
        if repeat in unfit
        for learner, noisy, number in [repeat]
    ]
    return [run for run in complete if repeat_of(run) not in unfit], lines
