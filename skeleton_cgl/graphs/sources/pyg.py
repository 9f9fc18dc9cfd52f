"""A graph of a user's own as PyG has it: a dict of tensors, saved by `torch.save(data.to_dict(), "own.pt")`.

`edge_index` (2, E), `x` (N, F), `y` (N,) or (N, K) of 0 and 1; optional `train_mask`, `val_mask`, `test_mask`, (N,) or
(N, S) for S splits, `time` (N,), `group_NAME` (N,) of whole numbers. Other entries are not read.
"""

from pathlib import Path

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.options import existing, flag, whole
from skeleton_cgl.graphs.own import GROUPS, MASKS, graph_of_arrays
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.tensors import array_of, load_tensors

_CALLED = {"edge_index": "edges", "x": "features", "y": "labels", "time": "times", **{mask: mask for mask in MASKS}}
_SETS = "_v2.pt"
"""How the published sets of super-pixel graphs are called, which are no graph."""
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
        return path.is_file() and path.suffix in (".pt", ".pth") and not path.name.endswith(_SETS)

    def read(self) -> Graph:
        path = existing(self._path)
        entries = load_tensors(path, "save a Data object as torch.save(data.to_dict(), PATH)")
        if not isinstance(entries, dict):
            raise InputError(f"{path}: expected a dict of tensors, found {type(entries).__name__}")
        arrays: dict[str, np.ndarray] = {}
        for name, value in entries.items():
            if isinstance(name, str) and name.startswith("group_"):
                arrays[GROUPS + name.removeprefix("group_")] = array_of(f"{path}: {name!r}", value)
            elif name in _CALLED:
                arrays[_CALLED[name]] = array_of(f"{path}: {name!r}", value)
        for wanted in ("edge_index", "x", "y"):
            if _CALLED[wanted] not in arrays:
                raise InputError(f"{path}: {wanted!r} is missing; found {shown(', '.join(map(str, entries)))}")
        for mask in MASKS:
            if mask in arrays and arrays[mask].ndim == 2:
                if self._mask >= arrays[mask].shape[1]:
                    raise InputError(f"{path}: {mask!r}: no split {self._mask}, there are {arrays[mask].shape[1]}")
                arrays[mask] = arrays[mask][:, self._mask]
        return graph_of_arrays(path.stem, str(path), arrays, self._both_ways)
