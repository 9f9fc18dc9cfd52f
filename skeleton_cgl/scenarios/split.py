"""Dividing samples into training, validation and test parts: by class, by performance or by group."""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import gcd, inf, lcm

import numpy as np
from pydantic import Field, field_validator

from skeleton_cgl.config import Checked, did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import NAMES, TEST, TRAINING, UNUSED, VALIDATION
from skeleton_cgl.seeds import seed_of

_ACROSS = ("subject", "view")
"""What always divides over all classes, even if every group of it happens to be of one."""


class Split(Checked):
    """How samples are divided.

    by: "class" divides the samples of every class by the ratios, "performance" its performances, so that all views and
    copies of one are in one part; "subject" and "view" put whole subjects or views into one part, over all classes; any
    other name is that of a column of groups the data have, and these are treated as performances if each is of one
    class, otherwise as subjects. "auto" is performance where the data tell it of every sample, otherwise class.
    ratios: training : validation : test. With performances or groups, as nearly as whole ones allow.
    test, validation: the groups of these parts, instead of drawing them.
    """

    by: str = "auto"
    ratios: tuple[float, float, float] = (8, 1, 1)
    test: tuple[int, ...] = ()
    validation: tuple[int, ...] = ()
    seed: int = Field(default=0, ge=0)

    @field_validator("ratios")
    @classmethod
    def _parts_are_not_empty(cls, ratios: tuple[float, float, float]) -> tuple[float, float, float]:
        if not all(0 < ratio < inf for ratio in ratios):
            raise ValueError(f"training, validation and test must each be a number more than 0, found {ratios}")
        return _in_lowest_terms(ratios)


def _in_lowest_terms(ratios: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return ratios as the smallest whole numbers in the same proportion: 80:10:10 and 0.8:0.1:0.1 are 8:1:1."""
    # As they are written: 0.1 is a tenth, and not the binary fraction nearest to it.
    exact = [Fraction(repr(ratio)) for ratio in ratios]
    unit = Fraction(gcd(*(each.numerator for each in exact)), lcm(*(each.denominator for each in exact)))
    training, validation, test = (each / unit for each in exact)
    # Beyond, not every whole number is a float.
    return ratios if max(training, validation, test) > 2**53 else (float(training), float(validation), float(test))


def settle(split: Split, told: Collection[str]) -> Split:
    """Return the split with `by` as what "auto" comes to: performance, if that is among what the data tell."""
    if split.by != "auto":
        return split
    return split.model_copy(update={"by": "performance" if "performance" in told else "class"})


def divide(split: Split, labels: np.ndarray, classes: Sequence[str], groups: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return (N,) the part of every sample: TRAINING, VALIDATION or TEST; `groups` (N,), by name, are what data tell.

    A class is divided by a seed of its own name, so that its division does not depend on the other classes.
    Refused: groups that are unknown or too few, and a class without a sample in one of the parts.
    """
    numbers = np.arange(len(labels)) if split.by == "class" else _told(split.by, groups)
    if split.by in ("class", "performance") or (split.by not in _ACROSS and _of_one_class(numbers, labels)):
        parts = _within_classes(split, labels, classes, numbers)
    else:
        parts = _by_group(split, numbers)
    for label, name in enumerate(classes):
        for part, part_name in enumerate(NAMES):
            if not ((labels == label) & (parts == part)).any():
                raise InputError(f"split: class {name!r} has no {part_name} sample")
    return parts


def divide_within(split: Split, cells: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return (N,) the parts, every cell (N,) divided by the ratios from a seed of its name."""
    parts = np.full(len(cells), UNUSED)
    members = np.split(np.argsort(cells, kind="stable"), np.cumsum(np.bincount(cells, minlength=len(names)))[:-1])
    # One by one, each within its own samples: domains × classes, or periods × classes, can be thousands of cells.
    for own, name in zip(members, names, strict=True):
        parts[own] = _within_classes(split, np.zeros(len(own), dtype=np.int64), (name,), np.arange(len(own)))
    return parts


def divide_by_groups(split: Split, groups: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return (N,) the parts, every one of the groups (N,) that `by` names in one of them."""
    return _by_group(split, _told(split.by, groups))


def _told(by: str, groups: Mapping[str, np.ndarray]) -> np.ndarray:
    if by in groups:
        return groups[by]
    if by in (*_ACROSS, "performance"):
        raise InputError(f"split: by {by}, but the data do not tell the {by} of every sample")
    raise InputError(f"split: by {by!r}: no such groups{did_you_mean(by, ['auto', 'class', *groups])}")


def _of_one_class(groups: np.ndarray, labels: np.ndarray) -> bool:
    return len(np.unique(np.stack([groups, labels]), axis=1)[0]) == len(np.unique(groups))


def _within_classes(split: Split, labels: np.ndarray, classes: Sequence[str], groups: np.ndarray) -> np.ndarray:
    """Return (N,) the parts, every class divided by the ratios as nearly as whole groups (N,) allow."""
    if split.test or split.validation:
        raise InputError("split: 'test' and 'validation' name groups; they go with by: subject or by: view")
    parts = np.full(len(labels), UNUSED)
    shares = np.array(split.ratios) / sum(split.ratios)
    for label, name in enumerate(classes):
        members = labels == label
        count = int(members.sum())
        # A group with samples of several classes has its part from the first of them.
        present, first, sizes = np.unique(groups[members & (parts == UNUSED)], return_index=True, return_counts=True)
        left = np.argsort(first)
        np.random.default_rng(seed_of("split", split.seed, name)).shuffle(left)
        for part in (TEST, VALIDATION):
            there = int((members & (parts == part)).sum())
            taken = _nearest(sizes[left], max(1, round(shares[part] * count)) - there, fewest=int(there == 0))
            parts[np.isin(groups, present[left[:taken]])] = part
            left = left[taken:]
        parts[np.isin(groups, present[left])] = TRAINING
    return parts


def _nearest(sizes: np.ndarray, wanted: int, fewest: int) -> int:
    """Return how many groups of these sizes, from the first on, come nearest to `wanted` samples; at least `fewest`."""
    reached = np.cumsum([0, *sizes])
    return max(fewest, int(np.argmin(np.abs(reached - wanted))))


def _by_group(split: Split, groups: np.ndarray) -> np.ndarray:
    present = np.unique(groups)
    for field in ("test", "validation"):
        unknown = set(getattr(split, field)) - set(present.tolist())
        if unknown:
            raise InputError(f"split: {field}: no {split.by} {min(unknown)}; there are {present.tolist()}")
    if set(split.test) & set(split.validation):
        raise InputError(f"split: {split.by} {min(set(split.test) & set(split.validation))} is in two parts")
    if len(present) < 3:
        raise InputError(f"split: by {split.by} needs at least 3, there are {len(present)}")
    left = [group for group in present if group not in split.test + split.validation]
    np.random.default_rng(seed_of("split", split.seed, split.by)).shuffle(left)
    shares = np.array(split.ratios) / sum(split.ratios)
    chosen = {"test": list(split.test), "validation": list(split.validation)}
    for field, part in (("test", TEST), ("validation", VALIDATION)):
        if not chosen[field]:
            count = max(1, round(shares[part] * len(present)))
            chosen[field], left = left[:count], left[count:]
    parts = np.full(len(groups), TRAINING)
    parts[np.isin(groups, chosen["test"])] = TEST
    parts[np.isin(groups, chosen["validation"])] = VALIDATION
    return parts
