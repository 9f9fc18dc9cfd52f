"""Over how many orders and repeats a row is, and over how many it is going to be."""

from typing import ClassVar

from skeleton_cgl.analysis.finals import OWN_TASKS
from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn
from skeleton_cgl.analysis.table import Cell, Column

_HALF_DONE = "Half done: not all planned orders are finished; disparity grows with their number, and is not compared."


class Counts(Metric):
    """The number of orders compared, and of repeats; with the number planned, where that is not reached yet."""

    offers: ClassVar[tuple[str, ...]] = ("orders", "repeats")

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        orders: list[Cell] = []
        repeats: list[Cell] = []
        for name in findings.names:
            scores = findings.compared.of_learner(name.number)
            finals = findings.finals[name.number]
            orders.append(_of_planned(finals.order_count, finals.planned))
            done = set(scores.repeat.tolist())
            repeats.append(_of_planned(len(done), len(done | {run.repeat for run in scores.missing})))
        left_out = max((finals.left_out for finals in findings.finals.values()), default=0)
        notes = [
            *(
                [f"Left out: {left_out} order{'s' * (left_out > 1)} of other {findings.whats} than most."]
                * bool(left_out)
            ),
            *([] if findings.share_orders else [OWN_TASKS]),
        ]
        notes += [_HALF_DONE] if any(findings.half_done) else []
        return (
            MetricColumn(Column("orders", ("orders", "orders_planned")), tuple(orders), tuple(notes)),
            MetricColumn(Column("repeats", ("repeats", "repeats_planned")), tuple(repeats)),
        )


def _of_planned(done: int, planned: int) -> Cell:
    return Cell(str(done) if done == planned else f"{done} of {planned} planned", (done, planned))
