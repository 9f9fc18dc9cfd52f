import json
import math
from pathlib import Path

import pytest

from skeleton_cgl import skeletons
from skeleton_cgl.cli import graphs
from skeleton_cgl.graphs.archive import read_archive, read_provenance, write_archive
from skeleton_cgl.version import __version__
from tests.conftest import Run
from tests.graphs.made_graphs import random_graph
from tests.skeletons.sources import random_source

READER = """
import time
from pathlib import Path
import numpy as np
from skeleton_cgl.graphs.graph import make_graph
from skeleton_cgl.graphs.source import GraphSource

class Mine(GraphSource):
    def __init__(self, path: Path, classes: int = 2, seconds: float = 0) -> None:
        self.path, self.classes, self.seconds = path, classes, seconds

    def read(self):
        time.sleep(self.seconds)
        edges = np.loadtxt(self.path, delimiter=",", dtype=np.int64).T
        nodes = edges.max() + 1
        labels, names = np.arange(nodes) % self.classes, tuple(f"c{number}" for number in range(self.classes))
        return make_graph("mine", edges, np.ones((nodes, 1)), labels, names, where=str(self.path))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a reader of a user's own and a file for it."""
    (tmp_path / "mine.py").write_text(READER)
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n2,0\n3,3\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_prepare_then_show_tells_what_is_there(run: Run, folder: Path) -> None:
    command = ("prepare", "graph", "synthetic", "--set", "nodes=500", "--set", "seed=3", "--out", "new/own.h5")
    code, printed, _ = run(*command)
    graph = read_archive("new/own.h5")
    assert code == 0
    assert printed == f"new/own.h5: 500 nodes, {graph.edges.shape[1]:,} edges, 10 classes; digest {graph.digest}\n"
    assert read_provenance("new/own.h5") == {
        "skeleton_cgl": __version__,
        "source": "synthetic",
        "options": {"nodes": 500, "seed": 3},
    }
    code, text, _ = run("show", "new/own.h5")
    assert code == 0
    assert text.startswith("new/own.h5: 500 nodes")
    assert "tasks        5 of classes: 0,1 | 2,3 | 4,5 | 6,7 | 8,9\n" in text
    assert "orders       120 of tasks, 113,400 of classes\n" in text
    assert "120 of domains by domain\n" in text
    assert "one of 5 periods, the calendar's\n" in text
    assert "source synthetic, nodes=500 seed=3\n" in text
    summary = json.loads(run("show", "new/own.h5", "--json", "--classes-per-task", 4)[1])
    assert summary["tasks"]["classes"] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert summary["tasks"]["class_orders"] == math.factorial(10) // (24 * 24 * 2)
    assert summary["digest"] == graph.digest
    assert summary["archive"] == "new/own.h5"
    assert [file.name for file in (folder / "new").iterdir()] == ["own.h5"]


def test_a_label_left_over_joins_the_task_before_and_orders_without_number_are_estimated(run: Run) -> None:
    shown = json.loads(run("show", "synthetic-labels", "--set", "labels=25", "--json")[1])
    assert shown["tasks"]["classes"][-1] == [22, 23, 24]
    assert shown["tasks"]["task_orders"] == math.factorial(12)
    possible = math.factorial(25) // (2**11 * 6)
    assert shown["tasks"]["class_orders"] == f"about 10^{math.log10(possible):.0f}"
    assert shown["tasks"]["periods"] is None
    assert shown["many_labels"]


def test_show_tells_graphs_from_skeletons_by_what_they_are(run: Run, folder: Path) -> None:
    skeletons.write_archive(random_source(), folder / "clips.h5")
    write_archive(random_graph(), folder / "graph.data")
    assert "clips.h5: 4 sequences" in run("show", "clips.h5")[1]
    assert "graph.data: 30 nodes" in run("show", "graph.data")[1]
    assert not graphs.is_graph("synthetic")
    assert "1,500 nodes" in run("show", "synthetic", "--graph")[1]
    assert "1,500 nodes" in run("show", "synthetic-labels")[1]
    content = bytearray((folder / "graph.data").read_bytes())
    content[-1] ^= 1
    (folder / "graph.data").write_bytes(content)
    code, _, errors = run("show", "graph.data")
    assert (code, errors) == (
        2,
        "error: graph.data: damaged (its bytes are not those that were written); prepare it again\n",
    )


