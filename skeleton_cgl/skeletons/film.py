"""Stick figures of recorded sequences: strips of frames for paper, and moving pictures.

What is shown (which frames, and where every joint comes to lie on the paper) is computed apart from drawing it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.skeletons.archive import Archive
from skeleton_cgl.skeletons.layout import JointLayout
from skeleton_cgl.skeletons.preparation import presence
from skeleton_cgl.skeletons.recording import UNKNOWN

_STILL = (".png", ".pdf", ".svg")
_MOVING = (".gif",)
_FROM_THE_SIDE = np.deg2rad(40)
_DPI = 160
_MILLISECONDS_PER_FRAME = 70

# Inches on the paper.
_SLOT_WIDTH, _ROW_HEIGHT, _NAME_WIDTH, _HEAD_HEIGHT, _MARGIN = 0.8, 1.15, 1.1, 0.4, 0.08
_FIGURE_WIDTH, _FIGURE_HEIGHT, _GROUND = 0.74, 0.88, 0.17
_SCREEN_WIDTH, _SCREEN_HEIGHT = 2.0, 2.2


@dataclass(frozen=True)
class _Pen:
    colour: str
    width: float
    dashes: Literal["solid"] | tuple[float, tuple[float, float]] = "solid"


# The colours of Okabe & Ito, which the colour-blind tell apart; width and dashes tell them apart in grey print.
_PENS = {
    "left limbs": _Pen("#0072B2", 2.0),
    "right limbs": _Pen("#D55E00", 1.5, (0, (1.6, 0.5))),
    "trunk": _Pen("#000000", 1.0),
}
_SECOND_ACTOR = "second actor"
_SECOND_PEN = _Pen("#999999", 0.7)
_PALE = "#666666"


@dataclass(frozen=True)
class Strip:
    """What is shown of one sequence.

    frames (F,): the recorded frames shown, of `length` recorded; present (A, F): whether the actor is in the frame.
    points (A, F, V, 2): the joints as seen, x to the right and y up, in the unit of the recording.
    """

    name: str
    length: int
    frames: np.ndarray
    points: np.ndarray
    present: np.ndarray


def typical_sequences(archive: Archive) -> list[int]:
    """Return for every class the index of a sequence of median length among those of its first view."""
    typical = []
    for label in range(len(archive.classes)):
        members = np.flatnonzero(archive.labels == label)
        members = members[archive.views[members] == archive.views[members].min()]
        by_length = members[np.argsort(archive.lengths[members], kind="stable")]
        typical.append(int(by_length[(len(members) - 1) // 2]))
    return typical


def make_strip(archive: Archive, index: int, frames: int | None = None) -> Strip:
    """Return `frames` frames of a sequence, evenly spaced from the first to the last, or all it has.

    A skeleton of three coordinates is seen a bit from the side. Refused: frames below 1, an index of no sequence.
    """
    if frames is not None and frames < 1:
        raise InputError(f"frames must be at least 1, found {frames}")
    if not 0 <= index < len(archive):
        raise InputError(f"{archive.path}: no sequence {index}, the sequences are 0–{len(archive) - 1}")
    length = int(archive.lengths[index])
    chosen = np.linspace(0, length - 1, min(frames or length, length)).round().astype(np.int64)
    sequence = archive.sequence(index)[:, chosen]
    name = archive.classes[archive.labels[index]]
    return Strip(name, length, chosen, _see(sequence), presence(sequence))


def facts_of(archive: Archive, index: int) -> list[str]:
    """Return what a title says of a sequence: its name, class, subject if known, and length."""
    subject = [] if archive.subjects[index] == UNKNOWN else [f"subject {archive.subjects[index]}"]
    return [
        archive.names[index],
        archive.classes[archive.labels[index]],
        *subject,
        f"{archive.lengths[index]} frames",
    ]


def _see(positions: np.ndarray) -> np.ndarray:
    """Return (…, 2): positions (…, C) turned about the vertical and seen along z; two coordinates as they are."""
    if positions.shape[-1] == 2:
        return positions
    x, y, z = np.moveaxis(positions, -1, 0)
    return np.stack([np.cos(_FROM_THE_SIDE) * x + np.sin(_FROM_THE_SIDE) * z, y], axis=-1)


def side_by_side(strip: Strip) -> np.ndarray:
    """Return (A, F, V, 2) in inches: every figure in the middle of its slot, all at one scale and above one ground."""
    low, high = _extent(strip)
    scale = _scale((high[:, 0] - low[:, 0]).max(), high[:, 1].max() - low[:, 1].min(), _FIGURE_WIDTH, _FIGURE_HEIGHT)
    origin = np.stack([(low[:, 0] + high[:, 0]) / 2, np.full(len(low), low[:, 1].min())], axis=-1)
    slots = np.stack([(np.arange(len(low)) + 0.5) * _SLOT_WIDTH, np.full(len(low), _GROUND)], axis=-1)
    return (strip.points - origin[:, None]) * scale + slots[:, None]


def on_screen(strip: Strip) -> np.ndarray:
    """Return (A, F, V, 2) in inches: the figures where they are, at the scale at which all of them fit the screen."""
    lowest, highest = _extent(strip)
    low, high = lowest.min(axis=0), highest.max(axis=0)
    width, height = high - low
    scale = _scale(width, height, _SCREEN_WIDTH - 2 * _MARGIN, _SCREEN_HEIGHT - _HEAD_HEIGHT - _GROUND)
    origin = np.array([(low[0] + high[0]) / 2, low[1]])
    return (strip.points - origin) * scale + np.array([_SCREEN_WIDTH / 2, _GROUND])


def _extent(strip: Strip) -> tuple[np.ndarray, np.ndarray]:
    """Return (F, 2) twice: the lowest and highest coordinates of the actors in each frame."""
    present = strip.present[..., None, None]
    low = np.where(present, strip.points, np.inf).min(axis=(0, 2))
    return low, np.where(present, strip.points, -np.inf).max(axis=(0, 2))


def _scale(width: float, height: float, room_across: float, room_up: float) -> float:
    return 1 / max(width / room_across, height / room_up, float(np.finfo(np.float32).tiny))


def film_strips(archive: Archive, path: str | Path, frames: int = 8, sequences: Sequence[int] | None = None) -> None:
    """Draw a row of stick figures for a typical sequence of every class, or for each of `sequences`.

    Refused: another suffix than .png, .pdf and .svg, and what `make_strip` refuses.
    """
    path = _drawable(path, _STILL)
    chosen = typical_sequences(archive) if sequences is None else sequences
    _save(draw_strips([make_strip(archive, index, frames) for index in chosen], archive.layout), path)


def film_strip(archive: Archive, index: int, path: str | Path, frames: int = 8) -> None:
    """Draw one sequence: `frames` stick figures side by side, or in a .gif every recorded frame after the other.

    Refused: another suffix than .png, .pdf, .svg and .gif, and what `make_strip` refuses.
    """
    path = _drawable(path, _STILL + _MOVING)
    moving = path.suffix.lower() in _MOVING
    strip = make_strip(archive, index, None if moving else frames)
    if moving:
        _save_moving(strip, archive.layout, facts_of(archive, index), path)
    else:
        _save(draw_strips([strip], archive.layout, facts_of(archive, index)), path)


def _drawable(path: str | Path, suffixes: tuple[str, ...]) -> Path:
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{path}: a film ends in {', '.join(suffixes)}; found {path.suffix or 'no suffix'}")
    return path


def draw_strips(strips: Sequence[Strip], layout: JointLayout, facts: Sequence[str] = ()) -> Figure:
    """Return the strips drawn as rows below each other; facts make a title, instead of the class names of the rows."""
    left = _MARGIN if facts else _NAME_WIDTH
    # A strip of one or two frames still has room for its title and the legend.
    slots = max(5, *(len(strip.frames) for strip in strips))
    width, height = left + slots * _SLOT_WIDTH, _HEAD_HEIGHT + len(strips) * _ROW_HEIGHT
    figure, paper = _blank(width, height)
    for row, strip in enumerate(reversed(strips)):
        ground = row * _ROW_HEIGHT + _GROUND
        points = side_by_side(strip) + np.array([left, row * _ROW_HEIGHT])
        paper.plot([left, width - _MARGIN], [ground, ground], color=_PALE, linewidth=0.4)
        for slot, frame in enumerate(strip.frames):
            _draw_actors(paper, points[:, slot], strip.present[:, slot], layout)
            number = str(frame) if slot else f"frame {frame}"
            middle = left + (slot + 0.5) * _SLOT_WIDTH
            paper.text(middle, ground - 0.03, number, size=6, color=_PALE, ha="center", va="top")
        if not facts:
            paper.text(_MARGIN, ground + _FIGURE_HEIGHT / 2, fill(strip.name, 14), size=8, va="center")
    paper.text(_MARGIN, height - _HEAD_HEIGHT / 4, "  ·  ".join(facts), size=8, va="center")
    paper.legend(
        handles=_legend(strips),
        loc="center right",
        bbox_to_anchor=(width, height - _HEAD_HEIGHT * (0.75 if facts else 0.5)),
        bbox_transform=paper.transData,
        ncols=4,
        fontsize=7,
        frameon=False,
    )
    return figure


def _blank(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure of this size and axes that cover it, on which a unit is an inch."""
    figure = Figure(figsize=(width, height))
    paper = figure.add_axes((0, 0, 1, 1))
    paper.set(xlim=(0, width), ylim=(0, height))
    paper.set_axis_off()
    return figure, paper


