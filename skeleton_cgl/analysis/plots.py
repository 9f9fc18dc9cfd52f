"""Drawing what the rest of `analysis` computed; there is no arithmetic here beyond placing.

Every method has one colour and one marker throughout, which the colour-blind tell apart and grey print keeps apart.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skeleton_cgl.analysis.performance import forgetting_bound
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside

FORMATS = (".png", ".pdf", ".svg")
COLUMN_INCHES = 3.4
"""The width of one column of a two-column paper."""

_STYLE = {
    "bare": ("#000000", "o"),
    "ewc": ("#0072B2", "s"),
    "mas": ("#56B4E9", "^"),
    "twp": ("#009E73", "D"),
    "lwf": ("#CC79A7", "v"),
    "gem": ("#E69F00", "P"),
    "replay": ("#D55E00", "X"),
    "joint": ("#8C8C8C", "*"),
}
_NAMES = {"bare": "Bare", "ewc": "EWC", "mas": "MAS", "twp": "TWP", "lwf": "LwF", "gem": "GEM", "replay": "Replay"}
_SPARE = sns.color_palette("colorblind").as_hex()


def order_scatter(runs: pd.DataFrame) -> Figure:
    """Return AA against AF with the bound: a point per run of what `performance.runs` gives, a panel per backbone."""
    backbones = list(dict.fromkeys(runs["backbone"]))
    figure = Figure(figsize=(COLUMN_INCHES * len(backbones), 3.2), layout="constrained")
    panels = figure.subplots(1, len(backbones), sharey=True, squeeze=False)[0]
    for panel, backbone in zip(panels, backbones, strict=True):
        _scatter(panel, runs[runs["backbone"] == backbone])
        panel.set_xlabel("average accuracy (AA)")
        if len(backbones) > 1:
            panel.set_title(backbone)
    panels[0].set_ylabel("average forgetting (AF)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)), fontsize=7, frameon=False)
    return figure


def _scatter(panel: Axes, runs: pd.DataFrame) -> None:
    for number, method in enumerate(dict.fromkeys(runs["method"])):
        colour, marker = _STYLE.get(method, (_SPARE[number % len(_SPARE)], "h"))
        points = runs[runs["method"] == method]
        panel.scatter(
            points["AA"],
            points["AF"],
            s=14,
            c=colour,
            marker=marker,
            alpha=0.7,
            linewidths=0.3,
            edgecolors="white",
            label=_NAMES.get(method, method),
        )
    steps = len(runs["order"].iloc[0])
    accuracy = np.linspace(0, 1, 201)
    bound = forgetting_bound(accuracy, steps)
    shown = (bound >= 0) & (bound <= 1.02)
    panel.plot(accuracy[shown], bound[shown], ":", color="#444444", linewidth=1, label="bound")
    panel.set_xlim(0, 1)
    panel.set_ylim(min(0, runs["AF"].min()) - 0.02, 1.02)
    panel.grid(alpha=0.3, linewidth=0.5)


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure beside `path` and rename it; refuse a suffix other than .png, .pdf or .svg."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise InputError(f"{path}: a figure is called NAME{', NAME'.join(FORMATS)}")
    with write_beside(path) as unfinished:
        figure.savefig(unfinished, format=path.suffix[1:], dpi=200)
