"""The tables of a report, ready to be shown: performance, disparity of tasks and of classes, explained variance."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.disparity import disparity
from skeleton_cgl.analysis.performance import runs
from skeleton_cgl.analysis.plots.style import looks
from skeleton_cgl.analysis.published import published_note
from skeleton_cgl.analysis.tables import MEASURES, NOT_COMPARED, disparity_table, with_fewer_orders
from skeleton_cgl.analysis.variance import FACTORS, mean_variance_explained
from skeleton_cgl.errors import InputError

Cell = tuple[str, str]
"""What a cell says, and its mark ("lowest", "highest" or "")."""


@dataclass(frozen=True)
class Table:
    """A title, notes on how to read it, headers, and rows that begin with their names; no rows, and a note says why."""

    title: str
    notes: list[str]
    header: list[str] = field(default_factory=list)
    rows: list[list[Cell]] = field(default_factory=list)


def performance_table(records: pd.DataFrame) -> Table:
    """Return AA and AF of every method over its ordinary runs: mean, lowest and highest, in percent."""
    points = runs(records[records["noise"] == 0])
    rows = []
    for names, group in points.groupby(["backbone", "method"], sort=False):
        cells = [str(len(group))]
        for measure in ("AA", "AF"):
            values = 100 * group[measure]
            cells += [_number(values.mean()), _number(values.min()), _number(values.max())]
        rows.append([*names, *cells])
    header = ["Runs", *(f"{measure}{part}" for measure in ("AA", "AF") for part in ("", " lowest", " highest"))]
    notes = [
        "Percent, after the last task; mean, lowest and highest over all runs. AA: average accuracy. "
        "AF: average forgetting, how far tasks fell from their best."
    ]
    return _table("Accuracy and forgetting", notes, header, rows)


def disparity_levels(records: pd.DataFrame, published: str | None = None) -> list[Table]:
    """Return the disparity of tasks and of classes; where it cannot be computed, a table that says why."""
    return [_disparity(records, level, published) for level in ("task", "class")]


def variance_table(records: pd.DataFrame) -> Table:
    """Return the share of variance over orders that each factor explains: ω², in percent."""
    title = "What about an order matters"
    try:
        shares = mean_variance_explained(records)
    except InputError as error:
        return Table(title, [f"Not computed: {error}"])
    shares = shares.pivot_table("omega_squared", ["backbone", "method"], "factor", sort=False, dropna=False)
    factors = [factor for factor in FACTORS if shares[factor].notna().any()]
    if not factors:
        return Table(title, ["Not computed: too few orders, or all end alike."])
    meanings = {
        "position": "position: the step at which the class is learned",
        "mates": "mates: the classes learned together with it",
        "last": "last: the last task of the order",
    }
    notes = [
        "Share of a class's variance over orders that one property of the order explains, in percent: ω², corrected "
        "for chance (around 0: nothing), mean over classes and repeats. Shares overlap and do not add up to 100. "
        f"{'; '.join(meanings[factor] for factor in factors)}."
    ]
    rows = [[*names, *(_number(100 * share) for share in values)] for names, values in shares[factors].iterrows()]
    return _table(title, notes, [factor.capitalize() for factor in factors], rows)


def _disparity(records: pd.DataFrame, level: str, published: str | None) -> Table:
    title = f"Order disparity of {'tasks' if level == 'task' else 'classes'}"
    try:
        found = disparity(records, level, bootstrap=np.random.default_rng(0))
    except InputError as error:
        return Table(title, [f"Not computed: {error}"])
    sampled = found["AOPD_low"].notna().any()
    rows = json.loads(disparity_table(found, "json", published))["rows"]
    columns: dict[str, list[Any]] = {"Orders": [row["orders"] for row in rows]}
    columns["Repeats"] = [row["repeats"] for row in rows]
    notes = [
        f"OPD of a {level}: its highest minus its lowest final accuracy over the orders, in percent. AOPD: mean over "
        f"{title.split()[-1]}, MOPD: maximum; mean ± standard deviation over repeats. * lowest, † highest."
    ]
    if with_fewer_orders(found).any():
        notes.append(NOT_COMPARED)
    for measure in MEASURES:
        columns[measure] = [(_with_std(row, measure), row[f"{measure}_mark"]) for row in rows]
        if sampled:
            columns[f"{measure} interval"] = [_interval(row, measure) for row in rows]
    if sampled:
        notes.append("Interval: percentile bootstrap over the orders run; biased downwards, as max − min is.")
    if any(row["R"] for row in rows):
        for measure in MEASURES:
            columns[f"{measure} floor"] = [_number(row[f"{measure}_floor"]) for row in rows]
        columns["R"] = [row["R"] or "–" for row in rows]
        columns["AOPD at R"] = [_number(row["expected_AOPD_at_R"]) for row in rows]
        notes.append("Floor: the same over R runs of one order with different seeds. AOPD at R: expected of R orders.")
    if any(row["AOPD_mixed"] is not None for row in rows):
        columns["AOPD mixed"] = [_number(row["AOPD_mixed"]) for row in rows]
        notes.append(
            "AOPD mixed: expected if every order is learned in a repeat drawn for it alone, so that split and first "
            "weights change with the order."
        )
    if published is not None:
        for measure in MEASURES:
            columns[f"{measure} published"] = [_with_std(row, f"published_{measure}") for row in rows]
            columns[f"{measure} difference"] = [_number(row[f"{measure}_difference"], "+.1f") for row in rows]
        notes.append(published_note(published, level))
    names = [[row["backbone"], row["method"]] for row in rows]
    body = [[*name, *cells] for name, cells in zip(names, zip(*columns.values(), strict=True), strict=True)]
    return _table(title, notes, list(columns), body)


def _table(title: str, notes: list[str], header: list[str], rows: list[list[Any]]) -> Table:
    """Return a table of rows that begin with backbone and method; a backbone that is the only one is not named.

    Backbones keep their sequence, methods have that of all tables.
    """
    backbones, named = list(dict.fromkeys(row[0] for row in rows)), looks(row[1] for row in rows)
    sequence = list(named)
    ordered = sorted(rows, key=lambda row: (backbones.index(row[0]), sequence.index(row[1])))
    several = len(backbones) > 1
    cells = [[*([row[0]] if several else []), named[row[1]].name, *row[2:]] for row in ordered]
    marked = [[cell if isinstance(cell, tuple) else (str(cell), "") for cell in row] for row in cells]
    return Table(title, notes, [*(["Backbone"] if several else []), "Method", *header], marked)


def _number(value: float | None, form: str = ".1f") -> str:
    return "–" if value is None or np.isnan(value) else format(round(value, 1) + 0.0, form).replace("-", "−")


def _with_std(row: dict[str, Any], name: str) -> str:
    return _number(row[name]) if row[f"{name}_std"] is None else f"{_number(row[name])} ± {_number(row[f'{name}_std'])}"


def _interval(row: dict[str, Any], measure: str) -> str:
    low, high = row[f"{measure}_low"], row[f"{measure}_high"]
    if low is None:
        return "–" if row[measure] is None else "exact"
    return f"{_number(low)}–{_number(high)}"
