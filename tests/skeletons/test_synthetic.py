"""The synthetic data set: reproducible to the bit, made of bodies that could exist, doing what their classes say."""

import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons.archive import Archive
from skeleton_cgl.skeletons.layout import UCLA
from skeleton_cgl.skeletons.sources.script import key
from skeleton_cgl.skeletons.sources.synthetic import SyntheticSource, look, make_performance, make_performer, sense

JOINT = {name: number for number, name in enumerate(UCLA.joints)}
LABEL = {name: label for label, name in enumerate(SyntheticSource.classes)}


@pytest.fixture(scope="module")
def recordings():
    return list(SyntheticSource().recordings())


@pytest.fixture(scope="module")
def performances():
    """True motions of every class: {label: [(performer, (T, V, 3)), …]} by ten subjects, twice each."""
    performers = {subject: make_performer(0, subject) for subject in range(1, 11)}
    return {
        label: [
            (performer, make_performance(0, label, subject, repetition, performer))
            for subject, performer in performers.items()
            for repetition in (0, 1)
        ]
        for label in LABEL.values()
    }


def of_class(performances, name):
    return [positions for _, positions in performances[LABEL[name]]]


def main_hand(performer):
    return "left" if performer.left_handed else "right"


def heading(positions):
    """Return (T, 3) twice: the directions to the right of the hips and forward of them, both level."""
    right = positions[:, JOINT["right hip"]] - positions[:, JOINT["left hip"]]
    right = right / np.linalg.norm(right, axis=1, keepdims=True)
    return right, np.cross(np.array([0, 1, 0]), right)


def off_the_line(start, middle, end):
    """Return (T, 3): from the line through start and end to the middle, square to it."""
    line = (end - start) / np.linalg.norm(end - start, axis=1, keepdims=True)
    return (middle - start) - ((middle - start) * line).sum(axis=1, keepdims=True) * line


def test_there_are_1500_recordings_with_150_of_every_class(recordings):
    source = SyntheticSource()
    assert len(source) == len(recordings) == 1500
    assert np.bincount([recording.label for recording in recordings]).tolist() == [150] * 10
    assert source.classes[0] == "pick up with one hand"
    assert source.classes[9] == "carry"


def test_names_tell_the_facts(recordings):
    assert len({recording.name for recording in recordings}) == 1500
    for recording in recordings[::97]:
        facts = (recording.label + 1, recording.subject, recording.repetition, recording.view)
        assert recording.name == "a{:02}_s{:02}_e{:02}_v{:02}".format(*facts)
    assert {recording.subject for recording in recordings} == set(range(1, 11))
    assert {recording.view for recording in recordings} == {1, 2, 3}
    assert {recording.repetition for recording in recordings} == set(range(5))


def test_recordings_have_the_shape_of_nucla(recordings):
    lengths = np.array([recording.positions.shape[1] for recording in recordings])
    assert all(recording.positions.shape[0::2] == (1, 20) for recording in recordings)
    assert all(recording.positions.dtype == np.float32 for recording in recordings)
    assert lengths.min() >= 15
    assert lengths.max() <= 90
    assert 28 <= np.median(lengths) <= 40
    depth = np.array([recording.positions[0, :, 0, 2].mean() for recording in recordings])
    assert depth.min() > 2
    assert depth.max() < 4


def test_in_the_first_view_the_left_side_is_at_smaller_x_and_the_head_is_up(recordings):
    standing = [r.positions[0, 0] for r in recordings if r.view == 1 and r.label == LABEL["donning"]]
    left_first = [frame[JOINT["left shoulder"], 0] < frame[JOINT["right shoulder"], 0] for frame in standing]
    assert np.mean(left_first) > 0.95
    assert all(frame[JOINT["head"], 1] > frame[JOINT["left foot"], 1] + 1 for frame in standing)


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    once, again, other = (
        [recording.positions for recording in SyntheticSource(seed, subjects=1, repetitions=1).recordings()]
        for seed in (3, 3, 4)
    )
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))
    assert not any(a.shape == b.shape and np.array_equal(a, b) for a, b in zip(once, other, strict=True))


def test_a_recording_is_the_same_whichever_others_are_made(recordings):
    everything = {recording.name: recording for recording in recordings}
    for recording in SyntheticSource(subjects=2, views=2, repetitions=1).recordings():
        assert np.array_equal(recording.positions, everything[recording.name].positions)


