"""What is reported of task-free streams (DRIFT): A_AUC, also pooled, AF_s and the overlap index O."""

from typing import ClassVar

import numpy as np

from skeleton_cgl.analysis.metric import Entry, Findings, Metric, MetricColumn, entry_of
from skeleton_cgl.analysis.streams import overlaps
from skeleton_cgl.analysis.table import Column, percent_and_spread
from skeleton_cgl.scenarios.transitions import OVERLAP_BELOW

_NOTES = {
    "A_AUC": "A_AUC: mean over the examinations of a stream of the mean {score} over its tasks.",
    "A_AUC pooled": "A_AUC pooled: mean over the examinations of the accuracy on all test queries together.",
    "AF_s": "AF_s: how far tasks are at the end from their best at any examination, mean over tasks; positive: "
    "forgotten (DRIFT's tables print its negative).",
    "O": f"O: the overlap index, the share of the batches of a stream in which no task is expected to have "
    f"{100 * OVERLAP_BELOW:g} %.",
}
_NO_STREAM = "no A_AUC, AF_s and O: they are of streams"
_NO_SIZES = "no O: nothing is known of how the tasks of the stream are mixed"


class StreamPerformance(Metric):
    """A_AUC, A_AUC pooled, AF_s and O: the mean over the orders of a repeat, then mean and deviation over repeats.

    They are of streams, and are shown by themselves only there.
    """

    offers: ClassVar[tuple[str, ...]] = tuple(_NOTES)

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        values = {**{heading: findings.runs[heading.replace(" ", "_")] for heading in self.offers if heading != "O"}}
        values["O"] = overlaps(findings.compared, findings.study)
        return tuple(_column(findings, heading, np.asarray(values[heading])) for heading in self.offers)


def _column(findings: Findings, heading: str, values: np.ndarray) -> MetricColumn:
    entries = []
    for name in findings.names:
        own = findings.compared.learner == name.number
        entry = entry_of(findings.compared.chosen(own), values[own])
        entries.append(Entry(entry.value, entry.spread, _reason(findings, heading) if np.isnan(entry.value) else ""))
    cells = tuple(percent_and_spread(entry.value, entry.spread) for entry in entries)
    meant = (_NOTES[heading].format(score=findings.words.score),) if any(not cell.is_empty for cell in cells) else ()
    told = findings.told([entry.reason for entry in entries])
    field = heading.replace(" ", "_")
    return MetricColumn(Column(heading, (field, f"{field}_std")), cells, (*meant, *told), optional=True)


def _reason(findings: Findings, heading: str) -> str:
    """Return why a learner has no value."""
    if not findings.scores.has_streams:
        return _NO_STREAM
    if heading == "O":
        return _NO_SIZES
    if heading == "A_AUC pooled":
        return f"no A_AUC pooled: it does not follow from the {findings.scores.metric} of every {findings.scores.unit}"
    return ""
