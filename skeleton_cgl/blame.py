"""Telling users where an error in a file of theirs happened: file, line, and the moment it was called."""

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skeleton_cgl.errors import InputError

_NOT_OWN = ("abc", "builtins", "pydantic", "skeleton_cgl", "torch", "typing")


def blamed(error: BaseException, *components: object) -> str:
    """Return an error in one line: what it is, and the last line on the way to it in a file of the components.

    "KeyError: 'x' (mine.py, line 12, in `end_lesson` of Mine)". The moment is the first function of that component on
    the way. An error that passed through no component is told without a place. A component may be given as its class.
    """
    words = f"{type(error).__name__}: {' '.join(str(error).split())}"
    place = _place(error, *components)
    return f"{words} ({place})" if place else words


def blamed_on_file(error: BaseException, path: Path) -> str:
    """Return an error in one line: what it is, and the last line of the file at `path` on the way to it."""
    words = f"{type(error).__name__}: {' '.join(str(error).split())}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{words} ({_short(str(path))}, line {lines[-1]})" if lines else words


@contextmanager
def blaming(what: str, *components: object) -> Iterator[None]:
    """Within: an error that passes through a component of a user's own is refused in a line that begins with `what`."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if _place(error, *components) is None:
            raise
        raise InputError(f"{what}: {blamed(error, *components)}") from error


def _place(error: BaseException, *components: object) -> str | None:
    kinds = [component if isinstance(component, type) else type(component) for component in components]
    files = {file: kind for kind in kinds for file in _files_of(kind)}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    if not frames:
        return None
    last = frames[-1]
    owner = files[last.filename]
    moment = next(frame.name for frame in frames if files[frame.filename] is owner)
    return f"{_short(last.filename)}, line {last.lineno}, in `{moment}` of {owner.__name__}"


def _files_of(component: type) -> list[str]:
    """Return the files of a class and of those it derives from, as far as they are a user's own."""
    found = []
    for kind in component.__mro__:
        if kind.__module__.split(".")[0] in _NOT_OWN:
            continue
        try:
            found.append(inspect.getfile(kind))
        except (TypeError, OSError):
            continue
    return found


def _short(file: str) -> str:
    """Return a path from here, if it is below."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
