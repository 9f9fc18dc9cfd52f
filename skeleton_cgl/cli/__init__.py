"""The command line: `skeleton-cgl VERB`. Each verb checks its input, calls the library, and prints what came out."""

import io
import sys
import traceback
from typing import NoReturn

import typer

from skeleton_cgl.cli.checking import checking
from skeleton_cgl.cli.data import data
from skeleton_cgl.cli.exchange import exchange
from skeleton_cgl.cli.running import running
from skeleton_cgl.cli.showing import showing
from skeleton_cgl.errors import InputError

app = typer.Typer(
    help="How much does a continual learner's final knowledge depend on the order in which it was taught?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verbs in (data, running, checking, showing, exchange):
    app.add_typer(verbs)


def main() -> None:
    """Run the command line; what is wrong with the input is one message and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # Names of files need not be text, and a terminal need not know all letters.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except InputError as error:
        _refuse(str(error), error)
    except MemoryError as error:
        _refuse(f"not enough memory: {error}", error)
    except OSError as error:
        if error.filename is None:
            raise
        _refuse(f"{error.filename}: {error.strerror}", error)


def _refuse(message: str, error: Exception) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    if "--traceback" in sys.argv and (error.__cause__ is not None or not isinstance(error, InputError)):
        typer.echo("".join(traceback.format_exception(error)), err=True)
    sys.exit(2)
