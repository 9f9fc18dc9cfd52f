import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from skeleton_cgl.analysis import FORMATS, disparity, disparity_table, published_disparity
from skeleton_cgl.errors import InputError
from tests.analysis.made_records import random_records


def made(methods: dict[str, tuple[float, float]], **columns: object) -> pd.DataFrame:
    """Return a disparity frame with these AOPD and MOPD by method."""
    rows = []
    for method, (aopd, mopd) in methods.items():
        row = {"backbone": "gcn", "method": method, "level": "task", "orders": 120, "repeats": 5}
        row |= {"AOPD": aopd, "AOPD_std": 0.0123, "MOPD": mopd, "MOPD_std": np.nan}
        row |= {"AOPD_low": np.nan, "AOPD_high": np.nan, "MOPD_low": np.nan, "MOPD_high": np.nan}
        row |= {"R": 4.0, "AOPD_floor": 0.05, "MOPD_floor": 0.08, "expected_AOPD_at_R": 0.4, "AOPD_mixed": 0.6}
        rows.append(row | columns)
    return pd.DataFrame(rows)


EXAMPLE = made({"replay": (0.58214, 0.8), "zeta_2": (0.7, 1.0), "bare": (0.9673, 1.0), "joint": (0.58206, 0.9)})


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


def test_methods_come_in_a_fixed_sequence_in_every_format() -> None:
    expected = ["bare", "replay", "joint", "zeta_2"]
    assert [row["method"] for row in text_rows(disparity_table(EXAMPLE))] == expected
    assert list(pd.read_csv(io.StringIO(disparity_table(EXAMPLE, "csv")))["method"]) == expected
    assert [row["method"] for row in json.loads(disparity_table(EXAMPLE, "json"))["rows"]] == expected
    assert [row["method"] for row in latex_rows(disparity_table(EXAMPLE, "latex"))] == [*expected[:3], r"zeta\_2"]


def test_text_shows_percent_with_one_decimal_deviation_floor_and_marks() -> None:
    bare, replay, joint, other = text_rows(disparity_table(EXAMPLE))
    assert bare == {
        **{"method": "bare", "orders": "120", "repeats": "5", "AOPD": "96.7 ± 1.2†", "MOPD": "100.0†"},
        **{"AOPD floor": "5.0", "MOPD floor": "8.0", "R": "4", "AOPD at R": "40.0", "AOPD mixed": "60.0"},
    }
    assert [row["AOPD"] for row in (replay, joint, other)] == ["58.2 ± 1.2*", "58.2 ± 1.2*", "70.0 ± 1.2"]
    assert [row["MOPD"] for row in (replay, joint, other)] == ["80.0*", "90.0", "100.0†"]


def test_latex_marks_by_bold_and_underline() -> None:
    bare, replay, joint, other = latex_rows(disparity_table(EXAMPLE, "latex"))
    assert bare["AOPD"] == r"\underline{96.7 $\pm$ 1.2}"
    assert replay["AOPD"] == joint["AOPD"] == r"\textbf{58.2 $\pm$ 1.2}"
    assert other["AOPD"] == r"70.0 $\pm$ 1.2"
    assert [row["MOPD"] for row in (bare, replay, joint)] == [r"\underline{100.0}", r"\textbf{80.0}", "90.0"]


def test_csv_and_json_hold_the_same_numbers_and_marks() -> None:
    of_csv = pd.read_csv(io.StringIO(disparity_table(EXAMPLE, "csv", published="ucla")))
    content = json.loads(disparity_table(EXAMPLE, "json", published="ucla"))
    of_json = pd.DataFrame(content["rows"])
    assert content["unit"] == "percent"
    assert content["published"].startswith("ucla, Wei, De Schepper, Mets")
    assert list(of_csv["AOPD"]) == list(of_json["AOPD"]) == [96.7, 58.2, 58.2, 70.0]
    assert list(of_csv["AOPD_std"]) == list(of_json["AOPD_std"]) == [1.2] * 4
    assert content["rows"][0]["MOPD_std"] is None
    assert content["rows"][0]["R"] == 4
    assert list(of_json["AOPD_mark"]) == list(of_csv["AOPD_mark"].fillna("")) == ["highest", "lowest", "lowest", ""]
    np.testing.assert_array_equal(of_csv["AOPD_difference"], of_json["AOPD_difference"].astype(float))


def test_published_values_stand_beside_ours_with_the_difference() -> None:
    bare, replay, joint, _ = text_rows(disparity_table(EXAMPLE, published="ucla"))
    assert (bare["published AOPD"], bare["AOPD difference"]) == ("96.7 ± 0.7", "+0.0")
    assert (replay["published MOPD"], replay["MOPD difference"]) == ("80.2 ± 5.2", "−0.2")
    assert joint["published AOPD"] == joint["AOPD difference"] == "–"
    assert "over 120 orders" in disparity_table(EXAMPLE, published="ucla")
    _, replay, joint, _ = latex_rows(disparity_table(EXAMPLE, "latex", published="ucla"))
    assert (replay["published MOPD"], replay["MOPD difference"]) == (r"80.2 $\pm$ 5.2", "$-$0.2")
    assert joint["AOPD difference"] == "--"
    stgcn = text_rows(disparity_table(EXAMPLE.assign(backbone="st-gcn"), published="ucla"))
    assert {row["published AOPD"] for row in stgcn} == {"–"}


