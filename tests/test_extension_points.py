"""One file adds a method, a backbone, a scenario or a reader of data; what goes wrong in it is told in one line."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from skeleton_cgl import registry
from skeleton_cgl.learning.method import MOMENTS
from tests.conftest import Run

METHOD = """
import torch

from skeleton_cgl.learning.method import Method


class Pulled(Method):
    \"\"\"Stays near the weights that the last task left.\"\"\"

    def __init__(self, strength=1.0):
        self.strength = strength
        self.left = torch.empty(0)

    def loss(self, learner, batch):
        moved = learner.parameter_vector()[: len(self.left)] - self.left
        return learner.task_loss(batch) + self.strength * moved.square().sum()

    def end_lesson(self, learner, experience):
        self.left = learner.parameter_vector().detach()

    def state(self):
        return {"left": self.left}

    def restore(self, state):
        self.left = state["left"]
"""
BACKBONE = """
from torch import nn

from skeleton_cgl.backbones.backbone import Backbone


class Flat(Backbone):
    \"\"\"All coordinates of all frames through one layer.\"\"\"

    def __init__(self, layout, frames, channels, width=8):
        super().__init__()
        self.layer = nn.Linear(len(layout) * frames * channels, width)

    def forward(self, clips):
        return self.layer(clips.flatten(1)).relu()
"""
SCENARIO = """
import numpy as np
import torch

from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.inputs import Clips
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.scenarios.settings import ScenarioSettings
from skeleton_cgl.skeletons import UCLA


class DotsSettings(ClassTasks, ScenarioSettings):
    \"\"\"Clips that stand still, each at a place its class prefers.\"\"\"

    kind: str
    each: int = 10

    def make(self, seed):
        return Dots(self, seed)


class Pool:
    augmented = False

    def __init__(self, clips, digest):
        self.clips, self.digest = Clips(clips), digest

    def whole(self):
        return self.clips


class Dots(LabelledSamples):
    def __init__(self, settings, seed):
        random = np.random.default_rng(seed)
        labels = random.permutation(np.repeat(np.arange(4), settings.each))
        places = random.normal(size=(4, 3, 1, 20))[labels] + random.normal(size=(len(labels), 3, 2, 20))
        parts = np.array([0, 0, 0, 1, 2])[random.permutation(len(labels)) % 5]
        content = f"dots {settings.each} {seed} {settings.setting}"
        pool = Pool(torch.from_numpy(places.astype(np.float32)), content)
        facts = Facts("clips", {"layout": UCLA, "frames": 2, "channels": 3, "features": 6, "actors": 1})
        super().__init__(pool, labels, parts, ("a", "b", "c", "d"), settings, facts, content.encode())
"""
READER = """
import numpy as np

from skeleton_cgl.skeletons import UCLA, Preparation, Recording, Source


class Twitches(Source):
    \"\"\"Four gestures that hardly differ.\"\"\"

    layout = UCLA
    classes = ("up", "down", "left", "right")
    preparation = Preparation(frames=2, centre=1, scale="none", fit="resample")

    def __len__(self):
        return 40

    def recordings(self):
        for number in range(len(self)):
            positions = np.random.default_rng(number).normal(size=(1, 3, 20, 3)) + number % 4
            yield Recording(f"twitch {number}", positions, number % 4)
"""
FILES = {"method": METHOD, "backbone": BACKBONE, "scenario": SCENARIO, "dataset": READER}


@pytest.fixture
def own(tmp_path: Path) -> dict[str, Path]:
    """One file of each kind."""
    paths = {kind: tmp_path / f"own_{kind}.py" for kind in FILES}
    for kind, path in paths.items():
        path.write_text(FILES[kind])
    return paths


def naming(kind: str, own: dict[str, Path]) -> dict[str, Any]:
    """Return the fields of a study that name the file of one kind; the reader is named anyway."""
    fields: dict[str, dict[str, Any]] = {
        "method": {"methods": [str(own["method"])]},
        "backbone": {"backbone": [str(own["backbone"])]},
        "scenario": {"scenario": {"kind": str(own["scenario"])}},
    }
    return fields.get(kind, {})


def write_study(folder: Path, own: dict[str, Path], **changes: Any) -> Path:
    """Write a study on the reader's recordings with built-in components, but for what `changes` says."""
    fields = {
        "scenario": {"data": str(own["dataset"])},
        "backbone": {"name": "gcn", "width": 4},
        "methods": ["bare"],
        "orders": {"tasks": "all"},
        "training": {"epochs": 1},
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump({**fields, **changes}))
    return path


