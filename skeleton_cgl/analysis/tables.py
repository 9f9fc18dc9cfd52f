"""The tables of a study: its columns are metrics, a row per learner.

Studies of skeletons have AA; all others are shown as graph benchmarks have it, with AP, which is the same number, and
what they report beside it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from skeleton_cgl.analysis.metric import Findings, Metric, MetricColumn
from skeleton_cgl.analysis.names import LearnerName, name_learners, short
from skeleton_cgl.analysis.scores import Scores
from skeleton_cgl.analysis.table import Cell, Column, Table, percent, word
from skeleton_cgl.analysis.variance import FACTORS, mean_variance_explained
from skeleton_cgl.analysis.words import PLURAL, worded
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.engine.rows import StudyRow
from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import value_text
from skeleton_cgl.registry import METRICS
from skeleton_cgl.scenarios.lessons import Order

STANDARD = ("counts", "performance", "disparity", "floor", "mixed")
"""The metrics of a table that says no columns, in their sequence; those of installed packages follow."""
OF_GRAPHS = ("counts", "AP", "AF", "AF diagonal", "INT", "FWT", "disparity", "floor", "mixed")
"""The same, where the study is not one of skeletons."""
_PER_TASK = ("AF diagonal", "INT", "FWT")
"""What a stream has not: it is not examined after each task."""


def default_level(scores: Scores) -> str:
    """Return the level at which a study can be compared: classes where no two orders arrange the same tasks.

    So it is in every repeat. Domains and periods, where they are learned one by one, are called what they are.
    """
    if learned_one_by_one(scores):
        return "class"
    orders_in: dict[int, set[Order]] = {}
    for run in scores.runs:
        orders_in.setdefault(run.repeat, set()).add(run.order)
    apart = all(len(set(map(frozenset, orders))) == len(orders) for orders in orders_in.values())
    return "class" if apart and max(map(len, orders_in.values()), default=0) > 1 else "task"


def learned_one_by_one(scores: Scores) -> bool:
    """Return whether tasks are single domains or periods, so that both levels are one."""
    return scores.unit in ("domain", "period") and all(len(task) == 1 for run in scores.runs for task in run.order)


def study_table(findings: Findings, columns: Sequence[str] = (), further: Sequence[str] = ()) -> Table:
    """Return the table of a study, in percent, a row per learner.

    columns: headings, or metrics by name, `module:Class` or file; by default those of STANDARD, or OF_GRAPHS, of
    streams, and of installed packages that are not empty, and the published ones if there is something to set beside.
    further: metrics after those. Refused: a column that is not known.
    """
    chosen = _chosen(columns, findings) if columns else _standard(findings)
    chosen += [column for name in further for column in _metric(name).columns(findings)]
    head = _head(findings.names)
    cells = [[cell for _, cell in row] for row in head]
    notes = [f"In percent, at the level of {findings.whats}.", *_score_note(findings)]
    notes += dict.fromkeys(note for column in chosen for note in column.notes)
    rows = ((*first, *(column.cells[place] for column in chosen)) for place, first in enumerate(cells))
    return Table(
        title=f"Order disparity of {findings.whats}",
        columns=(*(column for column, _ in head[0]), *(column.column for column in chosen)),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _score_note(findings: Findings) -> list[str]:
    """Return what the score is, where a study has others than accuracy, and how a task comes by its own."""
    metric, unit = findings.scores.metric, findings.scores.unit
    recorded = findings.study.metrics if findings.study else (metric,)
    if recorded == ("accuracy",):
        return []
    if findings.scores.is_micro:
        counted = ", micro: a task's is the share of its queries that are answered rightly"
    elif unit in ("class", "label"):
        counted = f", macro: a task's is the mean over its {PLURAL[unit]}"
    else:
        counted = f", macro: classes of a {unit} count equally" if metric == "accuracy" else ""
    others = [other for other in recorded if other != metric]
    also = f"; --score gives {' or '.join(others)}" if others else ""
    return [f"Score: {metric.replace('_', ' ')}{counted}{also}."]


def performance_table(scores: Scores, study: StudyRow | None = None) -> Table:
    """Return AA and AF of every learner over all its comparable orders: mean, lowest and highest, in percent.

    Where the study is not one of skeletons: AP in the place of AA, and all else that graph benchmarks report.
    """
    findings = Findings(scores, "class", study)
    average, *further = ("AA",) if findings.is_of_skeletons else ("AP", *_PER_TASK)
    further = ["stream"] if scores.has_streams else further
    ends = [f"{measure}{part}" for measure in (average, "AF") for part in ("", " lowest", " highest")]
    chosen = _without_empty(_chosen(["orders", "repeats", *ends, *further], findings))
    table = study_table(findings, [column.column.heading for column in chosen])
    return replace(table, title=findings.words.of("Accuracy and forgetting"))


def variance_table(scores: Scores) -> Table:
    """Return the share of variance over orders that each factor explains: ω², in percent."""
    title = "What about an order matters"
    try:
        shares = mean_variance_explained(scores)
    except InputError as error:
        return Table(title, notes=(f"Not computed: {error}.",))
    by_learner = shares.pivot_table("omega_squared", "learner", "factor", sort=False, dropna=False)
    factors = [factor for factor in FACTORS if by_learner[factor].notna().any()]
    if not factors:
        return Table(title, notes=("Not computed: too few orders, or all end alike.",))
    meanings = {
        "position": "position: the step at which the class is learned",
        "mates": "mates: the classes learned together with it",
        "last": "last: the last task of the order",
    }
    note = worded(
        "Share of a class's variance over orders that one property of the order explains, in percent: ω², corrected "
        "for chance (around 0: nothing), mean over classes and repeats. Shares overlap and do not add up to 100. "
        f"{'; '.join(meanings[factor] for factor in factors)}.",
        scores.unit,
    )
    names = [name for name in name_learners(scores.learners) if name.number in by_learner.index]
    head = _head(names)
    rows = tuple(
        (*(cell for _, cell in first), *(percent(float(by_learner.loc[name.number, factor])) for factor in factors))
        for first, name in zip(head, names, strict=True)
    )
    columns = (*(column for column, _ in head[0]), *(Column(factor, (factor,)) for factor in factors))
    return Table(title, columns, rows, (note,))


def known_columns() -> dict[str, str]:
    """Return the headings of all known columns, and the name of the metric that makes each."""
    return {heading: name for name in METRICS.names() for heading in METRICS.find(name).column_names()}


def _metric(name: str) -> Metric:
    made = METRICS.make(name, {})
    assert isinstance(made, Metric)
    return made


def _standard(findings: Findings) -> list[MetricColumn]:
    usual: tuple[str, ...] = STANDARD if findings.is_of_skeletons else OF_GRAPHS
    installed = [name for name in METRICS.names() if not METRICS.is_built_in(name)]
    usual = _of_streams(usual) if findings.scores.has_streams else usual
    return _without_empty(_chosen([*usual, *(["published"] if findings.beside else []), *installed], findings))


def _of_streams(usual: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics of a table of streams: their own before the disparity, and none of a step per task."""
    before = usual.index("disparity")
    return (*(name for name in usual[:before] if name not in _PER_TASK), "stream", *usual[before:])


