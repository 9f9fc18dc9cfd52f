"""How far the order decides what is known in the end, against how far the tasks of a stream overlap: AOPD against O."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skeleton_cgl.analysis.figure import StudyFigure
from skeleton_cgl.analysis.metric import Findings, entry_of
from skeleton_cgl.analysis.names import LearnerName
from skeleton_cgl.analysis.plots.overlap import draw_line, label_overlap
from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, method_legend, panels, styled
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.streams import by_method, check_sweep, is_swept_stream, overlaps
from skeleton_cgl.analysis.tables import default_level
from skeleton_cgl.errors import InputError


@dataclass(frozen=True, eq=False)
class OrderLine:
    """A method: O (n,) of every stream of the sweep, rising, and there AOPD and cross-evaluated AOPD (2, n).

    spread (2, n): their deviations over repeats.
    """

    name: LearnerName
    overlap: np.ndarray
    values: np.ndarray
    spread: np.ndarray


@dataclass(frozen=True, eq=False)
class OrderPanel:
    """The lines of the methods of one backbone, at one setting of what else is swept, over so many orders at most."""

    title: str
    lines: tuple[OrderLine, ...]
    orders: int


class StreamOrders(StudyFigure[tuple[OrderPanel, ...]]):
    """A panel for every backbone, and setting of what else is swept.

    only: points with this text in them, such as "gaussian", where transitions of several kinds are swept.
    """

    title = "Order sensitivity on streams of more and more overlap"
    meaning = (
        "AOPD against the overlap index O: the share of batches in which no task has 90 %. Hollow: cross-evaluated, "
        "extremes chosen on test and read on validation queries, and the other way round. Bars are deviations over "
        "repeats."
    )

    def __init__(self, only: str = "") -> None:
        self.only = only

    def applies(self, results: Results) -> bool:
        return is_swept_stream(results) and len({run.order for run in results.scores.runs}) > 1

    def compute(self, results: Results) -> tuple[OrderPanel, ...]:
        check_sweep(results)
        findings = Findings(results.scores, default_level(results.scores), results.study)
        overlap = overlaps(findings.compared, results.study)
        found = []
        for title, learners in by_method(findings.names, findings.learners, self.only).items():
            lines = [line for names in learners if (line := _line(findings, overlap, names)) is not None]
            orders = max(findings.finals[name.number].order_count for names in learners for name in names)
            if lines:
                found.append(OrderPanel(title, tuple(lines), orders))
        if not found:
            raise InputError("no method was taught in two orders; there is no disparity to draw")
        return tuple(found)

    @styled
    def draw(self, value: tuple[OrderPanel, ...]) -> Figure:
        figure, axes = panels(len(value), 2, COLUMN_INCHES * min(2, len(value)), 2.5)
        for axis, panel in zip(axes, value, strict=True):
            for line in panel.lines:
                draw_line(axis, line.name, line.overlap, line.values[1], line.spread[1], hollow=True)
                draw_line(axis, line.name, line.overlap, line.values[0], line.spread[0])
            axis.set_ylabel(f"AOPD, {panel.orders} orders")
            axis.set_title(panel.title)
            label_overlap(axis)
        hollow = Line2D([], [], color="#444444", marker="o", mfc="none", linestyle=":", label="cross-evaluated")
        method_legend(figure, [line.name for panel in value for line in panel.lines], [hollow])
        return figure


def _line(findings: Findings, overlap: np.ndarray, names: list[LearnerName]) -> OrderLine | None:
    """Return what there is of a method; None if nothing."""
    half_done = {name.number for name, half in zip(findings.names, findings.half_done, strict=True) if half}
    points = []
    for name in names:
        disparity = findings.disparities[name.number]
        # Disparity grows with the number of orders: what has fewer than it will have would look better than it is.
        if isinstance(disparity, str) or np.isnan(disparity.AOPD) or name.number in half_done:
            continue
        own = findings.compared.learner == name.number
        at = entry_of(findings.compared.chosen(own), overlap[own]).value
        values = (disparity.AOPD, disparity.AOPD_cross)
        points.append((at, values, (disparity.AOPD_std, disparity.AOPD_cross_std)))
    if not points:
        return None
    points.sort(key=lambda point: point[0])
    return OrderLine(names[0], *(np.array(each).T for each in zip(*points, strict=True)))
