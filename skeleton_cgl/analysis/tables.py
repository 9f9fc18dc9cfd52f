"""Disparities as a table to read, to print or to process: text, LaTeX, CSV or JSON; always percent with one decimal."""

import json

import numpy as np
import pandas as pd

from skeleton_cgl.analysis.performance import check_columns, choose
from skeleton_cgl.analysis.published import DATASETS, SOURCE, VALUES, published_disparity, published_note
from skeleton_cgl.errors import InputError

FORMATS = ("text", "csv", "latex", "json")
METHODS = ("bare", "ewc", "mas", "twp", "lwf", "gem", "replay", "joint")
"""The sequence of the rows of a backbone; methods of other names follow, by the alphabet."""

MEASURES = ("AOPD", "MOPD")
PARTS = ("", "_std", "_low", "_high", "_floor")
FRACTIONS = (*(f"{measure}{part}" for measure in MEASURES for part in PARTS), "expected_AOPD_at_R", "AOPD_mixed")
COLUMNS = ("backbone", "method", "level", "orders", "repeats", "R", *FRACTIONS)

NOT_COMPARED = "Disparity grows with the number of orders; methods with fewer than others are not compared."

Cells = dict[str, list[tuple[str, str]]]
"""Under every header, from top to bottom: what a cell says, and its mark ("lowest", "highest" or "")."""


def disparity_table(disparity: pd.DataFrame, format: str = "text", published: str | None = None) -> str:
    """Return the frame of `disparity` as a table of one row per method, in the sequence of METHODS.

    Within a backbone the lowest and the highest AOPD and MOPD are marked (text: * and †; LaTeX: bold and underlined;
    CSV and JSON: a field "lowest" or "highest"), all of them if several look equal, none if all do. Disparity grows
    with the number of orders, so methods with fewer orders than others of their backbone are not marked. `published`
    names a data set of the published study: its values stand beside ours, with the difference ours − published. LaTeX
    is a booktabs tabular, to be put into a table. Refused: an unknown format or data set, and more than one level.
    """
    choose("format", format, FORMATS)
    check_columns(disparity, COLUMNS, "disparity")
    if disparity["level"].nunique() > 1:
        raise InputError(f"disparity: expected one level, found {', '.join(sorted(disparity['level'].unique()))}")
    rows = _sorted_rows(disparity)
    if published is not None:
        rows = _beside_published(rows, choose("published data set", published, DATASETS))
    rows = _marked_percent(rows)
    if format == "csv":
        return rows.to_csv(index=False, lineterminator="\n")
    if format == "json":
        plain = rows.astype(object).where(rows.notna(), None).to_dict("records")
        about = {"unit": "percent", "published": None if published is None else f"{published}, {SOURCE}"}
        return json.dumps({**about, "rows": plain}, indent=2, ensure_ascii=False) + "\n"
    render = _text if format == "text" else _latex
    return render(_cells(rows), _legend(rows, published))


def _sorted_rows(disparity: pd.DataFrame) -> pd.DataFrame:
    rank = {method: number for number, method in enumerate(METHODS)}
    backbones = list(disparity["backbone"].unique())
    names = list(zip(disparity["backbone"], disparity["method"], strict=True))

    def place(row: int) -> tuple[int, int, str]:
        backbone, method = names[row]
        return backbones.index(backbone), rank.get(method, len(rank)), method

    rows = disparity[list(COLUMNS)].iloc[sorted(range(len(names)), key=place)].reset_index(drop=True)
    return rows.astype({"R": "Int64"})


def _beside_published(rows: pd.DataFrame, dataset: str) -> pd.DataFrame:
    theirs = published_disparity()
    theirs = theirs[theirs["dataset"] == dataset].drop(columns="dataset")
    theirs = theirs.rename(columns={name: f"published_{name}" for name in VALUES})
    rows = rows.merge(theirs, how="left", on=["backbone", "level", "method"])
    for measure in MEASURES:
        rows[f"{measure}_difference"] = rows[measure] - rows[f"published_{measure}"]
    return rows


