"""Lines, one per method: AA along an order, the growth of AOPD with the number of orders, AA and AF over a sweep."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, EDGE, label_outer, looks, method_legend, panels, styled
from skeleton_cgl.analysis.sweeps import MEASURES

_COUNTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
_VARIED = {"order": {"linestyle": "-", **EDGE}, "seed": {"linestyle": "--", "mfc": "none", "mew": 0.6}}
_NAMES = {"AA": "accuracy (AA)", "AF": "forgetting (AF)"}


@styled
def learning_curve(steps: pd.DataFrame) -> Figure:
    """Return AA against the step, a panel per backbone, from `curves.accuracy_by_step`.

    A thick bar spans the middle half of the orders, a thin one all of them.
    """
    figure, axes = _panel_per_backbone(steps, 2.6)
    for panel, (_, rows) in zip(axes, steps.groupby("backbone", sort=False), strict=True):
        styles = looks(rows["method"])
        for shift, (method, look) in zip(_shifts(len(styles)), styles.items(), strict=True):
            curve = rows[rows["method"] == method]
            place = curve["step"] + shift
            panel.vlines(place, curve["lowest"], curve["highest"], color=look.colour, linewidth=0.5)
            panel.vlines(place, curve["lower_quartile"], curve["upper_quartile"], color=look.colour, linewidth=2)
            panel.plot(place, curve["AA"], color=look.colour, marker=look.marker, linewidth=0.5, label=method, **EDGE)
        panel.set_xticks(sorted(set(rows["step"])))
        panel.grid(visible=False, axis="x")
        panel.set_ylim(-0.02, 1.02)
        panel.set_xlabel("tasks learned")
        panel.set_ylabel("average accuracy (AA)")
    label_outer(axes)
    widths = {"middle half of orders": 2, "all orders": 0.5}
    bars = [Line2D([], [], color="#444444", linewidth=width, label=label) for label, width in widths.items()]
    method_legend(figure, steps["method"], bars)
    return figure


@styled
def opd_growth(growth: pd.DataFrame) -> Figure:
    """Return expected AOPD against the number of runs, a panel per backbone, from `curves.aopd_growth`.

    Dashed without a fill: runs of one order that differ by their seed alone.
    """
    figure, axes = _panel_per_backbone(growth, 2.6)
    for panel, (_, rows) in zip(axes, growth.groupby("backbone", sort=False), strict=True):
        for method, look in looks(rows["method"]).items():
            for varied, style in _VARIED.items():
                curve = rows[(rows["method"] == method) & (rows["varied"] == varied)]
                # Few marks, none of them right before the last.
                few = [place for place, r in enumerate(curve["r"]) if r in _COUNTS and 1.3 * r < len(curve)]
                marks = {"marker": look.marker, "markevery": [*few, len(curve) - 1]}
                if len(curve):
                    panel.plot(
                        curve["r"], curve["AOPD"], color=look.colour, label=f"{method} {varied}", **marks, **style
                    )
        _log_ticks(panel, [count for count in _COUNTS if count <= growth["r"].max()])
        panel.set_ylim(-0.02, 1.02)
        panel.set_xlabel("number of orders")
        panel.set_ylabel("expected AOPD")
    label_outer(axes)
    seeds = [Line2D([], [], color="#444444", linestyle="--", label="one order, other seeds")]
    method_legend(figure, growth["method"], seeds if (growth["varied"] == "seed").any() else [])
    return figure


@styled
def architecture(curves: pd.DataFrame) -> Figure:
    """Return AA and AF against each swept field, mean and standard deviation over repeats, from `sweeps.sweep_curves`.

    A row of panels for every field, setting of the other fields, and backbone.
    """
    rows = list(curves.groupby(["field", "others", "backbone"], sort=False))
    several = curves["backbone"].nunique() > 1
    figure, axes = panels(2 * len(rows), 2, COLUMN_INCHES, 1.7)
    for number, ((field, others, backbone), curve) in enumerate(rows):
        for panel, measure in zip(axes[2 * number : 2 * number + 2], MEASURES, strict=True):
            _sweep(panel, curve, measure)
            panel.set_xlabel(field.removeprefix("backbone.").replace("_", " "))
            panel.set_ylabel(_NAMES[measure])
            panel.set_title(", ".join([*[backbone] * several, *[others] * bool(others)]))
    method_legend(figure, curves["method"])
    return figure


def _sweep(panel: Axes, curves: pd.DataFrame, measure: str) -> None:
    for method, look in looks(curves["method"]).items():
        curve = curves[curves["method"] == method]
        panel.errorbar(
            curve["value"],
            curve[measure],
            yerr=curve[f"{measure}_std"].fillna(0),
            color=look.colour,
            marker=look.marker,
            elinewidth=0.6,
            capsize=1.5,
            label=method,
            **EDGE,
        )
    _log_ticks(panel, sorted(set(curves["value"])))
    panel.set_ylim(min(0, curves[measure].min()) - 0.02, 1.02)


def _panel_per_backbone(frame: pd.DataFrame, height: float) -> tuple[Figure, list[Axes]]:
    backbones = list(dict.fromkeys(frame["backbone"]))
    figure, axes = panels(len(backbones), 2, COLUMN_INCHES * min(2, len(backbones)), height, sharex=True, sharey=True)
    if len(backbones) > 1:
        for panel, backbone in zip(axes, backbones, strict=True):
            panel.set_title(backbone)
    return figure, axes


def _shifts(number: int) -> np.ndarray:
    """Return where to put so many markers beside each other around a step."""
    return (np.arange(number) - (number - 1) / 2) * min(0.1, 0.8 / number)


def _log_ticks(panel: Axes, values: list[float]) -> None:
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(FixedLocator(values))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(ScalarFormatter())
