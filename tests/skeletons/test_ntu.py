import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons import NTU, Archive, BadRecording, Preparation, Recording, Source
from skeleton_cgl.skeletons.sources.ntu import ACTIONS, NtuSource
from skeleton_cgl.skeletons.sources.ntu_bodies import choose_actors, read_bodies
from tests.skeletons import ntu_files
from tests.skeletons.ntu_files import (
    annotation,
    frames_of,
    npz_fields,
    person,
    recording,
    skeleton_text,
    write_npy,
    write_npz,
    write_pyskl,
    write_raw,
    write_zip,
)

NAME = "S001C001P001R001A001"
TRAINING_SUBJECTS = [1, 2, 4, 5, 8, 9, 13, 14, 15, 16, 17, 18, 19, 25, 27, 28, 31, 34, 35, 38]


def actors_of(frames: ntu_files.Frames) -> np.ndarray:
    return choose_actors(read_bodies(skeleton_text(frames).encode()))


def only(source: Source) -> Recording | BadRecording:
    (found,) = source.recordings()
    return found


def open_text(tmp_path: Path, text: str | bytes, **options: object) -> Source:
    content = text if isinstance(text, bytes) else text.encode()
    folder = tmp_path / "raw"
    folder.mkdir(exist_ok=True)
    (folder / f"{NAME}.skeleton").write_bytes(content)
    return NtuSource(folder, classes=[1], **options)


def at(frames: range, tracking_id: int, positions: np.ndarray, total: int) -> list[list[tuple[int, np.ndarray]]]:
    """Return `total` frames in which one body is seen in `frames`."""
    scene: list[list[tuple[int, np.ndarray]]] = [[] for _ in range(total)]
    for frame, joints in zip(frames, positions, strict=True):
        scene[frame].append((tracking_id, joints))
    return scene


def together(*scenes: list[list[tuple[int, np.ndarray]]]) -> list[list[tuple[int, np.ndarray]]]:
    return [list(chain(*frames)) for frames in zip(*scenes, strict=True)]


class TestBodies:
    def test_one_body_is_the_first_actor_to_the_last_bit(self) -> None:
        body = person(0, 20)
        actors = actors_of(at(range(20), 7, body, 20))
        assert actors.dtype == np.float32
        np.testing.assert_array_equal(actors, [body, np.zeros_like(body)])

    def test_a_single_body_stays_however_short_or_noisy(self) -> None:
        body = person(0, 3, wide=True)
        np.testing.assert_array_equal(actors_of(at(range(3), 7, body, 3))[0], body)

    @pytest.mark.parametrize("first_id", [1, 2])
    def test_of_two_bodies_the_one_that_moves_more_is_the_first_actor(self, first_id: int) -> None:
        calm, lively = person(0, 20, motion=0.05), person(1, 20, motion=0.2)
        actors = actors_of(together(at(range(20), first_id, calm, 20), at(range(20), 3 - first_id, lively, 20)))
        np.testing.assert_array_equal(actors, [lively, calm])

    def test_motion_is_the_variance_over_frames_and_joints_summed_over_axes(self) -> None:
        positions = person(3, 20)
        (body,) = read_bodies(skeleton_text(at(range(20), 7, positions, 20)).encode())
        points = [[float(value) for value in joint] for frame in positions for joint in frame]
        expected = 0.0
        for axis in zip(*points, strict=True):
            mean = sum(axis) / len(axis)
            expected += sum((value - mean) ** 2 for value in axis) / len(axis)
        assert body.motion() == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize(("seen", "kept"), [(11, False), (12, True)])
    def test_a_body_seen_in_eleven_frames_or_fewer_is_dropped(self, seen: int, kept: bool) -> None:
        calm, brief = person(0, 30, motion=0.05), person(1, seen, motion=0.3)
        actors = actors_of(together(at(range(30), 1, calm, 30), at(range(5, 5 + seen), 2, brief, 30)))
        np.testing.assert_array_equal(actors[1 if kept else 0], calm)
        assert actors[0 if kept else 1].any() == kept

    @pytest.mark.parametrize(("noisy_frames", "kept"), [(69, True), (70, False)])
    def test_a_body_wide_in_seven_tenths_of_its_frames_is_dropped(self, noisy_frames: int, kept: bool) -> None:
        calm, noisy = person(0, 100, motion=0.05), person(1, 100, motion=0.2)
        noisy[:noisy_frames] = person(2, noisy_frames, motion=0.2, wide=True)
        span = noisy.max(axis=1) - noisy.min(axis=1)
        assert np.sum(span[:, 0] > 0.8 * span[:, 1]) == noisy_frames
        actors = actors_of(together(at(range(100), 1, calm, 100), at(range(100), 2, noisy, 100)))
        np.testing.assert_array_equal(actors, [noisy, calm] if kept else [calm, np.zeros_like(calm)])

    def test_a_noisy_third_body_does_not_displace_two_people(self) -> None:
        lively, calm, noisy = person(0, 40, motion=0.2), person(1, 40, motion=0.1), person(2, 40, 0.4, wide=True)
        scenes = [at(range(40), number, body, 40) for number, body in enumerate((noisy, calm, lively))]
        np.testing.assert_array_equal(actors_of(together(*scenes)), [lively, calm])

    @pytest.mark.parametrize(("length", "wide"), [(5, False), (20, True)])
    def test_when_all_bodies_are_unwanted_the_one_that_moves_most_stays(self, length: int, wide: bool) -> None:
        calm, lively = person(0, length, motion=0.02, wide=wide), person(1, length, motion=0.2, wide=wide)
        actors = actors_of(together(at(range(length), 1, lively, length), at(range(length), 2, calm, length)))
        np.testing.assert_array_equal(actors, [lively, np.zeros_like(lively)])

    def test_bodies_that_do_not_overlap_become_one_actor(self) -> None:
        early, late = person(0, 20, motion=0.2), person(1, 15, motion=0.1)
        actors = actors_of(together(at(range(20), 1, early, 35), at(range(20, 35), 2, late, 35)))
        np.testing.assert_array_equal(actors[0], np.concatenate([early, late]))
        assert not actors[1].any()

    def test_a_body_joins_the_second_actor_if_the_first_is_there_and_is_left_out_if_both_are(self) -> None:
        first, second = person(0, 40, motion=0.3), person(1, 20, motion=0.2)
        third, fourth = person(2, 15, motion=0.1), person(3, 15, motion=0.02)
        actors = actors_of(
            together(
                at(range(10, 25), 4, fourth, 40),
                at(range(20, 35), 3, third, 40),
                at(range(20), 2, second, 40),
                at(range(40), 1, first, 40),
            )
        )
        expected = np.zeros_like(first)
        expected[:20], expected[20:35] = second, third
        np.testing.assert_array_equal(actors, [first, expected])

    def test_frames_are_counted_over_those_with_a_body(self) -> None:
        first, second = person(0, 30, motion=0.2), person(1, 12, motion=0.1)
        scene = together(at(range(30), 1, first, 30), at(range(18, 30), 2, second, 30))
        with_gaps = [frame for bodies in scene for frame in ([], bodies, [])]
        np.testing.assert_array_equal(actors_of(with_gaps), actors_of(scene))


