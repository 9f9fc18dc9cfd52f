import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons import UCLA, Augmentation, Preparation
from skeleton_cgl.skeletons.preparation import centre, make_clip
from skeleton_cgl.skeletons.recording import tidy

AXES = Preparation(frames=52, centre=1, scale="axes", fit="resample")
METRES = Preparation(frames=52, centre=1, scale="none", fit="repeat")


def random_sequence(seed: int, length: int, actors: int = 1) -> np.ndarray:
    positions = np.random.default_rng(seed).normal(size=(actors, length, 20, 3)).astype(np.float32)
    return centre(positions, 1)


@given(seed=st.integers(0, 1000), length=st.integers(1, 120))
def test_a_scaled_clip_fills_the_range_of_every_axis(seed: int, length: int) -> None:
    sequence = random_sequence(seed, length)
    clip = make_clip(sequence, UCLA, AXES.model_copy(update={"frames": 300}))
    assert clip.shape == (1, 300, 20, 3)
    assert clip.dtype == np.float32
    np.testing.assert_allclose(clip.min(axis=(0, 1, 2)), -1, atol=1e-6)
    np.testing.assert_allclose(clip.max(axis=(0, 1, 2)), 1, atol=1e-6)


def test_an_axis_without_range_becomes_zero() -> None:
    sequence = random_sequence(0, 9)
    sequence[..., 2] = 0.7
    clip = make_clip(sequence, UCLA, AXES)
    assert not clip[..., 2].any()
    assert np.ptp(clip[..., 0]) == pytest.approx(2)


def test_frames_are_resampled_at_the_floor_of_an_even_division() -> None:
    sequence = random_sequence(1, 7)
    clip = make_clip(sequence, UCLA, METRES.model_copy(update={"fit": "resample", "frames": 5}))
    np.testing.assert_array_equal(clip, sequence[:, [0, 1, 3, 4, 6]])
    one = make_clip(sequence[:, :1], UCLA, METRES.model_copy(update={"fit": "resample"}))
    np.testing.assert_array_equal(one, np.repeat(sequence[:, :1], 52, axis=1))


def test_a_short_sequence_is_repeated_and_a_long_one_cut() -> None:
    sequence = random_sequence(1, 20)
    np.testing.assert_array_equal(
        make_clip(sequence, UCLA, METRES), np.concatenate([sequence, sequence, sequence], axis=1)[:, :52]
    )
    long = random_sequence(1, 60)
    np.testing.assert_array_equal(make_clip(long, UCLA, METRES), long[:, :52])


def test_centring_uses_the_first_actors_first_real_frame_and_keeps_missing_frames_zero() -> None:
    positions = np.random.default_rng(0).normal(size=(2, 6, 20, 3)).astype(np.float32)
    positions[0, :2] = 0
    positions[1, 4] = 0
    centred = centre(positions, 1)
    assert not centred[0, :2].any()
    assert not centred[1, 4].any()
    assert not centred[0, 2, 1].any()
    np.testing.assert_array_equal(centred[1, 0], positions[1, 0] - positions[0, 2, 1])
    np.testing.assert_array_equal(centre(centred, 1), centred)


def test_missing_frames_stay_zero_and_do_not_widen_the_range() -> None:
    sequence = random_sequence(3, 10, actors=2) + np.float32(5)
    sequence[1, 3:] = 0
    clip = make_clip(sequence, UCLA, AXES.model_copy(update={"frames": 10}))
    assert not clip[1, 3:].any()
    values = np.concatenate([clip[0].reshape(-1, 3), clip[1, :3].reshape(-1, 3)])
    np.testing.assert_allclose(values.min(axis=0), -1, atol=1e-6)
    np.testing.assert_allclose(values.max(axis=0), 1, atol=1e-6)


