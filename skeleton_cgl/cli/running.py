"""The commands that learn, and tell what was learned: run, search, status."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from skeleton_cgl.cli.options import Changes, Cluster, Mix, NewStore, Retry, StoreFile, StudyFile, Traceback, Workers
from skeleton_cgl.errors import InputError

running = typer.Typer()


@running.command()
def run(
    study: StudyFile,
    store: NewStore = None,
    changes: Changes = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and about how long it takes.")] = False,
    no_tree: Annotated[bool, typer.Option("--no-tree", help="Run every order alone, sharing nothing.")] = False,
    retry: Retry = False,
    mix: Mix = False,
    traceback: Traceback = False,
) -> None:
    """Run what the store lacks of a study; stop with Ctrl-C and go on with the same command.

    Example: skeleton-cgl run experiments/quickstart.yaml --workers 2

    Example: skeleton-cgl run experiments/ucla_task_order.yaml --set backbone=models/ctrgcn.py --set orders.tasks=30
    """
    from skeleton_cgl.engine.forecast import forecast
    from skeleton_cgl.study import Study

    asked = Study.from_file(study, changes or ())
    store = store or Path("results") / f"{asked.name}.db"
    with _naming(study):
        if dry_run:
            typer.echo(str(forecast(asked, store)))
            return
        results = asked.run(store, workers=workers, cluster=cluster, tree=not no_tree, retry=retry, mix=mix)
    _conclude(results, traceback)


@running.command()
def search(
    study: Annotated[Path, typer.Argument(help="A study file with a `grid`.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The study fragment to write.", show_default=False)],
    store: NewStore = None,
    changes: Changes = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    retry: Retry = False,
    mix: Mix = False,
    traceback: Traceback = False,
) -> None:
    """Try every combination of a grid of parameters; write the winners by validation AA (AP) as a study fragment.

    The grid has parameters of methods, `ewc: {strength: [1, 100]}`, fields of the recipe, `training: {learning_rate:
    [0.001, 0.01]}`, and parameters of the backbones, `backbone: {dropout: [0, 0.5]}`. A study has one recipe: the
    fragment has the recipe and backbone at which methods are best in the mean, each with its best parameters there, and
    tells in comments where a method by itself is better.

    Example: skeleton-cgl search experiments/ucla_grid.yaml --out experiments/ucla_best.yaml --workers 2

    Example: skeleton-cgl search experiments/begin_grid.yaml --out experiments/begin_best.yaml --workers 2
    """
    from skeleton_cgl.search import Search, describe_choices, run_search, write_fragment

    asked = Search.from_file(study, changes or ())
    store = store or Path("results") / f"{asked.name}.db"
    with _naming(study):
        results, choices = run_search(asked, store, workers=workers, cluster=cluster, retry=retry, mix=mix)
    if choices:
        typer.echo(describe_choices(asked, choices))
        write_fragment(asked, choices, out)
        typer.echo(f"{out}: the winners; `include: {out.name}` puts them into a study file beside it")
    _conclude(results, traceback)


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Within: a refusal that begins with a field of the study is told with the study's file before it."""
    from skeleton_cgl.study import Study

    try:
        yield
    except InputError as error:
        if str(error).partition(":")[0] in Study.model_fields:
            raise InputError(f"{file}: {error}") from error
        raise


def _conclude(results: Any, traceback: bool) -> None:
    """Say what a run came to; end with code 1 where something failed or is left."""
    summary = results.summary
    done = f"{summary.learned} stages learned; {results.finished_runs} of {results.planned_runs} runs"
    typer.echo(f"{results.path}: {done}")
    if summary.failures:
        typer.echo(f"{len(summary.failures)} stages failed, {summary.skipped} below them were skipped:", err=True)
        for stage, failure in summary.failures.items():
            typer.echo(f"  {stage}: {failure.reason}", err=True)
            if traceback:
                typer.echo(failure.trace, err=True)
        typer.echo("run the same command with --retry to try them again", err=True)
    if summary.interrupted:
        typer.echo("stopped; the same command goes on from here", err=True)
    if summary.failures or summary.interrupted:
        sys.exit(1)


@running.command()
def status(
    store: StoreFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read all of it, and tell what is damaged.")] = False,
) -> None:
    """Tell which studies a store has, what is done and left, how long that takes, and what failed.

    Example: skeleton-cgl status results/quickstart.db

    Example: skeleton-cgl status results/quickstart.db --verify
    """
    from skeleton_cgl.engine import status as engine

    if verify:
        read = engine.verified(store)
        values = engine.verification_values(read)
        typer.echo(json.dumps(values, indent=2) if as_json else engine.describe_verification(store, read))
        sys.exit(1 if read.damages else 0)
    found = engine.status_of(store)
    typer.echo(json.dumps(engine.status_values(found), indent=2) if as_json else engine.describe_status(found))
