"""What graph benchmarks report (BeGin, CGLB): AP, AF by the diagonal, INT and FWT."""

from typing import ClassVar

import numpy as np

from skeleton_cgl.analysis.metric import Entry, Findings, Metric, MetricColumn, entry_of
from skeleton_cgl.analysis.performance import JOINT, joint_of
from skeleton_cgl.analysis.table import Column, percent_and_spread
from skeleton_cgl.engine.rows import LearnerRow

_NOTES = {
    "AP": "AP: average performance {in_the_end}; mean over orders, then mean ± standard deviation over repeats.",
    "AF diagonal": "AF diagonal: how far tasks fell from what they were when just learned (BeGin, CGLB).",
    "INT": "INT: intransigence, how much more Joint knows of a task just learned; below 0: less.",
    "FWT": "FWT: forward transfer, how much more is known of the next {unit} than before any was learned.",
}


class GraphPerformance(Metric):
    """AP, AF by the diagonal, INT and FWT: the mean over the orders of a repeat, then mean and deviation over repeats.

    INT is against Joint with the same backbone, in the same repeat and order; of Joint itself it is empty. FWT is of
    domains alone, and is shown by itself only there.
    """

    offers: ClassVar[tuple[str, ...]] = tuple(_NOTES)

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        return tuple(_column(findings, heading) for heading in self.offers)


def _column(findings: Findings, heading: str) -> MetricColumn:
    field = heading.replace(" ", "_")
    entries = [_entry(findings, learner, field) for learner in findings.learners]
    cells = tuple(percent_and_spread(entry.value, entry.spread) for entry in entries)
    told = findings.told([entry.reason for entry in entries])
    # Where nothing is known, there is nothing to say of how it is counted.
    note = _NOTES[heading].format(unit=findings.scores.unit, in_the_end=findings.in_the_end)
    meant = (note,) if any(not cell.is_empty for cell in cells) else ()
    return MetricColumn(Column(heading, (field, f"{field}_std")), cells, (*meant, *told), optional=heading == "FWT")


def _entry(findings: Findings, learner: LearnerRow, field: str) -> Entry:
    runs = findings.runs[findings.runs["learner"] == learner.number]
    entry = entry_of(findings.compared.of_learner(learner.number), runs[field].to_numpy())
    return Entry(entry.value, entry.spread, _reason(findings, learner, field) if np.isnan(entry.value) else "")


def _reason(findings: Findings, learner: LearnerRow, field: str) -> str:
    """Return why a learner has no value; "" where it is plain."""
    if findings.scores.has_streams:
        return f"no {field.replace('_', ' ')}: a stream is not examined after each of its tasks"
    if field == "INT" and learner.method.name != JOINT:
        if joint_of(learner, findings.scores.learners) is None:
            return "no INT without one Joint of the same backbone to hold it against: add joint to the study's methods"
        return "no INT yet: not all runs of Joint to hold it against are finished"
    if field == "FWT":
        if findings.scores.unit != "domain":
            return f"no FWT: it is of domain orders; what comes next is a {findings.scores.unit} here"
        return "no FWT: what comes next is not asked about before it is learned, or there is one task only"
    return ""
