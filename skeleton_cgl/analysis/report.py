"""The report of a study: one HTML file that opens without a network, with tables, figures and a scatter to explore.

The functions here and in `report_tables` compute what the page shows; report.html, report.css and report.js show it.
"""

import base64
import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import matplotlib as mpl
import numpy as np
import pandas as pd
import yaml
from markupsafe import Markup
from matplotlib.figure import Figure
from plotly.offline import get_plotlyjs
from tqdm import tqdm

from skeleton_cgl.analysis import curves, fate, plots
from skeleton_cgl.analysis.performance import KINDS, RUN, forgetting_bound, runs, stacked_class_accuracies
from skeleton_cgl.analysis.plots.style import looks
from skeleton_cgl.analysis.report_tables import disparity_levels, performance_table, variance_table
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.analysis.sweeps import sweep_curves
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside

_HERE = Path(__file__).parent
_SYMBOLS = {
    **{"o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down", "P": "cross", "X": "x"},
    **{"*": "star", "h": "hexagon", "<": "triangle-left", ">": "triangle-right", "p": "pentagon", "d": "diamond-tall"},
    **{"8": "octagon"},
}
"""What Plotly calls the markers of Matplotlib."""
_ENLARGED = 1.6
"""Figures are made for the columns of a paper; their letters are too small for a screen."""


def write_report(
    store: str | Path,
    out: str | Path,
    study: str | int | None = None,
    published: str | None = None,
    progress: bool = False,
) -> Results:
    """Write the report of a study's finished runs to `out` (.html); return the results it is about.

    `published` names a data set of the published study, whose values then stand beside ours. The same store gives the
    same bytes. Refused: a study without a finished run, and another suffix.
    """
    out = Path(out)
    if out.suffix != ".html":
        raise InputError(f"{out}: a report is called NAME.html")
    results = Results(store, study)
    if not (results.records["noise"] == 0).any():
        raise InputError(f"{store}: no run of study {results.study['name']!r} is finished")
    page = report_page(results, published, progress)
    with write_beside(out) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    return results