def _draw_actors(paper: Axes, points: np.ndarray, present: np.ndarray, layout: JointLayout) -> None:
    """Draw the actors (A, V, 2) that are present, the first one above the others."""
    for actor in reversed(np.flatnonzero(present)):
        for part, pen in _PENS.items():
            pen = pen if actor == 0 else _SECOND_PEN
            bones = [points[actor, list(bone)] for bone in layout.bones if _part(layout, bone) == part]
            paper.add_collection(
                LineCollection(bones, colors=pen.colour, linewidths=pen.width, linestyles=pen.dashes, capstyle="butt"),
                autolim=False,
            )
        pen = _PENS["trunk"] if actor == 0 else _SECOND_PEN
        heads = points[actor, [joint for joint, name in enumerate(layout.joints) if name == "head"]]
        paper.plot(heads[:, 0], heads[:, 1], "o", color=pen.colour, markersize=2.5 + pen.width)


def _part(layout: JointLayout, bone: tuple[int, int]) -> str:
    joint = layout.joints[bone[0]]
    return next((part for part in _PENS if part.split()[0] in joint.split()), "trunk")


def _legend(strips: Sequence[Strip]) -> list[Line2D]:
    pens = dict(_PENS)
    if any(strip.present[1:].any() for strip in strips):
        pens[_SECOND_ACTOR] = _SECOND_PEN
    return [
        Line2D([], [], color=pen.colour, linewidth=pen.width, linestyle=pen.dashes, label=name)
        for name, pen in pens.items()
    ]