def table_of(run: Run, folder: Path, study: Path) -> str:
    """Run a study by the command line; return its table."""
    code, _, errors = run("run", study, "--store", folder / "x.db")
    assert code == 0, errors
    code, table, errors = run("table", folder / "x.db", "--columns", "orders,AA,AF,AOPD,MOPD")
    assert code == 0, errors
    return table


def rows_of(table: str) -> list[list[str]]:
    return [line.split() for line in table.split("\n\n")[0].splitlines()[2:]]


def test_a_method_is_one_file(run: Run, tmp_path: Path, own: dict[str, Path]) -> None:
    methods = ["bare", {"name": str(own["method"]), "strength": 1000}]
    rows = rows_of(
        table_of(
            run, tmp_path, write_study(tmp_path, own, methods=methods, training={"epochs": 20, "learning_rate": 0.01})
        )
    )
    assert [row[:2] for row in rows] == [["Bare", "2"], ["own_method", "2"]]
    assert rows[0][2:] != rows[1][2:]


def test_a_backbone_is_one_file(run: Run, tmp_path: Path, own: dict[str, Path]) -> None:
    backbones = ["gcn", {"name": str(own["backbone"]), "width": 6}]
    rows = rows_of(table_of(run, tmp_path, write_study(tmp_path, own, backbone=backbones)))
    assert [row[:3] for row in rows] == [["GCN", "Bare", "2"], ["own_backbone", "Bare", "2"]]


def test_a_scenario_is_one_file(run: Run, tmp_path: Path, own: dict[str, Path]) -> None:
    scenario = {"kind": str(own["scenario"]), "each": 15, "setting": "task-il"}
    study = write_study(tmp_path, own, scenario=scenario, methods=["bare", "replay"])
    assert [row[:2] for row in rows_of(table_of(run, tmp_path, study))] == [["Bare", "2"], ["Replay", "2"]]
    code, _, errors = run("run", study, "--store", tmp_path / "y.db", "--set", "scenario.eech=3")
    assert code == 2
    assert "unknown field 'eech'; did you mean 'each'" in errors


def test_a_reader_is_one_file(run: Run, tmp_path: Path, own: dict[str, Path]) -> None:
    straight = rows_of(table_of(run, tmp_path, write_study(tmp_path, own)))
    assert run("prepare", own["dataset"], "--out", tmp_path / "own.h5")[0] == 0
    study = write_study(tmp_path, own, scenario={"data": str(tmp_path / "own.h5")})
    (tmp_path / "x.db").unlink()
    assert rows_of(table_of(run, tmp_path, study)) == straight