def test_a_reader_of_ones_own_reads_files_with_its_parameters(run: Run, folder: Path) -> None:
    arguments = ("edges.csv", "--reader", "mine.py", "--set", "classes=3")
    code, printed, _ = run("prepare", "graph", *arguments, "--out", "mine.h5")
    assert code == 0
    assert "mine.h5: 4 nodes, 3 edges, 3 classes" in printed
    assert read_provenance("mine.h5") == {
        "skeleton_cgl": __version__,
        "source": "edges.csv",
        "reader": "mine.py",
        "options": {"classes": 3},
    }
    assert "mine: 4 nodes, 3 edges, 3 classes\n  edges        3, directed; 1 self-loops" in run("show", *arguments)[1]
    assert folder.joinpath("mine.h5").is_file()


@pytest.mark.usefixtures("folder")
def test_what_takes_long_is_told_while_it_lasts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("show", "edges.csv", "--reader", "mine.py", "--set", "seconds=0.2")
    assert run(*command)[2] == ""
    monkeypatch.setattr(graphs, "_SHOWN_AFTER_SECONDS", 0)
    assert "reading edges.csv: 00:00" in run(*command)[2]


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_a_picture_is_drawn(run: Run, folder: Path, suffix: str) -> None:
    assert run("show", "synthetic", "--graph", "--out", f"picture{suffix}")[0] == 0
    begin = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix]
    assert (folder / f"picture{suffix}").read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("prepare", "graph", "absent", "--out", "x.h5"), "absent: no such file"),
        (("prepare", "graph", "synthetic", "--out", "."), ".: a folder, expected the name of a file"),
        (("prepare", "graph", "synthetic", "--out", "x.h5", "--set", "node=3"), "did you mean 'nodes'?"),
        (("prepare", "graph", "synthetic", "--out", "x.h5", "--set", "nodes"), "--set nodes: expected FIELD=VALUE"),
        (("prepare", "graph", "edges.csv", "--out", "x.h5", "--reader", "none.py"), "none.py: no such file"),
        (("prepare", "graph", "edges.csv", "--out", "x.h5", "--reader", "nome"), "unknown graph-dataset 'nome'"),
        (
            ("prepare", "graph", "edges.csv", "--out", "x.h5", "--reader", "mine.py", "--set", "classes=9"),
            "edges.csv: labels: no node has 'c4'",
        ),
        (("show", "synthetic-labels", "--sequence", "1"), "--sequence: of skeletons alone"),
        (("show", "synthetic", "--graph", "--split", "class"), "--split: of skeletons alone"),
        (("show", "synthetic-label"), "nor a known data set; did you mean 'synthetic-labels'?"),
        (("show", "synthetic-labels", "--out", "x.gif"), "x.gif: a picture ends in .png, .pdf, .svg; found .gif"),
        (("show", "synthetic-labels", "--classes-per-task", "11"), "10 classes are fewer than one task of 11"),
    ],
)
def test_what_is_wrong_is_one_message_and_exit_code_2(
    run: Run, folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    before = sorted(folder.iterdir())
    code, printed, errors = run(*arguments)
    assert (code, printed) == (2, "")
    assert message in errors
    assert errors.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("command", [("prepare",), ("prepare", "graph"), ("show",)])
def test_help_has_examples_of_graphs(run: Run, command: tuple[str, ...]) -> None:
    code, text, _ = run(*command, "--help")
    assert code == 0
    assert f"Example: skeleton-cgl {' '.join(command)}" in text
    assert "graph" in text