class TestRawFiles:
    def test_frames_whose_only_body_was_dropped_are_dropped_before_the_actors_are_chosen(self, tmp_path: Path) -> None:
        first, second, brief = person(0, 20, motion=0.2), person(1, 20, motion=0.1), person(2, 5)
        scene = together(at(range(20), 1, first, 40), at(range(10, 30), 2, second, 40), at(range(35, 40), 3, brief, 40))
        both = only(open_text(tmp_path, skeleton_text(scene), actors=2))
        expected = np.zeros((2, 30, 25, 3), dtype=np.float32)
        expected[0, :20], expected[1, 10:] = first, second
        np.testing.assert_array_equal(both.positions, expected)
        one = only(open_text(tmp_path, skeleton_text(scene), actors=1))
        np.testing.assert_array_equal(one.positions, expected[:1])

    def test_lines_may_end_with_crlf_and_the_last_one_without(self, tmp_path: Path) -> None:
        text = skeleton_text(frames_of(recording(0, 15, second=range(15))))
        expected = only(open_text(tmp_path, text, actors=2)).positions
        for variant in (text.replace("\n", "\r\n"), text.rstrip("\n"), text + "\n\n"):
            np.testing.assert_array_equal(only(open_text(tmp_path, variant, actors=2)).positions, expected)

    def test_every_file_cut_at_the_end_of_a_line_is_bad(self, tmp_path: Path) -> None:
        lines = skeleton_text(frames_of(recording(0, 2, second=range(2)))).splitlines()
        for end in range(len(lines)):
            bad = only(open_text(tmp_path, "\n".join(lines[:end])))
            assert isinstance(bad, BadRecording)
            assert bad.name == NAME
            assert bad.reason.startswith(f"line {end + 1}: the file ends here, expected the ")

    @pytest.mark.parametrize("cut", [2, 20, 100])
    def test_a_file_cut_within_its_last_line_is_bad(self, tmp_path: Path, cut: int) -> None:
        text = skeleton_text(frames_of(recording(0, 2)))
        lines = text[:-cut].splitlines()
        bad = only(open_text(tmp_path, text[:-cut].rstrip()))
        assert isinstance(bad, BadRecording)
        assert bad.reason.startswith((f"line {len(lines)}: expected a joint's 12 values", f"line {len(lines) + 1}: "))

    @pytest.mark.parametrize(
        ("line", "content", "reason"),
        [
            (1, "two", "line 1: expected the number of frames, found 'two'"),
            (1, "1", "line 30: the file goes on after its last frame"),
            (1, "-2", "line 1: expected the number of frames, found '-2'"),
            (2, "1.0", "line 2: expected the number of bodies, found '1.0'"),
            (2, "0", "line 3: expected the number of bodies"),
            (3, "x 0 1 1 1 1 0 0.02 -0.13 2", "line 3: expected a tracking id and 9 state values"),
            (3, "7 0 1 1", "line 3: expected a tracking id and 9 state values, found '7 0 1 1'"),
            (4, "24", "line 4: expected 25 joints, found 24"),
            (4, "20", "line 4: expected 25 joints, found 20"),
            (9, "1 garbage 3 0 0 0 0 0 0 0 0 2", "line 9: 'garbage' is not a finite number"),
            (38, "1 2 nan 0 0 0 0 0 0 0 0 2", "line 38: 'nan' is not a finite number"),
            (38, "1e60 2 3 0 0 0 0 0 0 0 0 2", "line 38: '1e60' is not a finite number"),
            (10, "1 2", "line 10: expected a joint's 12 values, found 2"),
            (5, "1 2", "line 5: expected a joint's 3 values, found 2"),
            (10, "", "line 10: expected a joint's 12 values, found 0"),
            (10, "1 2 ü", "line 10: not text, byte 0xc3"),
        ],
    )
    def test_a_wrong_line_makes_the_recording_bad_and_is_named(
        self, tmp_path: Path, line: int, content: str, reason: str
    ) -> None:
        lines = skeleton_text(frames_of(recording(0, 2))).splitlines()
        assert len(lines) == 1 + 2 * (1 + 1 + 1 + 25)
        lines[line - 1] = content
        bad = only(open_text(tmp_path, "\n".join(lines)))
        assert isinstance(bad, BadRecording)
        assert bad.reason.startswith(reason)

    def test_a_tracking_id_twice_in_one_frame_is_bad(self, tmp_path: Path) -> None:
        joints = person(0, 1)[0]
        bad = only(open_text(tmp_path, skeleton_text([[(1, joints), (2, joints)], [(1, joints), (1, joints)]])))
        assert isinstance(bad, BadRecording)
        assert bad.reason == f"line {1 + 1 + 2 * 27 + 1 + 27 + 1}: the tracking id occurs twice in one frame"

    @pytest.mark.parametrize("frames", [[], [[]], [[], [], []]])
    def test_a_recording_without_a_body_is_bad(self, tmp_path: Path, frames: ntu_files.Frames) -> None:
        bad = only(open_text(tmp_path, skeleton_text(frames)))
        assert bad == BadRecording(NAME, "no body in any frame")

    def test_files_are_found_at_any_depth_and_come_sorted_by_name(self, tmp_path: Path) -> None:
        names = [f"S001C001P{subject:03}R001A001" for subject in (9, 1, 4)]
        for depth, name in enumerate(names):
            write_raw(tmp_path.joinpath("raw", *"abc"[:depth]), {name: recording(0, 12)})
        (tmp_path / "raw" / "notes.skeleton").write_text("not a recording")
        assert [each.name for each in NtuSource(tmp_path / "raw", [1]).recordings()] == sorted(names)

    def test_a_recording_that_is_there_twice_is_refused(self, tmp_path: Path) -> None:
        for folder in ("a", "b"):
            write_raw(tmp_path / folder, {NAME: recording(0, 12)})
        with pytest.raises(InputError, match=rf"{NAME} is there twice, as a.{NAME}.skeleton and as b.{NAME}"):
            NtuSource(tmp_path)

    def test_a_damaged_member_of_a_zip_is_bad_and_the_others_are_not(self, tmp_path: Path) -> None:
        names = [f"S001C001P{subject:03}R001A001" for subject in (1, 2)]
        path = write_zip(tmp_path / "raw.zip", {name: recording(0, 12) for name in names})
        with zipfile.ZipFile(path) as archive:
            start = archive.getinfo(f"nturgb+d_skeletons/{names[0]}.skeleton").header_offset
        content = bytearray(path.read_bytes())
        content[start + 200 : start + 260] = bytes(60)
        path.write_bytes(content)
        bad, good = NtuSource(path, [1]).recordings()
        assert isinstance(bad, BadRecording)
        assert bad.reason.startswith("cannot be read: ")
        assert isinstance(good, Recording)


