"""What was published of a learner, and the difference ours − published, where both are alike."""

from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import numpy as np

from skeleton_cgl.analysis import benchmarks, published
from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn, entry_of
from skeleton_cgl.analysis.table import UNLIKE, Cell, Column, percent, percent_and_spread
from skeleton_cgl.engine.rows import LearnerRow
from skeleton_cgl.errors import InputError

Values = dict[str, float]
"""Published means by the measure, as fractions, and their deviations by its name with `_std`."""


@dataclass(frozen=True)
class _Theirs:
    """What there is to set beside: the measures, of which of them the difference is shown, and what a note says.

    values: of every learner of the findings; unlike: why a learner is not to be set beside its own, "" if it is.
    """

    measures: tuple[str, ...]
    apart: tuple[str, ...]
    values: list[Values | None]
    unlike: list[str]
    note: str
    repeats: int


class Published(Metric):
    """Published values beside ours: AOPD and MOPD of skeletons, AP, AF and INT of node benchmarks.

    A learner that was given something else is left empty, or marked.
    """

    offers: ClassVar[tuple[str, ...]] = (
        *("published AOPD", "AOPD difference", "published MOPD", "MOPD difference"),
        *("published AP", "AP difference", "published AF", "published INT"),
    )

    def columns(self, findings: Findings) -> tuple[MetricColumn, ...]:
        if findings.beside is None:
            known = ", ".join([*published.DATASETS, *benchmarks.BENCHMARKS])
            raise InputError(f"published: say of which data set, with --published and one of {known}")
        dataset, anyway = findings.beside.dataset, findings.beside.anyway
        theirs = (_performance if dataset in benchmarks.BENCHMARKS else _disparities)(findings, dataset)
        notes = _notes(findings, theirs, anyway)
        values, unlike = theirs.values, theirs.unlike
        if not anyway:
            _refuse_if_none(values, unlike, findings.half_done)
            values = [None if reason else value for value, reason in zip(values, unlike, strict=True)]
        values = [None if half_done else value for value, half_done in zip(values, findings.half_done, strict=True)]
        found = []
        for measure in theirs.measures:
            fields = (measure, f"{measure}_std")
            cells = [percent_and_spread(*(_of(value, field) for field in fields)) for value in values]
            names = tuple(f"published_{field}" for field in fields)
            found.append(_column(f"published {measure}", names, cells, unlike, notes))
            if measure in theirs.apart:
                ours = [_ours(findings, learner.number, measure) for learner in findings.learners]
                apart = [
                    percent(own - _of(value, measure), signed=True) for own, value in zip(ours, values, strict=True)
                ]
                found.append(_column(f"{measure} difference", (f"{measure}_difference",), apart, unlike, notes))
        return tuple(found)


def _disparities(findings: Findings, dataset: str) -> _Theirs:
    """Return what was published of the disparities of skeletons."""
    values = [published.published_value(dataset, findings.level, learner) for learner in findings.learners]

    def unlike(learner: LearnerRow) -> str:
        if findings.study is None:
            return "the study is not known"
        orders = findings.finals[learner.number].order_count
        return "; ".join(published.differences(findings.study, learner, dataset, findings.level, orders))

    return _Theirs(
        measures=("AOPD", "MOPD"),
        apart=("AOPD", "MOPD"),
        values=[None if value is None else asdict(value) for value in values],
        unlike=[
            "" if value is None else unlike(learner) for learner, value in zip(findings.learners, values, strict=True)
        ],
        note=published.published_note(dataset, findings.level),
        repeats=published.REPEATS,
    )


def _performance(findings: Findings, dataset: str) -> _Theirs:
    """Return what was published of the performance on a node benchmark."""
    values = [benchmarks.published_value(dataset, learner) for learner in findings.learners]

    def unlike(learner: LearnerRow) -> str:
        if findings.study is None:
            return "the study is not known"
        return "; ".join(benchmarks.differences(findings.study, findings.compared.of_learner(learner.number), dataset))

    return _Theirs(
        measures=benchmarks.MEASURES,
        apart=("AP",),
        values=values,
        unlike=[
            "" if value is None else unlike(learner) for learner, value in zip(findings.learners, values, strict=True)
        ],
        note=benchmarks.benchmark_note(dataset),
        repeats=benchmarks.BENCHMARKS[dataset].repeats,
    )


def _notes(findings: Findings, theirs: _Theirs, anyway: bool) -> tuple[str, ...]:
    what = "unlike the published study" if anyway else "not set beside the published study"
    reasons = []
    for value, reason, half_done in zip(theirs.values, theirs.unlike, findings.half_done, strict=True):
        if value is None:
            reasons.append("nothing was published of it")
        elif half_done:
            reasons.append("not set beside the published study: not all planned orders are finished")
        else:
            reasons.append(f"{what}: {reason}" if reason else "")
    repeats = {len(set(findings.finals[name.number].repeat.tolist())) for name in findings.names}
    fewer = f"Published over {theirs.repeats} repeats, ours over {min(repeats)}."
    return (theirs.note, *([fewer] if min(repeats) < theirs.repeats else []), *findings.told(reasons))


def _refuse_if_none(values: list[Values | None], unlike: list[str], half_done: tuple[bool, ...]) -> None:
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


def _of(value: Values | None, field: str) -> float:
    return np.nan if value is None else value[field]


def _ours(findings: Findings, learner: int, measure: str) -> float:
    if measure in benchmarks.MEASURES:
        own = findings.runs[findings.runs["learner"] == learner][measure].to_numpy()
        return entry_of(findings.compared.of_learner(learner), own).value
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
