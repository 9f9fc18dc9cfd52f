"""The lowest and the highest AA, AP and AF of any run."""

from typing import ClassVar

from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn
from skeleton_cgl.analysis.table import Column, percent


class Extremes(Metric):
    """How far AA, AP and AF go, over all orders and repeats."""

    offers: ClassVar[tuple[str, ...]] = tuple(
        f"{measure} {end}" for measure in ("AA", "AP", "AF") for end in ("lowest", "highest")
    )

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        by_learner = findings.runs.groupby("learner")
        found = []
        for heading in self.offers:
            measure, end = heading.split()
            ends = by_learner[measure].min() if end == "lowest" else by_learner[measure].max()
            cells = tuple(percent(float(ends[name.number])) for name in findings.names)
            found.append(MetricColumn(Column(heading, (heading.replace(" ", "_"),)), cells))
        return tuple(found)
