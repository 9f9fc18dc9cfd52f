"""The commands that take records out of a store and into another: export, import."""

from pathlib import Path
from typing import Annotated

import typer

from skeleton_cgl.cli.options import StoreFile

exchange = typer.Typer()


@exchange.command("export")
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


@exchange.command("import")
def import_store(
    source: Annotated[Path, typer.Argument(help="An export, NAME.csv.gz.", show_default=False)],
    store: Annotated[Path, typer.Option("--store", help="The store to read it into.", show_default=False)],
) -> None:
    """Read an export into a store, new or not.

    Example: skeleton-cgl import ucla.csv.gz --store x.db
    """
    from skeleton_cgl.engine.exchange import import_file

    typer.echo(f"{store}: {import_file(source, store, progress=True)} stages")
