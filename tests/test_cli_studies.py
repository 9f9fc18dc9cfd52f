import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from skeleton_cgl import Study
from skeleton_cgl.config import set_field
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from tests.conftest import Run
from tests.engine.studies import small_archive

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    fields = {
        "scenario": {"data": str(small_archive(tmp_path)), "preparation": {"frames": 8}},
        "backbone": {"name": "gcn", "width": 8},
        "methods": ["bare", {"name": "replay", "fraction": 0.5}],
        "orders": {"tasks": 2},
        "training": {"epochs": 1},
    }
    path.write_text(yaml.safe_dump(fields))
    return path


def test_a_study_is_run_told_of_tabled_and_taken_elsewhere(run: Run, study: Path, tmp_path: Path) -> None:
    store = tmp_path / "x.db"
    code, plan, _ = run("run", study, "--store", store, "--dry-run")
    assert code == 0
    assert "2 orders, 4 runs" in plan
    assert not store.exists()
    code, printed, progress = run("run", study, "--store", store)
    assert code == 0
    assert "4 of 4 runs" in printed
    assert "100%" in progress
    assert "0 stages learned" in run("run", study, "--store", store)[1]
    status = json.loads(run("status", store, "--json")[1])
    assert status[0]["study"] == "tiny"
    assert status[0]["done"] == status[0]["stages"]
    assert "0 left" in run("status", store)[1]
    assert "Replay" in run("table", store)[1]
    assert "4 of 4 runs" in run("report", store, "--out", tmp_path / "x.html")[1]
    table = json.loads(run("table", store, "--level", "class", "--format", "json")[1])
    run("export", store, "--study", "tiny", "--out", tmp_path / "x.csv.gz")
    assert run("import", tmp_path / "x.csv.gz", "--store", tmp_path / "y.db")[0] == 0
    assert json.loads(run("table", tmp_path / "y.db", "--level", "class", "--format", "json")[1]) == table
    exported = pd.read_csv(tmp_path / "x.csv.gz", comment="#")
    assert {"study", "method", "backbone", "repeat", "order", "step", "test"} <= set(exported.columns)


def test_fields_are_changed_on_the_command_line(run: Run, study: Path, tmp_path: Path) -> None:
    changes = ("--set", "orders.tasks=3", "--set", "methods=[ewc]", "--set", "backbone.depth=1", "--set", "name=other")
    run("run", study, "--store", tmp_path / "x.db", *changes)
    (status,) = json.loads(run("status", tmp_path / "x.db", "--json")[1])
    assert (status["study"], status["runs"]) == ("other", 3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("training.epoch=3", "unknown field 'training.epoch'; did you mean 'epochs'"),
        ("training.epochs=0", "field 'training.epochs': Input should be greater than or equal to 1"),
        ("metods=[bare]", "unknown field 'metods'; did you mean 'methods'"),
        ("methods=[baree]", "unknown method 'baree'; did you mean 'bare'"),
        ("backbone=models/absent.py", "backbone models/absent.py: no such file"),
        ("training", "expected FIELD=VALUE"),
        ("seed.x=1", "0 has no field 'x'"),
        ("training.device=cuda", "cuda is not available here"),
    ],
)
def test_a_wrong_study_is_refused_before_it_runs(
    run: Run, study: Path, tmp_path: Path, change: str, reason: str
) -> None:
    study.write_text(study.read_text() + "seed: 0\n")
    code, _, errors = run("run", study, "--store", tmp_path / "x.db", "--set", change)
    assert code == 2
    assert reason in errors
    assert not (tmp_path / "x.db").exists()


def test_failures_end_with_a_summary_and_exit_code_1(run: Run, study: Path, tmp_path: Path) -> None:
    exploding = ("--set", "methods=[{name: ewc, strength: 1.0e+60}]", "--set", "training.learning_rate=0.1")
    code, _, errors = run("run", study, "--store", tmp_path / "x.db", *exploding, "--set", "training.epochs=3")
    assert code == 1
    assert "stages failed" in errors
    assert "--retry" in errors
    assert "LearningFailed" in run("status", tmp_path / "x.db")[1]


@pytest.mark.parametrize(
    "kind", ["methods", "backbones", "graph-backbones", "datasets", "graph-datasets", "scenarios", "figures", "metrics"]
)
def test_what_can_be_named_is_listed_with_a_word_on_each(run: Run, kind: str) -> None:
    code, text, _ = run("ls", kind)
    assert code == 0
    # Of methods, a table of where each is defined follows.
    listed, *_ = text.split("\n\n")
    assert all(len(line.split(maxsplit=1)) == 2 for line in listed.splitlines())


def test_scenarios_are_listed_with_all_their_fields(run: Run) -> None:
    listed = dict(line.split(maxsplit=1) for line in run("ls", "scenarios")[1].splitlines())
    assert "[kind, of, transition, batch, " in listed["stream"]
    assert "data, " in listed["node"]


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_study_files_are_valid(path: Path) -> None:
    from skeleton_cgl.registry import METHODS
    from skeleton_cgl.search import Search

    study = Search.from_file(path).as_study() if "\ngrid:" in path.read_text() else Study.from_file(path)
    for variant in study.variants():
        for method in variant.study.methods:
            METHODS.make(method.name, method.parameters)


def test_setting_a_field_reaches_into_names_and_lists() -> None:
    fields = {"backbone": "gcn", "methods": [{"name": "ewc"}]}
    set_field(fields, "backbone.width=32")
    set_field(fields, "methods.0.strength=1.5")
    set_field(fields, "orders.tasks=all")
    assert fields == {
        "backbone": {"name": "gcn", "width": 32},
        "methods": [{"name": "ewc", "strength": 1.5}],
        "orders": {"tasks": "all"},
    }
    with pytest.raises(InputError, match=r"methods.7=x: there is no entry 7 among 1"):
        set_field(fields, "methods.7=x")


def test_the_scatter_script_draws_a_store(run: Run, study: Path, tmp_path: Path) -> None:
    run("run", study, "--store", tmp_path / "x.db")
    script = EXPERIMENTS.parent / "figures" / "order_scatter.py"
    for name in ("scatter.png", "scatter.pdf"):
        command = [sys.executable, script, tmp_path / "x.db", "--out", tmp_path / name]
        assert subprocess.run(command, check=False).returncode == 0
        assert (tmp_path / name).stat().st_size > 1000


def test_orders_with_splits_of_their_own_are_a_study_each(study: Path, tmp_path: Path) -> None:
    script = [sys.executable, EXPERIMENTS / "own_splits.py", study, "--store", tmp_path / "own.db"]
    printed = [subprocess.run(script, check=True, capture_output=True, text=True).stdout for _ in range(2)]
    assert printed[0] == printed[1]
    rows = [line.split() for line in printed[0].splitlines()[2:4]]
    assert [row[:3] for row in rows] == [["Bare", "2", "1"], ["Replay", "2", "1"]]
    with Store(tmp_path / "own.db") as store:
        studies = store.studies()
    specs = [json.loads(each.spec) for each in studies]
    assert [spec["seed"] for spec in specs] == [1000, 1001]
    assert studies[0].digests != studies[1].digests
    assert [len(spec["orders"]["given"]) for spec in specs] == [1, 1]
