"""AA against AF, one point per order (its mean over repeats), with the bound of Theorem 1 (Figs. 3 to 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skeleton_cgl.analysis.curves import mean_over_repeats
from skeleton_cgl.analysis.figure import Kind, StudyFigure, study_names
from skeleton_cgl.analysis.names import LearnerName, name_together
from skeleton_cgl.analysis.performance import forgetting_bound
from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, SMALL, label_outer, method_legend, panels, styled
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.words import OF_SKELETONS, Wording, order_words

_HOLLOW_KINDS = ("class", "label", "domain")
_LABEL_AT = 0.6


@dataclass(frozen=True, eq=False)
class Cloud:
    """The orders of one kind that one learner learned: AA and AF (n,) of each."""

    name: LearnerName
    kind: str
    AA: np.ndarray
    AF: np.ndarray

    @property
    def spread(self) -> float:
        return float(np.ptp(self.AA) + np.ptp(self.AF))


@dataclass(frozen=True, eq=False)
class Bound:
    """The line of Theorem 1 for orders of so many tasks: AF at AA = 0 and 1, and where its label stands."""

    steps: int
    ends: np.ndarray
    label: tuple[float, float]


@dataclass(frozen=True, eq=False)
class ScatterPanel:
    """What one setting achieved; the widest cloud first, so that none is hidden behind it."""

    title: str
    clouds: tuple[Cloud, ...]
    bounds: tuple[Bound, ...]
    words: Wording = OF_SKELETONS


class OrderScatter(StudyFigure[tuple[ScatterPanel, ...]]):
    """A panel per setting; several studies stand side by side. kind: which orders."""

    title = "Accuracy and forgetting of every order"
    meaning = "A point per order, its mean over repeats; filled: task orders, hollow: class orders."

    def __init__(self, kind: Kind = "both") -> None:
        self.kind = kind

    def described(self, words: Wording) -> tuple[str, str]:
        title, meaning = super().described(words)
        # Domains and periods have orders of one kind.
        return title, f"{meaning.partition(';')[0]}." if words.unit in ("domain", "period") else meaning

    def compute(self, results: Results) -> tuple[ScatterPanel, ...]:
        return self.compute_several([results])

    def compute_several(self, several: Sequence[Results]) -> tuple[ScatterPanel, ...]:
        names = name_together([results.scores.learners for results in several])
        found: list[ScatterPanel] = []
        for results, study, own in zip(several, study_names(several), names, strict=True):
            found += self._panels(results, own, f"{study}, " if len(several) > 1 else "")
        return tuple(found)

    def _panels(self, results: Results, names: dict[int, LearnerName], study: str) -> list[ScatterPanel]:
        points = mean_over_repeats(results.scores.of_kind(self.kind))
        settings = dict.fromkeys(names[number].setting for number in points["learner"])
        found = []
        for setting in settings:
            here = points[[names[number].setting == setting for number in points["learner"]]]
            clouds = [
                Cloud(
                    names[number], order_words(kind, results.scores.unit), rows["AA"].to_numpy(), rows["AF"].to_numpy()
                )
                for (number, kind), rows in here.groupby(["learner", "kind"], sort=False)
            ]
            widest: dict[int, float] = {}
            for cloud in clouds:
                widest[cloud.name.number] = widest.get(cloud.name.number, 0) + cloud.spread
            clouds.sort(key=lambda cloud: -widest[cloud.name.number])
            # Theorem 1 is of learners that are examined after each task.
            lengths = [] if results.scores.has_streams else sorted(set(here["order"].map(len)) - {1})
            bounds = tuple(map(_bound, lengths))
            found.append(ScatterPanel(f"{study}{setting}", tuple(clouds), bounds, results.words))
        return found

    @styled
    def draw(self, value: tuple[ScatterPanel, ...]) -> Figure:
        figure, axes = panels(len(value), 2, COLUMN_INCHES * min(2, len(value)), 3.1, sharex=True, sharey=True)
        for axis, panel in zip(axes, value, strict=True):
            _draw_panel(axis, panel)
            axis.set_xlabel(f"average {panel.words.measured}")
            axis.set_ylabel("average forgetting (AF)")
            if len(value) > 1:
                axis.set_title(panel.title)
        label_outer(axes)
        clouds = [cloud for panel in value for cloud in panel.clouds]
        axes[0].set_xlim(0, 1)
        axes[0].set_ylim(min(0, *(np.nanmin(cloud.AF, initial=0) for cloud in clouds)) - 0.03, 1.03)
        kinds = list(dict.fromkeys(cloud.kind for cloud in clouds))
        method_legend(figure, [cloud.name for cloud in clouds], _kind_entries(kinds), line="")
        return figure


def _bound(steps: int) -> Bound:
    label = (_LABEL_AT, float(forgetting_bound(_LABEL_AT, steps)))
    return Bound(steps, forgetting_bound(np.array([0.0, 1.0]), steps), label)


def _draw_panel(axis: Axes, panel: ScatterPanel) -> None:
    size = 14 if sum(len(cloud.AA) for cloud in panel.clouds) < 500 else 9
    for cloud in panel.clouds:
        colour = cloud.name.colour
        filled: dict[str, Any] = {"c": colour, "linewidths": 0.3, "edgecolors": "white", "alpha": 0.75}
        hollow: dict[str, Any] = {"facecolors": "none", "edgecolors": colour, "linewidths": 0.6, "alpha": 0.75}
        label = f"{cloud.name.method} {cloud.kind}"
        style = hollow if cloud.kind in _HOLLOW_KINDS else filled
        axis.scatter(cloud.AA, cloud.AF, s=size, marker=cloud.name.marker, label=label, **style)
    for bound in panel.bounds:
        axis.plot([0, 1], bound.ends, ":", color="#444444", linewidth=1)
        axis.annotate(
            f"bound, {bound.steps} tasks",
            bound.label,
            (2.5, 2.5),
            textcoords="offset points",
            rotation=np.degrees(np.arctan(bound.ends[1] - bound.ends[0])),
            rotation_mode="anchor",
            transform_rotates_text=True,
            ha="center",
            va="bottom",
            fontsize=SMALL,
        )


def _kind_entries(kinds: Sequence[str]) -> list[Line2D]:
    """Return the legend of filled and hollow points, if there are several kinds."""
    if len(kinds) < 2:
        return []
    point: dict[str, Any] = {"color": "#444444", "marker": "o", "linestyle": ""}
    return [
        Line2D([], [], label=f"{kind} order", **point | ({"mfc": "none"} if kind in _HOLLOW_KINDS else {}))
        for kind in sorted(kinds, key=lambda kind: kind in _HOLLOW_KINDS)
    ]
