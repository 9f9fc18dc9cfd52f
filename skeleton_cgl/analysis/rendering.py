"""Tables as text, LaTeX, CSV, JSON and HTML. Numbers are percent with one decimal, as the table has them."""

import csv
import html
import io
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skeleton_cgl.analysis.scores import choose
from skeleton_cgl.analysis.table import HIGHEST, LOWEST, UNLIKE, Cell, Column, Table
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside

SYMBOLS = {LOWEST: "*", HIGHEST: "†", UNLIKE: "‡", "": ""}
_MEANINGS = {LOWEST: "* lowest", HIGHEST: "† highest", UNLIKE: "‡ not alike"}
_LATEX_COMMANDS = {LOWEST: r"\textbf{%s}", HIGHEST: r"\underline{%s}", UNLIKE: r"\textit{%s}", "": "%s"}
_LATEX_MEANINGS = {LOWEST: "bold: lowest", HIGHEST: "underlined: highest", UNLIKE: "italic: not alike"}
_NOTE_LETTERS = 110


def render(table: Table, form: str = "text") -> str:
    """Return a table in one of the FORMATS, ending with a new line; refuse an unknown one."""
    return FORMATS[choose("format", form, list(FORMATS))](table)


def marks_used(table: Table) -> str:
    """Return what the symbols in a table mean, "" if there are none."""
    used = {cell.mark for row in table.rows for cell in row}
    return ", ".join(meaning for mark, meaning in _MEANINGS.items() if mark in used)


def as_text(table: Table) -> str:
    columns = []
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        # A place for the symbol in every cell of a marked column keeps its digits in line.
        room = " " if column.marked else ""
        written = [column.heading + room, *(cell.text + (SYMBOLS[cell.mark] or room) for cell in cells)]
        width = max(len(cell) for cell in written)
        written.insert(1, "-" * width)
        columns.append([cell.ljust(width) if column.words else cell.rjust(width) for cell in written])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    wrapped = [line for note in _notes(table) for line in textwrap.wrap(note, _NOTE_LETTERS)]
    return "\n".join([*lines, *([""] if lines and wrapped else []), *wrapped]) + "\n"


def as_latex(table: Table) -> str:
    """Return a booktabs tabular, to be put into a table; how to read it stands before it, in comments."""
    used = {cell.mark for row in table.rows for cell in row}
    meanings = ", ".join(meaning for mark, meaning in _LATEX_MEANINGS.items() if mark in used)
    comments = [*table.notes, *([f"{meanings.capitalize()}."] if meanings else []), r"Needs \usepackage{booktabs}."]
    header = " & ".join(_escaped(column.heading) for column in table.columns)
    body = [" & ".join(_LATEX_COMMANDS[cell.mark] % _escaped(cell.text) for cell in row) for row in table.rows]
    alignment = "".join("l" if column.words else "r" for column in table.columns)
    lines = [f"\\begin{{tabular}}{{{alignment}}}", r"\toprule", rf"{header} \\", r"\midrule"]
    lines += [*(rf"{row} \\" for row in body), r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*(f"% {line}" for line in comments), *lines]) + "\n"


def as_csv(table: Table) -> str:
    """Return the numbers behind the cells, a column for each; a marked column is followed by its marks."""
    text = io.StringIO()
    rows = _plain(table)
    writer = csv.DictWriter(text, _fields(table), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(table: Table) -> str:
    """Return the title, the unit, the notes, and the numbers behind the cells row by row."""
    content = {"title": table.title, "unit": "percent", "notes": list(table.notes), "rows": _plain(table)}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def as_html(table: Table) -> str:
    """Return a `<table>` and its notes, a piece of a page."""
    return html_rows(table) + html_notes(table)


def html_rows(table: Table) -> str:
    """Return the `<table>` alone; nothing if there are no rows."""
    if not table.rows:
        return ""
    headings = "".join(f'<th scope="col"{_words(column)}>{_capital(column.heading)}</th>' for column in table.columns)
    lines = ["<table>", f"<thead><tr>{headings}</tr></thead>", "<tbody>"]
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        lines.append(f"<tr>{''.join(_html_cell(place, *cell) for place, cell in enumerate(cells))}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"]) + "\n"


def html_notes(table: Table) -> str:
    """Return the notes, a paragraph each."""
    return "".join(f'<p class="note">{html.escape(note)}</p>\n' for note in _notes(table))


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": as_text,
    "latex": as_latex,
    "csv": as_csv,
    "json": as_json,
    "html": as_html,
}
SUFFIXES = {".txt": "text", ".tex": "latex", ".csv": "csv", ".json": "json", ".html": "html"}
"""The form that the name of a file asks for."""


def write_table(table: Table, path: Path) -> None:
    """Write a table in the form that the name of the file asks for; refuse another suffix."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: a table is called NAME{', NAME'.join(SUFFIXES)}")
    with write_beside(path) as unfinished:
        unfinished.write_text(render(table, SUFFIXES[path.suffix]), encoding="utf-8")


def _fields(table: Table) -> list[str]:
    return [field for column in table.columns for field in (*column.fields, *_mark_field(column))]


def _notes(table: Table) -> list[str]:
    used = marks_used(table)
    return [*table.notes, *([f"{used}."] if used else [])]


def _words(column: Column) -> str:
    return ' class="words"' if column.words else ""


def _mark_field(column: Column) -> list[str]:
    return [f"{column.fields[0]}_mark"] if column.marked else []


def _plain(table: Table) -> list[dict[str, Any]]:
    rows = []
    for row in table.rows:
        plain: dict[str, Any] = {}
        for column, cell in zip(table.columns, row, strict=True):
            plain |= dict(zip(column.fields, cell.numbers, strict=True))
            plain |= dict.fromkeys(_mark_field(column), cell.mark)
        rows.append(plain)
    return rows


def _html_cell(place: int, column: Column, cell: Cell) -> str:
    text = html.escape(cell.text)
    if place == 0:
        return f'<th scope="row">{text}</th>'
    if not cell.mark:
        return f"<td{_words(column)}>{text}</td>"
    return f'<td class="{cell.mark}">{text}<abbr title="{cell.mark}">{SYMBOLS[cell.mark]}</abbr></td>'


def _capital(heading: str) -> str:
    return html.escape(heading[:1].upper() + heading[1:])


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}
_LATEX |= {"±": r"$\pm$", "–": "--", "−": "$-$", "≥": r"$\geq$"}
# At the start of a row these would be taken for arguments of the \\ before it.
_LATEX |= {character: f"{{{character}}}" for character in "[*"}


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
