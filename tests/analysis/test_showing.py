"""The commands that show results, as a user calls them."""

import json
from pathlib import Path

import pytest

from skeleton_cgl.analysis.results import Results
from tests.analysis.made_scores import random_scores
from tests.analysis.made_store import made_store
from tests.analysis.test_tables import OWN
from tests.conftest import Run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made_store(tmp_path / "x.db", random_scores())


def test_a_table_has_the_columns_asked_for_sorted(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    columns = f"AA,AOPD,{tmp_path / 'mine.py'}"
    code, text, _ = run("table", store, "--columns", columns, "--sort", "-AA", "--format", "json")
    assert code == 0
    rows = json.loads(text)["rows"]
    assert [row["method"] for row in rows] == ["Replay", "Bare"]
    assert set(rows[0]) == {"method", "AA", "AA_std", "AOPD", "AOPD_std", "AOPD_mark", "worst", "worst_std"}


def test_python_and_the_command_line_speak_of_the_same_unit(run: Run, store: Path) -> None:
    rows = json.loads(run("table", store, "--level", "class", "--format", "json")[1])["rows"]
    frame = Results(store).disparity("class")
    assert [row["AOPD"] for row in rows] == pytest.approx(frame["AOPD"].tolist(), abs=0.05)
    assert [row["method"] for row in rows] == list(frame["method"])


@pytest.mark.parametrize(("suffix", "start"), [(".tex", b"% "), (".csv", b"method"), (".html", b"<table>")])
def test_a_table_is_written_in_the_form_of_its_file(
    run: Run, store: Path, tmp_path: Path, suffix: str, start: bytes
) -> None:
    assert run("table", store, "--out", tmp_path / f"table{suffix}") == (0, "", "")
    assert (tmp_path / f"table{suffix}").read_bytes().startswith(start)


def test_a_table_is_drawn(run: Run, store: Path, tmp_path: Path) -> None:
    assert run("table", store, "--out", tmp_path / "table.png") == (0, "", "")
    assert (tmp_path / "table.png").read_bytes().startswith(b"\x89PNG")


def test_unlike_studies_are_compared_only_if_asked(run: Run, store: Path) -> None:
    code, _, errors = run("table", store, "--published", "ucla")
    assert code == 2
    assert "unlike the published one" in errors
    code, text, _ = run("table", store, "--published", "ucla", "--anyway")
    assert code == 0
    assert "‡ not alike" in text


@pytest.mark.parametrize("kind", ["figures", "metrics"])
def test_what_shows_results_is_listed_with_a_word_on_each(run: Run, kind: str) -> None:
    code, text, _ = run("ls", kind)
    assert code == 0
    assert all(len(line.split(maxsplit=1)) == 2 for line in text.splitlines())


def test_a_wrong_option_of_a_figure_is_refused(run: Run, store: Path, tmp_path: Path) -> None:
    code, _, errors = run("draw", "class-fate", store, "--set", "kinds=task", "--out", tmp_path / "x.png")
    assert code == 2
    assert "figure 'class-fate': unknown parameter 'kinds'; did you mean 'kind'" in errors