def report_page(results: Results, published: str | None = None, progress: bool = False) -> str:
    """Return the whole page; it names its scripts by their digests, so that a browser runs no others."""
    records = results.records
    scripts = [get_plotlyjs(), (_HERE / "report.js").read_text(encoding="utf-8")]
    loader = jinja2.FileSystemLoader(_HERE)
    templates = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return templates.get_template("report.html").render(
        name=results.study["name"],
        facts=facts(results),
        spec=yaml.safe_dump(results.study["spec"], sort_keys=False, allow_unicode=True),
        scatter=scatter_data(records, results.units),
        tables=[performance_table(records), *disparity_levels(records, published), variance_table(records)],
        figures=[
            _drawn(title, *figure)
            for title, figure in tqdm(_drawings(results).items(), "drawing", unit=" figures", disable=not progress)
        ],
        style=Markup((_HERE / "report.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        digests=[base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts],
    )


def scatter_data(records: pd.DataFrame, units: Sequence[str]) -> dict[str, Any]:
    """Return what the page's script draws, as plain values: a point per ordinary run, its columns lists of one length.

    AA, AF and the accuracies per class are fractions with four decimals, None where not defined; `method`, `backbone`
    and `order` are places in the lists of that name, and a bound is the line of Theorem 1 for so many tasks.
    """
    ordinary = records[records["noise"] == 0]
    last = ordinary[ordinary["step"] == ordinary["order"].map(len)]
    points = runs(ordinary).merge(last[[*RUN, "test"]], on=list(RUN), validate="one_to_one")
    methods = looks(points["method"])
    places = {method: place for place, method in enumerate(methods)}
    backbones = list(points["backbone"].unique())
    orders = {order: place for place, order in enumerate(dict.fromkeys(points["order"]))}
    lengths = {len(order) for order in orders} - {1}
    ends = np.array([0.0, 1.0])
    return {
        "units": list(units),
        "methods": [
            {"name": look.name, "colour": look.colour, "symbol": _SYMBOLS[look.marker]} for look in methods.values()
        ],
        "backbones": backbones,
        "orders": [[list(task) for task in order] for order in orders],
        "bounds": {length: _plain(forgetting_bound(ends, length)) for length in lengths},
        "points": {
            "method": [places[method] for method in points["method"]],
            "backbone": [backbones.index(backbone) for backbone in points["backbone"]],
            "order": [orders[order] for order in points["order"]],
            "kind": list(points["kind"]),
            "repeat": points["repeat"].tolist(),
            "AA": _plain(points["AA"]),
            "AF": _plain(points["AF"]),
            "accuracy": _plain(stacked_class_accuracies(points["test"])),
        },
    }


def facts(results: Results) -> list[tuple[str, list[str]]]:
    """Return what was run: a name and what there is to say to it, line by line. Machines are counted, not named."""
    study, spec = results.study, results.study["spec"]
    ordinary = results.records[results.records["noise"] == 0]
    orders = {kind: ordinary["order"][ordinary["kind"] == kind].nunique() for kind in KINDS}
    first, last = spec["seed"], spec["seed"] + spec["repeats"] - 1
    made = _provenance(results)
    versions = sorted({f"{package} {number}" for each in set(made["versions"]) for package, number in each})
    return [
        ("Study", [study["name"], f"number {study['id']} in its store", f"made {_time(study['created'])}"]),
        ("Scenario", [f"{field}: {value}" for field, value in spec["scenario"].items()]),
        ("Data digest", list(dict.fromkeys(study["digests"]))),
        ("Runs", [f"{results.finished_runs} of {results.planned_runs} finished", *results.left_out]),
        ("Orders", [f"{count} {kind} order{'s' * (count > 1)}" for kind, count in orders.items() if count]),
        ("Repeats", [f"{spec['repeats']}, {f'seed {first}' if first == last else f'seeds {first}–{last}'}"]),
        ("Noise floor", [f"{spec['noise_floor']} runs of one order per repeat" if spec["noise_floor"] else "not run"]),
        ("Versions", versions),
        ("Machines", [str(made["host"].nunique())]),
        ("Learning", [f"{_duration(made['seconds'].sum())} of one worker in {len(made):,} stages"]),
        ("Recorded", [f"from {_time(made['created'].min())}", f"to {_time(made['created'].max())}"]),
    ]


def _provenance(results: Results) -> pd.DataFrame:
    """Return one row per stage of the finished runs: seconds, host, versions and created."""
    with Store(results.path, must_exist=True) as store:
        done = store.done()
        planned = [run["keys"] for run in store.runs(results.study["id"])]
        made = store.provenance(key for keys in planned if done.issuperset(keys) for key in keys)
    return pd.DataFrame([{**row, "versions": tuple(row["versions"].items())} for row in made])


def _drawings(results: Results) -> dict[str, tuple[str, Callable[[], Figure]]]:
    """Return the figures by title: what each means, and what draws it."""
    records, units = results.records, results.units
    swept = {
        "What was swept": (
            "Accuracy and forgetting against the values tried: mean over orders, then mean and standard deviation over "
            "repeats.",
            lambda: plots.architecture(sweep_curves(results.runs())),
        )
    }
    return {
        **(swept if results.study["spec"].get("sweep") else {}),
        "Accuracy and forgetting of every order": (
            "A point per order, its mean over repeats; filled: task orders, hollow: class orders.",
            lambda: plots.order_scatter(curves.mean_over_repeats(runs(records))),
        ),
        "Along the orders": (
            "Average accuracy after each step: mean, the middle half of the orders (thick), all of them (thin).",
            lambda: plots.learning_curve(curves.accuracy_by_step(records)),
        ),
        "The fate of a class": (
            "Final accuracy of every class by its position in the order, mean over orders and repeats.",
            lambda: plots.class_fate(fate.accuracy_by_position(records), units),
        ),
        "Disparity and the number of orders": (
            "AOPD of classes expected of so many orders; dashed: of so many seeds of one order.",
            lambda: plots.opd_growth(curves.aopd_growth(records, "class")),
        ),
        "Accuracy matrices": (
            "Percent on the task at each position after each step, mean over all orders and repeats.",
            lambda: plots.accuracy_matrices(curves.mean_accuracy_matrices(records)),
        ),
        "The kindest and the cruellest orders": (
            "By final average accuracy, the best first; a cell names a task by its classes and its final percent.",
            lambda: plots.best_worst_orders(fate.extreme_orders(records, count=5), units),
        ),
    }


def _drawn(title: str, meaning: str, draw: Callable[[], Figure]) -> dict[str, Any]:
    """Return title, meaning, image and width of a figure; the reason for a meaning where it cannot be drawn."""
    try:
        figure = draw()
    except InputError as error:
        return {"title": title, "meaning": f"Not drawn: {error}"}
    width = round(96 * _ENLARGED * figure.get_figwidth())
    return {"title": title, "meaning": meaning, "image": _image(figure), "width": width}


def _image(figure: Figure) -> str:
    """Return a figure as the address of an SVG image that holds the image itself."""
    drawn = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "skeleton_cgl"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode()}"


def _plain(values: Any) -> list[Any]:
    """Return numbers as lists, rounded to four decimals, None for what is not a number."""
    rounded = np.round(np.asarray(values, dtype=float), 4) + 0.0
    return np.where(np.isnan(rounded), None, rounded).tolist()


def _time(iso: str) -> str:
    return f"{iso[:16].replace('T', ' ')} UTC"


def _duration(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else f"{seconds:.0f} s"
