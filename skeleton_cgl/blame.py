"""Telling users where an error in a backbone or method of theirs happened: file, line, and the moment it was called."""

import inspect
import traceback
from pathlib import Path


def blamed(error: BaseException, *components: object) -> str:
    """Return an error in one line: what it is, and the last line on the way to it in a file of the components.

    "KeyError: 'x' (mine.py, line 12, in `end_lesson` of Mine)". The moment is the first function of that component on
    the way. An error that passed through no component is told without a place.
    """
    files = {file: component for component in components for file in _files_of(component)}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    words = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if not frames:
        return words
    last = frames[-1]
    owner = files[last.filename]
    moment = next(frame.name for frame in frames if files[frame.filename] is owner)
    return f"{words} ({_short(last.filename)}, line {last.lineno}, in `{moment}` of {type(owner).__name__})"


def _files_of(component: object) -> list[str]:
    """Return the files of a component's class and of those it derives from, as far as they are a user's own."""
    found = []
    for kind in type(component).__mro__:
        if kind.__module__.split(".")[0] in ("builtins", "torch", "skeleton_cgl"):
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
