"""Refusing parameters that mean nothing, all methods in the same words: a study is told before anything is learned.

YAML reads `yes` as true and `.inf` as a number: neither is a size, and no loss stays finite with the latter.
"""

from collections.abc import Iterable
from math import isfinite
from typing import Any

from skeleton_cgl.config import did_you_mean

_MOST = 2**31 - 1
"""Of anything counted: the product of two such numbers fits into 64 bits."""


def is_whole(value: Any, least: int) -> bool:
    """Return whether something is a whole number of at least so many; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def check_whole(least: int, *, optional: bool = False, **named: int | None) -> None:
    """Refuse what is not a whole number of at least so many, or an absurd one; what is optional may be None."""
    for name, value in named.items():
        if not is_whole(value, least) and not (optional and value is None):
            raise ValueError(f"{name} {value!r} is not a whole number of at least {least}")
        if value is not None and value > _MOST:
            raise ValueError(f"{name} {value} is more than {_MOST}")


def check_number(*, least: float | None = None, above: float | None = None, **named: float) -> None:
    """Refuse what is no finite number, or less than `least`, or not above `above`."""
    for name, value in named.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise ValueError(f"{name} must be a finite number, found {value!r}")
        if least is not None and value < least:
            raise ValueError(f"{name} {value} is negative" if least == 0 else _beyond(name, f"at least {least}", value))
        if above is not None and value <= above:
            raise ValueError(_beyond(name, "positive" if above == 0 else f"above {above}", value))


def check_share(**named: float) -> None:
    """Refuse what is no number from 0 to 1; true is none."""
    for name, value in named.items():
        if isinstance(value, bool) or not 0 <= value <= 1:
            raise ValueError(f"{name} {value} is not between 0 and 1")


def check_choice(known: Iterable[str], **named: str) -> None:
    """Refuse what is none of the known words."""
    words = tuple(known)
    for name, value in named.items():
        if value not in words:
            raise ValueError(f"unknown {name} {value!r}{did_you_mean(str(value), words)}")


def check_flag(**named: bool) -> None:
    """Refuse what is neither true nor false."""
    for name, value in named.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false, found {value!r}")


def _beyond(name: str, wanted: str, value: float) -> str:
    return f"{name} must be {wanted}, found {value}"
