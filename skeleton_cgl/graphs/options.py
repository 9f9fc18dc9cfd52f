"""What readers of graphs check alike: options as a study file gives them, and files that have to be there."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import shown


def flag(name: str, value: Any) -> bool:
    """Return an option that is true or false; refuse any other."""
    if not isinstance(value, bool):
        raise InputError(f"{name}: expected true or false, found {shown(value)}")
    return value


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """Return an option that is one of the known words; refuse any other, suggesting the nearest."""
    known = tuple(known)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name}: unknown {shown(value)}{did_you_mean(str(value), known)}")
    return value


def whole(name: str, value: Any, end: int) -> int:
    """Return an option that is a whole number from 0 to before `end`; refuse any other."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < end:
        raise InputError(f"{name}: expected a whole number from 0 to {end - 1}, found {shown(value)}")
    return value


def existing(path: Path, published: str = "") -> Path:
    """Return the path of a file or folder; refuse one that is not there, saying where it is published."""
    if not path.exists():
        raise InputError(f"{path}: no such file or folder" + (f"; published at {published}" if published else ""))
    return path
