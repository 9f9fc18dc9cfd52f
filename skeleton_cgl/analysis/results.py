"""The results of a study: its records as tidy frames."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skeleton_cgl.engine.store import Store
from skeleton_cgl.scenarios.lessons import parse

if TYPE_CHECKING:
    from skeleton_cgl.engine.schedule import Summary

COLUMNS = ("backbone", "method", "repeat", "noise", "kind", "order", "step", "test", "validation")


class Results:
    """What a store holds of one study; runs that are not finished are left out.

    Repeats of one method are compared order by order: once one of them is finished, others that are only begun are left
    out too, and `left_out` says which.

    All frames have a column for every field the study sweeps, such as "backbone.width".
    """

    def __init__(self, store: str | Path, study: str | int | None = None) -> None:
        with Store(store, must_exist=True) as opened:
            self.study = opened.study(study)
            runs = opened.runs(self.study["id"])
            confusions = opened.confusions()
        self.path = Path(store)
        self.units: tuple[str, ...] = tuple(self.study["units"])
        self.summary: Summary | None = None
        self.planned_runs = len(runs)
        complete = [run for run in runs if all(key in confusions for key in run["keys"])]
        self.finished_runs = len(complete)
        complete, self.left_out = _without_begun_repeats(runs, complete)
        self.records = pd.DataFrame(list(_rows(complete, confusions)), columns=list(COLUMNS))
        self._swept = _swept(self.study["spec"])
        self.records = self._with_swept(self.records)

    def accuracy(self) -> pd.DataFrame:
        """Return one row per run, step and class: what was run, order, step, class, accuracy."""
        from skeleton_cgl.analysis.performance import accuracies

        return self._with_swept(accuracies(self.records))

    def runs(self) -> pd.DataFrame:
        """Return one row per run: AA, AF and the bound of Theorem 1."""
        from skeleton_cgl.analysis.performance import runs

        return self._with_swept(runs(self.records))

    def disparity(self, level: str = "task") -> pd.DataFrame:
        """Return one row per backbone and method: AOPD, MOPD, their spread over repeats, intervals, the noise floor."""
        from skeleton_cgl.analysis.disparity import disparity

        return self._with_swept(disparity(self.records, level, bootstrap=np.random.default_rng(0)))

    def _with_swept(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a frame with a column for every swept field."""
        return frame.assign(**{field: frame["backbone"].map(values) for field, values in self._swept.items()})


def _swept(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return, for every field a study sweeps, its value by the name of the backbone, which itself needs no column."""
    if not spec.get("sweep"):
        return {}
    # Not for every table: a study knows backbones and methods, which need a while to load.
    from skeleton_cgl.engine.study import Study

    variants = Study.model_validate(spec).variants()
    points = {backbone.title: variant.point for variant in variants for backbone in variant.study.backbone}
    fields = [field for field in spec["sweep"] if field != "backbone"]
    return {field: {title: point[field] for title, point in points.items()} for field in fields}


def _without_begun_repeats(
    runs: list[dict[str, Any]], complete: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the complete runs to go by, and a line on every repeat left out; noise runs are repeats of their own."""

    def repeat_of(run: dict[str, Any]) -> tuple[str, str, bool, int]:
        return run["backbone"], run["method"], run["noise"] > 0, run["repeat"]

    planned, finished = (Counter(map(repeat_of, some)) for some in (runs, complete))
    with_a_whole_one = {repeat[:-1] for repeat in planned if finished[repeat] == planned[repeat]}
    unfit = {repeat for repeat in planned if repeat[:-1] in with_a_whole_one and finished[repeat] < planned[repeat]}
    # Noise runs are compared with an ordinary one of their repeat.
    unfit |= {(*repeat[:2], True, repeat[-1]) for repeat in unfit}
    lines = [
        f"{backbone}, {method}, repeat {number}: {finished[repeat]} of {planned[repeat]} "
        f"{'noise runs' if noisy else 'runs'} finished, left out"
        for repeat in finished
        if repeat in unfit
        for backbone, method, noisy, number in [repeat]
    ]
    return [run for run in complete if repeat_of(run) not in unfit], lines


def _rows(runs: list[dict[str, Any]], confusions: dict) -> Any:
    for run in runs:
        order = parse(run["orders"])
        for step, key in enumerate(run["keys"], start=1):
            test, validation = confusions[key]
            head = (run["backbone"], run["method"], run["repeat"], run["noise"], run["kind"])
            yield (*head, order, step, test, validation)
