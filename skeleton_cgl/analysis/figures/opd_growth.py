"""AOPD expected of so many orders, exact; the same for runs of one order, a noise floor, in broken lines."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skeleton_cgl.analysis.curves import aopd_growth
from skeleton_cgl.analysis.figure import Level, StudyFigure, names_in
from skeleton_cgl.analysis.names import LearnerName
from skeleton_cgl.analysis.plots.lines import log_ticks, panel_per_setting
from skeleton_cgl.analysis.plots.style import EDGE, label_outer, method_legend, styled
from skeleton_cgl.analysis.results import Results

_COUNTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
_FLOOR: dict[str, Any] = {"mfc": "none", "mew": 0.6}
_VARIED: dict[str, dict[str, Any]] = {
    "order": {"linestyle": "-", **EDGE},
    "seeds": {"linestyle": "--", **_FLOOR},
    "splits": {"linestyle": ":", **_FLOOR},
    "both": {"linestyle": "-.", **_FLOOR},
}
_MEANINGS = {"seeds": "one order, other seeds", "splits": "other splits", "both": "both"}


@dataclass(frozen=True, eq=False)
class Growth:
    """What `curves.aopd_growth` gives, and the names of its learners."""

    names: tuple[LearnerName, ...]
    growth: pd.DataFrame


class OpdGrowth(StudyFigure[Growth]):
    """A panel per setting; broken without a fill: runs of one order that differ by seed, split or both.

    level: whose AOPD, by default of classes where orders of classes were run.
    """

    title = "Disparity and the number of orders"
    meaning = (
        "AOPD expected of so many orders; broken: of so many runs of one order, with other seeds (dashed), other "
        "splits (dotted) or both (dash-dotted)."
    )

    def __init__(self, level: Level | None = None) -> None:
        self.level = level

    def compute(self, results: Results) -> Growth:
        usual = "task" if {run.kind for run in results.scores.runs} == {"task"} else "class"
        return Growth(names_in(results.scores), aopd_growth(results.scores, self.level or usual))

    @styled
    def draw(self, value: Growth) -> Figure:
        figure, axes = panel_per_setting(value.names, 2.6)
        for setting, panel in axes.items():
            for name in value.names:
                if name.setting != setting:
                    continue
                for varied, style in _VARIED.items():
                    chosen = (value.growth["learner"] == name.number) & (value.growth["varied"] == varied)
                    curve = value.growth[chosen]
                    # Few marks, none of them right before the last.
                    few = [place for place, r in enumerate(curve["r"]) if r in _COUNTS and 1.3 * r < len(curve)]
                    marks: dict[str, Any] = {
                        "marker": name.marker,
                        "markevery": [*few, len(curve) - 1],
                        "color": name.colour,
                    }
                    if len(curve):
                        panel.plot(curve["r"], curve["AOPD"], label=f"{name.method} {varied}", **marks, **style)
            log_ticks(panel, [count for count in _COUNTS if count <= value.growth["r"].max()])
            panel.set_ylim(-0.02, 1.02)
            panel.set_xlabel("number of orders")
            panel.set_ylabel("expected AOPD")
        label_outer(list(axes.values()))
        there = set(value.growth["varied"])
        floors = [
            Line2D([], [], color="#444444", linestyle=_VARIED[varied]["linestyle"], label=meaning)
            for varied, meaning in _MEANINGS.items()
            if varied in there
        ]
        method_legend(figure, value.names, floors)
        return figure
