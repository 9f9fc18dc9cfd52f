"""What all figures share: the size of a column, panels, legends, and saving.

Every method has one colour and one marker throughout, those of its name, which the colour-blind tell apart and grey
print keeps apart.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skeleton_cgl.analysis.names import LearnerName, methods_of, settings_of
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside

Drawing = TypeVar("Drawing", bound=Callable[..., Figure])

FORMATS = (".png", ".pdf", ".svg")
COLUMN_INCHES = 3.4
"""The width of one column of a two-column paper."""
NORMAL, SMALL = 7, 6
"""The size of letters, in points."""
_LETTER_INCHES, _LINE_INCHES, _ENTRY_INCHES = 0.055, 0.15, 0.33
"""How wide a letter of a legend is, how high its lines are, and what an entry needs beside its letters."""

_GRID: dict[str, Any] = {"color": "#DDDDDD", "linewidth": 0.4}
_LEGEND: dict[str, Any] = {"columnspacing": 1.2, "handletextpad": 0.4, "borderpad": 0, "frameon": False}
_LOOK: dict[Any, Any] = {
    **dict.fromkeys(["font.size", "axes.labelsize", "axes.titlesize", "legend.fontsize"], NORMAL),
    **{"axes.linewidth": 0.6, "lines.linewidth": 1, "lines.markersize": 4, "axes.titlepad": 3, "axes.labelpad": 2},
}
# The same figure gives the same bytes, and letters that can be searched for.
_FILE: dict[Any, Any] = {"pdf.fonttype": 42, "svg.hashsalt": "skeleton_cgl"}
_DATES: dict[str, dict[str, Any] | None] = {".png": None, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}

EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.3}
"""What sets markers apart where they overlap."""
HOLLOW: dict[str, Any] = {"marker": "o", "markersize": 3.5, "markerfacecolor": "none", "markeredgecolor": "black"}
HOLLOW |= {"markeredgewidth": 0.6, "linestyle": ""}
"""The mark of what does not hold."""
TICKS: dict[str, Any] = {"labelsize": SMALL, "length": 2, "pad": 2, "width": 0.6}
"""How ticks look; to be set on every axis, since they are made when the figure is drawn, outside of `styled`."""


def styled(draw: Drawing) -> Drawing:
    """Make a drawing function use the sizes and lines of all figures."""

    @functools.wraps(draw)
    def drawn(*values: Any, **options: Any) -> Figure:
        with rc_context(_LOOK):
            return draw(*values, **options)

    return cast(Drawing, drawn)


def panels(number: int, columns: int, width: float, height: float, **sharing: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure `width` inches wide with so many panels, `height` inches for each row of them."""
    columns = min(columns, number)
    rows = -(-number // columns)
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **sharing).flat
    for panel in axes[:number]:
        panel.tick_params(**TICKS)
        panel.grid(**_GRID)
        panel.set_axisbelow(True)
    for spare in axes[number:]:
        spare.remove()
    return figure, list(axes[:number])


def label_outer(axes: list[Axes]) -> None:
    """Leave labels only to the panels at the left, and to those with no panel below: some, if a row is not full."""
    place = axes[0].get_subplotspec()
    columns = 1 if place is None else place.get_gridspec().ncols
    for number, panel in enumerate(axes):
        at_left, at_bottom = number % columns == 0, number + columns >= len(axes)
        panel.tick_params(which="both", labelleft=at_left, labelbottom=at_bottom)
        panel.set(xlabel=panel.get_xlabel() * at_bottom, ylabel=panel.get_ylabel() * at_left)


def panel_titles(names: Iterable[LearnerName], between: str = ", ") -> dict[int, str]:
    """Return a title for the panel of every learner: its method, and its setting if there are several."""
    names = list(names)
    several = len(settings_of(names)) > 1
    return {name.number: f"{name.method}{between}{name.setting}" if several else name.method for name in names}


def panels_per_row(titles: Iterable[str], letters: int, most: int) -> int:
    """Return how many panels fit beside each other, at most so many, where a row has room for so many letters."""
    longest = max(len(line) for title in titles for line in title.splitlines())
    return max(1, min(most, letters // longest))


def method_legend(
    figure: Figure, names: Iterable[LearnerName], others: Iterable[Line2D] = (), line: Literal["-", ""] = "-"
) -> None:
    """Put the legend of the methods above the panels, and that of whatever else is given below.

    A legend of more than two lines makes the figure so much higher.
    """
    entries = [
        Line2D([], [], color=name.colour, marker=name.marker, linestyle=line, label=name.method, **EDGE)
        for name in methods_of(names)
    ]
    columns = len(entries) if len(entries) <= 4 else -(-len(entries) // 2)
    longest = max(len(str(entry.get_label())) for entry in entries)
    columns = max(1, min(columns, int(figure.get_figwidth() / (_ENTRY_INCHES + longest * _LETTER_INCHES))))
    lines = -(-len(entries) // columns)
    figure.set_figheight(figure.get_figheight() + max(0, lines - 2) * _LINE_INCHES)
    figure.legend(handles=entries, loc="outside upper center", ncols=columns, **_LEGEND)
    if others := list(others):
        figure.legend(handles=others, loc="outside lower center", ncols=len(others), **_LEGEND)


def columns_below(figure: Figure, labels: Sequence[str]) -> int:
    """Return in how many columns a legend of these labels, in small letters, fits a figure."""
    widest = _ENTRY_INCHES + max(map(len, labels)) * _LETTER_INCHES * SMALL / NORMAL
    return max(1, min(len(labels), int(figure.get_figwidth() / widest)))


def legend_below(figure: Figure, entries: Sequence[Artist]) -> None:
    """Put a legend of however many entries below the panels, in small letters; the figure is made so much higher."""
    columns = columns_below(figure, [str(entry.get_label()) for entry in entries])
    figure.set_figheight(figure.get_figheight() + -(-len(entries) // columns) * _LINE_INCHES)
    figure.legend(handles=entries, loc="outside lower center", ncols=columns, fontsize=SMALL, **_LEGEND)


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure beside `path` and rename it; refuse a suffix other than .png, .pdf or .svg."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise InputError(f"{path}: a figure is called NAME{', NAME'.join(FORMATS)}")
    with rc_context(_FILE), write_beside(path) as unfinished:
        figure.savefig(unfinished, format=path.suffix[1:], dpi=300, metadata=_DATES[path.suffix])