@pytest.fixture
def importable(tmp_path: Path, own: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Path]]:
    """The files as modules that can be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    yield own
    for path in own.values():
        sys.modules.pop(path.stem, None)


def test_a_class_of_a_module_is_called_by_both(run: Run, tmp_path: Path, importable: dict[str, Path]) -> None:
    study = write_study(tmp_path, importable, methods=["own_method:Pulled"], backbone=["own_backbone:Flat"])
    study.write_text(study.read_text().replace(str(importable["dataset"]), "own_dataset:Twitches"))
    assert [row[:2] for row in rows_of(table_of(run, tmp_path, study))] == [["Pulled", "2"]]


@pytest.fixture
def installed(tmp_path: Path, importable: dict[str, Path]) -> Iterator[dict[str, Path]]:
    """A distribution that adds one of each kind by entry points, as if it were installed."""
    described = tmp_path / "cgl_extras-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: cgl-extras\nVersion: 1.0\n")
    points = {"method": "Pulled", "backbone": "Flat", "scenario": "DotsSettings", "dataset": "Twitches"}
    (described / "entry_points.txt").write_text(
        "\n".join(f"[skeleton_cgl.{kind}s]\nextra-{kind} = own_{kind}:{name}\n" for kind, name in points.items())
    )
    registry._entry_points.cache_clear()
    yield importable
    registry._entry_points.cache_clear()


def test_an_installed_package_adds_names(run: Run, tmp_path: Path, installed: dict[str, Path]) -> None:
    study = write_study(
        tmp_path,
        installed,
        scenario={"kind": "extra-scenario"},
        backbone=["extra-backbone"],
        methods=["bare", {"name": "extra-method", "label": "Pulled"}],
    )
    assert [row[:2] for row in rows_of(table_of(run, tmp_path, study))] == [["Bare", "2"], ["Pulled", "2"]]
    (tmp_path / "x.db").unlink()
    other = write_study(tmp_path, installed, scenario={"data": "extra-dataset"})
    assert rows_of(table_of(run, tmp_path, other))[0][:2] == ["Bare", "2"]
    for kind in FILES:
        assert f"extra-{kind}" in run("ls", f"{kind}s")[1]


CHANGED = {
    "method": METHOD.replace("learner.task_loss", "-learner.task_loss"),
    "scenario": f"{SCENARIO}\n    def score(self, answers, prefix):\n        return super().score(-answers, prefix)\n",
}


@pytest.mark.parametrize("kind", CHANGED)
def test_changed_code_is_another_study(run: Run, tmp_path: Path, own: dict[str, Path], kind: str) -> None:
    study = write_study(tmp_path, own, training={"epochs": 20, "learning_rate": 0.01}, **naming(kind, own))
    before = table_of(run, tmp_path, study)
    assert table_of(run, tmp_path, study) == before
    own[kind].write_text(CHANGED[kind])
    assert table_of(run, tmp_path, study) != before
    assert len(json.loads(run("status", tmp_path / "x.db", "--json")[1])) == 2


def failing(folder: Path, moment: str) -> Path:
    """Write a method that fails in one moment, in line 6."""
    path = folder / "failing.py"
    other = {"state": "restore", "restore": "state"}.get(moment)
    path.write_text(
        "from skeleton_cgl.learning.method import Method\n\n\n"
        f"class Failing(Method):\n    def {moment}(self, *values):\n        return {{}}['what is missing']\n"
        + (f"\n    def {other}(self, *values):\n        return {{}}\n" if other else "")
    )
    return path


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if moment not in ("state", "restore")])
def test_an_error_in_a_moment_of_a_method_is_one_line_and_the_others_go_on(
    run: Run, tmp_path: Path, own: dict[str, Path], moment: str
) -> None:
    path = failing(tmp_path, moment)
    study = write_study(tmp_path, own, methods=[str(path), "bare"])
    code, out, errors = run("run", study, "--store", tmp_path / "x.db")
    assert code == 1
    (line,) = {line.split(": ", 1)[1] for line in errors.splitlines() if "what is missing" in line}
    assert line == f"KeyError: 'what is missing' ({path}, line 6, in `{moment}` of Failing)"
    assert "2 of 4 runs" in out
    assert "Traceback" not in errors
    assert [row[0] for row in rows_of(run("table", tmp_path / "x.db")[1])] == ["Bare"]
    code, _, errors = run("run", study, "--store", tmp_path / "x.db", "--retry", "--traceback")
    assert code == 1
    assert "Traceback (most recent call last)" in errors
    assert "return {}['what is missing']" in errors


@pytest.mark.parametrize("moment", ["state", "restore"])
def test_a_method_that_cannot_be_saved_is_refused_before_anything_is_learned(
    run: Run, tmp_path: Path, own: dict[str, Path], moment: str
) -> None:
    path = failing(tmp_path, moment)
    study = write_study(tmp_path, own, methods=[str(path), "bare"])
    code, _, errors = run("run", study, "--store", tmp_path / "x.db")
    assert code == 2
    (line,) = [line for line in errors.splitlines() if "what is missing" in line]
    assert line.endswith(f"KeyError: 'what is missing' ({path}, line 6, in `{moment}` of Failing)")
    assert "Traceback" not in errors
    assert "Traceback (most recent call last)" in run("run", study, "--store", tmp_path / "x.db", "--traceback")[2]


def test_an_error_in_training_of_a_backbone_is_one_line(run: Run, tmp_path: Path, own: dict[str, Path]) -> None:
    own["backbone"].write_text(
        BACKBONE.replace("return self", "assert not self.training, 'tired'\n        return self")
    )
    study = write_study(tmp_path, own, backbone=[str(own["backbone"]), "gcn"])
    code, out, errors = run("run", study, "--store", tmp_path / "x.db")
    assert code == 1
    assert f"AssertionError: tired ({own['backbone']}, line 15, in `forward` of Flat)" in errors
    assert "2 of 4 runs" in out


@pytest.mark.parametrize(
    ("method", "moment", "code"),
    [
        ("make(self, seed):", "make", 2),
        ("lessons(self, order):", "lessons", 2),
        ("experience(self, prefix):", "experience", 2),
        ("queries(self, prefix):", "queries", 1),
        ("score(self, answers, prefix):", "score", 1),
    ],
)
def test_an_error_in_a_scenario_is_one_line(
    run: Run, tmp_path: Path, own: dict[str, Path], method: str, moment: str, code: int
) -> None:
    broken = f"    def {method}\n        return [][7]\n"
    if moment == "make":
        text = SCENARIO.replace("    def make(self, seed):\n        return Dots(self, seed)\n", broken)
    else:
        text = SCENARIO + "\n" + broken
    own["scenario"].write_text(text)
    line = text.splitlines().index("        return [][7]") + 1
    study = write_study(tmp_path, own, scenario={"kind": str(own["scenario"])})
    found, _, errors = run("run", study, "--store", tmp_path / "x.db")
    assert found == code
    owner = "DotsSettings" if moment == "make" else "Dots"
    assert f"IndexError: list index out of range ({own['scenario']}, line {line}, in `{moment}` of {owner})" in errors
    assert "Traceback" not in errors
    errors = run("run", study, "--store", tmp_path / "x.db", "--retry", "--traceback")[2]
    assert "Traceback (most recent call last)" in errors


def test_an_error_in_a_reader_is_one_line(run: Run, tmp_path: Path, own: dict[str, Path]) -> None:
    own["dataset"].write_text(READER.replace("number % 4)", "[][7])"))
    place = f"IndexError: list index out of range ({own['dataset']}, line 20, in `recordings` of Twitches)"
    study = write_study(tmp_path, own)
    for command in (
        ("run", study, "--store", tmp_path / "x.db"),
        ("prepare", own["dataset"], "--out", tmp_path / "x.h5"),
    ):
        code, _, errors = run(*command)
        assert code == 2
        assert place in errors
        assert "Traceback" not in errors


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_cannot_be_imported_is_refused_with_its_line(
    run: Run, tmp_path: Path, own: dict[str, Path], kind: str
) -> None:
    own[kind].write_text(FILES[kind] + "\n\n{}['what is missing']\n")
    code, _, errors = run("run", write_study(tmp_path, own, **naming(kind, own)), "--store", tmp_path / "x.db")
    line = len(own[kind].read_text().splitlines())
    assert code == 2
    assert f"cannot be imported: KeyError: 'what is missing' ({own[kind]}, line {line})" in errors


@pytest.mark.parametrize("kind", ["method", "backbone"])
def test_an_error_in_a_constructor_is_one_line(run: Run, tmp_path: Path, own: dict[str, Path], kind: str) -> None:
    head = {"method": "strength=1.0):\n", "backbone": "width=8):\n"}[kind]
    own[kind].write_text(FILES[kind].replace(head, f"{head}        {{}}['what is missing']\n"))
    study = write_study(tmp_path, own, **naming(kind, own))
    code, _, errors = run("run", study, "--store", tmp_path / "x.db")
    assert code == 2
    assert "KeyError: 'what is missing'" in errors
    assert "in `__init__` of" in errors
