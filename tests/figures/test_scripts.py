"""Every script of figures/ draws from a store what it is asked for, and says in one line what it cannot draw."""

import re
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from skeleton_cgl.analysis.metrics.stream import StreamPerformance
from skeleton_cgl.registry import FIGURES
from tests.analysis.made_scores import random_scores
from tests.analysis.made_store import made_store
from tests.analysis.test_figures import swept_scores
from tests.analysis.test_report import OWN_FIGURE
from tests.analysis.test_streams import SIGMAS, STREAM, streamed

FOLDER = Path(__file__).parents[2] / "figures"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("command", "draw"))
OF_STREAMS = ("stream", "stream_orders", "stream_sweep")
COLUMN_PIXELS = 1020


class Script:
    """Runs a script of figures/ in this process, as a user would call it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        monkeypatch.syspath_prepend(FOLDER)

    def draws(self, name: str, *arguments: object) -> None:
        """Run a script that should go well and print nothing."""
        self._run(name, arguments)
        assert self._capsys.readouterr() == ("", "")

    def refuses(self, name: str, *arguments: object) -> str:
        """Return the last line that a script ends with."""
        with pytest.raises(SystemExit) as exit_info:
            self._run(name, arguments)
        printed = self._capsys.readouterr().err
        message = printed.splitlines()[-1] if exit_info.value.code == 2 else str(exit_info.value.code)
        assert message.startswith(f"{name}.py: ")
        assert "\n" not in message
        return message

    def _run(self, name: str, arguments: Iterable[object]) -> None:
        self._monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Script:
    return Script(monkeypatch, capsys)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_store(tmp_path_factory.mktemp("made") / "made.db", random_scores())


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_store(tmp_path_factory.mktemp("swept") / "swept.db", swept_scores(["bare"]))


def width(picture: Path) -> int:
    header = picture.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    return int.from_bytes(header[16:20])


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "architecture" and name not in OF_STREAMS])
def test_a_script_needs_only_a_store(
    script: Script, store: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script.draws(name, store)
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.png"]
    assert width(tmp_path / f"{name}.png") <= COLUMN_PIXELS * (2 if name == "best_worst_orders" else 1)


def test_a_sweep_is_drawn_and_other_studies_are_refused(
    script: Script, store: Path, swept: Path, tmp_path: Path
) -> None:
    script.draws("architecture", swept, "--out", tmp_path / "width.png")
    assert width(tmp_path / "width.png") == COLUMN_PIXELS
    assert "sweeps no field" in script.refuses("architecture", store, "--out", tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


@pytest.mark.parametrize("name", OF_STREAMS)
def test_streams_are_drawn_and_other_studies_are_refused(
    script: Script, store: Path, tmp_path: Path, name: str
) -> None:
    streams = made_store(tmp_path / "streams.db", streamed(points=SIGMAS), scenario=STREAM)
    script.draws(name, streams, "--out", tmp_path / "drawn.png")
    assert width(tmp_path / "drawn.png") == COLUMN_PIXELS * (2 if name == "stream" else 1)
    assert "not one of a stream" in script.refuses(name, store, "--out", tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


@pytest.mark.parametrize("backbone", ["gcn", "stgcn"])
def test_stores_stand_side_by_side_and_are_not_mixed(
    script: Script, store: Path, tmp_path: Path, backbone: str
) -> None:
    other = made_store(tmp_path / "other.db", random_scores(seed=1, backbone=backbone))
    script.draws("order_scatter", store, other, "--kind", "task", "--out", tmp_path / "both.png")
    assert width(tmp_path / "both.png") == 2 * COLUMN_PIXELS


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".txt", "method"), (".tex", "%"), (".csv", "method,orders"), (".json", "{"), (".svg", "<?xml")],
)
def test_the_suffix_decides_the_form_of_the_table(
    script: Script, store: Path, tmp_path: Path, suffix: str, start: str
) -> None:
    out = tmp_path / "new" / f"table{suffix}"
    script.draws("disparity_table", store, "--level", "class", "--published", "ntu", "--anyway", "--out", out)
    text = out.read_text(encoding="utf-8")
    assert text.startswith(start)
    assert suffix == ".svg" or "100.0" in text


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("learning_curve", ["--study", "mad"], "no study 'mad'; did you mean 'made'?"),
        ("class_fate", ["--out", "fate.jpg"], "fate.jpg: a figure is called"),
        ("best_worst_orders", ["--method", "repaly"], "unknown method 'repaly'; did you mean 'replay'?"),
        ("best_worst_orders", ["--count", "0"], "count: expected at least 1 order, found 0"),
        ("accuracy_matrix", ["--order", "0,1 > 2,3"], "order 0,1 > 2,3 was not run"),
        ("accuracy_matrix", ["--order", "0,1;2,3"], "order '0,1;2,3': expected tasks such as '0,1 > 4,5 > 2,3'"),
        ("disparity_table", ["--published", "ucla"], "unlike the published one"),
        ("opd_growth", ["--level", "order"], "invalid choice: 'order'"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(
    script: Script, store: Path, name: str, options: list[str], expected: str
) -> None:
    assert expected in script.refuses(name, store, *options)


def test_a_kind_of_order_that_was_not_run_is_refused(script: Script, tmp_path: Path) -> None:
    tasks = made_store(tmp_path / "tasks.db", random_scores(kinds=["task"], noise_runs=0))
    message = script.refuses("order_scatter", tasks, "--kind", "class", "--out", tmp_path / "scatter.png")
    assert message == "order_scatter.py: no class order is finished; there are orders of kind task"


def test_a_store_that_is_not_there_is_not_made(script: Script, tmp_path: Path) -> None:
    assert script.refuses("order_scatter", tmp_path / "no.db").endswith("no.db: no such store")
    assert not any(tmp_path.iterdir())


def test_every_built_in_figure_has_a_script() -> None:
    assert [name.replace("-", "_") for name in FIGURES.names()] == SCRIPTS


def test_the_page_has_a_row_for_every_script_and_for_every_column_of_streams() -> None:
    first_cells = [
        line.split("|")[1] for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("|")
    ]
    named = {name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)}
    assert {f"{name}.py" for name in SCRIPTS} <= named
    assert set(StreamPerformance.offers) <= named


def test_any_figure_is_drawn_by_name_or_from_a_file_with_its_options(
    script: Script, store: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(OWN_FIGURE)
    script.draws("draw", tmp_path / "mine.py", store, "--plus", 3, "--out", tmp_path / "mine.png")
    script.draws("draw", "learning-curve", store, "--kind", "task", "--out", tmp_path / "curve.png")
    assert width(tmp_path / "curve.png") == COLUMN_PIXELS
    assert "unknown figure 'learning-kurve'; did you mean 'learning-curve'" in script.refuses(
        "draw", "learning-kurve", store
    )
    assert "which figure?" in script.refuses("draw")
