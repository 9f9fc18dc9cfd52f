from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.skeleton import SkeletonScenario
from skeleton_cgl.scenarios.split import Split
from skeleton_cgl.skeletons import Archive, BadRecording, JointLayout, Preparation
from skeleton_cgl.skeletons.groups import groups_of
from skeleton_cgl.skeletons.preparation import centre
from skeleton_cgl.skeletons.sources.custom import CustomSource

LAYOUT = JointLayout(name="arm", joints=("shoulder", "elbow", "hand"), root=0, bones=((1, 0), (2, 1)))
PREPARATION = Preparation(frames=8, centre=0, scale="axes", fit="resample")
RANDOM = np.random.default_rng(0)
SEQUENCES = [RANDOM.normal(size=(length, 3, 3)) for length in (4, 9, 6, 1)]
LABELS = np.array([1, 0, 1, 0])


def ragged(sequences: list[np.ndarray]) -> np.ndarray:
    array = np.empty(len(sequences), dtype=object)
    array[:] = sequences
    return array


def padded() -> dict[str, np.ndarray]:
    array = np.zeros((4, 9, 3, 3))
    for row, sequence in zip(array, SEQUENCES, strict=True):
        row[: len(sequence)] = sequence
    return {"sequences": array, "lengths": np.array([len(sequence) for sequence in SEQUENCES])}


def source_of(path: Path, compressed: bool = False, **arrays: np.ndarray) -> CustomSource:
    (np.savez_compressed if compressed else np.savez)(path / "own.npz", **arrays)
    return CustomSource(path / "own.npz", LAYOUT, PREPARATION)


@pytest.mark.parametrize("compressed", [False, True])
def test_sequences_of_any_length_need_no_code(tmp_path: Path, compressed: bool) -> None:
    source = source_of(tmp_path, compressed, sequences=ragged(SEQUENCES), labels=LABELS)
    with Archive.in_memory(source) as archive:
        assert archive.classes == ("class 0", "class 1")
        assert archive.labels.tolist() == LABELS.tolist()
        for index, sequence in enumerate(SEQUENCES):
            expected = centre(sequence.astype(np.float32)[None], 0)
            np.testing.assert_array_equal(archive.sequence(index), expected)


def test_padded_sequences_with_lengths_are_the_same_data(tmp_path: Path) -> None:
    with (
        Archive.in_memory(source_of(tmp_path, sequences=ragged(SEQUENCES), labels=LABELS)) as of_ragged,
        Archive.in_memory(source_of(tmp_path, labels=LABELS, **padded())) as of_padded,
    ):
        assert of_padded.digest == of_ragged.digest


def test_labels_may_be_names_or_numbers_in_any_order(tmp_path: Path) -> None:
    names = np.array(["wave", "punch", "wave", "punch"])
    for labels, class_names, expected in [
        (names, None, ("punch", "wave")),
        (names, ["wave", "punch"], ("wave", "punch")),
        (np.array([0, 1, 0, 1]), ["wave", "punch"], ("wave", "punch")),
        (np.array([70, 3, 70, 3]), None, ("class 3", "class 70")),
        (names.astype(object), ["wave", "punch"], ("wave", "punch")),
    ]:
        extra = {} if class_names is None else {"class_names": np.array(class_names)}
        source = source_of(tmp_path, sequences=ragged(SEQUENCES), labels=labels, **extra)
        assert source.classes == expected
        named = [expected[recording.label] for recording in source.recordings()]
        numbered = {"wave": {"wave", "class 70"}, "punch": {"punch", "class 3"}}
        assert all(found in numbered[wanted] for found, wanted in zip(named, names, strict=True))


def test_groups_and_names_are_kept(tmp_path: Path) -> None:
    source = source_of(
        tmp_path,
        sequences=ragged(SEQUENCES),
        labels=LABELS,
        names=np.array(["a", "b", "c", "d"]),
        subjects=np.array([5, 6, 5, 6]),
        views=np.array([1, 1, 2, 2]),
    )
    with Archive.in_memory(source) as archive:
        assert archive.names == ("a", "b", "c", "d")
        assert archive.subjects.tolist() == [5, 6, 5, 6]
        assert archive.views.tolist() == [1, 1, 2, 2]
        assert archive.repetitions.tolist() == [-1] * 4


def test_several_actors_and_flat_skeletons_are_read(tmp_path: Path) -> None:
    pair = RANDOM.normal(size=(4, 2, 7, 3, 2))
    with Archive.in_memory(source_of(tmp_path, sequences=pair, labels=LABELS)) as archive:
        assert archive.sequence_shape == (2, 3, 2)
        assert archive.clips().shape == (4, 2, 8, 3, 2)


