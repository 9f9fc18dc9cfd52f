"""Order disparity: AOPD and MOPD, and how much of them rests on the orders that happened to be run."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import numpy as np

from skeleton_cgl.analysis.disparity import Disparity
from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn
from skeleton_cgl.analysis.table import EMPTY, HIGHEST, LOWEST, Cell, Column, percent_and_spread, rounded, shown

NOT_COMPARED = "Disparity grows with the number of orders; methods with fewer than others are not compared."
_INTERVAL = "Interval: percentile bootstrap over the orders run; biased downwards, as max − min is."
_NO_DISPARITY = "One order: no disparity"


class OrderDisparity(Metric):
    """AOPD and MOPD with their spread over repeats; intervals where the orders are a sample.

    Within a setting the lowest and the highest are marked: all of them if several look equal, none if all do. Disparity
    grows with the number of orders, so that learners with fewer than their rivals are not marked.
    """

    offers: ClassVar[tuple[str, ...]] = ("AOPD", "AOPD interval", "MOPD", "MOPD interval")

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        what = "task" if findings.level == "task" else "class"
        reasons = [
            each if isinstance(each, str) else _NO_DISPARITY if np.isnan(each.AOPD) else ""
            for each in (findings.disparities[name.number] for name in findings.names)
        ]
        notes = [
            f"OPD of a {what}: its highest minus its lowest final accuracy over the orders. AOPD: mean over them, "
            "MOPD: maximum; mean ± standard deviation over repeats.",
            *findings.told(reasons),
            *([NOT_COMPARED] if any(_with_fewer_orders(findings)) else []),
        ]
        found = []
        for measure in ("AOPD", "MOPD"):
            cells = _marked(findings, findings.disparity(_value(measure), empty=2))
            column = Column(measure, (measure, f"{measure}_std"), marked=True)
            found.append(MetricColumn(column, cells, tuple(notes)))
            fields = (f"{measure}_low", f"{measure}_high")
            intervals = findings.disparity(_interval(measure), empty=2)
            # Of exact values alone nothing needs to be said.
            sampled = any(cell.numbers[0] is not None for cell in intervals)
            intervals = intervals if sampled else tuple(replace(cell, text=EMPTY) for cell in intervals)
            notes_of_intervals = (_INTERVAL,) if sampled else ()
            found.append(
                MetricColumn(Column(f"{measure} interval", fields), intervals, notes_of_intervals, optional=True)
            )
        return tuple(found)


def _value(measure: str) -> Callable[[Disparity], Cell]:
    return lambda of: percent_and_spread(getattr(of, measure), getattr(of, f"{measure}_std"))


def _interval(measure: str) -> Callable[[Disparity], Cell]:
    def cell(of: Disparity) -> Cell:
        low, high = (rounded(100 * getattr(of, f"{measure}_{end}")) for end in ("low", "high"))
        if low is None:
            return Cell(EMPTY if np.isnan(getattr(of, measure)) else "exact", (None, None))
        return Cell(f"[{shown(low)}, {shown(high)}]", (low, high))

    return cell


def _with_fewer_orders(findings: Findings) -> list[bool]:
    """Return which learners have fewer orders than others of their setting."""
    orders = [len({*findings.finals[name.number].orders}) for name in findings.names]
    most: dict[str, int] = {}
    for name, count in zip(findings.names, orders, strict=True):
        most[name.setting] = max(count, most.get(name.setting, 0))
    return [count < most[name.setting] for name, count in zip(findings.names, orders, strict=True)]


def _marked(findings: Findings, cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return the cells with the lowest and highest of every setting marked, as they look when rounded."""
    fewer = _with_fewer_orders(findings)
    rivals: dict[str, list[float]] = {}
    for name, cell, unfit in zip(findings.names, cells, fewer, strict=True):
        number = cell.numbers[0]
        if isinstance(number, float) and not unfit:
            rivals.setdefault(name.setting, []).append(number)
    marked = []
    for name, cell, unfit in zip(findings.names, cells, fewer, strict=True):
        numbers = rivals.get(name.setting, [])
        compared = not unfit and len(set(numbers)) > 1
        mark = LOWEST if cell.numbers[0] == min(numbers, default=None) else ""
        mark = HIGHEST if cell.numbers[0] == max(numbers, default=None) else mark
        marked.append(replace(cell, mark=mark) if compared else cell)
    return tuple(marked)
