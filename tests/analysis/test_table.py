"""A table says the same in every form."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from skeleton_cgl.analysis.plots.picture import picture
from skeleton_cgl.analysis.rendering import FORMATS, render, write_table
from skeleton_cgl.analysis.table import (
    HIGHEST,
    LOWEST,
    UNLIKE,
    Cell,
    Column,
    Table,
    percent,
    percent_and_spread,
    whole,
    word,
)
from skeleton_cgl.errors import InputError

COLUMNS = (
    Column("method", ("method",), words=True),
    Column("AOPD", ("AOPD", "AOPD_std"), marked=True),
    Column("R", ("R",)),
    Column("AOPD difference", ("AOPD_difference",)),
)
NAN = float("nan")


def marked(cell: Cell, mark: str) -> Cell:
    return Cell(cell.text, cell.numbers, mark)


TABLE = Table(
    "Order disparity",
    COLUMNS,
    (
        (word("Bare"), marked(percent_and_spread(0.9673, 0.0123), HIGHEST), whole(4), percent(0.0001, signed=True)),
        (word("zeta_2"), marked(percent_and_spread(0.58206, NAN), LOWEST), whole(NAN), percent(-0.0021, signed=True)),
        (word("own"), marked(percent_and_spread(0.7, 0.1), UNLIKE), whole(NAN), percent(NAN)),
    ),
    ("In percent.",),
)


def text_rows(table: str) -> list[dict[str, str]]:
    header, _, *body = table.split("\n\n")[0].splitlines()
    names = re.split(r"\s{2,}", header)
    return [dict(zip(names, re.split(r"\s{2,}", line), strict=True)) for line in body]


def latex_rows(table: str) -> list[dict[str, str]]:
    lines = [line for line in table.splitlines() if not line.startswith("%")]
    assert lines[0].startswith(r"\begin{tabular}{l")
    assert [lines[1], lines[3], *lines[-2:]] == [r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}"]
    columns = len(re.fullmatch(r"\\begin{tabular}{([lr]+)}", lines[0]).group(1))
    rows = [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in (lines[2], *lines[4:-2])]
    assert all(line.endswith(r" \\") for line in (lines[2], *lines[4:-2]))
    assert {len(row) for row in rows} == {columns}
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_text_shows_percent_with_one_decimal_and_marks() -> None:
    text = render(TABLE)
    assert text_rows(text) == [
        {"method": "Bare", "AOPD": "96.7 ± 1.2†", "R": "4", "AOPD difference": "+0.0"},
        {"method": "zeta_2", "AOPD": "58.2*", "R": "–", "AOPD difference": "−0.2"},
        {"method": "own", "AOPD": "70.0 ± 10.0‡", "R": "–", "AOPD difference": "–"},
    ]
    assert text.endswith("\nIn percent.\n* lowest, † highest, ‡ not alike.\n")


def test_latex_marks_by_bold_and_underline() -> None:
    bare, zeta, own = latex_rows(render(TABLE, "latex"))
    assert bare["AOPD"] == r"\underline{96.7 $\pm$ 1.2}"
    assert (zeta["method"], zeta["AOPD"], zeta["AOPD difference"]) == (r"zeta\_2", r"\textbf{58.2}", "$-$0.2")
    assert (own["AOPD"], own["R"]) == (r"\textit{70.0 $\pm$ 10.0}", "--")
    assert render(TABLE, "latex").startswith("% In percent.\n% Bold: lowest, underlined: highest, italic: not alike.\n")


def test_csv_and_json_hold_the_same_numbers_and_marks() -> None:
    rows = json.loads(render(TABLE, "json"))["rows"]
    assert rows[0] == {
        **{"method": "Bare", "AOPD": 96.7, "AOPD_std": 1.2, "AOPD_mark": "highest", "R": 4, "AOPD_difference": 0.0}
    }
    assert (rows[1]["AOPD_std"], rows[1]["R"]) == (None, None)
    of_csv = list(csv.DictReader(io.StringIO(render(TABLE, "csv"))))
    assert of_csv == [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows]
    assert json.loads(render(TABLE, "json"))["unit"] == "percent"


def test_html_says_the_same_and_escapes_names() -> None:
    class Cells(HTMLParser):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.found: list[str] = []
            self.feed(text)

        def handle_data(self, data: str) -> None:
            self.found += [data] if data.strip() else []

    awkward = Table("x", COLUMNS[:1], ((word("<b>&</b>"),),))
    assert Cells(render(awkward, "html")).found == ["Method", "<b>&</b>"]
    assert "<b>" not in render(awkward, "html")
    assert Cells(render(TABLE, "html")).found[4:7] == ["Bare", "96.7 ± 1.2", "†"]


def test_the_picture_says_what_the_table_says() -> None:
    (panel,) = picture(TABLE).axes
    words = [text.get_text() for text in panel.texts]
    for row in TABLE.rows:
        assert {cell.text for cell in row} <= set(words)
    assert {"method", "AOPD", "In percent.", "* lowest, † highest, ‡ not alike", "†", "*", "‡"} <= set(words)


def test_latex_escapes_what_has_a_meaning_to_it() -> None:
    names = ("*", r"[a]&b%c$d#e_f{g}~h^i\j*")
    text = render(Table("x", (*COLUMNS[:1], COLUMNS[2]), tuple((word(name), whole(1)) for name in names)), "latex")
    star, label = (row["method"] for row in latex_rows(text))
    assert star == "{*}"
    assert label == r"{[}a]\&b\%c\$d\#e\_f\{g\}\textasciitilde{}h\textasciicircum{}i\textbackslash{}j{*}"
    body = re.sub(r"\\[{}\\]", "", "\n".join(line for line in text.splitlines() if not line.startswith("%")))
    assert body.count("{") == body.count("}")
    assert body.isascii()


def test_rows_are_sorted_by_the_numbers_of_a_column_and_empty_ones_come_last() -> None:
    assert [row[0].text for row in TABLE.sorted_by("AOPD").rows] == ["zeta_2", "own", "Bare"]
    assert [row[0].text for row in TABLE.sorted_by("-AOPD").rows] == ["Bare", "own", "zeta_2"]
    assert [row[0].text for row in TABLE.sorted_by("-AOPD difference").rows] == ["Bare", "zeta_2", "own"]
    assert [row[0].text for row in TABLE.sorted_by("method").rows] == ["Bare", "own", "zeta_2"]
    with pytest.raises(InputError, match="unknown column 'AOPDD'; did you mean 'AOPD'"):
        TABLE.sorted_by("AOPDD")


def test_the_suffix_of_a_file_decides_the_form(tmp_path: Path) -> None:
    for suffix, form in {".txt": "text", ".tex": "latex", ".csv": "csv", ".json": "json", ".html": "html"}.items():
        write_table(TABLE, tmp_path / f"table{suffix}")
        assert (tmp_path / f"table{suffix}").read_text(encoding="utf-8") == render(TABLE, form)
    with pytest.raises(InputError, match=r"table\.doc: a table is called NAME\.txt"):
        write_table(TABLE, tmp_path / "table.doc")


def test_a_table_without_rows_tells_why_in_every_form() -> None:
    empty = Table("x", notes=("Not computed: too few orders.",))
    for form in FORMATS:
        assert form == "csv" or "too few orders" in render(empty, form)
    with pytest.raises(InputError, match="unknown format 'latx'; did you mean 'latex'"):
        render(empty, "latx")
