"""A graph of a user's own as PyG has it: a dict of tensors, saved by `torch.save(data.to_dict(), "own.pt")`.

`edge_index` (2, E), `x` (N, F), `y` (N,) or (N, K) of 0 and 1; optional `train_mask`, `val_mask`, `test_mask`, (N,) or
(N, S) for S splits, `time` (N,), `group_NAME` (N,) of whole numbers. Other entries are not read.
"""

import warnings
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.options import existing, flag, whole
from skeleton_cgl.graphs.own import GROUPS, MASKS, graph_of_arrays
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.zips import UNREADABLE, open_member, refusing

_CALLED = {"edge_index": "edges", "x": "features", "y": "labels", "time": "times", **{mask: mask for mask in MASKS}}
_BROKEN = (*UNREADABLE, LookupError, TypeError, AttributeError, AssertionError)
_MOST_SPLITS = 1000


class Pyg(GraphSource):
    """The graph of a `.pt`; mask: which split, where there are several; both_ways: an edge stands for both directions.

    A pickled `Data` object could run any code, so it is refused, and the message says how to save it.
    """

    def __init__(self, path: str | Path, mask: int = 0, both_ways: bool = False) -> None:
        self._path = Path(path)
        self._mask = whole("mask", mask, _MOST_SPLITS)
        self._both_ways = flag("both_ways", both_ways)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return path.is_file() and path.suffix in (".pt", ".pth")

    def read(self) -> Graph:
        path = existing(self._path)
        entries = _load(path)
        if not isinstance(entries, dict):
            raise InputError(f"{path}: expected a dict of tensors, found {type(entries).__name__}")
        arrays: dict[str, np.ndarray] = {}
        for name, value in entries.items():
            if isinstance(name, str) and name.startswith("group_"):
                arrays[GROUPS + name.removeprefix("group_")] = _array(path, name, value)
            elif name in _CALLED:
                arrays[_CALLED[name]] = _array(path, name, value)
        for wanted in ("edge_index", "x", "y"):
            if _CALLED[wanted] not in arrays:
                raise InputError(f"{path}: {wanted!r} is missing; found {shown(', '.join(map(str, entries)))}")
        for mask in MASKS:
            if mask in arrays and arrays[mask].ndim == 2:
                if self._mask >= arrays[mask].shape[1]:
                    raise InputError(f"{path}: {mask!r}: no split {self._mask}, there are {arrays[mask].shape[1]}")
                arrays[mask] = arrays[mask][:, self._mask]
        return graph_of_arrays(path.stem, str(path), arrays, self._both_ways)


def _load(path: Path) -> Any:
    import torch

    _refuse_bombs(path)
    try:
        with warnings.catch_warnings():
            # That a file was written by another protocol is nothing a user need know.
            warnings.simplefilter("ignore", UserWarning)
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise InputError(
            f"{path}: holds more than tensors, which is not read; save a Data object as "
            "torch.save(data.to_dict(), PATH)"
        ) from error
    except _BROKEN as error:
        raise InputError(f"{path}: cannot be read: {' '.join(str(error).split()):.200}") from error


def _refuse_bombs(path: Path) -> None:
    with refusing(f"{path}: expected a file as torch.save writes it; "), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            try:
                open_member(archive, name).close()
            except InputError as error:
                raise InputError(f"{path}: {error}") from error


def _array(path: Path, name: str, value: Any) -> np.ndarray:
    import torch

    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_complex():
        raise InputError(f"{path}: {name!r}: expected a dense tensor, found {type(value).__name__}")
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise InputError(f"{path}: {name!r}: claims {value.numel():,} values, which the file does not hold")
    value = value.detach()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