def test_bones_keep_their_length(performances):
    for label in LABEL.values():
        for _, positions in performances[label]:
            bones = np.stack([positions[:, joint] - positions[:, parent] for joint, parent in UCLA.bones], axis=1)
            lengths = np.linalg.norm(bones, axis=-1)
            np.testing.assert_allclose(lengths, np.broadcast_to(lengths[0], lengths.shape), atol=1e-9)


@pytest.mark.parametrize("side", ["left", "right"])
def test_knees_bend_forward_and_elbows_backward_or_outward(performances, side):
    outward = 1 if side == "right" else -1
    for label in LABEL.values():
        for _, positions in performances[label]:
            right, forward = heading(positions)
            thigh, knee, ankle, shoulder, elbow, wrist = (
                positions[:, JOINT[f"{side} {joint}"]]
                for joint in ("hip", "knee", "ankle", "shoulder", "elbow", "wrist")
            )
            assert (off_the_line(thigh, knee, ankle) * forward).sum(axis=1).min() > -0.02
            elbow_side = 0.6 * outward * right - forward - np.array([0, 0.4, 0])
            assert (off_the_line(shoulder, elbow, wrist) * elbow_side).sum(axis=1).min() > -0.02


def test_one_foot_always_stands_still_on_the_ground_and_the_other_is_near_it(performances):
    for label in LABEL.values():
        for _, positions in performances[label]:
            ankles = positions[:, [JOINT["left ankle"], JOINT["right ankle"]]]
            above = ankles[..., 1] - ankles[..., 1].min()
            assert above.max() < 0.15
            assert above.min(axis=1).max() < 0.01
            moved = np.linalg.norm(np.diff(ankles[..., [0, 2]], axis=0), axis=-1)
            assert moved.min(axis=1).max() < 0.01


def test_views_of_one_repetition_are_one_motion_turned_and_moved():
    motion = make_performance(0, LABEL["throw"], 1, 0, make_performer(0, 1))
    for view in (1, 2, 3):
        seen = look(motion, view, np.random.default_rng(view))
        a, b = motion.reshape(-1, 3), seen.reshape(-1, 3)
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        # The best rotation from one to the other (Kabsch 1976) leaves nothing, and is no mirror image.
        u, _, v = np.linalg.svd(a.T @ b)
        np.testing.assert_allclose(a @ u @ v, b, atol=1e-9)
        assert np.linalg.det(u @ v) == pytest.approx(1)


def test_views_differ_by_about_45_degrees(recordings):
    def facing(view):
        shoulders = [
            r.positions[0, 0, JOINT["right shoulder"]] - r.positions[0, 0, JOINT["left shoulder"]]
            for r in recordings
            if r.view == view and r.label == LABEL["throw"]
        ]
        x, _, z = np.mean(shoulders, axis=0)
        return np.rad2deg(np.arctan2(-z, x))

    front, one, other = (facing(view) for view in (1, 2, 3))
    assert front == pytest.approx(0, abs=10)
    assert one - front == pytest.approx(45, abs=10)
    assert other - front == pytest.approx(-45, abs=10)


def test_sensor_noise_is_small_and_drifts():
    still = np.zeros((400, 20, 3))
    error = sense(still, np.random.default_rng(0))[:, JOINT["head"]]
    assert 0.005 < error.std() < 0.05
    assert np.corrcoef(error[1:, 0], error[:-1, 0])[0, 1] > 0.6


def hips(positions):
    return positions[:, JOINT["base of spine"], 1]


def lean(positions):
    """Return (T,): the angle of the trunk from upright, in degrees."""
    trunk = positions[:, JOINT["spine at shoulders"]] - positions[:, JOINT["base of spine"]]
    return np.rad2deg(np.arccos(trunk[:, 1] / np.linalg.norm(trunk, axis=1)))


@pytest.mark.parametrize(("name", "direction"), [("sit down", -1), ("stand up", 1)])
def test_hips_sink_in_sitting_down_and_rise_in_standing_up(performances, name, direction):
    heights = [hips(positions) for positions in of_class(performances, name)]
    risen = np.array([height[-1] - height[0] for height in heights])
    assert (direction * risen).min() > 0
    assert (direction * risen).mean() > 0.2
    assert min(np.ptp(height) for height in heights) > 0.15