def some_recordings() -> dict[str, np.ndarray]:
    """Return recordings of actions 1–12 in both parts of both benchmarks: short, long, of one and of two actors."""
    kinds = [
        recording(0, 40),
        recording(1, 61, second=range(61)),
        recording(2, 100, second=range(30, 70)),
        recording(3, 150, second=range(20, 90), absent=range(40, 60)),
        recording(4, 300),
        recording(5, 300, second=range(100, 300), absent=range(150, 160)),
        recording(6, 1),
    ]
    names = [
        f"S{setup:03}C{view:03}P{subject:03}R{repetition:03}A{action:03}"
        for number, action in enumerate(range(1, 13))
        for setup, view, subject, repetition in [(1, 1 + number % 3, 1, 1), (2, 2, 3, 2), (3, 1, 8, 1)]
        if setup < 3 or action < 3
    ]
    return {name: kinds[number % len(kinds)] for number, name in enumerate(sorted(names))}


def is_training(name: str, benchmark: str) -> bool:
    return int(name[9:12]) in TRAINING_SUBJECTS if benchmark == "x-sub" else int(name[5:8]) in (2, 3)


def write_all_forms(folder: Path, recordings: dict[str, np.ndarray], benchmark: str = "x-sub") -> dict[str, Path]:
    train = {name: positions for name, positions in recordings.items() if is_training(name, benchmark)}
    test = {name: positions for name, positions in recordings.items() if name not in train}
    (folder / "repeat").mkdir()
    shuffled = [annotation(name, positions) for name, positions in reversed(recordings.items())]
    return {
        "folder": write_raw(folder / "raw" / "skeletons", recordings),
        "zip": write_zip(folder / "raw.zip", recordings),
        "npy": write_npy(folder / "ntu_data_joint.npy", recordings),
        "npy repeated": write_npy(folder / "repeat" / "ntu_data.npy", recordings, repeat=True),
        "npz": write_npz(folder / f"NTU60_{'CS' if benchmark == 'x-sub' else 'CV'}.npz", train, test),
        "pyskl": write_pyskl(folder / "ntu60_3danno.pkl", shuffled),
    }


@pytest.fixture(scope="module")
def all_forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_all_forms(tmp_path_factory.mktemp("forms"), some_recordings())


