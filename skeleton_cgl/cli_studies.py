"""The commands about studies: run, search, status, table, report, export, import, ls."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from skeleton_cgl.errors import InputError

studies = typer.Typer()

StoreFile = Annotated[Path, typer.Argument(help="The store, as `run` made it.", show_default=False)]
WhichStudy = Annotated[
    str | None, typer.Option("--study", help="Name or number of a study.", show_default="the latest")
]


StudyFile = Annotated[Path, typer.Argument(help="A study file; see experiments/.", show_default=False)]
NewStore = Annotated[
    Path | None, typer.Option("--store", help="Where records are kept.", show_default="results/NAME.db")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a field: training.epochs=20. May be given again.", show_default=False),
]
Workers = Annotated[int, typer.Option(help="Processes of one thread each.", min=1)]
Cluster = Annotated[str | None, typer.Option(help="Address of a running Dask scheduler, instead.", show_default=False)]
Published = Annotated[
    Literal["ucla", "ntu"] | None,
    typer.Option(help="Put the published values of this data set beside.", show_default=False),
]
Retry = Annotated[bool, typer.Option("--retry", help="Run again what failed before.")]


@studies.command()
def run(
    study: StudyFile,
    store: NewStore = None,
    changes: Changes = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and about how long it takes.")] = False,
    no_tree: Annotated[bool, typer.Option("--no-tree", help="Run every order alone, sharing nothing.")] = False,
    retry: Retry = False,
) -> None:
    """Run what the store lacks of a study; stop with Ctrl-C and go on with the same command.

    Example: skeleton-cgl run experiments/quickstart.yaml --workers 2
    Example: skeleton-cgl run experiments/ucla_task_order.yaml --set backbone=models/ctrgcn.py --set orders.tasks=30
    """
    from skeleton_cgl.engine.forecast import forecast
    from skeleton_cgl.engine.run import run_study
    from skeleton_cgl.engine.study import Study

    asked = Study.from_file(study, changes or ())
    store = store or Path("results") / f"{asked.name}.db"
    if dry_run:
        typer.echo(str(forecast(asked, store)))
        return
    results = run_study(asked, store, workers=workers, cluster=cluster, tree=not no_tree, retry=retry)
    _conclude(results)


@studies.command()
def search(
    study: Annotated[Path, typer.Argument(help="A study file with a `grid`.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The study fragment to write.", show_default=False)],
    store: NewStore = None,
    changes: Changes = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    retry: Retry = False,
) -> None:
    """Try every combination of a grid of method parameters; write the winners by validation AA as a study fragment.

    Example: skeleton-cgl search experiments/ucla_grid.yaml --out experiments/ucla_best.yaml --workers 2
    """
    from skeleton_cgl.engine.search import Search, run_search, write_fragment

    asked = Search.from_file(study, changes or ())
    store = store or Path("results") / f"{asked.name}.db"
    results, choices = run_search(asked, store, workers=workers, cluster=cluster, retry=retry)
    for choice in choices:
        typer.echo(f"{choice.method}:")
        for label, score in choice.scores.items():
            mark = " <" if label == choice.winner.label else ""
            typer.echo(f"  {score:.4f}  {label}{mark}")
    if choices:
        write_fragment(asked, choices, out)
        typer.echo(f"{out}: the winners; `include: {out.name}` puts them into a study file beside it")
    _conclude(results)


def _conclude(results: Any) -> None:
    """Say what a run came to; end with code 1 where something failed or is left."""
    summary = results.summary
    done = f"{summary.learned} stages learned; {results.finished_runs} of {results.planned_runs} runs"
    typer.echo(f"{results.path}: {done}")
    if summary.failures:
        typer.echo(f"{len(summary.failures)} stages failed, {summary.skipped} below them were skipped:", err=True)
        for stage, reason in summary.failures.items():
            typer.echo(f"  {stage}: {reason}", err=True)
        typer.echo("run the same command with --retry to try them again", err=True)
    if summary.interrupted:
        typer.echo("stopped; the same command goes on from here", err=True)
    if summary.failures or summary.interrupted:
        sys.exit(1)


@studies.command()
def status(store: StoreFile, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Tell which studies a store has, what is done and left, how long that takes, and what failed.

    Example: skeleton-cgl status results/quickstart.db
    """
    from skeleton_cgl.engine.status import describe_status, status_of

    found = status_of(store)
    typer.echo(json.dumps(found, indent=2) if as_json else describe_status(found))


@studies.command()
def table(
    store: StoreFile,
    study: WhichStudy = None,
    level: Annotated[Literal["task", "class"], typer.Option(help="Disparity of tasks or of classes.")] = "task",
    form: Annotated[Literal["text", "csv", "latex", "json"], typer.Option("--format", help="Form.")] = "text",
    published: Published = None,
) -> None:
    """Print the order sensitivity of every method: AOPD and MOPD in percent, lowest and highest marked.

    Example: skeleton-cgl table results/ucla_task_order.db --published ucla
    """
    from skeleton_cgl.analysis.tables import disparity_table
    from skeleton_cgl.engine.results import Results

    results = Results(store, study)
    if results.records.empty:
        raise InputError(f"{store}: no run of study {results.study['name']!r} is finished")
    typer.echo(disparity_table(results.disparity(level), form, published=published), nl=False)
    for line in results.left_out:
        typer.echo(line, err=True)


@studies.command()
def report(
    store: StoreFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="NAME.html", show_default=False)],
    study: WhichStudy = None,
    published: Published = None,
) -> None:
    """Write a study as one HTML file that needs no network: what was run, tables, figures, a scatter to explore.

    Example: skeleton-cgl report results/ucla_task_order.db --out report.html --published ucla
    """
    from skeleton_cgl.analysis.report import write_report

    results = write_report(store, out, study, published, progress=True)
    typer.echo(f"{out}: {results.finished_runs} of {results.planned_runs} runs, {out.stat().st_size / 1e6:.1f} MB")


@studies.command("export")
def export_store(
    store: StoreFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="NAME.csv.gz", show_default=False)],
    chosen: Annotated[
        list[str] | None,
        typer.Option("--study", help="Name or number of a study; may be repeated.", show_default="all"),
    ] = None,
) -> None:
    """Write the records of a store as one compressed CSV file.

    Example: skeleton-cgl export results/ucla.db --study ucla_task_order --out ucla.csv.gz
    """
    from skeleton_cgl.engine.exchange import export
    from skeleton_cgl.engine.store import Store

    with Store(store, must_exist=True) as opened:
        typer.echo(f"{out}: {export(opened, out, chosen, progress=True)} stages")


@studies.command("import")
def import_store(
    source: Annotated[Path, typer.Argument(help="An export, NAME.csv.gz.", show_default=False)],
    store: Annotated[Path, typer.Option("--store", help="The store to read it into.", show_default=False)],
) -> None:
    """Read an export into a store, new or not.

    Example: skeleton-cgl import ucla.csv.gz --store x.db
    """
    from skeleton_cgl.engine.exchange import import_export
    from skeleton_cgl.engine.store import Store

    with Store(store) as opened:
        typer.echo(f"{store}: {import_export(source, opened, progress=True)} stages")


@studies.command()
def ls(
    kind: Annotated[Literal["methods", "backbones", "datasets", "scenarios"], typer.Argument(show_default=False)],
) -> None:
    """List what can be named in a study file, with a word on each.

    Example: skeleton-cgl ls methods
    """
    from skeleton_cgl.catalogue import catalogue

    entries = catalogue()[kind]
    width = max(len(name) for name in entries)
    for name, meaning in entries.items():
        typer.echo(f"{name:<{width}}  {meaning}")
