from pathlib import Path

import pytest

from skeleton_cgl import Study
from skeleton_cgl.errors import InputError


def test_an_included_file_may_include_another_beside_itself(tmp_path: Path) -> None:
    """The nearer file wins, field by field; fields are taken whole, and the study is called after its own file."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "study.yaml").write_text("include: recipes/near.yaml\nseed: 1\n")
    (tmp_path / "recipes" / "near.yaml").write_text("include: far.yaml\nseed: 2\nrepeats: 2\ntraining: {epochs: 2}\n")
    far = "name: far\nseed: 3\nrepeats: 3\ntraining: {epochs: 3, learning_rate: 0.5}\nmethods: [joint]\n"
    (tmp_path / "recipes" / "far.yaml").write_text(far)
    found = Study.from_file(tmp_path / "study.yaml")
    assert (found.name, found.seed, found.repeats, found.methods[0].name) == ("study", 1, 2, "joint")
    assert (found.training.epochs, found.training.learning_rate) == (2, Study().training.learning_rate)


@pytest.mark.parametrize("last", ["study.yaml", "near.yaml"])
def test_files_that_include_one_another_in_a_circle_are_refused(tmp_path: Path, last: str) -> None:
    (tmp_path / "study.yaml").write_text("include: near.yaml\n")
    (tmp_path / "near.yaml").write_text("include: far.yaml\n")
    (tmp_path / "far.yaml").write_text(f"include: {last}\n")
    with pytest.raises(InputError, match=rf"study.yaml: include: .* circle: study.yaml → .*far.yaml → {last}"):
        Study.from_file(tmp_path / "study.yaml")


def test_a_file_that_is_included_and_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("include: near.yaml\n")
    (tmp_path / "near.yaml").write_text("include: far.yaml\n")
    with pytest.raises(InputError, match=r"far.yaml: cannot be read"):
        Study.from_file(tmp_path / "study.yaml")


def test_changes_reach_into_what_is_included(tmp_path: Path) -> None:
    """One field of an included entry is changed, the others stay; another file can be included instead."""
    (tmp_path / "study.yaml").write_text("include: near.yaml\n")
    (tmp_path / "near.yaml").write_text(
        "training: {epochs: 2, learning_rate: 0.5}\nmethods: [{name: ewc, strength: 3}]\n"
    )
    (tmp_path / "other.yaml").write_text("training: {epochs: 9, learning_rate: 0.25}\n")
    changed = Study.from_file(tmp_path / "study.yaml", ["training.epochs=7", "methods.0.importance=sample"])
    assert (changed.training.epochs, changed.training.learning_rate) == (7, 0.5)
    assert changed.methods[0].parameters == {"strength": 3, "importance": "sample"}
    other = Study.from_file(tmp_path / "study.yaml", ["training.epochs=7", "include=other.yaml"])
    assert (other.training.epochs, other.training.learning_rate) == (7, 0.25)