class TestForms:
    @pytest.mark.parametrize("actors", [1, 2])
    def test_all_forms_of_the_same_recordings_give_the_same_archive(
        self, all_forms: dict[str, Path], actors: int
    ) -> None:
        recordings = some_recordings()
        digests, clips, names = {}, {}, {}
        for form, path in all_forms.items():
            with Archive.in_memory(NtuSource(path, actors=actors)) as archive:
                digests[form], clips[form], names[form] = archive.digest, archive.clips(), archive.names
        assert set(digests.values()) == {digests["folder"]}
        for form in clips:
            np.testing.assert_array_equal(clips[form], clips["folder"])
        training = [name for name in recordings if is_training(name, "x-sub")]
        chosen = [name for name in training if int(name[-3:]) <= 10]
        for form in names:
            expected = [f"train {training.index(name):06}" for name in chosen] if form == "npz" else chosen
            assert list(names[form]) == expected
        for name, clip in zip(chosen, clips["folder"], strict=True):
            positions = recordings[name][:actors]
            present = positions.any(axis=(2, 3))
            positions, present = positions[:, present.any(axis=0)], present[:, present.any(axis=0)]
            centred = np.where(present[..., None, None], positions - positions[0, present[0].argmax(), 1], 0)
            np.testing.assert_array_equal(clip, centred[:, np.arange(300) % centred.shape[1]])

    @pytest.mark.parametrize("actors", [1, 2])
    def test_of_a_recording_longer_than_300_frames_all_forms_give_the_same_clip(
        self, tmp_path: Path, actors: int
    ) -> None:
        paths = write_all_forms(tmp_path, {NAME: recording(0, 333, second=range(200, 333))})
        clips = {}
        for form, path in paths.items():
            with Archive.in_memory(NtuSource(path, [1], actors=actors)) as archive:
                clips[form] = archive.clips()
                assert archive.lengths[0] == (333 if form in ("folder", "zip", "pyskl") else 300)
        for form in clips:
            np.testing.assert_array_equal(clips[form], clips["folder"])

    def test_an_array_that_repeats_each_actor_by_itself_gives_the_first_actor_unpadded(self, tmp_path: Path) -> None:
        first, second = recording(0, 70)[0], person(1, 50)
        positions = np.stack([first[np.arange(300) % 70], second[np.arange(300) % 50]])
        one = only(NtuSource(write_npy(tmp_path / "train_data.npy", {NAME: positions}), [1]))
        np.testing.assert_array_equal(one.positions, first[None])

    def test_a_pose_that_comes_back_is_not_taken_for_padding(self, tmp_path: Path) -> None:
        positions = recording(0, 300)
        positions[0, [50, 120, 299]] = positions[0, 0]
        positions[0, 121:299] = positions[0, 1:179]
        path = write_npy(tmp_path / "train_data.npy", {NAME: positions})
        with Archive.in_memory(NtuSource(path, [1])) as archive:
            np.testing.assert_array_equal(archive.clips()[0], positions[:1] - positions[0, 0, 1])

    def test_empty_frames_within_a_repeated_sequence_do_not_hide_the_repetition(self, tmp_path: Path) -> None:
        positions = recording(0, 70)
        positions[:, 10:15] = 0
        path = write_npy(tmp_path / "train_data.npy", {NAME: positions}, repeat=True)
        np.testing.assert_array_equal(only(NtuSource(path, [1])).positions, np.delete(positions[:1], range(10, 15), 1))

    @pytest.mark.parametrize("form", ["folder", "zip", "npy", "npz", "pyskl"])
    def test_a_source_can_be_read_twice_and_after_a_reading_that_stopped(self, tmp_path: Path, form: str) -> None:
        recordings = {f"S001C001P001R{number:03}A001": recording(number, 20) for number in range(4)}
        source = NtuSource(write_all_forms(tmp_path, recordings)[form], [1])
        next(source.recordings())
        first, second = list(source.recordings()), list(source.recordings())
        assert len(first) == len(second) == len(source)
        for one, other in zip(first, second, strict=True):
            assert one.name == other.name
            np.testing.assert_array_equal(one.positions, other.positions)

    @pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
    def test_arrays_are_read_without_holding_more_than_a_few_rows(self, tmp_path: Path, write: Callable) -> None:
        recordings = {f"S001C001P001R{number:03}A001": recording(number, 300) for number in range(40)}
        npy = write_npy(tmp_path / "train_data.npy", recordings)
        write(tmp_path / "ntu.npz", **npz_fields(recordings, "train"))
        for path in (npy, tmp_path / "ntu.npz"):
            tracemalloc.start()
            for each in NtuSource(path, [1], actors=2).recordings():
                assert isinstance(each, Recording)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 10 * recordings[NAME.replace("R001", "R000")].nbytes

    def test_half_precision_and_version_2_headers_are_read(self, tmp_path: Path) -> None:
        positions = recording(0, 30).astype(np.float16)
        path = write_npy(tmp_path / "train_data.npy", {NAME: positions})
        with path.open("wb") as file:
            array = np.ascontiguousarray(ntu_files.padded(positions).transpose(3, 1, 2, 0)[None]).astype(np.float16)
            np.lib.format.write_array(file, array, version=(2, 0))
        pyskl = write_pyskl(tmp_path / "ntu.pkl", [annotation(NAME, positions)])
        for source in (NtuSource(path, [1]), NtuSource(pyskl, [1])):
            found = only(source)
            assert found.positions.dtype == np.float32
            np.testing.assert_array_equal(found.positions, positions[:1].astype(np.float32))


def every_name() -> list[str]:
    return [
        f"S001C{view:03}P{subject:03}R{repetition:03}A{action:03}"
        for view in (1, 2, 3)
        for subject in (1, 3, 38, 40)
        for repetition in (1, 2)
        for action in (1, 2, 11, 60, 61, 120)
    ]


