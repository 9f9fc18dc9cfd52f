"""What is known along a stream, and forgotten, against how far its tasks overlap: A_AUC and AF_s against O."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from skeleton_cgl.analysis.figure import StudyFigure
from skeleton_cgl.analysis.metric import Findings, entry_of
from skeleton_cgl.analysis.names import LearnerName
from skeleton_cgl.analysis.plots.overlap import draw_line, label_overlap
from skeleton_cgl.analysis.plots.style import COLUMN_INCHES, method_legend, panels, styled
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.streams import by_method, check_sweep, is_swept_stream, overlaps
from skeleton_cgl.analysis.tables import default_level
from skeleton_cgl.analysis.words import OF_SKELETONS, Wording

MEASURES = ("A_AUC", "AF_s")


@dataclass(frozen=True, eq=False)
class SweepLine:
    """A method: O (n,) of every stream of the sweep, rising, and there A_AUC and AF_s (2, n) with their deviations."""

    name: LearnerName
    overlap: np.ndarray
    values: np.ndarray
    spread: np.ndarray


@dataclass(frozen=True, eq=False)
class SweepRow:
    """The lines of the methods of one backbone, at one setting of what else is swept."""

    title: str
    lines: tuple[SweepLine, ...]
    words: Wording = OF_SKELETONS


class StreamSweep(StudyFigure[tuple[SweepRow, ...]]):
    """A row of two panels for every backbone, and setting of what else is swept.

    only: points with this text in them, such as "gaussian", where transitions of several kinds are swept.
    """

    title = "Accuracy and forgetting along streams of more and more overlap"
    meaning = (
        "A_AUC, the mean accuracy over tasks and examinations, and AF_s, how far tasks fell from their best, against "
        "the overlap index O: the share of batches in which no task has 90 %. Bars are deviations over repeats."
    )

    def __init__(self, only: str = "") -> None:
        self.only = only

    def applies(self, results: Results) -> bool:
        return is_swept_stream(results)

    def compute(self, results: Results) -> tuple[SweepRow, ...]:
        check_sweep(results)
        findings = Findings(results.scores, default_level(results.scores), results.study)
        overlap = overlaps(findings.compared, results.study)
        rows = []
        for title, learners in by_method(findings.names, findings.learners, self.only).items():
            lines = [_line(findings, overlap, names) for names in learners]
            rows.append(SweepRow(title, tuple(lines), results.words))
        return tuple(rows)

    @styled
    def draw(self, value: tuple[SweepRow, ...]) -> Figure:
        figure, axes = panels(2 * len(value), 2, COLUMN_INCHES, 1.9)
        for number, row in enumerate(value):
            for place, measure in enumerate(MEASURES):
                panel = axes[2 * number + place]
                for line in row.lines:
                    draw_line(panel, line.name, line.overlap, line.values[place], line.spread[place])
                panel.set_ylabel(f"forgetting ({measure})" if place else f"{row.words.score} ({measure})")
                panel.set_title(row.title)
                label_overlap(panel)
        method_legend(figure, [line.name for row in value for line in row.lines])
        return figure


def _line(findings: Findings, overlap: np.ndarray, names: list[LearnerName]) -> SweepLine:
    entries = []
    for name in names:
        own = findings.compared.learner == name.number
        scores = findings.compared.chosen(own)
        measured = [entry_of(scores, findings.runs[measure].to_numpy()[own]) for measure in MEASURES]
        entries.append((entry_of(scores, overlap[own]).value, measured))
    entries.sort(key=lambda entry: entry[0])
    return SweepLine(
        names[0],
        np.array([at for at, _ in entries]),
        np.array([[entry.value for entry in measured] for _, measured in entries]).T,
        np.array([[entry.spread for entry in measured] for _, measured in entries]).T,
    )
