import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.seal import SIZE, is_intact, seal
from skeleton_cgl.skeletons import UCLA, Archive, Augmentation, BadRecording, Preparation, write_archive
from skeleton_cgl.skeletons import archive as archives
from skeleton_cgl.skeletons.preparation import centre, make_clip
from tests.skeletons.sources import ListSource, random_recording, random_source


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "test.h5"
    write_archive(random_source(), path)
    return path


def test_an_archive_gives_back_what_was_written(written: Path) -> None:
    source = random_source()
    with Archive.open(written) as archive:
        assert (archive.layout, archive.classes) == (UCLA, source.classes)
        assert archive.preparation == source.preparation
        assert archive.provenance["data set"] == "test"
        for index, recording in enumerate(source.items):
            np.testing.assert_array_equal(archive.sequence(index), centre(recording.positions, 1))
            assert archive.lengths[index] == recording.positions.shape[1]
            assert archive.names[index] == recording.name
            assert archive.labels[index] == recording.label
            assert archive.subjects[index] == recording.subject
            assert archive.views[index] == recording.view
            assert archive.repetitions[index] == recording.repetition
        archive.verify()


@pytest.mark.parametrize("lengths", [[3000, 5, 2048, 1], [1] * 300, [127, 128, 129]])
def test_sequences_survive_the_borders_of_chunks_and_writes(tmp_path: Path, lengths: list[int]) -> None:
    source = random_source(lengths, actors=2)
    write_archive(source, tmp_path / "long.h5")
    with Archive.open(tmp_path / "long.h5") as archive:
        for index, recording in enumerate(source.items):
            np.testing.assert_array_equal(archive.sequence(index), centre(recording.positions, 1))


def test_clips_are_made_on_request_in_any_order_and_by_any_preparation(written: Path) -> None:
    bones = Preparation(frames=9, centre=1, scale="none", fit="repeat", stream="bone")
    with Archive.open(written) as archive:
        all_clips = archive.clips()
        assert all_clips.shape == (4, 1, 16, 20, 3)
        np.testing.assert_array_equal(archive.clips([3, 0]), all_clips[[3, 0]])
        expected = make_clip(archive.sequence(2), UCLA, bones)
        np.testing.assert_array_equal(archive.clips([2], bones)[0], expected)
        augmented = archive.clips([2], augmentation=Augmentation(), random=np.random.default_rng(0))
        assert not np.array_equal(augmented, all_clips[[2]])


def test_an_archive_in_memory_is_the_one_on_disk(written: Path) -> None:
    with Archive.open(written) as on_disk, Archive.in_memory(random_source()) as in_memory:
        assert in_memory.digest == on_disk.digest
        np.testing.assert_array_equal(in_memory.clips(), on_disk.clips())


def test_a_source_may_be_open_in_memory_twice() -> None:
    source = random_source()
    with Archive.in_memory(source) as one, Archive.in_memory(source) as other:
        np.testing.assert_array_equal(one.clips(), other.clips())


def test_the_digest_follows_content_and_nothing_else(written: Path) -> None:
    def digest(source: ListSource) -> str:
        with Archive.in_memory(source) as archive:
            return archive.digest

    source = random_source()
    with Archive.open(written) as archive:
        assert digest(replace(source, provenance={"data set": "elsewhere"})) == archive.digest
    moved = source.items[1].positions.copy()
    moved[0, 3, 4, 1] = np.nextafter(moved[0, 3, 4, 1], np.float32(9))
    changes = [
        replace(source, items=[source.items[0], replace(source.items[1], positions=moved), *source.items[2:]]),
        replace(source, items=[*source.items[:3], replace(source.items[3], label=0)]),
        replace(source, items=source.items[::-1]),
        replace(source, classes=("sit", "rise")),
        replace(source, preparation=source.preparation.model_copy(update={"frames": 17})),
        replace(source, layout=UCLA.model_copy(update={"name": "other"})),
    ]
    digests = [digest(change) for change in changes]
    assert len({digest(source), *digests}) == len(changes) + 1


def test_the_first_bad_recording_stops_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    good = random_source().items
    source = ListSource([*good, BadRecording("broken.json", "not valid JSON"), BadRecording("later", "worse")])
    with pytest.raises(InputError, match=r"broken\.json: not valid JSON"):
        write_archive(source, tmp_path / "out.h5")
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused_leaves_the_archive_that_was_there(written: Path) -> None:
    before = written.read_bytes()
    with pytest.raises(InputError):
        write_archive(ListSource([BadRecording("x", "y")]), written)
    assert written.read_bytes() == before
    assert [file.name for file in written.parent.iterdir()] == [written.name]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    class FullDisk(ListSource):
        def recordings(self):
            yield self.items[0]
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_archive(FullDisk(random_source().items), tmp_path / "out.h5")
    assert list(tmp_path.iterdir()) == []


