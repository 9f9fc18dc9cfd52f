import json
import math
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.graphs.archive import read_archive, read_provenance, write_archive
from skeleton_cgl.version import __version__
from tests.conftest import Run
from tests.graphs.graph_checks import assert_same
from tests.graphs.made_graphs import random_graph
from tests.graphs.made_sets import random_graph_set, random_link_set

READER = """
from pathlib import Path
import numpy as np
from skeleton_cgl.graphs.graph_set import make_graph_set
from skeleton_cgl.graphs.source import GraphSource

class Paths(GraphSource):
    def __init__(self, path: Path, skip_bad: bool = False) -> None:
        self.path, self.skip_bad = path, skip_bad

    def read(self):
        lengths = [int(line) for line in self.path.read_text().split() if line.isdigit() or not self.skip_bad]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        nodes = np.setdiff1d(np.arange(starts[-1]), starts[1:] - 1)
        notes = ("1 of them was set aside",) if self.skip_bad else ()
        features, labels = np.ones((starts[-1], 1)), np.array(lengths) % 2
        return make_graph_set("paths", starts, np.stack([nodes, nodes + 1]), features, labels, notes=notes)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a reader of graphs of a user's own and a file for it, in which one line is bad."""
    (tmp_path / "paths.py").write_text(READER)
    (tmp_path / "lengths.txt").write_text("3\n4\nfive\n1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_what_is_bad_is_set_aside_on_request_and_noted(run: Run) -> None:
    command = ("prepare", "graph", "lengths.txt", "--reader", "paths.py", "--out", "paths.h5")
    code, printed, errors = run(*command)
    assert (code, printed) == (2, "")
    assert "five" in errors
    code, printed, _ = run(*command, "--skip-bad")
    digest = read_archive("paths.h5").digest
    assert code == 0
    assert printed == (
        f"paths.h5: 3 graphs, 2.7 nodes on average, 2 classes; digest {digest}\n1 of them was set aside\n"
    )
    assert read_provenance("paths.h5") == {
        "skeleton_cgl": __version__,
        "source": "lengths.txt",
        "reader": "paths.py",
        "options": {"skip_bad": True},
    }
    assert "  note         1 of them was set aside\n" in run("show", "paths.h5")[1]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (("synthetic",), "--skip-bad: the reader synthetic has no option skip_bad: it sets nothing aside"),
        (("tables",), "--skip-bad: the reader csv has no option skip_bad"),
        (("graph.h5",), "--skip-bad: graph.h5 is an archive, of which all is read"),
    ],
)
def test_what_sets_nothing_aside_says_so(run: Run, folder: Path, source: tuple[str, ...], message: str) -> None:
    write_archive(random_graph(), folder / "graph.h5")
    _write_tables(folder / "tables")
    code, printed, errors = run("prepare", "graph", *source, "--skip-bad", "--out", "new.h5")
    assert (code, printed) == (2, "")
    assert message in errors
    assert not (folder / "new.h5").exists()


def test_the_reader_of_a_folder_is_told(run: Run, folder: Path) -> None:
    _write_tables(folder / "tables")
    printed = run("prepare", "graph", "tables", "--out", "new.h5")[1]
    assert printed.endswith("\ntables: read as csv; --reader chooses another form\n")
    assert read_provenance("new.h5")["reader"] == "csv"
    chosen = run("prepare", "graph", "tables", "--reader", "csv", "--out", "new.h5")[1]
    assert "read as" not in chosen


def test_links_are_shown_with_their_tasks_and_orders(run: Run, folder: Path) -> None:
    links = random_link_set(classes=5)
    write_archive(links, folder / "links.h5")
    code, text, _ = run("show", "links.h5", "--out", "links.png")
    assert code == 0
    assert text.startswith("links.h5: 20 nodes, 40 links, 5 classes\n")
    assert "tasks        3 of classes: 0,1 | 2,3 | 4\n" in text
    assert f"orders       6 of tasks, {math.factorial(5) // 4} of classes\n" in text
    assert "6 of domains by market\n" in text
    assert (folder / "links.png").read_bytes().startswith(b"\x89PNG")
    shown = json.loads(run("show", "links.h5", "--json")[1])
    assert (shown["item"], shown["digest"]) == ("link", links.digest)
    assert shown["tasks"]["periods"] == len(np.unique(links.times))


def test_links_that_are_all_alike_have_orders_of_domains_alone(run: Run, folder: Path) -> None:
    (folder / "alike.py").write_text(
        "import numpy as np\n"
        "from skeleton_cgl.graphs.items import Groups\n"
        "from skeleton_cgl.graphs.link_set import make_link_set\n"
        "from skeleton_cgl.graphs.source import GraphSource\n"
        "class Alike(GraphSource):\n"
        "    def read(self):\n"
        "        groups = {'type': Groups(np.array([0, 1]), ('a', 'b'))}\n"
        "        return make_link_set('alike', 3, np.array([[0, 1], [1, 2]]), False, groups=groups)\n"
    )
    code, text, _ = run("show", "alike.py")
    assert code == 0
    assert "tasks" not in text
    assert "  orders       2 of domains by type\n" in text


def test_each_label_of_graphs_is_a_task(run: Run, folder: Path) -> None:
    graphs = random_graph_set(many_labels=True, classes=4)
    write_archive(graphs, folder / "graphs.h5")
    code, text, _ = run("show", "graphs.h5", "--out", "graphs.svg")
    assert code == 0
    assert "tasks        4 of labels: 0 | 1 | 2 | 3\n" in text
    assert "positive  negative   missing\n" in text
    assert (folder / "graphs.svg").is_file()
    shown = json.loads(run("show", "graphs.h5", "--json", "--classes-per-task", 2)[1])
    assert shown["tasks"]["classes"] == [[0, 1], [2, 3]]
    assert shown["item"] == "graph"


@pytest.mark.usefixtures("folder")
def test_an_archive_can_be_prepared_again(run: Run, folder: Path) -> None:
    graphs = random_graph_set()
    write_archive(graphs, folder / "graphs.h5")
    assert run("prepare", "graph", "graphs.h5", "--out", "again.h5")[0] == 0
    assert_same(read_archive("again.h5"), graphs)


def _write_tables(folder: Path) -> None:
    folder.mkdir()
    (folder / "edges.csv").write_text("source,target\na,b\n")
    (folder / "nodes.csv").write_text("id,label,x\na,0,1\nb,1,2\n")