def test_nothing_is_marked_where_all_look_equal() -> None:
    table = disparity_table(made({"bare": (0.50001, 1.0), "ewc": (0.49999, 0.9)}))
    assert [row["AOPD"] for row in text_rows(table)] == ["50.0 ± 1.2", "50.0 ± 1.2"]
    assert [row["MOPD"] for row in text_rows(table)] == ["100.0†", "90.0*"]


def test_backbones_are_named_if_there_are_several_and_marked_apart() -> None:
    other = made({"bare": (0.1, 0.1), "ewc": (0.2, 0.1)}, backbone="width=8")
    rows = text_rows(disparity_table(pd.concat([other, EXAMPLE])))
    named = [("width=8", "bare"), ("width=8", "ewc"), ("gcn", "bare")]
    assert [(row["backbone"], row["method"]) for row in rows[:3]] == named
    assert [row["AOPD"] for row in rows[:3]] == ["10.0 ± 1.2*", "20.0 ± 1.2†", "96.7 ± 1.2†"]


def test_methods_with_fewer_orders_are_not_compared() -> None:
    table = made({"bare": (0.9, 1.0), "ewc": (0.8, 1.0), "replay": (0.1, 0.2)})
    assert "fewer" not in disparity_table(table)
    table.loc[2, "orders"] = 2
    rows = text_rows(disparity_table(table))
    assert [row["AOPD"] for row in rows] == ["90.0 ± 1.2†", "80.0 ± 1.2*", "10.0 ± 1.2"]
    assert "methods with fewer than others are not compared" in disparity_table(table)


def test_latex_escapes_what_has_a_meaning_to_it() -> None:
    table = disparity_table(made({r"[a]&b%c$d#e_f{g}~h^i\j*": (0.1, 0.1), "*": (0.2, 0.2)}), "latex")
    star, label = (row["method"] for row in latex_rows(table))
    assert star == "{*}"
    assert label == r"{[}a]\&b\%c\$d\#e\_f\{g\}\textasciitilde{}h\textasciicircum{}i\textbackslash{}j{*}"
    body = re.sub(r"\\[{}\\]", "", "\n".join(line for line in table.splitlines() if not line.startswith("%")))
    assert body.count("{") == body.count("}")
    assert body.isascii()


def test_intervals_are_shown_where_orders_were_sampled() -> None:
    sampled = disparity(random_records(), "class", bootstrap=np.random.default_rng(0))
    row = text_rows(disparity_table(sampled))[0]
    low, high = 100 * sampled["AOPD_low"][0], 100 * sampled["AOPD_high"][0]
    assert row["AOPD interval"] == f"[{low:.1f}, {high:.1f}]"
    assert "biased downwards" in disparity_table(sampled)
    assert "interval" not in disparity_table(EXAMPLE)
    sampled.loc[1, ["AOPD_low", "AOPD_high"]] = np.nan
    assert text_rows(disparity_table(sampled))[1]["AOPD interval"] == "exact"
    sampled.loc[1, "AOPD"] = np.nan
    assert text_rows(disparity_table(sampled))[1]["AOPD interval"] == "–"


@pytest.mark.parametrize("format", FORMATS)
def test_what_disparity_computes_becomes_a_table_in_every_format(format: str) -> None:
    computed = disparity(random_records(noise_runs=0, repeats=1))
    before = computed.copy()
    table = disparity_table(computed, format, published="ntu")
    assert table.endswith("\n")
    assert "nan" not in table.lower()
    pd.testing.assert_frame_equal(computed, before)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InputError, match="unknown format 'latx'; did you mean 'latex'"):
        disparity_table(EXAMPLE, "latx")
    with pytest.raises(InputError, match="unknown published data set 'uclaa'; did you mean 'ucla'"):
        disparity_table(EXAMPLE, published="uclaa")
    with pytest.raises(InputError, match="disparity: missing columns: AOPD; found: backbone"):
        disparity_table(EXAMPLE.drop(columns="AOPD"))
    with pytest.raises(InputError, match="disparity: no rows"):
        disparity_table(EXAMPLE.iloc[:0])
    with pytest.raises(InputError, match="expected one level, found class, task"):
        disparity_table(pd.concat([EXAMPLE, EXAMPLE.assign(level="class")]))


def test_the_published_table_is_complete_and_in_fractions() -> None:
    table = published_disparity()
    assert len(table) == 28
    assert not table.duplicated(["dataset", "level", "method"]).any()
    assert table.groupby(["dataset", "level"])["method"].agg(set).map(len).eq(7).all()
    values = table[["AOPD", "AOPD_std", "MOPD", "MOPD_std"]]
    assert values.stack().between(0, 1).all()
    assert (table["AOPD"] <= table["MOPD"] + 1e-12).all()
    replay = table.query("dataset == 'ntu' and level == 'class' and method == 'replay'").iloc[0]
    assert replay["AOPD":"MOPD_std"].tolist() == pytest.approx([0.5052, 0.0116, 0.7182, 0.0227])