class TestSelection:
    @pytest.mark.parametrize("benchmark", ["x-sub", "x-view"])
    @pytest.mark.parametrize("part", ["train", "test", "all"])
    @pytest.mark.parametrize("form", ["folder", "npy", "pyskl"])
    def test_recordings_are_chosen_by_their_names(self, tmp_path: Path, benchmark: str, part: str, form: str) -> None:
        everything = dict.fromkeys(every_name(), recording(0, 1))
        path = {
            "folder": lambda: write_raw(tmp_path / "raw", everything),
            "npy": lambda: write_npy(tmp_path / "ntu_data.npy", everything),
            "pyskl": lambda: write_pyskl(tmp_path / "ntu.pkl", [annotation(*each) for each in everything.items()]),
        }[form]()
        source = NtuSource(path, [60, 2], benchmark=benchmark, part=part)
        expected = {
            name
            for name in every_name()
            if name[-3:] in ("002", "060") and (part == "all" or is_training(name, benchmark) == (part == "train"))
        }
        found = list(source.recordings())
        assert {each.name for each in found} == expected
        assert len(source) == len(found) == len(expected)
        assert source.classes == (ACTIONS[1], ACTIONS[59])
        for each in found:
            assert each.label == (each.name[-3:] == "060")
            facts = (each.view, each.subject, each.repetition)
            assert facts == (int(each.name[5:8]), int(each.name[9:12]), int(each.name[13:16]))

    def test_all_and_only_the_training_subjects_are_in_the_cross_subject_training_part(self, tmp_path: Path) -> None:
        names = [f"S001C001P{subject:03}R001A001" for subject in range(1, 41)]
        path = write_raw(tmp_path / "raw", dict.fromkeys(names, recording(0, 1)))
        assert [each.subject for each in NtuSource(path, [1]).recordings()] == TRAINING_SUBJECTS

    @pytest.mark.parametrize("part", ["train", "test", "all"])
    def test_of_an_npz_the_part_is_chosen_by_field_and_the_classes_by_label(self, tmp_path: Path, part: str) -> None:
        train = {f"S001C001P001R001A{action:03}": recording(action, 5) for action in (3, 1, 5, 1, 60)}
        test = {f"S001C001P003R001A{action:03}": recording(action + 60, 5) for action in (60, 2, 3)}
        path = write_npz(tmp_path / "NTU60_CS.npz", train, test)
        rows = [
            (f"{kind} {row:06}", name, positions)
            for kind, recordings in (("train", train), ("test", test))
            for row, (name, positions) in enumerate(recordings.items())
        ]
        expected = [row for row in rows if part in (row[0].split()[0], "all") and row[1][-3:] in ("003", "060")]
        source = NtuSource(path, [3, 60], part=part)
        found = list(source.recordings())
        assert len(source) == len(found) == len(expected)
        for each, (name, original, positions) in zip(found, expected, strict=True):
            assert (each.name, each.label) == (name, original[-3:] == "060")
            assert (each.subject, each.view, each.repetition) == (-1, -1, -1)
            np.testing.assert_array_equal(each.positions, positions[:1])

    def test_the_source_tells_where_it_comes_from_and_how_clips_are_made(self, tmp_path: Path) -> None:
        source = NtuSource(
            write_raw(tmp_path / "raw", {NAME: recording(0, 12), f"{NAME[:-1]}2": recording(1, 12)}), [2, 1], actors=2
        )
        assert source.provenance == {
            "source": "raw",
            "form": "raw files in a folder",
            "benchmark": "x-sub",
            "part": "train",
            "classes": "A001 A002",
            "actors": "2",
            "missing list": "none",
            "missing count": "0",
        }
        assert source.layout == NTU
        assert source.preparation == Preparation(frames=300, centre=1, scale="none", fit="repeat")

    def test_there_are_sixty_distinct_class_names_and_the_first_ten_are_the_order_study_s(self) -> None:
        assert len(set(ACTIONS)) == len(ACTIONS) == 60
        first = "drink water, eat meal, brush teeth, brush hair, drop, pick up, throw, sit down, stand up, clapping"
        assert ", ".join(ACTIONS[:10]) == first

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"classes": []}, "field 'classes': at least one class"),
            ({"classes": [0]}, "field 'classes': class 0 is unknown, expected 1–60"),
            ({"classes": [1, 61]}, "field 'classes': class 61 is unknown, expected 1–60"),
            ({"classes": [3, 1, 3]}, "field 'classes': class 3 is given twice"),
            ({"benchmark": "xsub"}, "field 'benchmark': Input should be 'x-sub' or 'x-view'"),
            ({"part": "val"}, "field 'part': Input should be 'train', 'test' or 'all'"),
            ({"actors": 3}, "field 'actors': Input should be 1 or 2"),
        ],
    )
    def test_a_selection_that_does_not_exist_is_refused(self, tmp_path: Path, options: dict, message: str) -> None:
        path = write_raw(tmp_path / "raw", {NAME: recording(0, 12)})
        with pytest.raises(InputError) as refusal:
            NtuSource(path, **options)
        assert message in str(refusal.value)


