"""What the parts of a split have in common, in words."""

from collections.abc import Mapping

import numpy as np

from skeleton_cgl.parts import NAMES, TEST, TRAINING, VALIDATION

_PAIRS = ((TEST, TRAINING), (VALIDATION, TRAINING), (TEST, VALIDATION))


def overlap(parts: np.ndarray, copies: np.ndarray, groups: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Return a line for test and training, validation and training, test and validation: what is found in both.

    parts (N,); copies (N,) is the same number for identical samples, and every one of `groups` (N,), by what it is
    called, for samples of one performance, subject or view.
    """
    return tuple(_line(part, other, parts, copies, groups) for part, other in _PAIRS)


def _line(part: int, other: int, parts: np.ndarray, copies: np.ndarray, groups: Mapping[str, np.ndarray]) -> str:
    here, there = parts == part, parts == other

    def shared(numbers: np.ndarray) -> int:
        return int(np.isin(numbers[here], numbers[there]).sum())

    found = [f"{shared(copies)} identical to a {NAMES[other]} clip"]
    found += [f"{shared(numbers)} of a {name} in {NAMES[other]}" for name, numbers in groups.items()]
    return f"{NAMES[part]}: of {here.sum()} clips, {', '.join(found)}"
