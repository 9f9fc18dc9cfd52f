import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skeleton_cgl import skeletons
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.archive import is_archive, read_archive, read_provenance, write_archive
from skeleton_cgl.graphs.graph import Groups
from skeleton_cgl.reading.seal import SIZE, seal
from skeleton_cgl.version import __version__
from tests.graphs.graph_checks import assert_same
from tests.graphs.made_graphs import random_graph
from tests.skeletons.sources import random_source

OF_VERSION_1 = Path(__file__).parent.parent / "golden" / "graph_version_1.h5.gz"
"""What version 1 wrote of `random_graph(7, nodes=12, sparse=True)`."""
DAMAGE = r"graph\.h5: damaged.*; prepare it again"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "graph.h5"
    write_archive(random_graph(), path)
    return path


@settings(max_examples=25)
@given(
    st.integers(0, 2**32),
    st.integers(4, 60),
    st.booleans(),
    st.booleans(),
    st.lists(st.text(), max_size=3, unique=True),
    st.booleans(),
    st.booleans(),
)
def test_an_archive_gives_back_the_graph_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    nodes: int,
    sparse: bool,
    many_labels: bool,
    groups: list[str],
    dated: bool,
    published: bool,
) -> None:
    graph = random_graph(seed, nodes, 4, sparse, many_labels, tuple(groups), dated, published)
    path = tmp_path_factory.mktemp("graphs") / "graph.h5"
    write_archive(graph, path)
    assert_same(read_archive(path), graph)


def test_an_archive_of_the_first_version_is_still_read(tmp_path: Path) -> None:
    (tmp_path / "old.h5").write_bytes(gzip.decompress(OF_VERSION_1.read_bytes()))
    assert_same(read_archive(tmp_path / "old.h5"), random_graph(7, nodes=12, sparse=True))
    assert read_provenance(tmp_path / "old.h5")["source"] == "made up"


def test_many_long_names_and_odd_letters_survive(tmp_path: Path) -> None:
    graph = random_graph()
    names = tuple(f"{number} \0 / \ud800 {'x' * 50}" for number in range(3000))
    odd = replace(graph, name="a/b\0", classes=("é", "", "/", "\n"), groups={"x/y": Groups(graph.labels, names)})
    write_archive(odd, tmp_path / "graph.h5")
    found = read_archive(tmp_path / "graph.h5")
    assert (found.name, found.classes, found.groups["x/y"].names) == (odd.name, odd.classes, names)


def test_an_archive_tells_where_its_graph_came_from(tmp_path: Path) -> None:
    told = {"source": "planetoid", "options": {"name": "cora", "seeds": [1, 2]}}
    write_archive(random_graph(), tmp_path / "graph.h5", told)
    assert read_provenance(tmp_path / "graph.h5") == {"skeleton_cgl": __version__, **told}


def test_an_archive_is_written_whole_or_not_at_all(written: Path) -> None:
    before = written.read_bytes()
    with pytest.raises(TypeError):
        write_archive(random_graph(1), written, {"source": object()})
    assert written.read_bytes() == before
    assert [file.name for file in written.parent.iterdir()] == ["graph.h5"]


@pytest.mark.parametrize("part", [0, 0.02, 0.3, 0.7, 0.999])
def test_a_truncated_archive_is_recognised(written: Path, part: float) -> None:
    content = written.read_bytes()
    written.write_bytes(content[: int(len(content) * part)])
    assert is_archive(written)
    with pytest.raises(InputError, match=DAMAGE):
        read_archive(written)


def test_no_bit_can_be_flipped_unnoticed(written: Path) -> None:
    content = written.read_bytes()
    places = [*range(0, SIZE + 16, 8), *np.random.default_rng(0).integers(SIZE, len(content), 200).tolist()]
    for turn, place in enumerate(places):
        flipped = bytearray(content)
        flipped[place] ^= 1 << turn % 8
        written.write_bytes(flipped)
        with pytest.raises(InputError, match=DAMAGE):
            read_archive(written)
    written.write_bytes(content)
    assert_same(read_archive(written), random_graph())


@contextmanager
def changed(path: Path) -> Iterator[h5py.File]:
    """Open an archive to be changed from outside; afterwards it has a seal that fits."""
    with h5py.File(path, "r+") as file:
        yield file
    seal(path)


@pytest.mark.parametrize("field", ["edges", "features", "labels", "groups/0", "times", "split"])
def test_a_number_changed_behind_the_seal_is_told_by_the_digest(written: Path, field: str) -> None:
    with changed(written) as file:
        array = file[field][:]
        array.flat[0] += 1
        file[field][:] = array
    with pytest.raises(InputError, match=r"graph\.h5: damaged.*digest"):
        read_archive(written)


@pytest.mark.parametrize("field", ["edges", "features", "labels", "groups/0", "told"])
def test_an_archive_that_lacks_a_field_is_refused(written: Path, field: str) -> None:
    with changed(written) as file:
        del file[field]
    with pytest.raises(InputError, match=DAMAGE):
        read_archive(written)


def test_one_of_another_version_or_without_a_seal_is_refused_with_what_to_do(written: Path) -> None:
    with changed(written) as file:
        file.attrs["version"] = 3
    refusal = r"graph\.h5: graph archive version 3, this release reads 1 and 2; prepare it again"
    with pytest.raises(InputError, match=refusal):
        read_archive(written)
    write_archive(random_graph(), written)
    written.write_bytes(written.read_bytes()[SIZE:])
    with pytest.raises(InputError, match="it has no seal"):
        read_archive(written)


def test_each_kind_of_archive_is_refused_as_the_other_and_called_what_it_is(tmp_path: Path, written: Path) -> None:
    skeletons.write_archive(random_source(), tmp_path / "clips.h5")
    with pytest.raises(InputError, match=r"clips\.h5: an archive of skeletons, expected an archive of a graph$"):
        read_archive(tmp_path / "clips.h5")
    with pytest.raises(InputError, match=r"graph\.h5: an archive of a graph, expected an archive of skeletons$"):
        skeletons.Archive.open(written)


def test_other_files_are_not_archives(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["edges"] = np.zeros(3)
    with pytest.raises(InputError, match=r"other\.h5: an HDF5 file, but not an archive of skeleton_cgl"):
        read_archive(tmp_path / "other.h5")
    (tmp_path / "edges.csv").write_text("0,1\n")
    assert not is_archive(tmp_path / "edges.csv")
    with pytest.raises(InputError, match=r"edges\.csv: damaged, or not an archive"):
        read_archive(tmp_path / "edges.csv")
    assert not is_archive(tmp_path)
    with pytest.raises(InputError, match=r"absent\.h5: no such file; make it with"):
        read_archive(tmp_path / "absent.h5")
