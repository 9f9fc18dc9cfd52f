"""Order sensitivity of every method, the published values beside ours (Table 2), as a picture."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from skeleton_cgl.analysis.figure import Level, StudyFigure
from skeleton_cgl.analysis.metric import Beside, Findings
from skeleton_cgl.analysis.metrics.disparity import without_disparity
from skeleton_cgl.analysis.plots.picture import picture
from skeleton_cgl.analysis.published import ORDERS
from skeleton_cgl.analysis.rendering import SUFFIXES, write_table
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.table import Cell, Column, Table
from skeleton_cgl.analysis.tables import study_table
from skeleton_cgl.analysis.words import worded
from skeleton_cgl.engine.draws import FLOORS
from skeleton_cgl.scenarios.lessons import UnitKind

_FLOORS = [f"AOPD floor ({drawn})" for drawn in FLOORS]
_SHORT = {
    **{f"{measure} (cross)": "cross" for measure in ("AOPD", "MOPD")},
    **{f"published {measure}": "published" for measure in ("AOPD", "MOPD")},
    **{f"AOPD floor ({drawn})": drawn for drawn in FLOORS},
}


@dataclass(frozen=True)
class Tabled:
    """The whole table, for text, and what of it fits a picture."""

    whole: Table
    shown: Table


class DisparityTable(StudyFigure[Tabled]):
    """The columns of the table that fit a column of a paper: the noise floor, or what was published in its place.

    level: whose disparity; published: a data set; anyway: also where that is unlike.
    """

    title = "Order disparity"
    meaning = "AOPD and MOPD of every method, as they are and cross-evaluated, with the noise floor."
    wanted = False

    def __init__(
        self, level: Level = "task", published: Literal["ucla", "ntu"] | None = None, anyway: bool = False
    ) -> None:
        self.level = level
        self.beside = None if published is None else Beside(published, anyway)

    def compute(self, results: Results) -> Tabled:
        columns = []
        for measure in ("AOPD", "MOPD"):
            columns += [measure, f"{measure} (cross)", *([f"published {measure}"] if self.beside else [])]
        columns += [] if self.beside else ["R", "AOPD at R", *_FLOORS]
        findings = Findings(results.scores, self.level, results.study, self.beside)
        shown = study_table(findings, ["orders", "repeats", *columns])
        picture = self._shown(shown, results.scores.unit)
        if all(cell.is_empty for cell in shown.column("AOPD")):
            picture = replace(picture, notes=(picture.notes[0], *without_disparity(findings)))
        return Tabled(study_table(findings), picture)

    def _shown(self, whole: Table, unit: UnitKind) -> Table:
        counts = {name: whole.column(name) for name in ("orders", "repeats")}
        differ = len({cell.text for cell in counts["orders"]}) > 1
        shown = [
            place
            for place, column in enumerate(whole.columns)
            if column.heading != "repeats"
            and (column.heading != "orders" or differ)
            and not (column.heading in ("R", "AOPD at R", *_FLOORS) and all(row[place].is_empty for row in whole.rows))
        ]
        headings = [whole.columns[place] for place in shown]
        return Table(
            title=whole.title,
            columns=tuple(replace(column, heading=_SHORT.get(column.heading, column.heading)) for column in headings),
            rows=tuple(tuple(_brief(row[place], whole.columns[place]) for place in shown) for row in whole.rows),
            notes=self._notes(counts, [column.heading for column in headings], differ, unit),
        )

    def _notes(
        self, counts: dict[str, list[Cell]], headings: list[str], differ: bool, unit: UnitKind
    ) -> tuple[str, ...]:
        spans = ", ".join(f"{name}: {_span(cells)}" for name, cells in counts.items())
        notes = [f"percent, {worded(self.level, unit)} level; {spans}"]
        if differ:
            notes.append("methods with fewer orders than others are not compared")
        notes.append("cross: extremes chosen on test and read on validation queries, and the other way round")
        if "AOPD at R" in headings:
            notes.append("AOPD at R: of R orders; seeds, splits, both: of R runs of one order with that drawn anew")
        if self.beside:
            notes.append(
                f"published: {self.beside.dataset}, {ORDERS[self.level]} orders, Wei, De Schepper, Mets (2024)"
            )
        return tuple(notes)

    def draw(self, value: Tabled) -> Figure:
        return picture(value.shown)

    def save(self, value: Tabled, path: Path) -> None:
        """Write the picture, or the whole table as .txt, .tex, .csv, .json or .html."""
        if path.suffix in SUFFIXES:
            write_table(value.whole, path)
        else:
            super().save(value, path)


def _brief(cell: Cell, column: Column) -> Cell:
    """Return a cell without its spread, if its column is one of those that are there to be held against another."""
    return replace(cell, text=cell.text.split(" ±")[0]) if "(cross)" in column.heading else cell


def _span(cells: list[Cell]) -> str:
    if len({cell.text for cell in cells}) == 1:
        return cells[0].text
    numbers = sorted({int(str(cell.numbers[0])) for cell in cells})
    return "–".join(map(str, dict.fromkeys([numbers[0], numbers[-1]])))
