"""The order-sensitivity table as a picture: the columns of `tables.disparity_table` that fit a column of a paper."""

import json
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, SMALL, looks, styled
from skeleton_cgl.analysis.published import ORDERS
from skeleton_cgl.analysis.tables import MEASURES, disparity_table, with_fewer_orders

_MARKS = {"lowest": "*", "highest": "†", "": ""}
_LETTER_INCHES = 0.045
_LINE_INCHES = 0.14


@styled
def disparity_picture(disparity: pd.DataFrame, published: str | None = None) -> Figure:
    """Return the frame of `disparity` as a picture of a table, in percent, with the published values beside ours.

    Noise floors are shown if there are any; backbones and orders, if they differ.
    """
    rows = json.loads(disparity_table(disparity, "json", published))["rows"]
    columns = _columns(rows, published)
    notes = _notes(rows, published)
    widths = [2 + max(map(len, cells)) for cells in columns.values()]
    lines = 1 + len(rows) + len(notes)
    size = (max(COLUMN_INCHES, _LETTER_INCHES * sum(widths)), _LINE_INCHES * (lines + 1))
    figure = Figure(figsize=size)
    axes = figure.add_axes((0.01, 0, 0.97, 1), xlim=(0, sum(widths)), ylim=(lines, -1))
    axes.set_axis_off()
    right = np.cumsum(widths)
    for cells, width, end in zip(columns.values(), widths, right, strict=True):
        _write(axes, cells, end - width, end)
    for line, thickness in ((-0.6, 0.8), (0.5, 0.5), (len(rows) + 0.6, 0.8)):
        axes.axhline(line, color="black", linewidth=thickness)
    for line, note in enumerate(notes, start=len(rows) + 1):
        axes.text(0, line + 0.4, note, fontsize=SMALL, va="center")
    return figure


def _columns(rows: list[dict[str, Any]], published: str | None) -> dict[str, list[str]]:
    """Return the cells of every column from top to bottom, the header first, by a name for each."""
    columns = {"method": ["method", *(looks([row["method"]])[row["method"]].name for row in rows)]}
    for name in ("backbone", "orders"):
        if len({row[name] for row in rows}) > 1:
            columns[name] = [name, *(str(row[name]) for row in rows)]
    for measure in MEASURES:
        columns[measure] = [measure, *(_number(row, measure) + _MARKS[row[f"{measure}_mark"]] for row in rows)]
        if any(row[f"{measure}_floor"] is not None for row in rows):
            columns[f"{measure} floor"] = ["floor", *(_number(row, f"{measure}_floor") for row in rows)]
        if published is not None:
            columns[f"{measure} published"] = ["published", *(_number(row, f"published_{measure}") for row in rows)]
    return columns


def _number(row: dict[str, Any], name: str) -> str:
    if row[name] is None:
        return "–"
    std = row.get(f"{name}_std")
    return f"{row[name]:.1f}" if std is None else f"{row[name]:.1f} ± {std:.1f}"


def _notes(rows: list[dict[str, Any]], published: str | None) -> list[str]:
    counts = [f"{name}: {_span([row[name] for row in rows])}" for name in ("orders", "repeats")]
    notes = [f"percent, {rows[0]['level']} level; {', '.join(counts)}; * lowest, † highest"]
    if with_fewer_orders(pd.DataFrame(rows)).any():
        notes.append("methods with fewer orders than others are not compared")
    if any(row["R"] is not None for row in rows):
        notes.append("floor: over runs of one order that differ by their seed alone")
    if published is not None:
        notes.append(f"published: {published}, {ORDERS[rows[0]['level']]} orders, Wei, De Schepper, Mets (2024)")
    return notes


def _span(numbers: list[int]) -> str:
    return "–".join(map(str, sorted({min(numbers), max(numbers)})))


def _write(axes: Axes, cells: list[str], left: float, right: float) -> None:
    """Write a column: words from its left edge on, numbers up to its right edge, with the marks beyond."""
    words = cells[0] in ("method", "backbone")
    for line, cell in enumerate(cells):
        number = cell.rstrip("*†")
        axes.text(left if words else right, line, number, fontsize=SMALL, va="center", ha="left" if words else "right")
        axes.text(right, line, cell.removeprefix(number), fontsize=SMALL, va="center")
