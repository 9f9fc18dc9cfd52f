"""Dividing nodes, links or graphs into training, validation and test: as published, by seed, group, or file."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.items import Items
from skeleton_cgl.parts import NAMES, UNUSED
from skeleton_cgl.reading.npy import StoredArray, field_names
from skeleton_cgl.scenarios.graph_units import Units
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.split import Split, divide_by_groups, divide_within

_MASKS = tuple((f"{name}_mask", f"{name}_masks") for name in ("train", "val", "test"))


class ItemSplit(Split):
    """How nodes, links or graphs are divided: the items of a data set.

    by: "published" is the split that the data came with; "class" divides every class (in domain- and time-il: every
    class of a domain or period) by the ratios; "file" takes it from `file`; any other name is that of groups of the
    items, which then are in one part as a whole. "auto" is published where there is one, otherwise class.
    file: an .npz of masks `train_mask`, `val_mask` and `test_mask` (I,), or a .csv with a column `part` that says
    training, validation, test or nothing of every item, in the sequence of the data. mask: which column of masks that
    have several, (I, S) or (S, I).
    """

    file: str | None = None
    mask: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _file_goes_with_by(self) -> Self:
        if (self.file is None) == (self.by == "file"):
            raise ValueError("by: file and file: PATH go together")
        return self

    def settled(self, items: Items) -> Self:
        """Return the split with `by` as what "auto" comes to."""
        if self.by != "auto":
            return self
        return self.model_copy(update={"by": "class" if items.split is None else "published"})


def divide_items(split: ItemSplit, opened: Opened[Any], cells: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Return (I,) the part of every item; UNUSED for one in none, and for one of no cell (−1).

    cells (I,): what is divided by the ratios, each by a seed of its own name. Refused: no published split, groups that
    there are not, a file that does not fit.
    """
    items: Items = opened.data
    if split.by in ("published", "file"):
        refuse_named_groups(split)
        if "ratios" in split.model_fields_set:
            raise InputError(
                f"scenario: split: ratios: the parts are given with by: {split.by}; drop the one or the other"
            )
    if split.by == "published":
        if items.split is None:
            raise InputError(f"scenario: split: by: {items.name} comes without a published split; take by: class")
        parts = items.split.copy()
    elif split.by == "file":
        parts = _from_file(Path(str(split.file)), split.mask, items)[opened.order]
    elif split.by == "class":
        refuse_named_groups(split)
        parts = np.full(len(items), UNUSED)
        used = cells >= 0
        parts[used] = divide_within(split, cells[used], names)
    else:
        parts = _by_groups(split, items)
    parts[cells < 0] = UNUSED
    return parts


def _by_groups(split: ItemSplit, items: Items) -> np.ndarray:
    numbers = {name: groups.numbers for name, groups in items.groups.items()}
    if split.by not in numbers:
        known = did_you_mean(split.by, ["auto", "class", "file", "published", *numbers])
        raise InputError(f"scenario: split: by {split.by!r}: no such groups{known}")
    try:
        return divide_by_groups(split, numbers)
    except InputError as error:
        raise InputError(f"scenario: {error}") from error


def refuse_named_groups(split: ItemSplit) -> None:
    """Refuse groups that a split names for its parts, where it divides by something else."""
    if split.test or split.validation:
        raise InputError(f"scenario: split: 'test' and 'validation' name groups; they mean nothing with by: {split.by}")


def refuse_empty_parts(units: Units, parts: np.ndarray, item: str) -> None:
    """Refuse a unit without an item in one of the parts (I,); only classes may be in no task, and have no items."""
    numbers = units.of_items
    learned = np.unique(numbers[numbers >= 0]) if units.kind == "class" else np.arange(len(units.names))
    for part, part_name in enumerate(NAMES):
        counts = np.bincount(numbers[(parts == part) & (numbers >= 0)], minlength=len(units.names))
        lacking = [units.names[unit] for unit in learned if not counts[unit]]
        if lacking:
            raise InputError(f"scenario: split: {units.kind} {lacking[0]!r} has no {part_name} {item}")


def _from_file(path: Path, mask: int, items: Items) -> np.ndarray:
    if not path.is_file():
        raise InputError(f"scenario: split: file: {path}: no such file")
    if path.suffix == ".csv":
        return _from_table(path, len(items))
    there = field_names(path)
    parts = np.full(len(items), UNUSED)
    for part, names in enumerate(_MASKS):
        # A name that is not there is refused by the reader, with those that are.
        array = StoredArray(path, next((name for name in names if name in there), names[0]))
        chosen = _mask(array.whole(), mask, items, array.where)
        if (parts[chosen] != UNUSED).any():
            raise InputError(f"{array.where}: a {items.item} is in two parts")
        parts[chosen] = part
    return parts


def _mask(found: np.ndarray, mask: int, items: Items, where: str) -> np.ndarray:
    """Return (I,) bool of one mask, (I,), or one of several, (I, S) or (S, I)."""
    several = found if found.ndim == 2 and len(found) == len(items) else found.T
    chosen = several if several.ndim == 1 else several[:, mask] if mask < several.shape[-1] else None
    if chosen is None:
        raise InputError(f"{where}: no mask {mask}; there are {several.shape[-1]}")
    if chosen.shape != (len(items),) or not np.isin(chosen, (0, 1)).all():
        raise InputError(
            f"{where}: expected true or false for each of {len(items)} {items.item}s, found shape {found.shape}"
        )
    return chosen.astype(bool)


def _from_table(path: Path, count: int) -> np.ndarray:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if "part" not in table or len(table) != count:
        raise InputError(
            f"{path}: expected a column `part` and {count} rows, found {list(table)} and {len(table)} rows"
        )
    numbers = {"": UNUSED, **{name: part for part, name in enumerate(NAMES)}}
    unknown = [word for word in table["part"].unique() if word not in numbers]
    if unknown:
        raise InputError(f"{path}: part: expected {', '.join(NAMES)} or nothing, found {unknown[0]!r:.40}")
    return table["part"].map(numbers).to_numpy(dtype=np.int64)
