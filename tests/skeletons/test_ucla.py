import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons import Archive, BadRecording, write_archive
from skeleton_cgl.skeletons.sources.ucla import ACTIONS, UclaSource
from tests.shared_data import FOLDER, needs


def write_json(folder: Path, name: str, label: int, frames: int = 5, **changes: object) -> None:
    skeletons = np.random.default_rng(label).normal(size=(frames, 20, 3)).tolist()
    content = {"file_name": name, "skeletons": skeletons, "label": label} | changes
    (folder / f"{name}.json").write_text(json.dumps(content))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "all_sqe"
    folder.mkdir()
    for label, action in enumerate(ACTIONS, start=1):
        write_json(folder, f"a{action:02}_s03_e01_v02", label, frames=label)
    return folder


def test_classes_follow_the_actions_and_facts_the_name(folder: Path) -> None:
    recordings = list(UclaSource(folder).recordings())
    assert [recording.label for recording in recordings] == list(range(10))
    assert [recording.positions.shape for recording in recordings] == [(1, n, 20, 3) for n in range(1, 11)]
    assert {(recording.subject, recording.repetition, recording.view) for recording in recordings} == {(3, 1, 2)}


def test_a_recording_given_twice_from_two_folders_is_refused(folder: Path) -> None:
    (folder.parent / "more").mkdir()
    write_json(folder.parent / "more", "a01_s03_e01_v02", 1)
    twice = r"a01_s03_e01_v02 is there twice, as all_sqe.a01_s03_e01_v02\.json and as more.a01_s03_e01_v02\.json"
    with pytest.raises(InputError, match=twice):
        UclaSource(folder.parent)


def test_a_zip_is_read_as_its_folder(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ucla.zip", "w") as archive:
        for file in sorted(folder.iterdir(), reverse=True):
            archive.write(file, f"some/where/{file.name}")
    with (
        Archive.in_memory(UclaSource(folder)) as from_folder,
        Archive.in_memory(UclaSource(tmp_path / "ucla.zip")) as from_zip,
    ):
        assert from_zip.digest == from_folder.digest
        assert from_zip.names == from_folder.names


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("walking", {}, "not of the form aAA_sSS_eEE_vVV"),
        ("a07_s01_e00_v01", {}, "action 7 is not one of"),
        ("a01_s01_e00_v01", {"label": 2}, "field 'label': 2, but the name says class 1"),
        ("a01_s01_e00_v01", {"skeletons": [[[0, 0, 0]] * 19]}, r"expected \(frames, 20, 3\), found \(1, 19, 3\)"),
        ("a01_s01_e00_v01", {"skeletons": [[[0, 0, "x"]] * 20]}, "not a table of numbers"),
        ("a01_s01_e00_v01", {"skeletons": [[[0, 0, 0]] * 20, []]}, "not a table of numbers"),
        ("a01_s01_e00_v01", {"skeletons": []}, r"found \(0,\)"),
    ],
)
def test_bad_recordings_are_named_with_their_reason(folder: Path, name: str, changes: dict, reason: str) -> None:
    write_json(folder, name, **({"label": 1} | changes))
    (bad,) = [item for item in UclaSource(folder).recordings() if isinstance(item, BadRecording)]
    assert bad.name == f"{name}.json"
    with pytest.raises(InputError, match=reason):
        raise InputError(bad.reason)


@pytest.mark.parametrize("text", ['{"label": 1', "[1, 2]", '{"label": 1}'])
def test_broken_json_is_a_bad_recording(folder: Path, text: str) -> None:
    (folder / "a01_s01_e00_v01.json").write_text(text)
    (bad,) = [item for item in UclaSource(folder).recordings() if isinstance(item, BadRecording)]
    assert "not valid JSON" in bad.reason or "'skeletons' is missing" in bad.reason


def test_a_place_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.json file in it"):
        UclaSource(tmp_path)
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(InputError, match=r"x\.txt: expected a folder or a zip"):
        UclaSource(tmp_path / "x.txt")
    with pytest.raises(InputError, match="no such file or folder"):
        UclaSource(tmp_path / "absent")


@needs("nw-ucla.zip")
def test_the_real_recordings_come_out_as_the_formula_says(tmp_path: Path) -> None:
    path = tmp_path / "ucla.h5"
    assert write_archive(UclaSource(FOLDER / "nw-ucla.zip"), path) == []
    with Archive.open(path) as archive, zipfile.ZipFile(FOLDER / "nw-ucla.zip") as recordings:
        assert len(archive) == 1484
        assert archive.digest.startswith("e586aff0d7dd")
        assert np.bincount(archive.labels).tolist() == [150, 152, 141, 173, 148, 149, 142, 142, 145, 142]
        chosen = ["a02_s09_e04_v02", "a01_s01_e00_v01", "a12_s10_e03_v03", "a04_s05_e02_v01", "a09_s02_e00_v02"]
        clips = archive.clips([archive.index(name) for name in chosen])
        assert clips.shape == (5, 1, 52, 20, 3)
        for name, clip in zip(chosen, clips, strict=True):
            np.testing.assert_allclose(clip[0], _by_the_formula(recordings, name), atol=2e-6)
        assert archive.lengths[archive.index("a02_s09_e04_v02")] == 1


def _by_the_formula(recordings: zipfile.ZipFile, name: str) -> np.ndarray:
    """The reference's preparation in plain Python and double precision: centre, scale each axis, take 52 frames."""
    frames = json.loads(recordings.read(f"all_sqe/{name}.json"))["skeletons"]
    origin = frames[0][1]
    clip = np.zeros((52, 20, 3))
    for axis in range(3):
        values = [[joint[axis] - origin[axis] for joint in frame] for frame in frames]
        low, high = min(map(min, values)), max(map(max, values))
        for step in range(52):
            frame = values[int(step * (len(frames) - 1) / 51)]
            clip[step, :, axis] = [0 if high == low else (value - low) / (high - low) * 2 - 1 for value in frame]
    return clip
