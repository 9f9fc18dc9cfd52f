"""Dividing the nodes of a graph into training, validation and test: as published, by seed, by group, or by a file."""

from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.parts import NAMES, UNUSED
from skeleton_cgl.reading.npy import StoredArray, field_names
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.split import Split, divide_by_groups, divide_within

_MASKS = tuple((f"{name}_mask", f"{name}_masks") for name in ("train", "val", "test"))


class NodeSplit(Split):
    """How nodes are divided.

    by: "published" is the split that the data came with; "class" divides every class (in domain- and time-il: every
    class of a domain or period) by the ratios; "file" takes it from `file`; any other name is that of groups of the
    nodes, which then are in one part as a whole. "auto" is published where there is one, otherwise class.
    file: an .npz of masks `train_mask`, `val_mask` and `test_mask` (N,), or a .csv with a column `part` that says
    training, validation, test or nothing of every node, in the sequence of the nodes. mask: which column of masks that
    have several, (N, S) or (S, N).
    """

    file: str | None = None
    mask: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _file_goes_with_by(self) -> Self:
        if (self.file is None) == (self.by == "file"):
            raise ValueError("by: file and file: PATH go together")
        return self

    def settled(self, graph: Graph) -> Self:
        """Return the split with `by` as what "auto" comes to."""
        if self.by != "auto":
            return self
        return self.model_copy(update={"by": "class" if graph.split is None else "published"})


def divide_nodes(split: NodeSplit, opened: Opened, cells: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Return (N,) the part of every node; UNUSED for one in none, and for one of no cell (−1).

    cells (N,): what is divided by the ratios, each by a seed of its own name. Refused: no published split, groups that
    there are not, a file that does not fit.
    """
    graph = opened.graph
    if split.by in ("published", "file"):
        refuse_named_groups(split)
        if "ratios" in split.model_fields_set:
            raise InputError(
                f"scenario: split: ratios: the parts are given with by: {split.by}; drop the one or the other"
            )
    if split.by == "published":
        if graph.split is None:
            raise InputError(f"scenario: split: by: {graph.name} comes without a published split; take by: class")
        parts = graph.split.copy()
    elif split.by == "file":
        parts = _from_file(Path(str(split.file)), split.mask, len(graph))[opened.order]
    elif split.by == "class":
        parts = np.full(len(graph), UNUSED)
        used = cells >= 0
        parts[used] = divide_within(split, cells[used], names)
    else:
        numbers = {name: groups.numbers for name, groups in graph.groups.items()}
        parts = divide_by_groups(split, numbers)
    parts[cells < 0] = UNUSED
    return parts


def refuse_named_groups(split: NodeSplit) -> None:
    """Refuse groups that a split names for its parts, where it divides by something else."""
    if split.test or split.validation:
        raise InputError(f"scenario: split: 'test' and 'validation' name groups; they mean nothing with by: {split.by}")


def refuse_empty_parts(units: np.ndarray, parts: np.ndarray, names: tuple[str, ...], kind: str) -> None:
    """Refuse a unit (N,) without a node in one of the parts (N,); only classes may be in no task, and have no nodes."""
    learned = np.unique(units[units >= 0]) if kind == "class" else np.arange(len(names))
    for part, part_name in enumerate(NAMES):
        counts = np.bincount(units[(parts == part) & (units >= 0)], minlength=len(names))
        lacking = [names[unit] for unit in learned if not counts[unit]]
        if lacking:
            raise InputError(f"scenario: split: {kind} {lacking[0]!r} has no {part_name} node")


def _from_file(path: Path, mask: int, nodes: int) -> np.ndarray:
    if not path.is_file():
        raise InputError(f"scenario: split: file: {path}: no such file")
    if path.suffix == ".csv":
        return _from_table(path, nodes)
    there = field_names(path)
    parts = np.full(nodes, UNUSED)
    for part, names in enumerate(_MASKS):
        # A name that is not there is refused by the reader, with those that are.
        array = StoredArray(path, next((name for name in names if name in there), names[0]))
        chosen = _mask(array.whole(), mask, nodes, array.where)
        if (parts[chosen] != UNUSED).any():
            raise InputError(f"{array.where}: a node is in two parts")
        parts[chosen] = part
    return parts


def _mask(found: np.ndarray, mask: int, nodes: int, where: str) -> np.ndarray:
    """Return (N,) bool of one mask, (N,), or one of several, (N, S) or (S, N)."""
    several = found if found.ndim == 2 and len(found) == nodes else found.T
    chosen = several if several.ndim == 1 else several[:, mask] if mask < several.shape[-1] else None
    if chosen is None:
        raise InputError(f"{where}: no mask {mask}; there are {several.shape[-1]}")
    if chosen.shape != (nodes,) or not np.isin(chosen, (0, 1)).all():
        raise InputError(f"{where}: expected true or false for each of {nodes} nodes, found shape {found.shape}")
    return chosen.astype(bool)


def _from_table(path: Path, nodes: int) -> np.ndarray:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if "part" not in table or len(table) != nodes:
        raise InputError(
            f"{path}: expected a column `part` and {nodes} rows, found {list(table)} and {len(table)} rows"
        )
    numbers = {"": UNUSED, **{name: part for part, name in enumerate(NAMES)}}
    unknown = [word for word in table["part"].unique() if word not in numbers]
    if unknown:
        raise InputError(f"{path}: part: expected {', '.join(NAMES)} or nothing, found {unknown[0]!r:.40}")
    return table["part"].map(numbers).to_numpy(dtype=np.int64)