def _without_empty(columns: Iterable[MetricColumn]) -> list[MetricColumn]:
    return [column for column in columns if not (column.optional and column.is_empty)]


def _chosen(columns: Iterable[str], findings: Findings) -> list[MetricColumn]:
    known = known_columns()
    made: dict[str, tuple[MetricColumn, ...]] = {}

    def of(name: str) -> tuple[MetricColumn, ...]:
        if name not in made:
            made[name] = _metric(name).columns(findings)
        return made[name]

    chosen = []
    for wanted in columns:
        if wanted in known:
            chosen += [column for column in of(known[wanted]) if column.column.heading == wanted]
        elif wanted in METRICS.names() or wanted.endswith(".py") or ":" in wanted:
            chosen += of(wanted)
        else:
            raise InputError(f"unknown column {wanted!r}{did_you_mean(wanted, [*known, *METRICS.names()])}")
    return chosen


def _head(names: Sequence[LearnerName]) -> list[list[tuple[Column, Cell]]]:
    """Return the first cells of every row, with their columns: backbone, if there are several, method, swept fields."""
    swept = dict.fromkeys(field for name in names for field, _ in name.swept)
    several = len({name.backbone for name in names}) > 1
    rows = []
    for name in names:
        row = [(Column("backbone", ("backbone",), words=True), word(name.backbone))] if several else []
        row.append((Column("method", ("method",), words=True), word(name.method)))
        point = dict(name.swept)
        row += [(Column(short(field), (field,)), _plain(point.get(field))) for field in swept]
        rows.append(row)
    return rows


def _plain(value: Any) -> Cell:
    number = value if isinstance(value, int | float | str) and not isinstance(value, bool) else value_text(value)
    return Cell(str(number), (number,))