@pytest.mark.parametrize("name", ["pick up with one hand", "pick up with two hands"])
def test_picking_up_bends_the_trunk_forward_and_brings_the_hand_to_knee_height(performances, name):
    lowest = []
    for performer, positions in performances[LABEL[name]]:
        assert lean(positions).max() > 35
        assert lean(positions)[[0, -1]].max() < lean(positions).max() - 15
        lowest.append(positions[:, JOINT[f"{main_hand(performer)} hand"], 1].min() / performer.body.leg)
    assert max(lowest) < 0.75
    assert np.median(lowest) < 0.55


def test_the_second_hand_joins_in_picking_up_with_two_hands(performances):
    def apart(performer_and_positions):
        _, positions = performer_and_positions
        lowest = np.argmin(positions[:, JOINT["head"], 1])
        left, right = (positions[lowest, JOINT[f"{side} hand"]] for side in ("left", "right"))
        return np.linalg.norm(left - right)

    one = [apart(entry) for entry in performances[LABEL["pick up with one hand"]]]
    two = [apart(entry) for entry in performances[LABEL["pick up with two hands"]]]
    assert np.mean(two) < np.mean(one) - 0.05


def test_walking_and_carrying_travel_and_other_actions_hardly(performances):
    def travel(positions):
        return np.linalg.norm((positions[-1] - positions[0])[JOINT["base of spine"], [0, 2]])

    for name in ("walk around", "carry"):
        assert min(travel(positions) for positions in of_class(performances, name)) > 0.5
    for name in ("donning", "doffing"):
        assert max(travel(positions) for positions in of_class(performances, name)) < 0.2


def test_arms_swing_in_walking_and_are_held_in_front_in_carrying(performances):
    def before_the_hips(positions):
        _, forward = heading(positions)
        hands = positions[:, [JOINT["left hand"], JOINT["right hand"]]] - positions[:, [JOINT["base of spine"]]]
        return (hands * forward[:, None]).sum(axis=-1)

    walk, carry = (
        [before_the_hips(positions) for positions in of_class(performances, name)] for name in ("walk around", "carry")
    )
    assert np.mean([hands.std(axis=0) for hands in walk]) > 1.5 * np.mean([hands.std(axis=0) for hands in carry])
    assert np.mean([hands.mean() for hands in carry]) > np.mean([hands.mean() for hands in walk]) + 0.1


def test_the_throwing_hand_rises_above_its_shoulder_amid_the_throw(performances):
    for performer, positions in performances[LABEL["throw"]]:
        side = main_hand(performer)
        height = positions[:, JOINT[f"{side} hand"], 1] - positions[:, JOINT[f"{side} shoulder"], 1]
        assert height.max() > 0
        assert height.max() > height[0] + 0.2
        assert height.max() > height[-1] + 0.2


def test_both_hands_go_around_the_trunk_in_donning_and_doffing(performances):
    for name in ("donning", "doffing"):
        spread = []
        for positions in of_class(performances, name):
            right, _ = heading(positions)
            hands = positions[:, [JOINT["left hand"], JOINT["right hand"]]] - positions[:, [JOINT["base of spine"]]]
            spread.append(np.ptp((hands * right[:, None]).sum(axis=-1), axis=0))
        assert np.median(spread) > 0.3


def test_both_hands_are_at_the_collar_late_in_donning_and_early_in_doffing(performances):
    def when(positions):
        hands = positions[:, [JOINT["left hand"], JOINT["right hand"]], 1]
        return np.argmax(hands.min(axis=1)) / len(positions)

    don, doff = (
        np.mean([when(positions) for positions in of_class(performances, name)]) for name in ("donning", "doffing")
    )
    assert don > doff + 0.15


def test_subjects_differ_in_size_speed_and_hand():
    performers = [make_performer(0, subject) for subject in range(1, 41)]
    assert len({performer.body for performer in performers}) == 40
    assert 0 < sum(performer.left_handed for performer in performers) < 20
    assert np.std([performer.tempo for performer in performers]) > 0.05


def test_it_is_a_source_an_archive_can_be_made_of():
    with Archive.in_memory(SyntheticSource(subjects=1, views=1, repetitions=1)) as archive:
        assert archive.layout.name == "synthetic"
        assert archive.clips().shape == (10, 1, 52, 20, 3)
        assert archive.provenance["seed"] == "0"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"views": 4}, "views must be 1–3, found 4"), ({"subjects": 0}, "subjects"), ({"seed": -1}, "seed must be 0")],
)
def test_impossible_counts_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        SyntheticSource(**wrong)


def test_a_script_cannot_name_a_channel_that_does_not_exist():
    with pytest.raises(ValueError, match="no channel 'leen'; the channels are main, idle, lean"):
        key(0.5, leen=10)
