import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.skeletons import UCLA, Archive
from skeleton_cgl.skeletons.sources.ucla import ACTIONS
from tests.conftest import Run
from tests.skeletons.sources import random_recording
from tests.skeletons.test_ucla import write_json


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for label, action in enumerate(ACTIONS, start=1):
        for subject in (1, 2):
            write_json(folder, f"a{action:02}_s{subject:02}_e00_v03", label)
    return folder


def test_prepare_then_show_tells_what_is_there(run: Run, recordings: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "ucla.h5"
    code, printed, progress = run("prepare", "ucla", recordings, "--out", out, "--frames", 30, "--stream", "bone")
    assert code == 0
    assert "20 sequences, 10 classes, 30 frames; 0 set aside" in printed
    assert "20/20" in progress
    code, text, _ = run("show", out, "--verify")
    assert code == 0
    assert re.search(r"views +3\n", text)
    assert re.search(r"subjects +1–2\n", text)
    code, text, _ = run("show", out, "--json")
    summary = json.loads(text)
    with Archive.open(out) as archive:
        assert summary["digest"] == archive.digest
        assert archive.clips().shape == (20, 1, 30, 20, 3)
    assert [entry["sequences"] for entry in summary["classes"]] == [2] * 10
    assert summary["preparation"]["stream"] == "bone"
    assert summary["recorded_frames"] == {"shortest": 5, "median": 5, "longest": 5}


def test_a_bad_recording_stops_the_run_unless_set_aside(run: Run, recordings: Path, tmp_path: Path) -> None:
    (recordings / "a01_s05_e00_v01.json").write_text("{")
    out = tmp_path / "ucla.h5"
    code, printed, errors = run("prepare", "ucla", recordings, "--out", out)
    assert (code, printed) == (2, "")
    assert "error: a01_s05_e00_v01.json: not valid JSON" in errors
    assert not out.exists()
    code, printed, errors = run("prepare", "ucla", recordings, "--out", out, "--skip-bad")
    assert code == 0
    assert "1 set aside" in printed
    assert "set aside: a01_s05_e00_v01.json: not valid JSON" in errors
    assert "a01_s05_e00_v01.json: not valid JSON" in run("show", out)[1]


def test_a_users_own_set_needs_an_npz_and_a_layout_file(run: Run, tmp_path: Path) -> None:
    sequences = np.concatenate([random_recording(seed, 12, 0).positions for seed in range(4)])
    np.savez(tmp_path / "own.npz", sequences=sequences, labels=np.array(["wave", "nod", "wave", "nod"]))
    bones = "".join(f"  - [{joint}, {parent}]\n" for joint, parent in UCLA.bones)
    (tmp_path / "body.yaml").write_text(f"name: body\njoints: {json.dumps(UCLA.joints)}\nroot: 2\nbones:\n{bones}")
    out = tmp_path / "own.h5"
    command = ("prepare", "custom", tmp_path / "own.npz", "--layout", tmp_path / "body.yaml", "--out", out)
    code, printed, _ = run(*command, "--frames", 10, "--centre", "head", "--scale", "none")
    assert code == 0
    assert "4 sequences, 2 classes, 10 frames" in printed
    with Archive.open(out) as archive:
        assert archive.classes == ("nod", "wave")
        assert archive.labels.tolist() == [1, 0, 1, 0]
        assert not archive.clips()[:, 0, 0, 3].any()
    code, _, errors = run(*command, "--centre", "haed")
    assert code == 2
    assert "layout 'body' has no joint 'haed'; did you mean 'head'" in errors


def test_pictures_are_drawn_of_all_classes_or_one_sequence(run: Run, recordings: Path, tmp_path: Path) -> None:
    out = tmp_path / "ucla.h5"
    run("prepare", "ucla", recordings, "--out", out)
    assert run("show", out, "--out", tmp_path / "all.png")[0] == 0
    assert run("show", out, "--sequence", "a04_s02_e00_v03", "--out", tmp_path / "one.gif")[0] == 0
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "one.gif").read_bytes().startswith(b"GIF89a")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "absent.h5"), "absent.h5: no such file"),
        (("show", "synthetik"), "neither an archive nor a known data set; did you mean 'synthetic'"),
        (("show", "synthetic", "--sequence", "1"), "say where with --out"),
        (("prepare", "ucla", "absent", "--out", "x.h5"), "absent: no such file or folder"),
        (("prepare", "ntu", "absent", "--out", "x.h5", "--classes", "1-x"), "--classes: expected numbers such as"),
        (("prepare", "ntu", "absent", "--out", "x.h5"), "absent: no such file or folder"),
        (("prepare", "uclla", "--out", "x.h5"), "unknown dataset 'uclla'; did you mean 'ucla'?"),
        (("prepare", "absent.py", "--out", "x.h5"), "dataset absent.py: no such file"),
        (("prepare", "ntu:NtuSource", "absent", "--out", "x.h5"), "absent: no such file or folder"),
        (("prepare", "synthetic:X", "--out", "x.h5", "--set", "seed"), "--set seed: expected FIELD=VALUE"),
        (("prepare", "custom", "absent.npz", "--layout", "absent.yaml", "--out", "x.h5"), "absent.yaml: cannot be"),
    ],
)
def test_what_is_wrong_is_one_message_and_exit_code_2(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, errors = run(*arguments)
    assert code == 2
    assert f"error: {message}" in errors or message in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("reader", [(), ("ucla",), ("ntu",), ("custom",), ("synthetic",), ("my_reader.py",)])
def test_help_has_examples(run: Run, reader: tuple[str, ...]) -> None:
    code, text, _ = run("prepare", *reader, "--help")
    assert code == 0
    assert "Example: skeleton-cgl prepare" in text
    assert " ".join(("skeleton-cgl prepare", *reader, "[OPTIONS]")) in text


def test_help_tells_how_to_show_an_archive(run: Run) -> None:
    code, text, _ = run("show", "--help")
    assert code == 0
    assert "Example: skeleton-cgl show" in text


HELP = (
    "from skeleton_cgl import cli\n"
    "sys.argv = ['skeleton-cgl', 'prepare', 'ucla', '--help']\n"
    "try: cli.main()\n"
    "except SystemExit: pass"
)
READING = (
    "from skeleton_cgl.analysis import report, results, tables\n"
    "from skeleton_cgl.cli import exchange, showing\n"
    "from skeleton_cgl.engine import exchange, status, store"
)


@pytest.mark.parametrize(
    ("script", "heavy"),
    [(HELP, {"torch", "dgl", "h5py", "matplotlib"}), (READING, {"torch", "dgl", "h5py", "dask"})],
    ids=["help", "reading a store"],
)
def test_what_needs_no_heavy_import_does_not_wait_for_one(script: str, heavy: set[str]) -> None:
    check = f"import sys\n{script}\nsys.exit(repr({heavy} & set(sys.modules)) if {heavy} & set(sys.modules) else 0)"
    ran = subprocess.run([sys.executable, "-c", check], check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_identical_recordings_are_told_and_left_out_on_request_and_the_overlap_of_a_split_is_printed(
    run: Run, tmp_path: Path
) -> None:
    sequences = np.random.default_rng(0).normal(size=(30, 4, 2, 3))
    sequences[7] = sequences[3]
    layout = tmp_path / "stick.yaml"
    layout.write_text("{name: stick, joints: [hip, head], root: hip, bones: [[head, hip]]}")
    np.savez(tmp_path / "a.npz", sequences=sequences, labels=["a", "b"] * 15, subjects=np.arange(30) // 4)
    common = ("prepare", "custom", tmp_path / "a.npz", "--layout", layout, "--out")
    _, kept, _ = run(*common, tmp_path / "kept.h5")
    assert "1 of 30 sequences are identical to an earlier one; --duplicates first keeps one of each" in kept
    _, first, _ = run(*common, tmp_path / "first.h5", "--duplicates", "first")
    assert "first.h5: 29 sequences" in first
    assert "1 of 30 sequences were identical to an earlier one and are left out" in first
    _, shown, _ = run("show", tmp_path / "kept.h5", "--split", "auto")
    assert "split by class: 22 training, 4 validation, 4 test clips" in shown
    assert "test: of 4 clips, " in shown
    code, _, error = run("show", tmp_path / "kept.h5", "--split", "performance")
    assert code == 2
    assert "the data do not tell the performance of every sample" in error
