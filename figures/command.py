"""What the scripts of this folder share: a figure by name, with its options; one line for what goes wrong.

The options of a figure are those of its class; see `skeleton-cgl ls figures`.
"""

import argparse
import inspect
import sys
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from skeleton_cgl import Results
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import FIGURES, arguments_of


def main(name: str, description: str | None, arguments: list[str] | None = None, **defaults: object) -> None:
    """Draw a figure of the store that the command line names; end with one line on what cannot be used.

    `defaults` take the place of those of the figure.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    try:
        options = _add_options(parser, name, defaults)
        given = parser.parse_args(arguments)
        figure = FIGURES.make(name, {option: getattr(given, option) for option in options})
        studies = [_opened(store, study) for store in given.store for study in given.study]
        figure.save(figure.compute_several(studies), given.out)
    except (InputError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")


def _add_options(parser: argparse.ArgumentParser, name: str, defaults: dict[str, object]) -> list[str]:
    """Add what all figures take, and the options of this one; return the names of those."""
    found = FIGURES.find(name)
    stem = Path(name).stem.replace("-", "_")
    parser.add_argument("store", nargs="+", help="results, as `skeleton-cgl run` keeps them")
    parser.add_argument("--out", type=Path, default=Path(f"{stem}.png"), help="file to write: %(default)s")
    parser.add_argument("--study", nargs="+", default=[None], help="its name or number: the latest")
    types = get_type_hints(found.__init__)
    options = arguments_of(found)
    for option, argument in options.items():
        required = argument.default is inspect.Parameter.empty and option not in defaults
        default = defaults.get(option, None if required else argument.default)
        flag = f"--{option.replace('_', '-')}"
        parser.add_argument(flag, default=default, required=required, **_reading(types.get(option, str)))
    return list(options)


def _reading(annotation: Any) -> dict[str, Any]:
    """Return how an option of this type is read."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    if get_origin(annotation) is Literal:
        return {"choices": get_args(annotation), "help": "%(default)s"}
    if annotation is bool:
        return {"action": argparse.BooleanOptionalAction, "help": "%(default)s"}
    return {"type": annotation if annotation in (int, float) else str, "help": "%(default)s"}


def _opened(store: str, study: str | None) -> Results:
    """Return the results of a study and say what is left out; refuse one of which no run is finished."""
    results = Results(store, study)
    results.check_finished()
    for line in results.told:
        print(line, file=sys.stderr)
    return results
