"""What the scripts of this folder share: their options, the results they ask for, and one line for what goes wrong."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from skeleton_cgl import Results
from skeleton_cgl.errors import InputError


def make_parser(
    description: str, kind: bool = False, level: bool = False, several: bool = False
) -> argparse.ArgumentParser:
    """Return the options of all scripts, and those asked for.

    kind: which orders to draw; level: whose disparity; several: more than one store and study may be given, as lists.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    many = {"nargs": "+"} if several else {}
    parser.add_argument("store", help="results, as `skeleton-cgl run` keeps them", **many)
    parser.add_argument("--out", type=Path, default=f"{Path(parser.prog).stem}.png", help="file to write: %(default)s")
    parser.add_argument("--study", default=[None] if several else None, help="its name or number: the latest", **many)
    if kind:
        parser.add_argument("--kind", choices=["task", "class", "both"], default="both", help="orders: %(default)s")
    if level:
        parser.add_argument("--level", choices=["task", "class"], default="task", help="disparity of: %(default)s")
    return parser


def run(draw: Callable[[argparse.Namespace], None], parser: argparse.ArgumentParser) -> None:
    """Draw what the command line asks for; end with one line on what cannot be used."""
    try:
        draw(parser.parse_args())
    except (InputError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")


def open_results(store: str, study: str | None) -> Results:
    """Return the results of a study and say what is left out; refuse one of which no run is finished."""
    results = Results(store, study)
    if results.records.empty:
        raise InputError(f"{store}: no run of study {results.study['name']!r} is finished")
    for line in results.left_out:
        print(line, file=sys.stderr)
    return results


def of_kind(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the rows of task orders, of class orders or of both; refuse if there are none."""
    chosen = frame if kind == "both" else frame[frame["kind"] == kind]
    if chosen.empty:
        raise InputError(f"no {kind} order is finished; try --kind {'task' if kind == 'class' else 'class'}")
    return chosen
