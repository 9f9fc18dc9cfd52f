"""What a swept field of a study, such as the width of its backbone, does to AA and AF."""

from typing import Any

import pandas as pd

from skeleton_cgl.analysis.names import point_text
from skeleton_cgl.analysis.performance import runs
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.engine.rows import Values
from skeleton_cgl.errors import InputError

MEASURES = ["AA", "AF"]


def sweep_curves(scores: Scores) -> pd.DataFrame:
    """Return one row per swept field, setting of the other swept fields, and learner.

    The columns are field, others, value, learner, AA, AF, AA_std, AF_std: means over the orders of a repeat, then mean
    and standard deviation (ddof = 1, NaN for one repeat) over repeats; noise runs are left out. Learners stand in the
    sequence of the values of the swept fields. Refused if no field takes several numbers.
    """
    found = runs(scores.ordinary())
    with_runs = set(found["learner"])
    points = {learner.number: dict(learner.point) for learner in scores.learners if learner.number in with_runs}
    fields = [name for name in _names(points.values()) if _is_varied_number([point[name] for point in points.values()])]
    if not fields:
        raise InputError("the study sweeps no field over several numbers, as backbone.width: [32, 64] would")
    by_repeat = found.groupby(["learner", "repeat"], sort=False)[MEASURES].mean().groupby("learner", sort=False)
    summary = by_repeat.mean().join(by_repeat.std().add_suffix("_std"))
    sequence = sorted(summary.index, key=lambda number: [points[number][field] for field in fields])
    summary = summary.loc[sequence].reset_index()
    curves = [
        summary.assign(
            field=field,
            others=[point_text(_without(points[number], field)) for number in summary["learner"]],
            value=[points[number][field] for number in summary["learner"]],
        )
        for field in fields
    ]
    columns = ["field", "others", "value", "learner", *MEASURES, *(f"{measure}_std" for measure in MEASURES)]
    return pd.concat(curves, ignore_index=True)[columns]


def _names(points: Any) -> list[str]:
    return list(dict.fromkeys(name for point in points for name in point))


def _is_varied_number(values: list[Any]) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return numbers and len(set(values)) > 1


def _without(point: dict[str, Any], field: str) -> Values:
    return tuple((name, value) for name, value in point.items() if name != field)
