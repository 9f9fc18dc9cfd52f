"""Inputs that mistakes and malice make: each is refused in one line that names file or field, none ends in a traceback.

Nothing is learned here: a study is planned at most (`--dry-run` would time some epochs), which is where it is refused.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skeleton_cgl import Study
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import FIGURES
from tests.conftest import Run
from tests.engine.studies import small_archive

DIGITS = "9" * 5000
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 9)
)
SCENARIO = "scenario: {data: DATA, preparation: {frames: 8}}\n"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_archive(tmp_path_factory.mktemp("refusals"))


def refused(path: Path, text: str, archive: Path) -> str:
    """Return the one line a study file of this text is refused with, read or planned; DATA in it is the archive."""
    path.write_text(text.replace("DATA", str(archive)))
    with pytest.raises(InputError) as refusal:
        make_plan(Study.from_file(path))
    (line,) = str(refusal.value).splitlines()
    assert len(line) < 1000
    return line


def test_no_empty_list_of_what_is_known_is_shown() -> None:
    with pytest.raises(InputError, match=r"figure 'sensitivity': unknown parameter 'bins'; there are none$"):
        FIGURES.make("sensitivity", {"bins": 3})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("seed: 2024-13-45", "x.yaml: field 'seed': Input should be a valid integer"),
        ("seed: !!int abc", "x.yaml: line 1: field 'seed': tag !!int is not read"),
        ("seed: !!python/object/apply:os.system [ls]", "tag !!python/object/apply:os.system is not read"),
        (f"seed: {DIGITS}", "x.yaml: line 1: field 'seed': a number of 5000 digits"),
        (f"backbone: {{name: gcn, width: {DIGITS}}}", "line 1: field 'backbone.width': a number of 5000 digits"),
        (f"seed: '{DIGITS}'", "x.yaml: field 'seed'"),
        (f"sweep: {'[' * 5000}", "deeper than 30 levels"),
        (f"sweep: {'{a: ' * 5000}", "deeper than 30 levels"),
        (BOMB, "x.yaml: line 6: field 'a5.1': more than 300,000 values"),
        ("backbone: &a {name: gcn, width: *a}", "field 'backbone.width': alias *a names no value that ends before it"),
        ("sweep: {backbone.width: &a [*a]}", "alias *a names no value that ends before it"),
        ("sweep:\n  scenario: [&a {data: synthetic}, *a]", "field 'sweep': 'scenario': give at least one value"),
        ("a: {<<: {b: 1}}", "`<<` is not read"),
        ("seed: 1\nseed: 2", "x.yaml: line 2: key 'seed' is given twice"),
        ("? [a]\n: 1", "x.yaml: line 1: a key is a list or map"),
        ("seed: 1\n---\nseed: 2", "x.yaml: line 2: a second document begins"),
        ('name: "a\\0b"', "x.yaml: line 1: field 'name': 'a\\x00b' has a control character"),
        ('name: "\\ud800"', "has a control character"),
        ('name: "\\U99999999"', "x.yaml: not valid YAML"),
        ("training: {learning_rate: .nan}", "field 'training.learning_rate': .nan is no number"),
        ("training: {learning_rate: .inf}", "field 'training.learning_rate': Input should be a finite number"),
        ("training: {learning_rate: 1e400}", "field 'training.learning_rate': 1e400 is beyond the largest number"),
        (
            f"training: {{epochs: 1{'0' * 30}}}",
            "field 'training.epochs': 1000000000000000000000000000000 is beyond 64 bits",
        ),
        ("training: {epochs: yes}", "field 'training': epochs: expected a number, found true"),
        ("training: {patience: false}", "field 'training': patience: expected a number, found false"),
        ("training: {plateau: {factor: true}}", "field 'training.plateau': factor: expected a number, found true"),
        ("repeats: on", "repeats: expected a number, found true"),
        ("scenario: {data: DATA, classes_per_task: yes}", "classes_per_task: expected a number, found true"),
        (
            f"{SCENARIO}methods: [{{name: ridge, projection: 1000000}}]",
            "projection must be at most 32768, found 1000000",
        ),
        ("training: {epochs: 1000000000}", "field 'training.epochs': Input should be less than or equal to 1000000"),
        (f"repeats: 1{'0' * 30}", "x.yaml: line 1: field 'repeats'"),
        ("repeats: 1000000000", "x.yaml: field 'repeats': Input should be less than"),
        ("noise_floor: 1000000000", "x.yaml: field 'noise_floor"),
        ("scenario: {kind: [x]}", "x.yaml: field 'scenario': scenario: kind: expected a name, found ['x']"),
        ('scenario: {kind: "a:b:c"}', "x.yaml: field 'scenario': scenario 'a:b:c'"),
        (
            "scenario: {data: DATA, preparation: {frames: 1000000000}}",
            "scenario: preparation: field 'frames': Input should be less",
        ),
        ("sweep: {backbone.width: [.nan]}", ".nan is no number"),
        (f"sweep: {{training.{'x' * 200}.{'.'.join('a' * 40)}: [1]}}", "deeper than 30 levels"),
        (
            "sweep: {" + ", ".join(f"training.f{each}: [{', '.join(map(str, range(60)))}]" for each in range(4)) + "}",
            "x.yaml: field 'sweep': 12,960,000 combinations, expected at most 1,000",
        ),
        (f"{SCENARIO}orders: {{tasks: 100000000}}", "orders: tasks"),
        ("orders: {tasks: many}", "x.yaml: field 'orders.tasks': expected all, default or a number, found 'many'"),
        ("orders: {tasks: 1.5}", "x.yaml: field 'orders.tasks': expected all, default or a number, found 1.5"),
        ("", "x.yaml: expected fields (`name: value`), found nothing"),
        (f"{SCENARIO}orders: {{classes: 100000}}", "orders: classes"),
        ("include: .", "cannot be read"),
        ('include: "a\\tb"', "cannot be read"),
        (
            f"{SCENARIO}backbone: {{name: gcn, depth: 1000000}}",
            "backbone 'gcn': depth must be at most 256, found 1000000",
        ),
        (f"{SCENARIO}backbone: {{name: stgcn, depth: 1000000}}", "backbone 'stgcn': depth must be at most 256"),
        (f"{SCENARIO}backbone: {{name: gcn, width: 1000000000}}", "backbone 'gcn': width must be at most 8192"),
        (f"{SCENARIO}backbone: {{name: gcn, width: [8]}}", "backbone 'gcn': width must be a whole number, found [8]"),
        (f"{SCENARIO}backbone: {{name: stgcn, kernel: 1000001}}", "backbone 'stgcn': kernel must be at most 1023"),
    ],
    ids=lambda value: value[:40],
)
def test_a_wrong_study_file_is_one_line(tmp_path: Path, archive: Path, text: str, reason: str) -> None:
    assert reason in refused(tmp_path / "x.yaml", text, archive)


def test_a_default_that_no_key_can_tell_is_refused(tmp_path: Path, archive: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import torch\nfrom skeleton_cgl.backbones.backbone import Backbone\n\n\n"
        "class Own(Backbone):\n    def __init__(self, act=torch.relu):\n        super().__init__()\n"
        "        self.linear, self.act = torch.nn.Linear(3, 4), act\n\n"
        "    def forward(self, clips):\n        return self.act(self.linear(clips.mean(dim=(2, 3))))\n"
    )
    line = refused(tmp_path / "x.yaml", f"{SCENARIO}backbone: {tmp_path / 'own.py'}", archive)
    assert "own.py': parameter 'act': expected a number, text, list or map" in line


def test_numbers_are_read_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "name: 2024-02-30\nmethods: [{name: ewc, strength: 1e6}, {name: ewc, strength: 2.5e-3, importance: sample}]\n"
        "sweep:\n  training.epochs: &few [1, 2_000]\n  training.patience: *few\n"
    )
    study = Study.from_file(tmp_path / "x.yaml")
    assert study.name == "2024-02-30"
    assert [method.parameters["strength"] for method in study.methods] == [1e6, 2.5e-3]
    assert study.sweep == {"training.epochs": (1, 2000), "training.patience": (1, 2000)}


def test_points_of_a_sweep_do_not_change_each_other(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "methods: [&ewc {name: ewc}]\nsweep: {methods: [[*ewc]], methods.0.strength: [1, 2]}\n"
    )
    study = Study.from_file(tmp_path / "x.yaml")
    strengths = [variant.study.methods[0].parameters["strength"] for variant in study.variants()]
    assert strengths == [1, 2]
    assert study.sweep["methods"] == ([{"name": "ewc"}],)


SEQUENCES = np.random.default_rng(0).normal(size=(4, 5, 3, 3))
LABELS = np.array([0, 1, 0, 1])
ARRAYS: dict[str, Any] = {"sequences": SEQUENCES, "labels": LABELS}
MANY = {"sequences": np.ones((33_000, 1, 3, 1)) * np.arange(1, 4)[:, None], "labels": np.arange(33_000)}


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({**ARRAYS, "subjects": np.full(4, 2**40)}, "own.npz: array 'subjects': expected -1 (unknown) to 2147483647"),
        ({**ARRAYS, "views": np.full(4, 2**64 - 1, dtype=np.uint64)}, "own.npz: array 'views': expected -1"),
        (
            {**ARRAYS, "names": np.array(["a\0b", "c", "d", "e"])},
            "own.npz: array 'names': 'a\\x00b' has a control char",
        ),
        ({**ARRAYS, "labels": np.array(["\ud800", "b"] * 2)}, "own.npz: array 'labels': '\\ud800' has a control char"),
        (MANY, "own.npz: array 'labels': 33,000 classes, at most 10,000 are read"),
        ({"labels": LABELS, "lengths": LABELS + 1}, "own.npz: array 'sequences' is missing"),
        ({name: each[:0] for name, each in ARRAYS.items()}, "own.npz: array 'sequences': no sequence in it"),
        ({**ARRAYS, "sequences": SEQUENCES * 1e300}, "value not finite"),
        ({**ARRAYS, "sequences": SEQUENCES + 1j}, "own.npz: array 'sequences': expected numbers, found complex128"),
        ({**ARRAYS, "class_names": np.array([0.5, 1.5])}, "own.npz: array 'class_names': expected names (K,), found"),
    ],
)
def test_wrong_arrays_are_one_line(run: Run, tmp_path: Path, arrays: dict[str, Any], reason: str) -> None:
    np.savez(tmp_path / "own.npz", **arrays)
    (tmp_path / "body.yaml").write_text("name: a\njoints: [a, b, c]\nroot: 0\nbones: [[1, 0], [2, 1]]\n")
    command = ("prepare", "custom", tmp_path / "own.npz", "--layout", tmp_path / "body.yaml")
    code, _, errors = run(*command, "--out", tmp_path / "x.h5")
    (line,) = [line for line in errors.splitlines() if "error: " in line]
    assert code == 2
    assert reason in line
    assert not (tmp_path / "x.h5").exists()


@pytest.mark.parametrize(
    ("compression", "reason"),
    [
        (zipfile.ZIP_LZMA, "cannot be read"),
        (zipfile.ZIP_DEFLATED, "cannot be read"),
        (zipfile.ZIP_BZIP2, "not read here, expected deflate"),
    ],
)
def test_a_damaged_zip_is_one_line(run: Run, tmp_path: Path, compression: int, reason: str) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", compression) as archive:
        archive.writestr("a01_s01_e00_v01.json", json.dumps({"skeletons": SEQUENCES.tolist()}))
    content = bytearray((tmp_path / "x.zip").read_bytes())
    content[80:140] = bytes(60)
    (tmp_path / "x.zip").write_bytes(content)
    code, _, errors = run("prepare", "ucla", tmp_path / "x.zip", "--out", tmp_path / "x.h5")
    assert code == 2
    (line,) = [line for line in errors.splitlines() if "error: " in line]
    assert "a01_s01_e00_v01.json" in line
    assert reason in line


@pytest.mark.parametrize("number", [f"1{'0' * 400}", DIGITS, "1e50", "NaN", "null", f"{'[' * 50}"])
def test_a_recording_of_wrong_numbers_is_one_line(run: Run, tmp_path: Path, number: str) -> None:
    joints = ", ".join([f"[{number}, 0, 0]"] * 20)
    (tmp_path / "a01_s01_e00_v01.json").write_text(f'{{"skeletons": [[{joints}]], "label": 1}}')
    code, _, errors = run("prepare", "ucla", tmp_path, "--out", tmp_path / "x.h5")
    assert code == 2
    assert "error: a01_s01_e00_v01" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("classes", ["²", "1-²", "1-99999999999", DIGITS, "", "1-", "٣", "-1"])
def test_wrong_class_numbers_are_one_line(run: Run, tmp_path: Path, classes: str) -> None:
    code, _, errors = run("prepare", "ntu", tmp_path, "--out", tmp_path / "x.h5", f"--classes={classes}")
    assert code == 2
    assert "error: --classes: " in errors
    assert len(errors.splitlines()) == 1


@pytest.mark.parametrize("out", [".", "..", "/", "folder", "file/x.h5", "a" * 300 + ".h5", "/proc/x.h5", ""])
def test_a_place_that_cannot_be_written_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    code, _, errors = run("prepare", "synthetic", "--out", out)
    assert code == 2
    assert errors.startswith(f"error: {Path(out)}: ")
    assert len(errors.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "."),
        ("run", ""),
        ("run", "a" * 5000),
        ("run", "x.yaml", "--set", f"scenario.data={'a' * 5000}"),
        ("run", "x.yaml", "--store", "."),
        ("run", "x.yaml", "--store", "file/x.db"),
        ("run", "x.yaml", "--workers", "100000000"),
        ("run", "x.yaml", "--workers", "²"),
        ("run", "x.yaml", "--set", f"training.epochs={DIGITS}"),
        ("run", "x.yaml", "--set", "training.epochs=!!int abc"),
        ("run", "x.yaml", "--set", f"{'a.' * 5000}b=1"),
        ("run", "x.yaml", "--set", f"methods.{DIGITS}=1"),
        ("run", "x.yaml", "--set", "name=\udcff"),
        ("prepare", "synthetic", "--out", "x.h5", "--frames", f"1{'0' * 30}"),
        ("prepare", "synthetic", "--out", "x.h5", "--frames", "1000000000"),
        ("prepare", "custom", ".", "--layout", "body.yaml", "--out", "x.h5"),
        ("prepare", "custom", "x.npz", "--layout", ".", "--out", "x.h5"),
        ("prepare", "custom", "x.npz", "--layout", "body.yaml", "--out", "x.h5", "--centre", "²"),
        ("prepare", "custom", "x.npz", "--layout", "body.yaml", "--out", "x.h5", "--centre", DIGITS),
        ("prepare", "ucla", "file", "--out", "x.h5"),
        ("prepare", "ntu", "x.npy", "--out", "x.h5", "--labels", "."),
        ("prepare", "ntu", ".", "--out", "x.h5", "--missing", "."),
        ("show", "."),
        ("show", ""),
        ("show", "file"),
        ("status", "."),
        ("table", "file"),
        ("export", "file", "--out", "."),
        ("import", ".", "--store", "x.db"),
        ("import", "file", "--store", "x.db"),
        ("check", ""),
        ("check", ":"),
        ("check", "folder.py"),
    ],
    ids=lambda arguments: " ".join(arguments)[:60].encode("ascii", "replace").decode(),
)
def test_a_wrong_option_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: Path, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "file").write_text("text")
    (tmp_path / "x.yaml").write_text(SCENARIO.replace("DATA", str(archive)))
    (tmp_path / "body.yaml").write_text("name: a\njoints: [a, b, c]\nroot: 0\nbones: [[1, 0], [2, 1]]\n")
    code, printed, errors = run(*arguments)
    assert (code, printed) == (2, "")
    assert "Traceback" not in errors
    assert len([line for line in errors.splitlines() if line.lower().startswith("error")]) == 1


def test_names_that_are_no_text_are_printed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "\udcff.yaml"
    path.write_text("seed: x")
    code, _, errors = run("run", path)
    assert code == 2
    assert "\\udcff.yaml: field" in errors