def test_bad_recordings_are_set_aside_and_listed_on_request(tmp_path: Path) -> None:
    good = random_source().items
    empty = replace(good[0], name="empty", positions=np.zeros((1, 4, 20, 3), np.float32))
    outside = replace(good[0], name="outside", label=2)
    source = ListSource([BadRecording("broken", "cut"), good[0], empty, good[1], outside, good[2], good[3]])
    bad = write_archive(source, tmp_path / "out.h5", skip_bad=True)
    assert [recording.name for recording in bad] == ["broken", "empty", "outside"]
    assert "no frame has a skeleton" in bad[1].reason
    assert "label 2 is outside the 2 classes" in bad[2].reason
    with Archive.open(tmp_path / "out.h5") as archive, Archive.in_memory(random_source()) as plain:
        assert archive.set_aside == bad
        assert archive.digest == plain.digest


def test_a_class_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no recording of class 'stand'"):
        write_archive(ListSource([random_recording(0, 5, label=0)]), tmp_path / "out.h5")
    with pytest.raises(InputError, match="no recording was found"):
        write_archive(ListSource([]), tmp_path / "out.h5")


def test_a_centre_that_is_no_joint_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    class Unread(ListSource):
        def recordings(self):
            raise AssertionError

    source = Unread([], preparation=Preparation(frames=4, centre=20, scale="axes", fit="resample"))
    with pytest.raises(InputError, match="centre: joint 20 is outside the joints 0–19"):
        write_archive(source, tmp_path / "out.h5")
    assert list(tmp_path.iterdir()) == []


def test_recordings_of_different_shapes_are_refused(tmp_path: Path) -> None:
    source = ListSource([random_recording(0, 5, 0), random_recording(1, 5, 1, actors=2)])
    with pytest.raises(InputError, match=r"same actors.*\(1, 20, 3\), found \(2, 20, 3\)"):
        write_archive(source, tmp_path / "out.h5")


@contextmanager
def changed(path: Path) -> Iterator[h5py.File]:
    """Open an archive to be changed from outside; afterwards it has a seal that fits."""
    with h5py.File(path, "r+") as file:
        yield file
    seal(path)


def unseal(path: Path) -> None:
    """Make an archive one without a seal, as earlier releases wrote them."""
    path.write_bytes(path.read_bytes()[SIZE:])


def test_an_older_archive_is_refused_with_what_to_do(written: Path) -> None:
    with changed(written) as file:
        file.attrs["version"] = 0
    with pytest.raises(InputError, match="version 0, this release reads 1; prepare it again"):
        Archive.open(written)


