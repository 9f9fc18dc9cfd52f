"""Opening a graph by what a user calls it: files that one reader recognises, a reader by name, or one of their own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.datasets import graph_names, make_graph_source, open_graph
from skeleton_cgl.graphs.graph import make_graph
from skeleton_cgl.registry import GRAPH_DATASETS
from tests.graphs.planetoid_files import write_planetoid
from tests.shared_data import FOLDER, needs

OWN = '''
import numpy as np
from skeleton_cgl.graphs.graph import make_graph
from skeleton_cgl.graphs.source import GraphSource

class Ring(GraphSource):
    """A ring of nodes."""

    def __init__(self, nodes: int = 6) -> None:
        self.nodes = nodes

    def read(self):
        ends = np.arange(self.nodes)
        return make_graph("ring", np.stack([ends, (ends + 1) % self.nodes]), np.eye(self.nodes), ends % 2)
'''

FROM_FILE = OWN.replace(
    "nodes: int = 6) -> None:\n        self.nodes = nodes", "path) -> None:\n        self.path = path"
).replace(
    "ends = np.arange(self.nodes)", "self.nodes = int(self.path.read_text())\n        ends = np.arange(self.nodes)"
)


def npz(path: Path, **more: Any) -> Path:
    np.savez(path, edges=np.array([[0], [1]]), features=np.eye(2), labels=np.array([0, 1]), **more)
    return path


def test_files_are_read_by_the_only_reader_that_recognises_them(tmp_path: Path) -> None:
    planetoid = write_planetoid(tmp_path)
    assert open_graph(str(planetoid)).name == "Cora"
    plain = open_graph(planetoid, {"normalise": False, "dataset": "cora"})
    assert isinstance(plain.features.sum(), np.floating)
    assert plain.features.max() == 1
    own = npz(tmp_path / "own.npz")
    assert open_graph(own).digest == make_graph("", np.array([[0], [1]]), np.eye(2), np.array([0, 1])).digest
    assert open_graph(own, {"both_ways": True}).edges.shape == (2, 2)
    assert open_graph(own, {"name": "npz", "both_ways": True}).edges.shape == (2, 2)


def test_what_no_reader_or_several_recognise_asks_for_a_choice(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"in none of the forms that are read: .*csr-npz, csv, dgl, .*`reader: {name: …}`"
    ):
        open_graph(tmp_path)
    write_planetoid(tmp_path)
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    (tmp_path / "nodes.csv").write_text("id,label,x\na,0,1\nb,1,2\n")
    with pytest.raises(InputError, match=r"looks like csv, planetoid; `reader: {name: …}` of the scenario chooses one"):
        open_graph(tmp_path)
    assert len(open_graph(tmp_path, {"name": "csv"})) == 2
    assert len(open_graph(tmp_path, {"name": "planetoid"})) == 48


def test_one_file_of_a_form_is_enough_to_be_told_which_others_are_missing(tmp_path: Path) -> None:
    for first, missing in (
        ("edges.csv", r"nodes\.csv: no such file"),
        ("nodes.csv", r"edges\.csv: no such file"),
        ("ind.cora.graph", r"ind\.cora\.x: no such file or folder; published at github"),
        ("edges_undir.csv", r"features\.csv: no such file or folder; published at github"),
        ("facebook_edges.csv", r"facebook_target\.csv and facebook\.json are not all in it; published at snap"),
        ("reddit_data.npz", r"reddit_graph\.npz: no such file or folder; published at data"),
        ("large_twitch_edges.csv", r"large_twitch_features\.csv: no such file or folder; published at snap"),
    ):
        folder = tmp_path / first.partition(".")[0]
        folder.mkdir(exist_ok=True)
        (folder / first).write_text("")
        with pytest.raises(InputError, match=missing):
            open_graph(folder)
        (folder / first).unlink()


def test_a_folder_called_like_its_reader_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("planetoid").mkdir()
    write_planetoid(Path("planetoid"))
    assert open_graph("planetoid").name == "Cora"
    with pytest.raises(InputError, match=r"pcg: reads files; give their path"):
        open_graph("pcg")


def test_wrong_names_and_options_are_refused_with_the_nearest(tmp_path: Path) -> None:
    own = npz(tmp_path / "own.npz")
    for data, options, reason in (
        (own, {"both_way": True}, "'npz': unknown parameter 'both_way'; did you mean 'both_ways'"),
        (own, {"both_ways": "x"}, "'npz': both_ways: expected true or false"),
        (own, {"name": "npx"}, "unknown graph-dataset 'npx'; did you mean 'npz'"),
        (own, {"name": 3}, "reader: name: expected the name of a reader, found 3"),
        (tmp_path / "none.npz", {}, "none.npz: no such file or folder, and no known graph"),
        (tmp_path / "none", {"name": "pcg"}, "none: no such file or folder; published at github.com/Tianqi-py"),
        ("planetoid", {}, "planetoid: reads files; give their path as the data, and `reader: {name: planetoid}`"),
        ("planetoid", {"name": "npz"}, "planetoid: is a data set itself, but the reader 'npz' is to read it"),
        (own, {"path": "x"}, "'npz': unknown parameter 'path'; known: both_ways"),
    ):
        with pytest.raises(InputError, match=reason):
            open_graph(data, options)


def test_a_reader_of_ones_own_is_a_file_with_or_without_files_to_read(tmp_path: Path) -> None:
    (tmp_path / "ring.py").write_text(OWN)
    assert len(open_graph(str(tmp_path / "ring.py"))) == 6
    assert len(open_graph(str(tmp_path / "ring.py"), {"nodes": 8})) == 8
    with pytest.raises(InputError, match="unknown parameter 'node'; did you mean 'nodes'"):
        open_graph(str(tmp_path / "ring.py"), {"node": 8})
    (tmp_path / "size.txt").write_text("4")
    with pytest.raises(InputError, match=r"takes no files, found .*size\.txt"):
        open_graph(tmp_path / "size.txt", {"name": str(tmp_path / "ring.py")})
    (tmp_path / "ring_of.py").write_text(FROM_FILE)
    assert len(open_graph(tmp_path / "size.txt", {"name": str(tmp_path / "ring_of.py")})) == 4
    (tmp_path / "size.txt").write_text("many")
    with pytest.raises(InputError, match=r"ValueError: invalid literal.*ring_of\.py, line 13, in `read` of Ring"):
        open_graph(tmp_path / "size.txt", {"name": str(tmp_path / "ring_of.py")})
    (tmp_path / "ring.py").write_text(OWN.replace("return make_graph", "return np.array"))
    with pytest.raises(InputError, match=r"ring\.py.*TypeError"):
        open_graph(str(tmp_path / "ring.py"))
    (tmp_path / "ring.py").write_text(OWN.replace("return make_graph(", "return (0,"))
    with pytest.raises(InputError, match="read: expected a Graph, LinkSet or GraphSet, found tuple"):
        open_graph(str(tmp_path / "ring.py"))


def test_sets_without_files_are_listed_and_every_reader_of_files_recognises_nothing_in_an_empty_folder(
    tmp_path: Path,
) -> None:
    files = set(GRAPH_DATASETS.names()) - set(graph_names())
    assert files >= {"csr-npz", "csv", "dgl", "graphml", "musae-facebook", "musae-twitch", "npz", "ogb", "pcg"}
    assert files >= {"planetoid", "pyg", "reddit", "roman-empire", "twitch-gamers"}
    (tmp_path / "empty").touch()
    for name in files:
        for path in (tmp_path, tmp_path / "empty", tmp_path / "none"):
            assert not GRAPH_DATASETS.find(name).recognises(path)


@needs("twitch")
@pytest.mark.parametrize(
    ("folder", "reader"),
    [("twitch", "MusaeTwitch"), ("facebook", "MusaeFacebook"), ("pcg", "Pcg"), ("planetoid", "Planetoid")],
)
def test_real_folders_are_recognised(folder: str, reader: str) -> None:
    assert type(make_graph_source(FOLDER / folder)).__name__ == reader


def test_an_archive_is_read_without_options(tmp_path: Path) -> None:
    archive = pytest.importorskip("skeleton_cgl.graphs.archive")
    graph = open_graph(npz(tmp_path / "own.npz"))
    archive.write_archive(graph, tmp_path / "own.h5")
    assert open_graph(tmp_path / "own.h5").digest == graph.digest
    with pytest.raises(InputError, match="an archive is read without options, found both_ways"):
        open_graph(tmp_path / "own.h5", {"both_ways": True})
