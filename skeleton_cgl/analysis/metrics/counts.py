"""Over how many orders and repeats a row is."""

from typing import ClassVar

from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn
from skeleton_cgl.analysis.table import Cell, Column, whole


class Counts(Metric):
    """The number of orders compared, and of repeats."""

    offers: ClassVar[tuple[str, ...]] = ("orders", "repeats")

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        orders: list[Cell] = []
        repeats: list[Cell] = []
        for name in findings.names:
            scores = findings.compared.of_learner(name.number)
            orders.append(whole(len({run.order for run in scores.runs})))
            repeats.append(whole(len(set(scores.repeat.tolist()))))
        left_out = max((finals.left_out for finals in findings.finals.values()), default=0)
        what = "tasks" if findings.level == "task" else "classes"
        note = f"Left out: {left_out} order{'s' * (left_out > 1)} of other {what} than most."
        return (
            MetricColumn(Column("orders", ("orders",)), tuple(orders), (note,) if left_out else ()),
            MetricColumn(Column("repeats", ("repeats",)), tuple(repeats)),
        )