def _save(figure: Figure, path: Path) -> None:
    with write_beside(path) as unfinished:
        figure.savefig(unfinished, format=path.suffix[1:].lower(), dpi=_DPI)


def _save_moving(strip: Strip, layout: JointLayout, facts: Sequence[str], path: Path) -> None:
    points = on_screen(strip)
    images: list[Image.Image] = []
    for shown, frame in enumerate(strip.frames):
        figure, paper = _blank(_SCREEN_WIDTH, _SCREEN_HEIGHT)
        paper.plot([_MARGIN, _SCREEN_WIDTH - _MARGIN], [_GROUND, _GROUND], color=_PALE, linewidth=0.4)
        _draw_actors(paper, points[:, shown], strip.present[:, shown], layout)
        name, *others = facts
        paper.text(_MARGIN, _SCREEN_HEIGHT - 0.05, f"{name}\n{' · '.join(others)}", size=5, va="top")
        paper.text(_MARGIN, _GROUND - 0.03, f"frame {frame}", size=5, color=_PALE, va="top")
        canvas = FigureCanvasAgg(figure)
        figure.set_dpi(_DPI)
        canvas.draw()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        # One palette for all frames, so that still parts are stored once.
        images.append(
            image.quantize(32, method=Image.Quantize.MAXCOVERAGE)
            if not images
            else image.quantize(palette=images[0], dither=Image.Dither.NONE)
        )
    with write_beside(path) as unfinished:
        images[0].save(
            unfinished,
            format="GIF",
            save_all=True,
            append_images=images[1:],
            duration=_MILLISECONDS_PER_FRAME,
            loop=0,
        )