class TestMissing:
    TEXT = (
        "The following samples have missing skeletons:\n\nS001C001P002R001A001\n 17: S001C001P004R001A001.skeleton\r\n"
    )

    @staticmethod
    def recordings() -> dict[str, np.ndarray]:
        return {f"S001C001P{subject:03}R001A001": recording(subject, 5) for subject in (1, 2, 4)}

    @pytest.mark.parametrize("form", ["folder", "zip", "npy", "npy repeated", "pyskl"])
    def test_listed_recordings_are_left_out_of_every_form_that_has_names(self, tmp_path: Path, form: str) -> None:
        (tmp_path / "list.txt").write_text(self.TEXT)
        path = write_all_forms(tmp_path, self.recordings())[form]
        source = NtuSource(path, [1], missing=tmp_path / "list.txt")
        assert [each.name for each in source.recordings()] == [NAME]
        assert len(source) == 1
        assert source.provenance["missing list"] == "list.txt"
        assert source.provenance["missing count"] == "2"

    @pytest.mark.parametrize("place", ["data/raw", "data"])
    @pytest.mark.parametrize("path", ["data/raw", "data/raw/ntu.zip"])
    def test_a_list_beside_raw_files_is_found_and_the_source_says_so(
        self, tmp_path: Path, place: str, path: str
    ) -> None:
        write_raw(tmp_path / "data" / "raw", self.recordings())
        write_zip(tmp_path / "data" / "raw" / "ntu.zip", self.recordings())
        list_name = "NTU_RGBD_samples_with_missing_skeletons.txt"
        (tmp_path / place / list_name).write_text(self.TEXT)
        source = NtuSource(tmp_path / path, [1])
        assert [each.name for each in source.recordings()] == [NAME]
        assert source.provenance["missing list"] == f"{list_name} (found beside the recordings)"
        assert source.provenance["missing count"] == "2"

    def test_a_given_list_is_used_instead_of_the_one_beside(self, tmp_path: Path) -> None:
        path = write_raw(tmp_path / "raw", self.recordings())
        (path / "NTU_RGBD_samples_with_missing_skeletons.txt").write_text(self.TEXT)
        (tmp_path / "mine.txt").write_text(NAME)
        found = NtuSource(path, [1], missing=tmp_path / "mine.txt").recordings()
        assert [each.subject for each in found] == [2, 4]

    def test_a_list_without_a_name_or_that_cannot_be_read_is_refused(self, tmp_path: Path) -> None:
        path = write_raw(tmp_path / "raw", self.recordings())
        (tmp_path / "list.txt").write_text("nothing is missing\n")
        with pytest.raises(InputError, match=r"list\.txt: no name of a recording in it"):
            NtuSource(path, missing=tmp_path / "list.txt")
        with pytest.raises(InputError, match=r"absent\.txt: cannot be read"):
            NtuSource(path, missing=tmp_path / "absent.txt")

    def test_a_list_cannot_be_applied_to_an_npz(self, tmp_path: Path) -> None:
        (tmp_path / "list.txt").write_text(self.TEXT)
        path = write_npz(tmp_path / "NTU60_CS.npz", self.recordings(), {})
        with pytest.raises(InputError, match=r"NTU60_CS\.npz: has no names .*list\.txt cannot be applied"):
            NtuSource(path, missing=tmp_path / "list.txt")


class Evil:
    """Pickled, it is a call."""

    def __init__(self, function: Callable, argument: str) -> None:
        self.call = function, (argument,)

    def __reduce__(self) -> tuple:
        return self.call


def save(path: Path, **fields: np.ndarray) -> Path:
    np.savez(path, **fields)
    return path


def with_labels(path: Path, content: object) -> Path:
    write_npy(path, {NAME: recording(0, 5)})
    path.with_name("train_label.pkl").write_bytes(pickle.dumps(content))
    return path


def with_array(path: Path, array: np.ndarray) -> Path:
    write_npy(path, {NAME: recording(0, 5)})
    np.save(path, array)
    return path