def test_bones_and_motion_add_up_to_the_positions_they_were_made_of() -> None:
    sequence = random_sequence(4, 52)
    joint, bone, motion, bone_motion = (
        make_clip(sequence, UCLA, AXES.model_copy(update={"stream": stream}))
        for stream in ("joint", "bone", "motion", "bone-motion")
    )
    rebuilt = np.zeros_like(joint)
    rebuilt[:, :, UCLA.root] = joint[:, :, UCLA.root]
    waiting = list(UCLA.bones)
    done = {UCLA.root}
    while waiting:
        child, parent = waiting.pop(0)
        if parent not in done:
            waiting.append((child, parent))
            continue
        rebuilt[:, :, child] = rebuilt[:, :, parent] + bone[:, :, child]
        done.add(child)
    np.testing.assert_allclose(rebuilt, joint, atol=1e-5)
    assert not bone[:, :, UCLA.root].any()
    np.testing.assert_allclose(joint[:, :1] + np.cumsum(motion, axis=1)[:, :-1], joint[:, 1:], atol=1e-5)
    assert not motion[:, -1].any()
    np.testing.assert_allclose(bone_motion[:, :-1], np.diff(bone, axis=1), atol=1e-6)


def test_motion_into_or_out_of_a_missing_frame_is_zero() -> None:
    sequence = random_sequence(5, 6, actors=2)
    sequence[1, 2] = 0
    motion = make_clip(sequence, UCLA, METRES.model_copy(update={"frames": 6, "stream": "motion"}))
    assert not motion[1, 1:3].any()
    assert motion[1, 0].any()


def test_augmentation_turns_and_scales_the_body_and_samples_frames_in_order() -> None:
    sequence = random_sequence(6, 30)
    still = Augmentation(rotation=0, scaling=(1, 1), frames=True)
    clip = make_clip(sequence, UCLA, METRES, still, np.random.default_rng(0))
    taken = [int(np.flatnonzero((sequence[0] == frame).all(axis=(1, 2)))[0]) for frame in clip[0]]
    assert taken == sorted(taken)
    assert taken != list(np.arange(52) % 30)
    turned = make_clip(sequence, UCLA, METRES, Augmentation(frames=False), np.random.default_rng(1))
    plain = make_clip(sequence, UCLA, METRES)
    ratio = np.linalg.norm(turned, axis=-1)[plain.any(axis=-1)] / np.linalg.norm(plain, axis=-1)[plain.any(axis=-1)]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
    assert 0.5 <= ratio[0] <= 1.5
    gram = np.einsum("atvc,atwc->tvw", plain, plain)
    np.testing.assert_allclose(np.einsum("atvc,atwc->tvw", turned, turned), gram * ratio[0] ** 2, atol=1e-3)
    assert np.abs(turned - ratio[0] * plain).max() > 0.1


def test_augmentation_is_decided_by_the_generator_alone() -> None:
    sequence = random_sequence(6, 30)
    first, again, other = (
        make_clip(sequence, UCLA, AXES, Augmentation(), np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_augmentation_of_flat_skeletons_is_refused() -> None:
    with pytest.raises(InputError, match="3 coordinates expected, found 2"):
        make_clip(random_sequence(0, 5)[..., :2], UCLA, AXES, Augmentation(), np.random.default_rng(0))


def test_frames_without_anybody_are_dropped_and_missing_ones_zeroed() -> None:
    positions = np.random.default_rng(0).normal(size=(2, 5, 20, 3))
    positions[:, 1] = 0
    positions[1, 2] = np.nan
    tidied = tidy(positions, UCLA)
    assert tidied.shape == (2, 4, 20, 3)
    assert not tidied[1, 1].any()
    np.testing.assert_array_equal(tidied[0], positions[0, [0, 2, 3, 4]].astype(np.float32))


@pytest.mark.parametrize(
    ("positions", "reason"),
    [
        (np.zeros((1, 4, 20, 3)), "no frame has a skeleton"),
        (np.ones((1, 4, 19, 3)), r"expected \(actors, frames, 20 joints, coordinates\), found \(1, 4, 19, 3\)"),
        (np.ones((4, 20, 3)), r"found \(4, 20, 3\)"),
        (np.where(np.arange(20)[:, None] == 7, np.inf, np.ones((1, 4, 20, 3))), "frame 0, joint 7"),
        (np.ones((1, 0, 20, 3)), "no frame has a skeleton"),
    ],
)
def test_positions_that_cannot_be_used_are_refused(positions: np.ndarray, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        tidy(positions, UCLA)
