"""What figures of lines share: a panel per setting, and logarithmic axes."""

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from skeleton_cgl.analysis.names import LearnerName, settings_of
from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, panels


def panel_per_setting(names: Sequence[LearnerName], height: float) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with a panel for every setting, named if there are several; and the panels by setting."""
    settings = settings_of(names)
    figure, axes = panels(len(settings), 2, COLUMN_INCHES * min(2, len(settings)), height, sharex=True, sharey=True)
    if len(settings) > 1:
        for panel, setting in zip(axes, settings, strict=True):
            panel.set_title(setting)
    return figure, dict(zip(settings, axes, strict=True))


def log_ticks(panel: Axes, values: Iterable[float]) -> None:
    """Make the horizontal axis logarithmic, with ticks at these values alone."""
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(FixedLocator(list(values)))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(ScalarFormatter())