def with_content(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


X, Y = np.zeros((2, 300, 150), dtype=np.float32), np.eye(60)[:2]

REFUSED_FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no file": (lambda folder: folder / "absent.npz", "absent.npz: no such file or folder"),
    "another kind of file": (
        lambda folder: with_content(folder / "a.txt", b""),
        "a.txt: expected a folder, .zip, .npy",
    ),
    "a folder without recordings": (
        lambda folder: with_content(folder / "S1.skeleton", b"").parent,
        ": no file called SsssCcccPpppRrrrAaaa.skeleton in it",
    ),
    "a zip that is none": (lambda folder: with_content(folder / "a.zip", b"PK"), "a.zip: expected a folder or a zip"),
    "npy: no array": (lambda folder: with_content(folder / "a_data.npy", b"text" * 9), "a_data.npy: not an array of"),
    "npy: an empty file": (lambda folder: with_content(folder / "a_data.npy", b""), "a_data.npy: not an array of"),
    "npy: shape": (
        lambda folder: with_array(folder / "train_data.npy", np.zeros((1, 3, 300, 20, 2))),
        "train_data.npy: expected the shape (N, 3, 300, 25, 2), found (1, 3, 300, 20, 2)",
    ),
    "npy: Fortran order": (
        lambda folder: with_array(folder / "train_data.npy", np.zeros((2, 3, 300, 25, 2), order="F")),
        "train_data.npy: in Fortran order, expected C order",
    ),
    "npy: objects": (
        lambda folder: with_array(folder / "train_data.npy", np.full((1, 3, 300, 25, 2), None)),
        "train_data.npy: expected floating-point numbers, found dtype object",
    ),
    "npy: cut": (
        lambda folder: with_content(
            write_npy(folder / "train_data.npy", {NAME: recording(0, 5)}), (folder / "train_data.npy").read_bytes()[:-4]
        ),
        "train_data.npy: shape (1, 3, 300, 25, 2) needs 180128 bytes, found 180124",
    ),
    "npy: no labels beside": (
        lambda folder: write_npy(folder / "train_data.npy", {NAME: recording(0, 5)}).rename(folder / "val_data.npy"),
        "val_data.npy: its label pickle is not beside it, expected val_label.pkl; give it with labels=",
    ),
    "npy: name without data": (
        lambda folder: write_npy(folder / "train_data.npy", {NAME: recording(0, 5)}).rename(folder / "x.npy"),
        "x.npy: its label pickle is not beside it, expected one named like X_label.pkl",
    ),
    "labels: no pair": (
        lambda folder: with_labels(folder / "train_data.npy", [1, 2, 3]),
        "train_label.pkl: expected the pair (names, labels), found list",
    ),
    "labels: too many": (
        lambda folder: with_labels(folder / "train_data.npy", ([NAME], [0, 0])),
        "train_label.pkl: labels: expected 1, as in ",
    ),
    "labels: too few names": (
        lambda folder: with_labels(folder / "train_data.npy", ([], [0])),
        "train_label.pkl: names: expected 1, as in ",
    ),
    "labels: no list": (
        lambda folder: with_labels(folder / "train_data.npy", ([NAME], 0)),
        "train_label.pkl: labels: expected a list, found int",
    ),
    "labels: no name": (
        lambda folder: with_labels(folder / "train_data.npy", (["S1"], [0])),
        "train_label.pkl: names: entry 0: expected a name like S001C001P001R001A001, found 'S1'",
    ),
    "labels: no pickle": (
        lambda folder: with_content(
            write_npy(folder / "train_data.npy", {NAME: recording(0, 5)}).with_name("train_label.pkl"), b"text"
        ).with_name("train_data.npy"),
        "train_label.pkl: not a readable pickle",
    ),
    "npz: no zip": (lambda folder: with_content(folder / "a.npz", b"PK"), "a.npz: array 'x_train': cannot be read"),
    "npz: no x": (lambda folder: save(folder / "a.npz", y_train=Y), "a.npz: array 'x_train' is missing; found y_train"),
    "npz: no y": (lambda folder: save(folder / "a.npz", x_train=X), "a.npz: array 'y_train' is missing; found x_train"),
    "npz: shape of x": (
        lambda folder: save(folder / "a.npz", x_train=X[..., :75], y_train=Y),
        "a.npz: array 'x_train': expected the shape (N, 300, 150), found (2, 300, 75)",
    ),
    "npz: Fortran order": (
        lambda folder: save(folder / "a.npz", x_train=np.asfortranarray(X), y_train=Y),
        "a.npz: array 'x_train': in Fortran order, expected C order",
    ),
    "npz: objects in x": (
        lambda folder: save(folder / "a.npz", x_train=X.astype(object), y_train=Y),
        "a.npz: array 'x_train': expected floating-point numbers, found dtype object",
    ),
    "npz: shape of y": (
        lambda folder: save(folder / "a.npz", x_train=X, y_train=Y[:, :10]),
        "a.npz: array 'y_train': expected the shape (2, 60), found (2, 10)",
    ),
    "npz: objects in y": (
        lambda folder: save(folder / "a.npz", x_train=X, y_train=Y.astype(object)),
        "a.npz: array 'y_train': expected numbers, found objects",
    ),
    "npz: y above one": (
        lambda folder: save(folder / "a.npz", x_train=X, y_train=Y + 0.5 * np.eye(60)[[0, 2]]),
        "a.npz: array 'y_train': row 0 is not one-hot",
    ),
    "npz: y of a class and a half": (
        lambda folder: save(folder / "a.npz", x_train=X, y_train=Y + 0.5 * np.eye(60)[[1, 2]] * [[0], [1]]),
        "a.npz: array 'y_train': row 1 is not one-hot",
    ),
    "npz: y of no class": (
        lambda folder: save(folder / "a.npz", x_train=X, y_train=Y * [[1], [0]]),
        "a.npz: array 'y_train': row 1 is not one-hot",
    ),
    "npz: the other benchmark": (
        lambda folder: save(folder / "NTU60_CV.npz", x_train=X, y_train=Y),
        "NTU60_CV.npz: benchmark: NTU60_CV is x-view, asked for x-sub",
    ),
    "pyskl: no annotations": (
        lambda folder: with_content(folder / "a.pkl", pickle.dumps({"split": {}})),
        "a.pkl: expected a dict with a list `annotations`",
    ),
    "pyskl: no dict": (
        lambda folder: with_content(folder / "a.pkl", pickle.dumps([1])),
        "a.pkl: expected a dict with a list `annotations`",
    ),
    "pyskl: no frame_dir": (
        lambda folder: write_pyskl(folder / "a.pkl", [{"label": 0}]),
        "a.pkl: annotations[0]: expected a dict with a text `frame_dir`",
    ),
    "pyskl: no name": (
        lambda folder: write_pyskl(folder / "a.pkl", [{"frame_dir": "walk"}]),
        "a.pkl: frame_dir: entry 0: expected a name like S001C001P001R001A001, found 'walk'",
    ),
    "pyskl: a name twice": (
        lambda folder: write_pyskl(folder / "a.pkl", [annotation(NAME, recording(0, 5))] * 2),
        f"a.pkl: frame_dir: entry 1: {NAME} is there twice",
    ),
}


