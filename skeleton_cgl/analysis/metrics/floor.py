"""The noise floors of the disparity, and what to hold against them."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from skeleton_cgl.analysis.disparity import Disparity
from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn
from skeleton_cgl.analysis.table import Cell, Column, percent, whole

_DRAWN = {
    "seeds": ("_floor", "other first weights and training noise"),
    "splits": ("_floor_splits", "other training, validation and test data"),
    "both": ("_floor_both", "all of that"),
}
"""What was drawn anew: how its fields end, and in words."""
_FIELDS = {
    "R": "R",
    "AOPD at R": "expected_AOPD_at_R",
    **{f"AOPD floor ({drawn})": f"AOPD{end}" for drawn, (end, _) in _DRAWN.items()},
    "MOPD at R": "expected_MOPD_at_R",
    **{f"MOPD floor ({drawn})": f"MOPD{end}" for drawn, (end, _) in _DRAWN.items()},
}
"""The field behind each heading."""


class NoiseFloor(Metric):
    """AOPD and MOPD expected of R orders, and beside them the same of R runs of one order: what is no order's doing."""

    offers: ClassVar[tuple[str, ...]] = tuple(_FIELDS)

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        notes = _notes(findings)
        return tuple(
            MetricColumn(Column(heading, (field,)), findings.disparity(_cell(field)), notes, optional=True)
            for heading, field in _FIELDS.items()
        )


def _cell(field: str) -> Callable[[Disparity], Cell]:
    return lambda of: (whole if field == "R" else percent)(getattr(of, field))


def _notes(findings: Findings) -> tuple[str, ...]:
    there = [each for each in findings.disparities.values() if not isinstance(each, str) and each.floor_orders]
    if not there:
        return ()
    drawn = [
        f"{drawn}: {words}"
        for drawn, (end, words) in _DRAWN.items()
        if not all(np.isnan(getattr(of, f"AOPD{end}")) for of in there)
    ]
    orders = int(max(of.floor_orders for of in there))
    several = f", mean over {orders} orders" if orders > 1 else ""
    return (
        f"Floor: max − min over R runs of one order{several}, with something drawn anew ({'; '.join(drawn)}). To be "
        "held against AOPD and MOPD at R, expected of R orders, as max − min grows with the number of runs.",
    )