def test_other_files_are_not_archives(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["positions"] = np.zeros(3)
    with pytest.raises(InputError, match=r"other\.h5: an HDF5 file, but not an archive"):
        Archive.open(tmp_path / "other.h5")
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(InputError, match=r"text\.h5: damaged, or not an archive"):
        Archive.open(tmp_path / "text.h5")
    with pytest.raises(InputError, match="no such file"):
        Archive.open(tmp_path / "absent.h5")


@pytest.mark.parametrize("part", [0.02, 0.3, 0.7, 0.999])
def test_a_truncated_archive_is_recognised(written: Path, part: float) -> None:
    content = written.read_bytes()
    written.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(InputError, match=r"damaged.*prepare it again"):
        Archive.open(written)


def test_no_bit_can_be_flipped_unnoticed(written: Path) -> None:
    content = written.read_bytes()
    places = [*range(0, SIZE, 16), *np.random.default_rng(0).integers(SIZE, len(content), 300).tolist()]
    for turn, place in enumerate(places):
        flipped = bytearray(content)
        flipped[place] ^= 1 << turn % 8
        written.write_bytes(flipped)
        with pytest.raises(InputError, match=r"test\.h5: damaged.*prepare it again"):
            Archive.open(written)
    written.write_bytes(content)
    with Archive.open(written) as archive:
        archive.verify()


def test_an_intact_file_is_read_for_its_seal_once_and_again_when_it_has_changed(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []
    monkeypatch.setattr(archives, "is_intact", lambda path: looked.append(path) or is_intact(path))
    for _ in range(3):
        Archive.open(written).close()
    assert len(looked) == 1
    write_archive(random_source([5, 6]), written)
    Archive.open(written).close()
    assert len(looked) == 2


def test_an_archive_without_a_seal_is_compared_with_its_digest_instead(written: Path) -> None:
    with Archive.open(written) as archive:
        digest = archive.digest
    unseal(written)
    with Archive.open(written) as archive:
        assert archive.digest == digest
    with h5py.File(written, "r+") as file:
        file["sequences/label"][0] = 1
    with pytest.raises(InputError, match=r"damaged.*digest"):
        Archive.open(written)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("sequences/view", None, "damaged"),
        ("sequences/view", np.array([1, 1, 1]), "damaged.*its parts differ in length"),
        ("sequences/view", np.array([1, 1, 1, 0.5]), "view: expected whole numbers, found float64"),
        ("sequences/label", np.array([0.0, 1, 0, 1]), "label: expected whole numbers, found float64"),
        ("sequences/label", np.array([0, 1, 2, 1]), r"sequence 2 \(r002\): label 2 is outside the 2 classes"),
        ("sequences/label", np.array([0, -1, 0, 1]), r"sequence 1 \(r001\): label -1 is outside"),
        ("sequences/start", np.array([0, 1, 8, 5, 78]), r"sequence 2 \(r002\): start: from frame 8 to 5"),
        ("sequences/start", np.array([0, 1, 8, 38, 79]), "start: frames 0 to 79, but there are 78"),
        ("sequences/start", np.array([1, 2, 8, 38, 78]), "start: frames 1 to 78"),
        ("sequences/start", np.array([0, 1, 8, 38.0, 78]), "start: expected whole numbers"),
        ("positions", np.zeros((78, 1, 19, 3), np.float32), r"expected float32 .* 20 joints.*\(78, 1, 19, 3\)"),
        ("positions", np.zeros((78, 1, 20, 3)), "expected float32.*found float64"),
        ("positions", np.zeros((78, 20, 3), np.float32), "expected float32"),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_field_and_sequence(
    written: Path, field: str, value: np.ndarray | None, message: str
) -> None:
    with changed(written) as file:
        del file[field]
        if value is not None:
            file[field] = value
    with pytest.raises(InputError, match=message):
        Archive.open(written)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_positions_that_are_not_finite_are_refused_by_sequence(written: Path, value: float) -> None:
    unseal(written)
    with h5py.File(written, "r+") as file:
        file["positions"][10, 0, 3, 1] = value
        file.attrs["digest"] = archives._digest(file)
    with pytest.raises(InputError, match=r"test\.h5: sequence 2 \(r002\): positions: not all are finite"):
        Archive.open(written)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"label": 0.5}, "label: expected a whole number"),
        ({"label": True}, "label: expected a whole number"),
        ({"subject": 2**40}, "subject: expected a whole number of 32 bits, found 1099511627776"),
        ({"view": 1.5}, "view: expected a whole number"),
        ({"groups": {"session": "a"}}, "session: expected a whole number"),
        ({"name": "a\0b"}, "the name has a NUL in it"),
        ({"positions": np.full((1, 4, 20, 3), 3e38) * [[[[1]], [[-1]], [[1]], [[1]]]]}, "too large"),
    ],
)
def test_what_an_archive_cannot_hold_is_a_bad_recording(tmp_path: Path, change: dict, reason: str) -> None:
    good = random_source().items
    source = ListSource([*good, replace(good[0], **{"name": "odd", **change})])
    with pytest.raises(InputError, match=reason):
        write_archive(source, tmp_path / "out.h5")
    assert len(write_archive(source, tmp_path / "out.h5", skip_bad=True)) == 1


def test_two_recordings_of_one_name_are_refused_with_both_places(tmp_path: Path) -> None:
    good = random_source().items
    with pytest.raises(InputError, match="r001 is there twice, as recording 1 and as recording 4"):
        write_archive(ListSource([*good, replace(good[0], name="r001")]), tmp_path / "out.h5", skip_bad=True)


def test_a_sequence_is_found_by_name_or_number(written: Path) -> None:
    with Archive.open(written) as archive:
        assert archive.index("r002") == archive.index("2") == 2
        with pytest.raises(InputError, match="no sequence 'r999'"):
            archive.index("r999")
        with pytest.raises(IndexError, match="sequence 4 of 4"):
            archive.sequence(4)
