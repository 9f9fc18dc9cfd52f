"""The commands that show results: table, report, draw, ls."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from skeleton_cgl.cli.options import Anyway, Changes, Published, StoreFile, WhichStudy

showing = typer.Typer()


@showing.command()
def table(
    store: StoreFile,
    study: WhichStudy = None,
    level: Annotated[
        Literal["task", "class"] | None,
        typer.Option(help="Disparity of tasks or of classes.", show_default="tasks, if orders share them"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns by heading, or metrics by name or file: AA,AF,mine.py", show_default="what there is"
        ),
    ] = None,
    sort: Annotated[
        str | None, typer.Option(help="Sort by a column; -COLUMN: falling.", show_default="by method")
    ] = None,
    form: Annotated[Literal["text", "csv", "latex", "json", "html"], typer.Option("--format", help="Form.")] = "text",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write to NAME.txt, .tex, .csv, .json, .html, .png, .pdf or .svg."),
    ] = None,
    published: Published = None,
    anyway: Anyway = False,
    score: Annotated[
        str | None, typer.Option(help="A recorded score, such as roc_auc.", show_default="the leading one")
    ] = None,
) -> None:
    """Print accuracy, forgetting and order sensitivity of every method, in percent, lowest and highest marked.

    Example: skeleton-cgl table results/ucla_task_order.db --published ucla

    Example: skeleton-cgl table results/ucla_task_order.db --columns AA,AF,AOPD --sort -AA --format latex
    """
    from skeleton_cgl.analysis.metric import Beside, Findings
    from skeleton_cgl.analysis.rendering import SUFFIXES, render, write_table
    from skeleton_cgl.analysis.tables import default_level, study_table

    results = _opened(store, study, score)
    beside = None if published is None else Beside(published, anyway)
    findings = Findings(results.scores, level or default_level(results.scores), results.study, beside)
    found = study_table(findings, [each.strip() for each in columns.split(",")] if columns else ())
    found = found if sort is None else found.sorted_by(sort)
    if out is None:
        typer.echo(render(found, form), nl=False)
    elif out.suffix in SUFFIXES:
        write_table(found, out)
    else:
        from skeleton_cgl.analysis.plots.picture import picture
        from skeleton_cgl.analysis.plots.style import save

        save(picture(found), out)


@showing.command()
def report(
    store: StoreFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="NAME.html", show_default=False)],
    study: WhichStudy = None,
    published: Published = None,
    anyway: Anyway = False,
    metric: Annotated[
        list[str] | None, typer.Option(help="A further metric, by name or file; may be repeated.", show_default=False)
    ] = None,
    figure: Annotated[
        list[str] | None, typer.Option(help="A further figure, by name or file; may be repeated.", show_default=False)
    ] = None,
) -> None:
    """Write a study as one HTML file that needs no network: what was run, tables, figures, a scatter to explore.

    Example: skeleton-cgl report results/ucla_task_order.db --out report.html --published ucla
    """
    from skeleton_cgl.analysis.metric import Beside
    from skeleton_cgl.analysis.report import Extras, write_report

    beside = None if published is None else Beside(published, anyway)
    extras = Extras(beside, tuple(metric or ()), tuple(figure or ()))
    results = write_report(store, out, study, extras, progress=True)
    typer.echo(f"{out}: {results.finished_runs} of {results.planned_runs} runs, {out.stat().st_size / 1e6:.1f} MB")


@showing.command()
def draw(
    name: Annotated[str, typer.Argument(help="A figure, as `ls figures` names it, or a file.", show_default=False)],
    store: StoreFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="NAME.png, .pdf or .svg", show_default=False)],
    study: WhichStudy = None,
    options: Changes = None,
) -> None:
    """Draw one figure of a study; its options are set like fields.

    Example: skeleton-cgl draw best-worst-orders results/ucla_task_order.db --set count=3 --out orders.png
    """
    from skeleton_cgl.config import set_field
    from skeleton_cgl.registry import FIGURES

    given: dict[str, Any] = {}
    for option in options or ():
        set_field(given, option)
    figure = FIGURES.make(name, given)
    figure.save(figure.compute(_opened(store, study)), out)


@showing.command()
def ls(
    kind: Annotated[
        Literal[
            "methods", "backbones", "graph-backbones", "datasets", "graph-datasets", "scenarios", "figures", "metrics"
        ],
        typer.Argument(show_default=False),
    ],
) -> None:
    """List what can be named in a study file or on the command line, with a word on each; a file of your own can, too.

    Example: skeleton-cgl ls methods
    """
    from skeleton_cgl.registry import LISTED

    entries = LISTED[kind].described()
    width = max(len(name) for name in entries)
    for name, meaning in entries.items():
        typer.echo(f"{name:<{width}}  {meaning}")
    if kind == "methods":
        typer.echo()
        typer.echo(_where_methods_are_defined(), nl=False)


_SETTING_LETTERS = {"class-il": "c", "task-il": "t", "domain-il": "d", "time-il": "τ"}
_STREAM_LETTER = "s"


def _letters(settings: tuple[str, ...], streamed: bool) -> list[str]:
    return [*(_SETTING_LETTERS[setting] for setting in settings), *([_STREAM_LETTER] if streamed else [])]


def _where_methods_are_defined() -> str:
    """Return the table of methods by kinds of scenario, with a letter for every setting, and one for streams."""
    from skeleton_cgl.analysis.rendering import render
    from skeleton_cgl.analysis.table import EMPTY, Column, Table, word
    from skeleton_cgl.engine.compatibility import compatibilities

    found = compatibilities()
    kinds = list(found[0].settings)
    rows = []
    for each in found:
        letters = [" ".join(_letters(each.settings[kind], kind in each.streams)) for kind in kinds]
        rows.append((word(each.method), *(word(told or EMPTY) for told in letters), word(each.paper)))
    columns = (Column(heading, (heading,), words=True) for heading in ("method", *kinds, "paper"))
    backbones = [f"{each.method} needs a backbone with {' and '.join(each.of_backbone)}" for each in found]
    needed = [told for told, each in zip(backbones, found, strict=True) if each.of_backbone]
    meanings = {**_SETTING_LETTERS, "on a stream": _STREAM_LETTER}
    letters_mean = ", ".join(f"{letter} {setting}" for setting, letter in meanings.items())
    notes = (f"Defined, with default parameters, in: {letters_mean}.", *(f"{told}." for told in needed))
    return render(Table("Methods", tuple(columns), tuple(rows), notes))


def _opened(store: Path, study: str | None, score: str | None = None) -> Any:
    """Return the results of a study and say what is left out; refuse one of which no run is finished."""
    from skeleton_cgl.analysis.results import Results

    results = Results(store, study, score)
    results.check_finished()
    for line in results.told:
        typer.echo(line, err=True)
    return results
