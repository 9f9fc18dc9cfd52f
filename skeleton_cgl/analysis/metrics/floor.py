"""The noise floor of the disparity, and what to hold against it."""

from typing import ClassVar

from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn
from skeleton_cgl.analysis.table import Column, percent, whole


class NoiseFloor(Metric):
    """AOPD and MOPD over R runs of one order with different seeds; AOPD expected of R orders."""

    offers: ClassVar[tuple[str, ...]] = ("AOPD floor", "MOPD floor", "R", "AOPD at R")

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        note = (
            "Floor: max − min over R runs of one order with different seeds; its peer is AOPD at R, expected of R "
            "orders."
        )
        cells = {
            ("AOPD floor", "AOPD_floor"): findings.disparity(lambda of: percent(of.AOPD_floor)),
            ("MOPD floor", "MOPD_floor"): findings.disparity(lambda of: percent(of.MOPD_floor)),
            ("R", "R"): findings.disparity(lambda of: whole(of.R)),
            ("AOPD at R", "expected_AOPD_at_R"): findings.disparity(lambda of: percent(of.expected_AOPD_at_R)),
        }
        return tuple(
            MetricColumn(Column(heading, (field,)), column, (note,), optional=True)
            for (heading, field), column in cells.items()
        )
