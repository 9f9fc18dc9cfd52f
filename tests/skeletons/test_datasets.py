"""Data sets by what a user calls them; the reader of data/README.md stands for one of a user's own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import DATASETS
from skeleton_cgl.skeletons import Archive, Source
from skeleton_cgl.skeletons.datasets import make_source, open_dataset
from tests.conftest import Run

ROOT = Path(__file__).parents[2]
WITHOUT_FILES = """
import numpy as np
from skeleton_cgl.skeletons import UCLA, Preparation, Recording, Source

class Waves(Source):
    layout = UCLA
    classes = ("slow", "fast")
    preparation = Preparation(frames=8, centre=1, scale="axes", fit="resample", stream="bone")

    def __init__(self, each: int = 3):
        self.each = each

    def __len__(self):
        return 2 * self.each

    def recordings(self):
        for number in range(len(self)):
            positions = np.random.default_rng(number).normal(size=(1, 10, 20, 3))
            yield Recording(f"wave {number}", positions, number % 2)
"""


@pytest.fixture
def gestures(tmp_path: Path) -> Path:
    """The reader that data/README.md shows, in a file."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "data" / "README.md").read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "(Source)" in block]
    path = tmp_path / "arm_gestures.py"
    path.write_text(code)
    return path


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for number in range(4):
        positions = np.random.default_rng(number).normal(size=(5 + number, 9))
        np.savetxt(folder / f"{('nod', 'wave')[number % 2]}_{number}.csv", positions, delimiter=",")
    return folder


@pytest.fixture
def waves(tmp_path: Path) -> Path:
    path = tmp_path / "waves.py"
    path.write_text(WITHOUT_FILES)
    return path


def test_every_built_in_data_set_is_known_by_the_name_of_its_module() -> None:
    built_in = [name for name in DATASETS.names() if DATASETS.is_built_in(name)]
    assert built_in == ["custom", "ntu", "synthetic", "ucla"]
    assert all(issubclass(DATASETS.find(name), Source) for name in built_in)


def test_a_reader_in_a_file_prepares_an_archive(run: Run, gestures: Path, recordings: Path, tmp_path: Path) -> None:
    out = tmp_path / "arm.h5"
    code, printed, _ = run("prepare", gestures, recordings, "--out", out, "--frames", 6)
    assert code == 0
    assert "4 sequences, 2 classes, 6 frames; 0 set aside" in printed
    with open_dataset(out) as archive:
        assert archive.classes == ("nod", "wave")
        assert archive.lengths.tolist() == [5, 7, 6, 8]
        assert archive.clips().shape == (4, 1, 6, 3, 3)
        assert archive.provenance["source"] == "recordings"
    (recordings / "nod_9.csv").write_text("1,2\n")
    code, _, errors = run("prepare", gestures, recordings, "--out", out)
    assert code == 2
    assert "error: nod_9.csv: " in errors
    assert "1 set aside" in run("prepare", gestures, recordings, "--out", out, "--skip-bad")[1]


def test_a_reader_that_needs_no_file_is_opened_as_it_is(run: Run, waves: Path, tmp_path: Path) -> None:
    out = tmp_path / "waves.h5"
    assert run("prepare", waves, "--out", out)[0] == 0
    with open_dataset(waves) as at_once, Archive.open(out) as prepared:
        assert len(at_once) == 6
        assert at_once.digest == prepared.digest
        assert prepared.preparation.stream == "bone"
    assert "6 sequences, 2 classes" in run("show", waves)[1]
    assert run("prepare", waves, "--out", out, "--set", "each=2")[0] == 0
    with Archive.open(out) as prepared:
        assert len(prepared) == 4


def test_a_reader_is_found_by_module_and_class(waves: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(waves.parent))
    with open_dataset("waves:Waves") as archive:
        assert archive.classes == ("slow", "fast")


def test_an_installed_package_adds_readers_by_name(waves: Path, tmp_path: Path) -> None:
    about = tmp_path / "waves-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: waves\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[skeleton_cgl.datasets]\nsea-waves = waves:Waves\n")
    script = (
        "from skeleton_cgl.skeletons.datasets import open_dataset\n"
        "with open_dataset('sea-waves') as archive: print(len(archive))\n"
        "from skeleton_cgl.cli import main; main()"
    )
    paths = os.pathsep.join([str(waves.parent), str(ROOT)])
    ran = subprocess.run(
        [sys.executable, "-c", script, "prepare", "sea-waves", "--out", str(tmp_path / "sea.h5")],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith("6\n")
    assert "6 sequences, 2 classes" in ran.stdout


def test_a_known_name_comes_before_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ucla").write_text("a file")
    with pytest.raises(InputError, match="is read from files"):
        open_dataset("ucla")
    with pytest.raises(InputError, match="damaged, or not an archive"):
        open_dataset("./ucla")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ucla", "dataset 'ucla': is read from files.*skeleton-cgl prepare ucla SOURCE --out"),
        ("synthetik", "synthetik: neither an archive nor a known data set; did you mean 'synthetic'"),
        ("absent.py", r"dataset absent\.py: no such file"),
        ("absent.h5", r"absent\.h5: no such file; make it with"),
        ("absent:Reader", "dataset 'absent:Reader': No module named 'absent'"),
        ("pathlib:Path", "dataset 'pathlib:Path': expected a class derived from Source"),
    ],
)
def test_what_cannot_be_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        open_dataset(name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("class Waves(Source)", "class Waves", "expected one class derived from Source, found none"),
        ("    layout = UCLA\n", "", "layout: expected a JointLayout, found none"),
        ('("slow", "fast")', '["slow", "fast"]', "classes: expected a tuple, found list"),
        ("def recordings", "def recording", "abstract method '?recordings"),
        ("self.each = each", "raise ValueError('no sea')", "no sea"),
        ("import numpy", "import nonpy", "cannot be imported: ModuleNotFoundError: No module named 'nonpy'"),
    ],
)
def test_a_reader_with_something_missing_is_refused(waves: Path, old: str, new: str, message: str) -> None:
    assert old in WITHOUT_FILES
    waves.write_text(WITHOUT_FILES.replace(old, new))
    with pytest.raises(InputError, match=message):
        open_dataset(waves)


def test_files_and_parameters_must_fit_the_reader(waves: Path, gestures: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="takes no files, found"):
        make_source(str(waves), tmp_path)
    with pytest.raises(InputError, match="unknown parameter 'eahc'; did you mean 'each'"):
        make_source(str(waves), parameters={"eahc": 2})
    with pytest.raises(InputError, match=r"arm_gestures\.py': is read from files"):
        make_source(str(gestures))
