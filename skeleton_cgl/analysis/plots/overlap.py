"""What figures against the overlap index share."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from skeleton_cgl.analysis.names import LearnerName
from skeleton_cgl.analysis.plots.style import EDGE

_HOLLOW: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 0.6, "linestyle": ":", "linewidth": 0.6}


def draw_line(
    panel: Axes, name: LearnerName, overlap: np.ndarray, values: np.ndarray, spread: np.ndarray, hollow: bool = False
) -> None:
    """Draw a method's values against the overlap, with bars of their deviations."""
    panel.errorbar(
        overlap,
        values,
        yerr=np.nan_to_num(spread),
        color=name.colour,
        marker=name.marker,
        elinewidth=0.6,
        capsize=1.5,
        label=f"{name.method} cross" if hollow else name.method,
        **(_HOLLOW if hollow else EDGE),
    )


def label_overlap(panel: Axes) -> None:
    """Name the axis of the overlap, which goes from 0 to 1; let the other one begin at 0 if nothing lies below."""
    panel.set_xlabel("overlap O")
    panel.set(xlim=(-0.04, 1.04), xticks=[0, 0.5, 1])
    panel.set_ylim(bottom=min(0, panel.get_ylim()[0]) if panel.dataLim.y0 < 0 else 0)
