"""What was published of a learner, and the difference ours − published, where both are alike."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from skeleton_cgl.analysis import published
from skeleton_cgl.analysis.metric import Beside, Findings, Metric, MetricColumn
from skeleton_cgl.analysis.published import PublishedValue
from skeleton_cgl.analysis.table import UNLIKE, Cell, Column, percent, percent_and_spread
from skeleton_cgl.engine.rows import LearnerRow
from skeleton_cgl.errors import InputError

_NOTHING = PublishedValue(np.nan, np.nan, np.nan, np.nan)


class Published(Metric):
    """Published AOPD and MOPD beside ours; a learner that was given something else is left empty, or marked."""

    offers: ClassVar[tuple[str, ...]] = ("published AOPD", "AOPD difference", "published MOPD", "MOPD difference")

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        if findings.beside is None:
            raise InputError("published: say of which data set, with --published ucla or --published ntu")
        values = [
            published.published_value(findings.beside.dataset, findings.level, learner) for learner in findings.learners
        ]
        unlike = [
            _unlike(findings, learner, findings.beside) if value is not None else ""
            for learner, value in zip(findings.learners, values, strict=True)
        ]
        notes = self._notes(findings, findings.beside, values, unlike)
        if not findings.beside.anyway:
            _refuse_if_none(values, unlike, findings.half_done)
            values = [None if reason else value for value, reason in zip(values, unlike, strict=True)]
        values = [None if half_done else value for value, half_done in zip(values, findings.half_done, strict=True)]
        found = []
        for measure in ("AOPD", "MOPD"):
            theirs = [_published(value or _NOTHING, measure) for value in values]
            ours = [_ours(findings, learner.number, measure) for learner in findings.learners]
            apart = [
                percent(own - getattr(value or _NOTHING, measure), signed=True)
                for own, value in zip(ours, values, strict=True)
            ]
            fields = (f"published_{measure}", f"published_{measure}_std")
            found.append(_column(f"published {measure}", fields, theirs, unlike, notes))
            found.append(_column(f"{measure} difference", (f"{measure}_difference",), apart, unlike, notes))
        return tuple(found)

    def _notes(
        self, findings: Findings, beside: Beside, values: list[PublishedValue | None], unlike: list[str]
    ) -> tuple[str, ...]:
        what = "unlike the published study" if beside.anyway else "not set beside the published study"
        reasons = []
        for value, reason, half_done in zip(values, unlike, findings.half_done, strict=True):
            if value is None:
                reasons.append("nothing was published of it")
            elif half_done:
                reasons.append("not set beside the published study: not all planned orders are finished")
            else:
                reasons.append(f"{what}: {reason}" if reason else "")
        repeats = {len(set(findings.finals[name.number].repeat.tolist())) for name in findings.names}
        fewer = f"Published over {published.REPEATS} repeats, ours over {min(repeats)}."
        return (
            published.published_note(beside.dataset, findings.level),
            *([fewer] if min(repeats) < published.REPEATS else []),
            *findings.told(reasons),
        )


def _unlike(findings: Findings, learner: LearnerRow, beside: Beside) -> str:
    if findings.study is None:
        return "the study is not known"
    orders = findings.finals[learner.number].order_count
    return "; ".join(published.differences(findings.study, learner, beside.dataset, findings.level, orders))


def _refuse_if_none(values: list[PublishedValue | None], unlike: list[str], half_done: tuple[bool, ...]) -> None:
    """Refuse if nothing was published of any learner, or no learner is alike; those half done may become so."""
    if all(value is None for value in values):
        raise InputError("published: nothing was published of these backbones with these methods")
    there = [
        reason
        for value, reason, unfinished in zip(values, unlike, half_done, strict=True)
        if value is not None and not unfinished
    ]
    if there and all(there):
        raise InputError(
            f"published: this study is unlike the published one, so that differences would mean nothing: {there[0]}; "
            "--anyway shows them, marked"
        )


def _published(value: PublishedValue, measure: str) -> Cell:
    return percent_and_spread(getattr(value, measure), getattr(value, f"{measure}_std"))


def _ours(findings: Findings, learner: int, measure: str) -> float:
    found = findings.disparities[learner]
    return np.nan if isinstance(found, str) else getattr(found, measure)


def _column(
    heading: str, fields: tuple[str, ...], cells: list[Cell], unlike: list[str], notes: tuple[str, ...]
) -> MetricColumn:
    marked = tuple(
        replace(cell, mark=UNLIKE) if reason and not cell.is_empty else cell
        for cell, reason in zip(cells, unlike, strict=True)
    )
    return MetricColumn(Column(heading, fields, marked=any(cell.mark for cell in marked)), marked, notes)
