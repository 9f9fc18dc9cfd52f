"""What a swept field of a study, such as the width of its backbone, does to AA and AF."""

from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from skeleton_cgl.analysis.performance import RUN, check_columns
from skeleton_cgl.errors import InputError

MEASURES = ["AA", "AF"]
COLUMNS = (*RUN, *MEASURES, "bound", "validation_AA")


def sweep_curves(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per swept field, setting of the other swept fields, backbone, method and value of the field.

    The columns are field, others, backbone, method, value, AA, AF, AA_std, AF_std: means over the orders of a repeat,
    then mean and standard deviation (ddof = 1, NaN for one repeat) over repeats; noise runs are left out. `runs` is
    what `Results.runs` gives, with a column per swept field; refused if no field takes several numbers.
    """
    check_columns(runs, COLUMNS, "runs")
    runs = runs[runs["noise"] == 0]
    swept = [name for name in runs if name not in COLUMNS]
    numeric = [name for name in swept if is_numeric_dtype(runs[name]) and not is_bool_dtype(runs[name])]
    fields = [name for name in numeric if runs[name].nunique() > 1]
    if not fields:
        raise InputError("runs: the study sweeps no field over several numbers, as backbone.width: [32, 64] would")
    runs = runs.assign(backbone=[_plain(run, swept) for run in runs.to_dict("records")]).sort_values(fields)
    groups = ["field", "others", "backbone", "method", "value"]
    curves = []
    for field in fields:
        others = [name for name in swept if name != field]
        settings = [_setting(run, others) for run in runs.to_dict("records")]
        along = runs.assign(field=field, others=settings, value=runs[field])
        by_repeat = along.groupby([*groups, "repeat"], sort=False)[MEASURES].mean().groupby(groups, sort=False)
        curves.append(by_repeat.mean().join(by_repeat.std().add_suffix("_std")).reset_index())
    return pd.concat(curves, ignore_index=True)


def _setting(run: dict[str, Any], fields: list[str]) -> str:
    return ", ".join(f"{field.removeprefix('backbone.')}={run[field]}" for field in fields)


def _plain(run: dict[str, Any], swept: list[str]) -> str:
    """Return the name of a run's backbone without the point of the sweep, which a study adds to it."""
    return run["backbone"].removesuffix(_setting(run, swept)).rstrip()
