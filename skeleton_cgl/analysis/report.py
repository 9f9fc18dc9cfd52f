"""The report of a study: one HTML file that opens without a network, with tables, figures and a scatter to explore.

The functions here compute what the page shows; report.html, report.css and report.js show it.
"""

import base64
import hashlib
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2
import matplotlib as mpl
import numpy as np
import yaml
from markupsafe import Markup
from matplotlib.figure import Figure
from plotly.offline import get_plotlyjs
from tqdm import tqdm

from skeleton_cgl.analysis.figure import StudyFigure, names_in
from skeleton_cgl.analysis.finals import LEVELS, OWN_TASKS, repeats_share_orders
from skeleton_cgl.analysis.metric import Beside, Findings
from skeleton_cgl.analysis.names import methods_of, numbered, settings_of
from skeleton_cgl.analysis.performance import forgetting_bound, runs
from skeleton_cgl.analysis.rendering import html_notes, html_rows
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.scores import KINDS, Scores
from skeleton_cgl.analysis.table import Table
from skeleton_cgl.analysis.tables import learned_one_by_one, performance_table, study_table, variance_table
from skeleton_cgl.analysis.words import OF_SKELETONS, Wording, order_words
from skeleton_cgl.durations import duration
from skeleton_cgl.engine.draws import FLOORS
from skeleton_cgl.engine.record import Facts, Made
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.plain import value_text
from skeleton_cgl.registry import FIGURES
from skeleton_cgl.scenarios.lessons import Order

_HERE = Path(__file__).parent
_SYMBOLS = {
    **{"o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down", "P": "cross", "X": "x"},
    **{"*": "star", "h": "hexagon", "<": "triangle-left", ">": "triangle-right", "p": "pentagon", "d": "diamond-tall"},
    **{"8": "octagon"},
}
"""What Plotly calls the markers of Matplotlib."""
_ENLARGED = 1.6
"""Figures are made for the columns of a paper; their letters are too small for a screen."""
_SEQUENCE = ("architecture", "order-scatter", "learning-curve", "class-fate", "opd-growth", "accuracy-matrix")
"""The figures a report begins with; others follow by the alphabet."""


@dataclass(frozen=True)
class Extras:
    """What a report shows beside what every report does.

    beside: published values; metrics: further columns of its tables; figures: further figures; both by name,
    `module:Class` or file.
    """

    beside: Beside | None = None
    metrics: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


NO_EXTRAS = Extras()


