"""A table as a value: what is shown, and the numbers behind it. `rendering` writes it in any form."""

import math
from dataclasses import dataclass, replace

from skeleton_cgl.analysis.scores import choose

LOWEST, HIGHEST, UNLIKE = "lowest", "highest", "unlike"
"""Marks: the ends of a column among rivals, and what is set beside something it is not alike."""
EMPTY = "–"

Number = float | int | str | None


@dataclass(frozen=True)
class Column:
    """A column: its heading, and the names of the numbers behind each cell, for programs.

    words: its cells are read from the left. marked: its cells may have marks.
    """

    heading: str
    fields: tuple[str, ...]
    words: bool = False
    marked: bool = False


@dataclass(frozen=True)
class Cell:
    """What a cell says, its mark, and the numbers behind it: as many as its column has fields, None for none."""

    text: str
    numbers: tuple[Number, ...]
    mark: str = ""

    @property
    def is_empty(self) -> bool:
        return self.text == EMPTY


@dataclass(frozen=True)
class Table:
    """A title, columns, rows of cells, and notes on how to read it; without rows, a note says why."""

    title: str
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    notes: tuple[str, ...] = ()

    def column(self, heading: str) -> list[Cell]:
        """Return the cells of a column from top to bottom; refuse one that is not there."""
        place = self._place(heading)
        return [row[place] for row in self.rows]

    def sorted_by(self, heading: str) -> "Table":
        """Return the table with its rows sorted by a column, falling if a `-` stands before it; empty cells last."""
        place = self._place(heading.removeprefix("-"))
        full = [row for row in self.rows if row[place].numbers[0] is not None]
        words = any(isinstance(row[place].numbers[0], str) for row in full)

        def key(row: tuple[Cell, ...]) -> tuple[str, float]:
            number = row[place].numbers[0]
            return (str(number), 0.0) if words or number is None else ("", float(number))

        full.sort(key=key, reverse=heading.startswith("-"))
        empty = [row for row in self.rows if row[place].numbers[0] is None]
        return replace(self, rows=(*full, *empty))

    def _place(self, heading: str) -> int:
        known = [column.heading for column in self.columns]
        return known.index(choose("column", heading, known))


def word(text: str) -> Cell:
    """Return a cell of words."""
    return Cell(text, (text,))


def whole(number: float) -> Cell:
    """Return a cell of a whole number."""
    return Cell(EMPTY, (None,)) if math.isnan(number) else Cell(str(int(number)), (int(number),))


def percent(fraction: float, signed: bool = False) -> Cell:
    """Return a cell of a fraction in percent with one decimal."""
    number = rounded(100 * fraction)
    return Cell(shown(number, signed), (number,))


def percent_and_spread(fraction: float, spread: float) -> Cell:
    """Return a cell of a fraction with its spread over repeats, in percent with one decimal; without one if NaN."""
    return number_and_spread(100 * fraction, 100 * spread)


def number_and_spread(number: float, spread: float) -> Cell:
    """Return a cell of a number with its spread, with one decimal; without the spread if that is NaN."""
    mean, around = rounded(number), rounded(spread)
    return Cell(shown(mean) if around is None else f"{shown(mean)} ± {shown(around)}", (mean, around))


def rounded(number: float) -> float | None:
    """Return a number with one decimal, None for NaN."""
    # Adding zero turns the −0.0 of a rounded small negative number into 0.0.
    return None if math.isnan(number) else round(float(number), 1) + 0.0


def shown(number: float | None, signed: bool = False) -> str:
    """Return a number as it stands in a table."""
    return EMPTY if number is None else format(number, "+.1f" if signed else ".1f").replace("-", "−")
