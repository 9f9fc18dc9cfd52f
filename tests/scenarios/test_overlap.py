"""What the parts of a split have in common is counted and said."""

from pathlib import Path

import numpy as np

from skeleton_cgl.parts import TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.scenarios.classes import ClassTasks
from skeleton_cgl.scenarios.overlap import overlap
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.scenarios.split import Split
from skeleton_cgl.skeletons import write_archive
from skeleton_cgl.skeletons.sources.ucla import UclaSource
from tests.shared_data import FOLDER, needs


def test_what_is_shared_is_counted_by_clip_of_the_part_that_is_asked_about() -> None:
    parts = np.array([TRAINING, TRAINING, TEST, TEST, TEST, VALIDATION, UNUSED])
    copies = np.array([0, 1, 0, 3, 3, 3, 3])
    performances = np.array([0, 1, 0, 1, 2, 2, 1])
    assert overlap(parts, copies, {"performance": performances, "view": np.zeros(7)}) == (
        "test: of 3 clips, 1 identical to a training clip, 2 of a performance in training, 3 of a view in training",
        "validation: of 1 clips, 0 identical to a training clip, 0 of a performance in training, "
        "1 of a view in training",
        "test: of 3 clips, 2 identical to a validation clip, 1 of a performance in validation, "
        "3 of a view in validation",
    )


def test_clips_of_classes_that_are_not_learned_do_not_count(small: Path) -> None:
    whole = SkeletonScenario(small, split=Split(by="class"))
    some = SkeletonScenario(small, ClassTasks(classes=(0, 1)), Split(by="class"))
    assert whole.notes[0] == "split by class: 81 training, 12 validation, 12 test clips"
    assert some.notes[0] == "split by class: 23 training, 4 validation, 4 test clips"
    assert some.notes[1].startswith("test: of 4 clips, 0 identical to a training clip, 0 of a performance in training")


@needs("nw-ucla.zip")
def test_the_leak_of_ucla_is_told_and_a_split_by_performance_has_none(tmp_path: Path) -> None:
    path = tmp_path / "ucla.h5"
    write_archive(UclaSource(FOLDER / "nw-ucla.zip"), path)
    by_class = SkeletonScenario(path, split=Split(by="class"))
    assert by_class.notes[1].startswith(
        "test: of 147 clips, 19 identical to a training clip, 137 of a performance in training"
    )
    by_performance = SkeletonScenario(path, split=Split(by="performance"))
    for line in by_performance.notes[1:]:
        assert " 0 identical to a " in line
        assert " 0 of a performance in " in line
