"""Dividing samples into training, validation and test parts, by class or by group."""

from collections.abc import Sequence
from math import inf
from typing import Literal

import numpy as np
from pydantic import Field, field_validator

from skeleton_cgl.config import Checked
from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import NAMES, TEST, TRAINING, VALIDATION
from skeleton_cgl.seeds import seed_of


class Split(Checked):
    """How samples are divided.

    by: "class" divides every class by the ratios; "subject" and "view" put whole subjects or views into one part.
    ratios: training : validation : test. With groups, as nearly as whole groups allow.
    test, validation: the groups of these parts, instead of drawing them.
    """

    by: Literal["class", "subject", "view"] = "class"
    ratios: tuple[float, float, float] = (8, 1, 1)
    test: tuple[int, ...] = ()
    validation: tuple[int, ...] = ()
    seed: int = Field(default=0, ge=0)

    @field_validator("ratios")
    @classmethod
    def _parts_are_not_empty(cls, ratios: tuple[float, float, float]) -> tuple[float, float, float]:
        if not all(0 < ratio < inf for ratio in ratios):
            raise ValueError(f"training, validation and test must each be a number more than 0, found {ratios}")
        return ratios


def divide(split: Split, labels: np.ndarray, classes: Sequence[str], groups: np.ndarray | None) -> np.ndarray:
    """Return (N,) the part of every sample: TRAINING, VALIDATION or TEST.

    A class is divided by a seed of its own name, so that its division does not depend on the other classes.
    Refused: groups that are unknown or too few, and a class without a sample in one of the parts.
    """
    parts = _by_class(split, labels, classes) if split.by == "class" else _by_group(split, groups)
    for label, name in enumerate(classes):
        for part, part_name in enumerate(NAMES):
            if not ((labels == label) & (parts == part)).any():
                raise InputError(f"split: class {name!r} has no {part_name} sample")
    return parts


def _by_class(split: Split, labels: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    if split.test or split.validation:
        raise InputError("split: 'test' and 'validation' name groups; they go with by: subject or by: view")
    parts = np.full(len(labels), TRAINING)
    shares = np.array(split.ratios) / sum(split.ratios)
    for label, name in enumerate(classes):
        members = np.flatnonzero(labels == label)
        np.random.default_rng(seed_of("split", split.seed, name)).shuffle(members)
        test = max(1, round(shares[TEST] * len(members)))
        validation = max(1, round(shares[VALIDATION] * len(members)))
        parts[members[:test]] = TEST
        parts[members[test : test + validation]] = VALIDATION
    return parts


def _by_group(split: Split, groups: np.ndarray | None) -> np.ndarray:
    if groups is None or (groups < 0).any():
        raise InputError(f"split: by {split.by}, but the data do not tell the {split.by} of every sample")
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
