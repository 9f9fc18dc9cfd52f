"""What belongs together in an archive: identical recordings, and all views and copies of a performance."""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skeleton_cgl.reading.seal import seal
from skeleton_cgl.skeletons import Archive, write_archive
from skeleton_cgl.skeletons.groups import joined, performances
from tests.skeletons.sources import ListSource, random_recording, random_source


def with_copies() -> ListSource:
    """Return six recordings; r001 is there again as "again" and as "more"."""
    items = list(random_source([5, 7, 6, 9]).items)
    again = replace(items[1], name="again", view=2)
    return ListSource([*items, again, replace(again, name="more", view=3)])


@pytest.mark.parametrize("stored", [True, False])
def test_identical_sequences_are_found_in_archives_with_and_without_their_checksums(
    tmp_path: Path, stored: bool
) -> None:
    write_archive(with_copies(), tmp_path / "copies.h5")
    if not stored:
        with h5py.File(tmp_path / "copies.h5", "r+") as file:
            del file["sequences/content"]
        seal(tmp_path / "copies.h5")
    with Archive.open(tmp_path / "copies.h5") as archive:
        assert archive.copies.tolist() == [0, 1, 2, 3, 1, 1]
        assert archive.left_out == []


def test_the_first_of_identical_recordings_can_be_kept_alone(tmp_path: Path) -> None:
    write_archive(with_copies(), tmp_path / "first.h5", duplicates="first")
    with Archive.open(tmp_path / "first.h5") as archive, Archive.in_memory(random_source([5, 7, 6, 9])) as plain:
        assert archive.names == ("r000", "r001", "r002", "r003")
        assert archive.left_out == [("again", "r001"), ("more", "r001")]
        assert archive.digest == plain.digest


def test_what_differs_in_one_bit_or_in_length_alone_is_not_identical() -> None:
    one = random_recording(0, 5, label=0)
    nearly = one.positions.copy()
    nearly[0, 2, 3, 1] = np.nextafter(nearly[0, 2, 3, 1], np.float32(9))
    longer = np.concatenate([one.positions, one.positions[:, -1:]], axis=1)
    items = [one, replace(one, name="b", positions=nearly, label=1), replace(one, name="c", positions=longer)]
    with Archive.in_memory(ListSource(items)) as archive:
        assert archive.copies.tolist() == [0, 1, 2]


def test_a_performance_is_label_subject_and_repetition_in_all_its_views() -> None:
    facts = [(0, 1, 0, 1), (0, 1, 0, 2), (1, 1, 0, 1), (0, 2, 0, 1), (0, 1, 1, 1), (1, 1, 0, 3)]
    items = [
        replace(random_recording(seed, 4, label), subject=subject, repetition=repetition, view=view)
        for seed, (label, subject, repetition, view) in enumerate(facts)
    ]
    with Archive.in_memory(ListSource(items)) as archive:
        together = performances(archive)
        assert together is not None
        assert together.tolist() == [0, 0, 2, 3, 4, 2]
    copied = replace(items[3], positions=items[4].positions)
    with Archive.in_memory(ListSource([*items[:3], copied, *items[4:]])) as archive:
        together = performances(archive)
        assert together is not None
        assert together.tolist() == [0, 0, 2, 3, 3, 2]
    for unknown in ({"subject": -1}, {"repetition": -1}):
        with Archive.in_memory(ListSource([*items[:5], replace(items[5], **unknown)])) as archive:
            assert performances(archive) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_joining_divisions_finds_what_hangs_together(pairs: list[tuple[int, int]]) -> None:
    found = joined(np.array([one for one, _ in pairs]), np.array([other for _, other in pairs]))
    for start in range(len(pairs)):
        reached = {start}
        while True:
            near = {
                place
                for place, (one, other) in enumerate(pairs)
                if any(one == pairs[there][0] or other == pairs[there][1] for there in reached)
            }
            if near == reached:
                break
            reached = near
        assert found[start] == min(reached)
