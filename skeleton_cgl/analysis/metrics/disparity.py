"""Order disparity: AOPD and MOPD, as they are and without the luck of the queries."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from skeleton_cgl.analysis.disparity import Disparity
from skeleton_cgl.analysis.finals import Finals
from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn
from skeleton_cgl.analysis.table import HIGHEST, LOWEST, Cell, Column, percent_and_spread

NOT_COMPARED = "Disparity grows with the number of orders; methods with fewer than others are not compared."
_AT_LEAST = "≥: the orders are a sample of all there are; over all of them, the disparity is at least this."


class OrderDisparity(Metric):
    """AOPD and MOPD with their spread over repeats; a lower bound where the orders are a sample. Cross: see `cross`.

    Within a setting the lowest and the highest are marked: all of them if several look equal, none if all do. Disparity
    grows with the number of orders, so that learners with fewer than their rivals, or than planned, are not marked.
    """

    offers: ClassVar[tuple[str, ...]] = ("AOPD", "AOPD (cross)", "MOPD", "MOPD (cross)")

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        notes = [
            f"OPD of a {findings.what}: its highest minus its lowest final {findings.words.score} over the orders. "
            "AOPD: mean over them, MOPD: maximum; mean ± standard deviation over repeats.",
            *without_disparity(findings),
            *([findings.queries] if findings.queries else []),
            *([NOT_COMPARED] if any(_with_fewer_orders(findings)) else []),
        ]
        at_least = (_AT_LEAST,) if any("≥" in cell.text for cell in _cells(findings, "AOPD")) else ()
        crossed = (*notes, _cross_note(findings.what), *findings.told(_without_halves(findings)))
        found = []
        for measure in ("AOPD", "MOPD"):
            for heading, field, own in (
                (measure, measure, (*notes, *at_least)),
                (f"{measure} (cross)", f"{measure}_cross", crossed),
            ):
                column = Column(heading, (field, f"{field}_std"), marked=True)
                found.append(MetricColumn(column, _marked(findings, _cells(findings, field)), own))
        return tuple(found)


def without_disparity(findings: Findings) -> tuple[str, ...]:
    """Return the reasons why learners have no disparity, as notes that say whose they are."""
    reasons = []
    for name in findings.names:
        found = findings.disparities[name.number]
        if isinstance(found, str):
            reasons.append(found)
        else:
            reasons.append(_one_order(findings.finals[name.number]) if np.isnan(found.AOPD) else "")
    return findings.told(reasons)


def _one_order(finals: Finals) -> str:
    return "One order: no disparity" if finals.share_orders else "One order in every repeat: no disparity"


def _cells(findings: Findings, field: str) -> tuple[Cell, ...]:
    """Return the cells of a field; what is at least so much has a sign before it."""

    def cell(of: Disparity) -> Cell:
        made = percent_and_spread(getattr(of, field), getattr(of, f"{field}_std"))
        at_least = of.is_sample and field in ("AOPD", "MOPD") and not made.is_empty
        return replace(made, text=f"≥ {made.text}") if at_least else made

    return findings.disparity(cell, empty=2)


def _cross_note(what: str) -> str:
    return (
        f"Cross: the best and the worst orders of a {what} (MOPD: and the {what} itself) are chosen on test queries "
        "and read on validation queries, and the other way round, both averaged; what is luck with the queries gives 0."
    )


def _without_halves(findings: Findings) -> list[str]:
    """Return why learners have no cross-evaluated disparity, or not of all tasks or classes; "" where they have."""
    return [_lacking(findings.finals[name.number], findings.what) for name in findings.names]


def _lacking(finals: Finals, what: str) -> str:
    lacking = {}
    for repeat, tasks in finals.tasks_in.items():
        own = finals.halves[:, finals.repeat == repeat, : len(tasks)]
        lacking[repeat] = int(np.isnan(own).any(axis=(0, 1)).sum())
    repeat, most = max(lacking.items(), key=lambda each: each[1])
    of = len(finals.tasks_in[repeat])
    if not most:
        return ""
    if most == of:
        return f"not cross-evaluated: no {what} has both test and validation queries"
    return f"cross-evaluated without {most} of {of}, which lack test or validation queries"


def _with_fewer_orders(findings: Findings) -> list[bool]:
    """Return which learners have fewer orders than others of their setting."""
    orders = [findings.finals[name.number].order_count for name in findings.names]
    most: dict[str, int] = {}
    for name, count in zip(findings.names, orders, strict=True):
        most[name.setting] = max(count, most.get(name.setting, 0))
    return [count < most[name.setting] for name, count in zip(findings.names, orders, strict=True)]


def _marked(findings: Findings, cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return the cells with the lowest and highest of every setting marked, as they look when rounded."""
    fewer = [few or half for few, half in zip(_with_fewer_orders(findings), findings.half_done, strict=True)]
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