def _marked_percent(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in percent, rounded to one decimal, with the marks of what then looks lowest and highest."""
    fractions = [name for name in rows if "OPD" in name]
    # Adding zero turns the −0.0 of a rounded small negative difference into 0.0.
    rows = rows.assign(**(100 * rows[fractions].astype(float)).round(1) + 0.0)
    compared = ~with_fewer_orders(rows)
    for measure in MEASURES:
        by_backbone = rows[measure].where(compared).groupby(rows["backbone"])
        lowest, highest = (by_backbone.transform(extreme) for extreme in ("min", "max"))
        at_ends = [rows[measure] == lowest, rows[measure] == highest]
        marks = np.select(at_ends, ["lowest", "highest"], "")
        rows[f"{measure}_mark"] = np.where(compared & (lowest != highest), marks, "")
    return rows


def with_fewer_orders(rows: pd.DataFrame) -> pd.Series:
    """Return which rows have fewer orders than others of their backbone."""
    return rows["orders"] < rows.groupby("backbone")["orders"].transform("max")


def _cells(rows: pd.DataFrame) -> Cells:
    """Return what a reader is shown of the rows."""
    several = rows["backbone"].nunique() > 1
    columns = {name: list(rows[name].astype(str)) for name in (*["backbone"] * several, "method", "orders", "repeats")}
    for measure in MEASURES:
        columns[measure] = _with_std(rows, measure)
        if rows[f"{measure}_low"].notna().any():
            columns[f"{measure} interval"] = _intervals(rows, measure)
    if rows["R"].notna().any():
        for measure in MEASURES:
            columns[f"{measure} floor"] = _numbers(rows[f"{measure}_floor"])
        columns["R"] = _numbers(rows["R"], "d")
        columns["AOPD at R"] = _numbers(rows["expected_AOPD_at_R"])
    if rows["AOPD_mixed"].notna().any():
        columns["AOPD mixed"] = _numbers(rows["AOPD_mixed"])
    for measure in MEASURES:
        if f"published_{measure}" in rows:
            columns[f"published {measure}"] = _with_std(rows, f"published_{measure}")
            columns[f"{measure} difference"] = _numbers(rows[f"{measure}_difference"], "+.1f")
    marks = {header: rows.get(f"{header}_mark", [""] * len(rows)) for header in columns}
    return {header: list(zip(cells, marks[header], strict=True)) for header, cells in columns.items()}


def _numbers(values: pd.Series, form: str = ".1f") -> list[str]:
    return ["–" if pd.isna(value) else format(value, form).replace("-", "−") for value in values]


def _with_std(rows: pd.DataFrame, name: str) -> list[str]:
    pairs = zip(_numbers(rows[name]), _numbers(rows[f"{name}_std"]), strict=True)
    return [mean if std == "–" else f"{mean} ± {std}" for mean, std in pairs]


def _intervals(rows: pd.DataFrame, measure: str) -> list[str]:
    numbers = (_numbers(rows[f"{measure}{part}"]) for part in ("", "_low", "_high"))
    return [
        value if value == "–" else "exact" if low == "–" else f"[{low}, {high}]"
        for value, low, high in zip(*numbers, strict=True)
    ]


def _legend(rows: pd.DataFrame, published: str | None) -> list[str]:
    level = rows["level"].iloc[0]
    lines = [f"Order disparity per {level} in percent: mean ± standard deviation over repeats."]
    if with_fewer_orders(rows).any():
        lines.append(NOT_COMPARED)
    if rows["AOPD_low"].notna().any():
        lines.append("Interval: percentile bootstrap over the orders run; biased downwards, as max − min is.")
    if rows["R"].notna().any():
        lines.append("Floor: max − min over R runs of one order with different seeds; its peer is AOPD at R, expected")
        lines.append("of R orders.")
    if rows["AOPD_mixed"].notna().any():
        lines.append("Mixed: AOPD expected if every order is learned in a repeat drawn for it alone, so that split and")
        lines.append("first weights change with the order.")
    return lines if published is None else [*lines, published_note(published, level)]


def _text(columns: Cells, legend: list[str]) -> str:
    symbols = {"lowest": "*", "highest": "†", "": " "}
    lines = []
    for header, cells in columns.items():
        # A place for the symbol in every cell of a marked column keeps its digits in line.
        symbol = symbols if header in MEASURES else dict.fromkeys(symbols, "")
        written = [header + symbol[""], *(cell + symbol[mark] for cell, mark in cells)]
        width = max(len(cell) for cell in written)
        written.insert(1, "-" * width)
        lines.append([cell.ljust(width) if header in ("backbone", "method") else cell.rjust(width) for cell in written])
    table = ["  ".join(line).rstrip() for line in zip(*lines, strict=True)]
    return "\n".join([*table, "", *legend, "* lowest, † highest."]) + "\n"


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}
_LATEX |= {"±": r"$\pm$", "–": "--", "−": "$-$"}
# At the start of a row these would be taken for arguments of the \\ before it.
_LATEX |= {character: f"{{{character}}}" for character in "[*"}


def _latex(columns: Cells, legend: list[str]) -> str:
    commands = {"lowest": r"\textbf{%s}", "highest": r"\underline{%s}", "": "%s"}
    header = [_escaped(header) for header in columns]
    body = [[commands[mark] % _escaped(cell) for cell, mark in row] for row in zip(*columns.values(), strict=True)]
    lines = [" & ".join(row) + r" \\" for row in [header, *body]]
    alignment = "".join("l" if name in ("backbone", "method") else "r" for name in columns)
    comments = [f"% {line}" for line in [*legend, r"Bold: lowest, underlined: highest. Needs \usepackage{booktabs}."]]
    table = [f"\\begin{{tabular}}{{{alignment}}}", r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    return "\n".join([*comments, *table, r"\end{tabular}"]) + "\n"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
