"""The commands that show results: table, report, ls."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from skeleton_cgl.cli.options import Published, StoreFile, WhichStudy
from skeleton_cgl.errors import InputError

showing = typer.Typer()


@showing.command()
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
    from skeleton_cgl.analysis.results import Results
    from skeleton_cgl.analysis.tables import disparity_table

    results = Results(store, study)
    if results.records.empty:
        raise InputError(f"{store}: no run of study {results.study['name']!r} is finished")
    typer.echo(disparity_table(results.disparity(level), form, published=published), nl=False)
    for line in results.left_out:
        typer.echo(line, err=True)


@showing.command()
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


@showing.command()
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
