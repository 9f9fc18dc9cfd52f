"""A table as a picture."""

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, SMALL, styled
from skeleton_cgl.analysis.rendering import SYMBOLS, marks_used
from skeleton_cgl.analysis.table import Cell, Column, Table

_LETTER_INCHES = 0.045
_LINE_INCHES = 0.14
_WIDER = 1.1
"""How much wider words are than digits."""


@styled
def picture(table: Table) -> Figure:
    """Return a table as a picture, a column of a paper wide if its cells fit; its notes stand below."""
    # Marks stand in the gap between columns.
    columns = [[row[place] for row in table.rows] for place in range(len(table.columns))]
    widths = [
        2 + max(int(_WIDER * len(column.heading)), *(len(cell.text) for cell in cells))
        for column, cells in zip(table.columns, columns, strict=True)
    ]
    width = max(COLUMN_INCHES, _LETTER_INCHES * sum(widths))
    notes = [*table.notes, marks_used(table)]
    lines_of_notes = [line for note in notes for line in textwrap.wrap(note, int(width / _LETTER_INCHES))]
    lines = 1 + len(table.rows) + len(lines_of_notes)
    figure = Figure(figsize=(width, _LINE_INCHES * (lines + 1)))
    axes = figure.add_axes((0.01, 0, 0.97, 1), xlim=(0, sum(widths)), ylim=(lines, -1))
    axes.set_axis_off()
    for column, cells, own, end in zip(table.columns, columns, widths, np.cumsum(widths), strict=True):
        _write(axes, column, cells, end - own, end)
    for line, thickness in ((-0.6, 0.8), (0.5, 0.5), (len(table.rows) + 0.6, 0.8)):
        axes.axhline(line, color="black", linewidth=thickness)
    for line, note in enumerate(lines_of_notes, start=len(table.rows) + 1):
        axes.text(0, line + 0.4, note, fontsize=SMALL, va="center")
    return figure


def _write(axes: Axes, column: Column, cells: list[Cell], left: float, right: float) -> None:
    """Write a column: words from its left edge on, numbers up to its right edge, with the marks beyond."""
    place, side = (left, "left") if column.words else (right, "right")
    axes.text(place, 0, column.heading, fontsize=SMALL, va="center", ha=side)
    for line, cell in enumerate(cells, start=1):
        axes.text(place, line, cell.text, fontsize=SMALL, va="center", ha=side)
        if cell.mark:
            axes.text(right, line, SYMBOLS[cell.mark], fontsize=SMALL, va="center")