def test_a_bad_sequence_is_named_with_its_reason(tmp_path: Path) -> None:
    wrong = [SEQUENCES[0], np.zeros((4, 5, 3)), "text", np.array(["x"])]
    source = source_of(tmp_path, sequences=ragged(wrong), labels=LABELS)
    bad = [item for item in source.recordings() if isinstance(item, BadRecording)]
    assert [item.name for item in bad] == ["sequence 1", "sequence 2", "sequence 3"]
    assert "expected (T, 3, C), found (4, 5, 3)" in bad[0].reason
    assert all("not an array of numbers" in item.reason for item in bad[1:])


class Malicious:
    def __reduce__(self) -> tuple:
        return (Path.touch, (Path("executed"),))


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"labels": LABELS}, "array 'sequences' is missing"),
        ({"sequences": ragged(SEQUENCES)}, "array 'labels' is missing"),
        ({"sequences": ragged(SEQUENCES), "label": LABELS}, "unknown array 'label'; did you mean 'labels'"),
        ({"sequences": ragged(SEQUENCES), "labels": LABELS[:3]}, r"'labels': expected one value.*\(4,\), found \(3,\)"),
        ({"sequences": ragged(SEQUENCES), "labels": LABELS / 2}, "'labels': expected whole numbers or text, found flo"),
        (
            {"sequences": ragged(SEQUENCES), "labels": LABELS, "class_names": np.array(["wave"])},
            "'labels': 1 of sequence 0 is not among the class names",
        ),
        (
            {"sequences": ragged(SEQUENCES), "labels": LABELS, "class_names": np.array(["wave", "wave"])},
            "'class_names': names must differ",
        ),
        (
            {"sequences": ragged(SEQUENCES), "labels": LABELS, "subjects": np.array(["x", "y", "z", "w"])},
            "'subjects': expected whole numbers",
        ),
        ({"sequences": ragged(SEQUENCES), "labels": LABELS, "lengths": LABELS}, "'lengths' only goes with"),
        ({**padded(), "labels": LABELS, "lengths": np.array([1, 2, 10, 3])}, "'lengths': expected whole numbers from"),
        ({"sequences": np.zeros((4, 3, 3)), "labels": LABELS}, r"expected \(N, T, V, C\), found \(4, 3, 3\)"),
        ({"sequences": np.asfortranarray(padded()["sequences"]), "labels": LABELS}, "Fortran order"),
    ],
)
def test_what_does_not_fit_is_refused_with_file_and_array(tmp_path: Path, arrays: dict, reason: str) -> None:
    with pytest.raises(InputError, match=rf"own\.npz: (array )?.*{reason}"):
        source_of(tmp_path, **arrays)


def test_a_malicious_array_is_refused_without_being_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = source_of(tmp_path, sequences=ragged([Malicious()] * 4), labels=LABELS)
    with pytest.raises(InputError, match="'sequences': refused: the pickle asks for pathlib"):
        list(source.recordings())
    assert not Path("executed").exists()


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_text("not a zip")
    with pytest.raises(InputError, match=r"x\.npz: expected an \.npz file"):
        CustomSource(tmp_path / "x.npz", LAYOUT, PREPARATION)
    with pytest.raises(InputError, match="no such file"):
        CustomSource(tmp_path / "y.npz", LAYOUT, PREPARATION)


def test_groups_of_the_data_are_kept_to_split_by(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        sequences=np.random.default_rng(0).normal(size=(6, 4, 3, 3)),
        labels=np.array(["sit", "stand"] * 3),
        group_session=np.array([1, 1, 2, 2, 3, 3]),
    )
    source = CustomSource(tmp_path / "a.npz", LAYOUT, PREPARATION)
    with Archive.in_memory(source) as archive:
        assert groups_of(archive)["session"].tolist() == [1, 1, 2, 2, 3, 3]
    scenario = SkeletonScenario(source, split=Split(by="session", test=(2,), validation=(3,)))
    assert scenario.notes[0] == "split by session: 2 training, 2 validation, 2 test clips"
    with pytest.raises(InputError, match="split: by 'sesion': no such groups; did you mean 'session'"):
        SkeletonScenario(source, split=Split(by="sesion"))


def test_a_name_that_is_there_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    names = np.array(["a", "b", "c", "b"])
    with pytest.raises(InputError, match="array 'names': 'b' is there twice, as sequence 1 and as 3"):
        source_of(tmp_path, sequences=ragged(SEQUENCES), labels=LABELS, names=names)