class TestRefusals:
    @pytest.mark.parametrize("kind", REFUSED_FILES)
    def test_a_wrong_file_is_refused_at_once_with_file_and_field(self, tmp_path: Path, kind: str) -> None:
        write, message = REFUSED_FILES[kind]
        with pytest.raises(InputError) as refusal:
            NtuSource(write(tmp_path))
        assert message in str(refusal.value)
        assert str(tmp_path) in str(refusal.value)

    def test_the_other_benchmark_of_an_npz_is_refused_either_way(self, tmp_path: Path) -> None:
        path = save(tmp_path / "NTU60_CS.npz", x_train=X, y_train=Y)
        assert len(NtuSource(path, [1, 2], benchmark="x-sub")) == 2
        with pytest.raises(InputError, match="NTU60_CS is x-sub, asked for x-view"):
            NtuSource(path, benchmark="x-view")
        assert len(NtuSource(path.rename(tmp_path / "mine.npz"), [1, 2], benchmark="x-view")) == 2

    def test_an_npy_made_for_the_other_benchmark_is_refused_by_its_names(self, tmp_path: Path) -> None:
        recordings = {f"S001C002P{subject:03}R001A001": recording(subject, 5) for subject in (1, 2, 3)}
        path = write_npy(tmp_path / "train_data.npy", recordings)
        assert len(NtuSource(path, [1], benchmark="x-view")) == 3
        with pytest.raises(InputError, match=r"train_data.npy: S001C002P003R001A001 is not in the train part of x-sub"):
            NtuSource(path, [1])

    def test_a_class_without_a_recording_is_refused_before_anything_is_read(self, tmp_path: Path) -> None:
        path = write_raw(tmp_path / "raw", {NAME: recording(0, 5)})
        with pytest.raises(InputError, match=r"raw: no recording of class 4 \(brush hair\) in x-sub, train"):
            NtuSource(path, [1, 4])

    def test_a_damaged_npz_is_refused_while_it_is_read(self, tmp_path: Path) -> None:
        fields = npz_fields({f"S001C001P001R{number:03}A001": recording(number, 300) for number in range(8)}, "train")
        np.savez_compressed(tmp_path / "a.npz", **fields)
        content = bytearray((tmp_path / "a.npz").read_bytes())
        content[len(content) // 2 : len(content) // 2 + 50] = bytes(50)
        (tmp_path / "a.npz").write_bytes(content)
        source = NtuSource(tmp_path / "a.npz", [1])
        with pytest.raises(InputError, match=r"a\.npz: array 'x_train': cannot be read"):
            list(source.recordings())

    def test_labels_can_lie_elsewhere_and_are_for_npy_alone(self, tmp_path: Path) -> None:
        path = write_npy(tmp_path / "train_data.npy", {NAME: recording(0, 5)})
        elsewhere = (tmp_path / "train_label.pkl").rename(tmp_path / "names.pkl")
        assert only(NtuSource(path, [1], labels=elsewhere)).name == NAME
        with pytest.raises(InputError, match=r"names\.pkl"):
            NtuSource(write_raw(tmp_path / "raw", {NAME: recording(0, 5)}), labels=elsewhere)

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"label": 1}, "label 1 disagrees with the name, whose action 1 is label 0"),
            ({"label": 60}, "label 60 disagrees with the name"),
            ({"label": "0"}, "label '0' disagrees with the name"),
            ({"total_frames": 4}, "total_frames is 4, but keypoint has 5 frames"),
            ({"keypoint": np.ones((3, 5, 25, 3))}, "keypoint: expected (1 or 2, T, 25, 3), found (3, 5, 25, 3)"),
            ({"keypoint": np.ones((0, 5, 25, 3))}, "keypoint: expected (1 or 2, T, 25, 3), found (0, 5, 25, 3)"),
            ({"keypoint": np.ones((1, 5, 17, 3))}, "keypoint: expected (1 or 2, T, 25, 3), found (1, 5, 17, 3)"),
            ({"keypoint": np.ones((1, 5, 25, 2))}, "keypoint: expected (1 or 2, T, 25, 3), found (1, 5, 25, 2)"),
            ({"keypoint": np.ones((5, 25, 3))}, "keypoint: expected (1 or 2, T, 25, 3), found (5, 25, 3)"),
            ({"keypoint": np.full((1, 5, 25, 3), None)}, "keypoint: expected numbers, found object"),
            ({"keypoint": [1, 2]}, "keypoint: expected numbers, found <class 'list'>"),
            ({"keypoint": np.zeros((1, 5, 25, 3))}, "no frame has a skeleton in it"),
        ],
    )
    def test_a_wrong_annotation_is_bad_and_the_others_are_not(self, tmp_path: Path, changes: dict, reason: str) -> None:
        good = annotation(NAME.replace("R001", "R002"), recording(1, 5))
        wrong = {**annotation(NAME, recording(0, 5)), **changes}
        found = list(NtuSource(write_pyskl(tmp_path / "ntu.pkl", [good, wrong]), [1]).recordings())
        assert found[0].name == NAME
        assert isinstance(found[0], BadRecording)
        assert found[0].reason.startswith(reason)
        assert isinstance(found[1], Recording)

    @pytest.mark.parametrize("field", ["label", "total_frames", "keypoint"])
    def test_an_annotation_that_lacks_a_field_is_bad(self, tmp_path: Path, field: str) -> None:
        lacking = annotation(NAME, recording(0, 5))
        del lacking[field]
        bad = only(NtuSource(write_pyskl(tmp_path / "ntu.pkl", [lacking]), [1]))
        assert bad == BadRecording(NAME, f"field {field!r} is missing")

    def test_a_label_beside_an_array_that_disagrees_with_the_name_is_bad(self, tmp_path: Path) -> None:
        bad = only(NtuSource(with_labels(tmp_path / "train_data.npy", ([NAME], [3])), [1]))
        assert bad == BadRecording(NAME, "label 3 disagrees with the name, whose action 1 is label 0")

    @pytest.mark.parametrize("form", ["npy", "pyskl"])
    @pytest.mark.parametrize("function", [os.system, eval])
    def test_a_pickle_that_calls_functions_is_refused_and_nothing_is_called(
        self, tmp_path: Path, form: str, function: Callable
    ) -> None:
        marker = tmp_path / "executed"
        evil = Evil(function, f"touch {marker}" if function is os.system else f"open({str(marker)!r}, 'w').close()")
        if form == "npy":
            path = with_labels(tmp_path / "train_data.npy", ([NAME], evil))
        else:
            path = write_pyskl(tmp_path / "ntu.pkl", [{**annotation(NAME, recording(0, 5)), "keypoint": evil}])
        with pytest.raises(InputError, match="refused: the pickle asks for") as refusal:
            NtuSource(path)
        assert str(tmp_path) in str(refusal.value)
        assert not marker.exists()
