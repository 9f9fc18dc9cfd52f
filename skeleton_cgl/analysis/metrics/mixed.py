"""AOPD if not only the order changed, but split and first weights with it."""

from typing import ClassVar

from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn
from skeleton_cgl.analysis.table import Column, percent


class Mixed(Metric):
    """AOPD expected if every order is learned in a repeat drawn for it alone."""

    offers: ClassVar[tuple[str, ...]] = ("AOPD mixed",)

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        note = (
            "Mixed: AOPD expected if every order is learned in a repeat drawn for it alone, so that split and first "
            "weights change with the order."
        )
        cells = findings.disparity(lambda of: percent(of.AOPD_mixed))
        own = "AOPD mixed needs repeats that share their orders; here every repeat has tasks of its own."
        notes = (note,) if findings.share_orders else (note, own)
        return (MetricColumn(Column("AOPD mixed", ("AOPD_mixed",)), cells, notes, optional=True),)
