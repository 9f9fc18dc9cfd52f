"""Features and links as files keep them compactly: compressed sparse rows, and lists of indices."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.npy import plain_array
from skeleton_cgl.reading.pickled import SparseRows
from skeleton_cgl.reading.tables import check_column

MOST_FEATURES = 10_000_000
"""The largest vocabularies have a few million words; a claim of more is refused before anything is made of it."""

MOST_NODES = 10_000_000
"""A larger id in a table of links would make as many nodes without any link; it is refused."""


def sparse_rows(arrays: Mapping[str, np.ndarray], prefix: str, where: str) -> csr_array:
    """Return the matrix of the arrays `{prefix}_data`, `_indices`, `_indptr` and `_shape`; refuse what is none."""
    parts = {part: arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr", "shape")}
    shape = parts.pop("shape")
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise InputError(f"{where}: array '{prefix}_shape': expected two whole numbers, found {shape!r:.60}")
    rows, columns = map(int, shape)
    if columns > MOST_FEATURES:
        raise InputError(f"{where}: array '{prefix}_shape': {columns:,} columns, at most {MOST_FEATURES:,} are read")
    try:
        return SparseRows().finished({**parts, "_shape": (rows, columns)}).sparse()
    except UnpicklingError as error:
        raise InputError(f"{where}: arrays '{prefix}_…': {error}") from error


def stored_rows(path: Path, prefix: str) -> csr_array:
    """Return the matrix that an `.npz` keeps under a prefix."""
    names = [f"{prefix}_{part}" for part in ("data", "indices", "indptr", "shape")]
    return sparse_rows({name: plain_array(path, name) for name in names}, prefix, str(path))


def rows_of_indices(lists: Sequence[Sequence[Any]], where: Sequence[str]) -> csr_array:
    """Return features that are 1 at the indices of each list and 0 elsewhere; an index given twice counts once.

    As many columns as the largest index asks for. Refused, beginning with the place of the list: what is no index.
    """
    for place, indices in enumerate(lists):
        if not isinstance(indices, list) or not all(
            type(index) is int and 0 <= index < MOST_FEATURES for index in indices
        ):
            raise InputError(f"{where[place]}: expected a list of indices from 0 to {MOST_FEATURES - 1:,}")
    columns = np.array([index for indices in lists for index in sorted(set(indices))], dtype=np.int64)
    starts = np.cumsum([0, *(len(set(indices)) for indices in lists)])
    width = int(columns.max(initial=-1)) + 1
    return csr_array((np.ones(len(columns), dtype=np.float32), columns, starts), shape=(len(lists), width))


def check_ids(path: Path, column: str, ids: np.ndarray, lowest: int) -> None:
    """Refuse, with its row, what is no id of a node (R,) in a column of a table."""
    fit = (ids == np.floor(ids)) & (ids >= lowest) & (ids <= MOST_NODES)
    check_column(path, column, ids, fit, f"an id from {lowest} to {MOST_NODES:,}")
