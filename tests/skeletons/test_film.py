"""Film strips: the right frames of the right sequences, at the right place, in files that open."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons import film
from skeleton_cgl.skeletons.archive import Archive
from skeleton_cgl.skeletons.film import (
    draw_strips,
    facts_of,
    film_strip,
    film_strips,
    make_strip,
    on_screen,
    side_by_side,
    typical_sequences,
)
from skeleton_cgl.skeletons.layout import JointLayout
from skeleton_cgl.skeletons.preparation import Preparation
from skeleton_cgl.skeletons.recording import Recording
from skeleton_cgl.skeletons.sources.synthetic import SyntheticSource


@pytest.fixture(scope="module")
def archive():
    with Archive.in_memory(SyntheticSource(subjects=2, views=2, repetitions=1)) as archive:
        yield archive


class Pairs:
    """Two actors of three joints; the second one comes in at frame 2. The sequence of class k has 4 + k frames."""

    layout = JointLayout(name="three", joints=("head", "left hand", "right hand"), root="head", bones=((1, 0), (2, 0)))
    preparation = Preparation(frames=4, centre=0, scale="none", fit="resample")
    provenance: dict[str, str] = {}  # noqa: RUF012
    classes = ("meet", "part")

    def __init__(self, coordinates: int) -> None:
        self.coordinates = coordinates

    def __len__(self) -> int:
        return 2

    def recordings(self):
        random = np.random.default_rng(0)
        for label in range(2):
            positions = random.normal(size=(2, 4 + label, 3, self.coordinates)).astype(np.float32)
            positions[1, :2] = 0
            yield Recording(f"pair {label}", positions, label)


def test_frames_are_evenly_spaced_from_first_to_last(archive):
    index = int(np.argmax(archive.lengths))
    strip = make_strip(archive, index, 5)
    assert strip.frames[0] == 0
    assert strip.frames[-1] == archive.lengths[index] - 1
    assert np.ptp(np.diff(strip.frames)) <= 1
    assert strip.points.shape == (1, 5, 20, 2)


def test_no_frame_is_shown_twice(archive):
    index = int(np.argmin(archive.lengths))
    assert make_strip(archive, index, 1000).frames.tolist() == list(range(archive.lengths[index]))
    assert make_strip(archive, index).frames.tolist() == list(range(archive.lengths[index]))


def test_the_typical_sequence_has_the_median_length_of_its_class_and_first_view(archive):
    for label, index in enumerate(typical_sequences(archive)):
        lengths = archive.lengths[(archive.labels == label) & (archive.views == 1)]
        assert archive.labels[index] == label
        assert archive.views[index] == 1
        assert archive.lengths[index] == np.percentile(lengths, 50, method="lower")


def test_three_coordinates_are_seen_from_the_side_with_heights_kept(archive):
    sequence = archive.sequence(0)
    strip = make_strip(archive, 0)
    np.testing.assert_array_equal(strip.points[..., 1], sequence[..., 1])
    # A point deeper in the picture by 1 is seen moved by sin 40°, one further right by 1 by cos 40°.
    x, z = sequence[..., 0], sequence[..., 2]
    np.testing.assert_allclose(strip.points[..., 0], 0.766 * x + 0.643 * z, atol=2e-3)


def test_two_coordinates_are_drawn_as_they_are(tmp_path):
    with Archive.in_memory(Pairs(coordinates=2)) as archive:
        np.testing.assert_array_equal(make_strip(archive, 1).points, archive.sequence(1))
        film_strips(archive, tmp_path / "pairs.png")
    with Image.open(tmp_path / "pairs.png") as image:
        assert image.format == "PNG"


def test_figures_stand_in_their_slots_on_one_ground_at_one_scale(archive):
    for index in typical_sequences(archive):
        strip = make_strip(archive, index, 8)
        placed = side_by_side(strip)
        assert placed[..., 1].min() == pytest.approx(film._GROUND)
        assert placed[..., 1].max() <= film._ROW_HEIGHT
        for slot in range(8):
            assert placed[:, slot, :, 0].min() >= slot * film._SLOT_WIDTH
            assert placed[:, slot, :, 0].max() <= (slot + 1) * film._SLOT_WIDTH
        sizes = np.ptp(placed, axis=2) / np.ptp(strip.points, axis=2)
        np.testing.assert_allclose(sizes, sizes[0, 0, 0], rtol=1e-4)


def test_on_the_screen_figures_keep_their_way(archive):
    index = typical_sequences(archive)[3]
    strip = make_strip(archive, index)
    placed = on_screen(strip)
    assert placed.min() >= 0
    assert placed[..., 0].max() <= film._SCREEN_WIDTH
    assert placed[..., 1].max() <= film._SCREEN_HEIGHT
    moved, seen = np.diff(placed, axis=1), np.diff(strip.points, axis=1)
    scale = np.ptp(placed[..., 1]) / np.ptp(strip.points[..., 1])
    np.testing.assert_allclose(moved, scale * seen, atol=1e-4)


def test_missing_actors_do_not_count_for_the_place():
    with Archive.in_memory(Pairs(coordinates=3)) as archive:
        strip = make_strip(archive, 0)
    assert strip.present.tolist() == [[True] * 4, [False, False, True, True]]
    elsewhere = strip.points.copy()
    elsewhere[1, :2] = 1000
    np.testing.assert_allclose(
        side_by_side(strip)[strip.present], side_by_side(replace(strip, points=elsewhere))[strip.present]
    )


def bones_on(paper):
    return sum(len(lines.get_segments()) for lines in paper.collections)


def test_every_actor_present_is_drawn_and_no_other():
    with Archive.in_memory(Pairs(coordinates=3)) as archive:
        [paper] = draw_strips([make_strip(archive, 0)], archive.layout).axes
    figures = 4 + 2
    assert bones_on(paper) == figures * len(Pairs.layout.bones)
    assert "second actor" in [text.get_text() for text in paper.get_legend().get_texts()]


def test_a_row_has_the_name_of_its_class_and_the_numbers_of_its_frames(archive):
    strips = [make_strip(archive, index, 6) for index in typical_sequences(archive)]
    [paper] = draw_strips(strips, archive.layout).axes
    assert bones_on(paper) == 10 * 6 * len(archive.layout.bones)
    texts = [text.get_text().replace("\n", " ") for text in paper.texts]
    assert [text for text in texts if text in archive.classes] == list(reversed(archive.classes))
    assert texts.count("frame 0") == 10
    assert [text.get_text() for text in paper.get_legend().get_texts()] == ["left limbs", "right limbs", "trunk"]


def test_left_right_and_trunk_differ_in_more_than_colour(archive):
    [paper] = draw_strips([make_strip(archive, 0, 1)], archive.layout).axes
    looks = {(lines.get_linewidth()[0], str(lines.get_linestyle())) for lines in paper.collections}
    assert len(looks) == 3


def test_the_title_of_one_sequence_names_it(archive):
    facts = facts_of(archive, 9)
    assert facts == [archive.names[9], "drop trash", "subject 1", f"{archive.lengths[9]} frames"]
    [paper] = draw_strips([make_strip(archive, 9, 6)], archive.layout, facts).axes
    assert all(fact in paper.texts[-1].get_text() for fact in facts)


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg", ".PNG"])
def test_strips_open_as_what_they_are(archive, tmp_path, suffix):
    path = tmp_path / "new folder" / f"strips{suffix}"
    film_strips(archive, path, frames=3, sequences=[0, 20])
    if suffix.lower() == ".png":
        with Image.open(path) as image:
            assert image.format == "PNG"
    elif suffix == ".pdf":
        assert path.read_bytes().startswith(b"%PDF")
    else:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_gif_has_one_image_per_recorded_frame_and_is_small(archive, tmp_path):
    index = int(np.argmin(np.abs(archive.lengths - 30)))
    film_strip(archive, index, tmp_path / "one.gif")
    with Image.open(tmp_path / "one.gif") as image:
        assert image.n_frames == archive.lengths[index]
        assert image.info["duration"] == 70
        assert image.info["loop"] == 0
    assert (tmp_path / "one.gif").stat().st_size < 10_000 * archive.lengths[index]


def test_a_wrong_suffix_is_refused_with_those_allowed(archive, tmp_path):
    with pytest.raises(InputError, match=r"strips.gif: a film ends in .png, .pdf, .svg; found .gif"):
        film_strips(archive, tmp_path / "strips.gif")
    with pytest.raises(InputError, match=r"one: a film ends in .png, .pdf, .svg, .gif; found no suffix"):
        film_strip(archive, 0, tmp_path / "one")
    assert not list(tmp_path.iterdir())


def test_a_sequence_that_does_not_exist_and_no_frames_are_refused(archive, tmp_path):
    with pytest.raises(InputError, match="no sequence 40, the sequences are 0–39"):
        film_strip(archive, 40, tmp_path / "one.png")
    with pytest.raises(InputError, match="no sequence -1"):
        film_strips(archive, tmp_path / "all.png", sequences=[-1])
    with pytest.raises(InputError, match="frames must be at least 1, found 0"):
        film_strips(archive, tmp_path / "all.png", frames=0)
    assert not list(tmp_path.iterdir())
