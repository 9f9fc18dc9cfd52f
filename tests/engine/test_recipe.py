"""The training recipe through the engine: in a tree as alone, and what is told of stages that stopped too early."""

from pathlib import Path
from typing import Any

import pytest

from skeleton_cgl import Study
from skeleton_cgl.learning.learner import UNSETTLED
from tests.engine.studies import contents, small_study

STOPPING = {
    "epochs": 60,
    "learning_rate": 0.05,
    "device": "cpu",
    "monitor": "task",
    "plateau": {"patience": 0, "floor": 0.02},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recipe")


def study(folder: Path, **recipe: Any) -> Study:
    return small_study(folder, methods=["bare", {"name": "ewc", "label": "weak", "strength": 1}], training=recipe)


@pytest.mark.parametrize("recipe", [{}, {"recalibrate": True, "batch_size": 7, "patience_on": "seen"}])
def test_the_tree_gives_the_records_of_every_order_run_alone(
    folder: Path, tmp_path: Path, recipe: dict[str, Any]
) -> None:
    asked = study(folder, **STOPPING, **recipe)
    asked.run(tmp_path / "tree.db", progress=False)
    asked.run(tmp_path / "alone.db", progress=False, tree=False)
    assert contents(tmp_path / "tree.db") == contents(tmp_path / "alone.db")


@pytest.mark.parametrize(("options", "stages"), [({}, 8), ({"tree": False}, 9)])
def test_stages_that_stop_too_early_are_counted_by_method_and_told_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any], stages: int
) -> None:
    results = study(folder, **STOPPING).run(tmp_path / "x.db", **options)
    assert results.summary.notes == {UNSETTLED: {"bare": stages, "weak": stages}}
    told = [line for line in capsys.readouterr().err.splitlines() if "BatchNorm" in line]
    assert told == [f"{2 * stages} stages (bare {stages}, weak {stages}) {UNSETTLED}"]
    assert "training.recalibrate=true" in told[0]
    assert not study(folder, **STOPPING).run(tmp_path / "x.db").summary.notes
    assert "BatchNorm" not in capsys.readouterr().err


def test_nothing_is_told_where_statistics_are_recalibrated_or_nobody_asked_for_progress(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not study(folder, **STOPPING, recalibrate=True).run(tmp_path / "x.db").summary.notes
    study(folder, **STOPPING).run(tmp_path / "y.db", progress=False)
    assert "BatchNorm" not in capsys.readouterr().err
