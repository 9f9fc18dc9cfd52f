"""The command line: `skeleton-cgl VERB`. Each verb checks its input, calls the library, and prints what came out."""

import sys
import traceback

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
    try:
        app()
    except InputError as error:
        typer.echo(f"error: {error}", err=True)
        if "--traceback" in sys.argv and error.__cause__ is not None:
            typer.echo("".join(traceback.format_exception(error)), err=True)
        sys.exit(2)
