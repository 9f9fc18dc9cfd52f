"""The command that checks a method or backbone of one's own: check."""

import sys
from typing import Annotated, Any

import typer
from tqdm import tqdm

from skeleton_cgl.cli.options import Traceback
from skeleton_cgl.config import set_field

checking = typer.Typer()

_SHOWN_AFTER_SECONDS = 2


@checking.command()
def check(
    name: Annotated[
        str,
        typer.Argument(
            help="A Python file, module:Class, or a known name.", metavar="FILE_OR_NAME", show_default=False
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            help="Check on an archive, or on made-up `clips` or `graph`.", show_default="made-up, as the backbone takes"
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter: NAME=VALUE. May be given again.", show_default=False),
    ] = None,
    traceback: Traceback = False,
) -> None:
    """Try whether a method or backbone keeps what the engine relies on, in seconds; a line for every promise.

    Example: skeleton-cgl check mine.py

    Example: skeleton-cgl check models/ctrgcn.py --set width=32 --data data/ucla.h5
    """
    from skeleton_cgl.engine.checking import Verdict, check_subject, checks_of, find_subject

    given: dict[str, Any] = {}
    for assignment in parameters or []:
        set_field(given, assignment)
    subject = find_subject(name, given, data)
    typer.echo(f"{subject.kind} {subject.found.__name__} ({name})")
    broken = 0
    total = len(checks_of(subject))
    with tqdm(total=total, desc="checking", unit=" promises", leave=False, delay=_SHOWN_AFTER_SECONDS) as bar:
        for finding in check_subject(subject):
            bar.update()
            with bar.external_write_mode():
                typer.echo(str(finding))
                if traceback and finding.trace:
                    typer.echo(finding.trace, err=True)
            broken += finding.verdict is Verdict.BROKEN
    if broken:
        sys.exit(1)