@dataclass(frozen=True)
class Fact:
    """Something about what was run: its name, and what there is to say to it, line by line."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Drawn:
    """A figure of the page: its image, or "" where it cannot be drawn and the meaning says why."""

    title: str
    meaning: str
    image: str = ""
    width: int = 0


def write_report(
    store: str | Path,
    out: str | Path,
    study: str | int | None = None,
    extras: Extras = NO_EXTRAS,
    progress: bool = False,
) -> Results:
    """Write the report of a study's finished runs to `out` (.html); return the results it is about.

    The same store gives the same bytes. Refused: a study without a finished run, and another suffix.
    """
    out = Path(out)
    if out.suffix != ".html":
        raise InputError(f"{out}: a report is called NAME.html")
    results = Results(store, study)
    results.check_finished()
    page = report_page(results, extras, progress)
    with write_beside(out) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    return results


def report_page(results: Results, extras: Extras = NO_EXTRAS, progress: bool = False) -> str:
    """Return the whole page; it names its scripts by their digests, so that a browser runs no others."""
    figures = report_figures(results, extras.figures)
    tables = [
        (table.title, Markup(html_rows(table)), Markup(html_notes(table))) for table in report_tables(results, extras)
    ]
    scripts = [get_plotlyjs(), (_HERE / "report.js").read_text(encoding="utf-8")]
    loader = jinja2.FileSystemLoader(_HERE)
    templates = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return templates.get_template("report.html").render(
        name=results.study.name,
        facts=facts(results),
        spec=yaml.safe_dump(results.spec, sort_keys=False, allow_unicode=True),
        scatter=scatter_data(results.scores, results.words),
        words=results.words,
        tables=tables,
        figures=[_drawn(figure, results) for figure in tqdm(figures, "drawing", unit=" figures", disable=not progress)],
        style=Markup((_HERE / "report.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        digests=[base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts],
    )


def report_tables(results: Results, extras: Extras = NO_EXTRAS) -> list[Table]:
    """Return the tables: performance, disparity of tasks and of classes, explained variance."""
    levels = ("class",) if learned_one_by_one(results.scores) else LEVELS
    disparities = [_disparity(results, level, extras) for level in levels]
    return [performance_table(results.scores, results.study), *disparities, variance_table(results.scores)]


def _disparity(results: Results, level: str, extras: Extras) -> Table:
    """Return the disparity table; where the study is unlike the published one, without that, and with the reason."""
    findings = Findings(results.scores, level, results.study, extras.beside)
    try:
        return study_table(findings, further=extras.metrics)
    except InputError as error:
        if extras.beside is None:
            raise
        alone = study_table(replace(findings, beside=None), further=extras.metrics)
        return replace(alone, notes=(*alone.notes, f"Not set beside what was published: {error}."))


def report_figures(results: Results, further: Sequence[str] = ()) -> list[StudyFigure[Any]]:
    """Return the figures of a report: the known ones that it wants and that apply to the study, then further ones."""
    known = FIGURES.names()
    names = [*_SEQUENCE, *(name for name in known if name not in _SEQUENCE)]
    figures: list[StudyFigure[Any]] = [FIGURES.make(name, {}) for name in names]
    asked: list[StudyFigure[Any]] = [FIGURES.make(name, {}) for name in further]
    return [figure for figure in figures if figure.wanted and figure.applies(results)] + asked


def scatter_data(scores: Scores, words: Wording = OF_SKELETONS) -> dict[str, Any]:
    """Return what the page's script draws, as plain values: a point per ordinary run, its columns lists of one length.

    AA, AF and the accuracies per class are fractions with four decimals, None where not defined; `method`, `backbone`
    and `order` are places in the lists of that name, and a bound is the line of Theorem 1 for so many tasks, none for
    streams. `words` is how the page calls them.
    """
    ordinary = scores.ordinary()
    points = runs(ordinary)
    names = numbered(names_in(scores))
    methods = methods_of(names.values())
    places = {name.place: place for place, name in enumerate(methods)}
    settings = settings_of(names.values())
    orders = {order: place for place, order in enumerate(dict.fromkeys(points["order"]))}
    lengths = set() if scores.has_streams else {len(order) for order in orders} - {1}
    ends = np.array([0.0, 1.0])
    return {
        "words": {
            "average": words.average,
            "axis": f"average {words.measured}",
            "unit": words.of("class").capitalize(),
            "score": words.of("Accuracy at the end"),
        },
        "units": list(scores.units),
        "methods": [{"name": name.method, "colour": name.colour, "symbol": _SYMBOLS[name.marker]} for name in methods],
        "backbones": settings,
        "orders": [[list(task) for task in order] for order in orders],
        "bounds": {length: _plain(forgetting_bound(ends, length)) for length in lengths},
        "points": {
            "method": [places[names[learner].place] for learner in points["learner"]],
            "backbone": [settings.index(names[learner].setting) for learner in points["learner"]],
            "order": [orders[order] for order in points["order"]],
            "kind": [order_words(kind, scores.unit) for kind in points["kind"]],
            "repeat": points["repeat"].tolist(),
            "AA": _plain(points["AA"]),
            "AF": _plain(points["AF"]),
            "accuracy": _plain(ordinary.finals),
        },
    }


def facts(results: Results) -> list[Fact]:
    """Return what was run. Machines are counted, not named."""
    study, spec = results.study, results.spec
    repeats, seed = spec.get("repeats", 1), spec.get("seed", 0)
    seeds = f"seed {seed}" if repeats == 1 else f"seeds {seed}–{seed + repeats - 1}"
    own_seeds = {what: own for what, own in spec.get("seeds", {}).items() if own is not None}
    by_repeat = _made(results)
    made = [each for of_repeat in by_repeat.values() for each in of_repeat]
    versions = sorted({f"{package} {number}" for each in made for package, number in each.versions})
    created = sorted(each.created for each in made)
    seconds = sum(each.seconds for each in made)
    told = {
        "Study": [study.name, f"number {study.number} in its store", f"made {_time(study.created)}"],
        "Scenario": list(_fields(spec.get("scenario", {}))),
        "Data digest": list(dict.fromkeys(study.digests)),
        **({"Notes on the data": list(study.notes)} if study.notes else {}),
        "Runs": [
            f"{results.finished_runs} of {results.planned_runs} finished",
            *results.told,
        ],
        "Orders": [line for kind in KINDS for line in _order_lines(results.scores, kind)],
        "Repeats": [f"{repeats}, {seeds}", *(f"{what} from seed {own}" for what, own in own_seeds.items())],
        "Noise floor": _floor_lines(results.scores),
        "Versions": versions,
        "Machines": [str(len({each.host for each in made}))],
        "Fingerprints": fingerprint_lines(
            {repeat: [each.fingerprint for each in of] for repeat, of in by_repeat.items()}
        ),
        "Learning": [f"{duration(seconds)} of one worker in {len(made):,} stages"],
        "Recorded": [f"from {_time(created[0])}", f"to {_time(created[-1])}"],
    }
    return [Fact(name, tuple(lines)) for name, lines in told.items()]


def _fields(of: Mapping[str, Any], inside: str = "") -> Iterator[str]:
    """Yield a line per field, also of fields within fields: "of.kind: skeleton"."""
    for field, value in of.items():
        if isinstance(value, dict) and value and "name" not in value:
            yield from _fields(value, f"{inside}{field}.")
        else:
            yield f"{inside}{field}: {value_text(value)}"


def _order_lines(scores: Scores, kind: str) -> list[str]:
    """Return how many orders of a kind were learned, if any; where repeats have their own, how many in a repeat."""
    orders_in: dict[int, set[Order]] = {}
    for run in scores.ordinary().runs:
        if run.kind == kind:
            orders_in.setdefault(run.repeat, set()).add(run.order)
    if not orders_in:
        return []
    most = max(map(len, orders_in.values()))
    line = f"{most} {order_words(kind, scores.unit)} order{'s' * (most > 1)}"
    own = len(set().union(*orders_in.values())) > most
    return [f"{line} in each repeat, of its own" if own else line]


def fingerprint_lines(by_repeat: Mapping[int, Sequence[Facts]]) -> list[str]:
    """Return what is to be said of the fingerprints of every stage, by repeat: each, and what differences mean."""
    found = {repeat: list(dict.fromkeys(facts)) for repeat, facts in by_repeat.items()}
    lines = []
    for facts in dict.fromkeys(facts for several in found.values() for facts in several):
        whose = [str(repeat) for repeat, several in found.items() if facts in several]
        told = ", ".join(f"{name} {value}" for name, value in facts) or "not noted"
        lines.append(f"repeat{'s' * (len(whose) > 1)} {', '.join(whose)}: {told}" if len(found) > 1 else told)
    mixed = [str(repeat) for repeat, several in found.items() if len(several) > 1]
    if mixed:
        lines.append(f"mixed inside of repeat {', '.join(mixed)}: rounding is part of its disparity")
    elif len(lines) > 1:
        lines.append("repeats come from different machines; disparities are taken inside of a repeat")
    return lines


def _floor_lines(scores: Scores) -> list[str]:
    """Return of which kinds the noise floors are, and of how many orders and runs."""
    lines = []
    for kind in FLOORS:
        floors = Counter((run.learner, run.repeat, run.order) for run in scores.runs if run.floor == kind)
        if floors:
            orders, most = len({order for *_, order in floors}), 1 + max(floors.values())
            lines.append(f"{kind}: {most} runs of {orders} order{'s' * (orders > 1)} per repeat")
    return lines or ["not run"]


def _made(results: Results) -> dict[int, list[Made]]:
    """Return how every stage of the finished runs came about, by repeat; a stage that repeats share counts once."""
    with Store(results.path, must_exist=True) as store:
        done = store.done()
        repeat_of: dict[str, int] = {}
        for run in store.runs(results.study.number):
            if done.issuperset(run.keys):
                for key in run.keys:
                    repeat_of.setdefault(key, run.repeat)
        found: dict[int, list[Made]] = {}
        for repeat, made in zip(repeat_of.values(), store.made(repeat_of), strict=True):
            found.setdefault(repeat, []).append(made)
        return dict(sorted(found.items()))


def _drawn(figure: StudyFigure[Any], results: Results) -> Drawn:
    """Return a figure as the page shows it; the reason for a meaning where it cannot be drawn."""
    title, meaning = figure.described(results.words)
    try:
        drawn = figure.draw(figure.compute(results))
    except InputError as error:
        return Drawn(title, f"Not drawn: {error}")
    told = [
        meaning,
        *([] if repeats_share_orders(results.scores) else [OWN_TASKS]),
        *([f"Half done: {results.half_done}."] if results.half_done else []),
    ]
    return Drawn(title, " ".join(told), _image(drawn), round(96 * _ENLARGED * drawn.get_figwidth()))


def _image(figure: Figure) -> str:
    """Return a figure as the address of an SVG image that holds the image itself."""
    drawn = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "skeleton_cgl"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode()}"


def _plain(values: Any) -> list[Any]:
    """Return numbers as lists, rounded to four decimals, None for what is not a number."""
    rounded = np.round(np.asarray(values, dtype=float), 4) + 0.0
    plain = rounded.astype(object)
    plain[np.isnan(rounded)] = None
    return list(plain.tolist())


def _time(iso: str) -> str:
    return f"{iso[:16].replace('T', ' ')} UTC"
