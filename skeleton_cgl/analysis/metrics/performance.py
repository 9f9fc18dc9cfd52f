"""Average accuracy AA and average forgetting AF after the last task."""

from typing import ClassVar

from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn, entry_of
from skeleton_cgl.analysis.table import Cell, Column, percent_and_spread

_NOTES = {
    "AA": "AA: average accuracy {in_the_end}; mean over orders, then mean ± standard deviation over repeats.",
    "AF": "AF: average forgetting, how far tasks fell from their best{earlier}.",
}


class Performance(Metric):
    """AA and AF: the mean over the orders of a repeat, then mean and standard deviation over repeats."""

    offers: ClassVar[tuple[str, ...]] = ("AA", "AF")

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        earlier = " at an earlier examination" if findings.scores.has_streams else ""
        return tuple(
            MetricColumn(
                Column(measure, (measure, f"{measure}_std")),
                tuple(_cell(findings, name.number, measure) for name in findings.names),
                (_NOTES[measure].format(in_the_end=findings.in_the_end, earlier=earlier),),
            )
            for measure in self.offers
        )


def _cell(findings: Findings, learner: int, measure: str) -> Cell:
    of_learner = findings.runs[findings.runs["learner"] == learner]
    entry = entry_of(findings.compared.of_learner(learner), of_learner[measure].to_numpy())
    return percent_and_spread(entry.value, entry.spread)
