"""A graph of a user's own as `dgl.save_graphs` writes it.

Node data: `feat` (N, F), `label` (N,) or (N, K) of 0 and 1; optional `train_mask`, `val_mask`, `test_mask`, `time`, and
`group_NAME` of whole numbers. Other data are not read.

The file is no pickle, but DGL's own reader takes its sizes on trust, and a damaged one ends the process. So the form
(version 2) is read here: everything is little-endian and in this sequence, the graph where the head says.

    head      magic, version, kind, number of graphs; at 4096: where the graph begins
    graph     magic, table of types, number of relations, relation
    relation  magic, which tables it has, all tables it may have; a table of types before each of its tables
    table     magic, rows, columns; ends (COO), or starts and ends (CSR of sources or of targets); edge numbers; flags
    then      nodes of each type, node data of each type by name
    array     magic, 0, device, dimensions, kind, bits, lanes, shape, bytes, content
"""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.options import existing, flag
from skeleton_cgl.graphs.own import GROUPS, MASKS, graph_of_arrays
from skeleton_cgl.graphs.source import GraphSource
from skeleton_cgl.plain import shown

_FILE = 0xDD2E4FF046B4A13F
_GRAPH, _TYPES, _RELATION = 0xDD589FBE35224ABF, 0xDD3C5FFE20046ABF, 0xDD2E60F0F6B4A127
_COO, _CSR, _ARRAY = 0xDD61FFD305DFF127, 0xDD6CD31205DFF127, 0xDD5E40F096B4A13F
_HEAD = 4096
_FORMATS = {1: "coo", 2: "csr", 4: "csc"}
_KINDS = {(0, 8): "i1", (0, 16): "i2", (0, 32): "<i4", (0, 64): "<i8", (1, 8): "u1", (2, 32): "<f4", (2, 64): "<f8"}
_CALLED = {"feat": "features", "label": "labels", "time": "times", **{mask: mask for mask in MASKS}}
_MOST_DIMENSIONS = 8


class Dgl(GraphSource):
    """The graph of a file with one graph, of one kind of nodes and one of edges.

    features, labels: what the node data are called. both_ways: every edge stands for both directions.
    """

    def __init__(
        self, path: str | Path, features: str = "feat", labels: str = "label", both_ways: bool = False
    ) -> None:
        self._path = Path(path)
        self._called = {str(features): "features", str(labels): "labels"}
        self._both_ways = flag("both_ways", both_ways)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(8) == struct.pack("<Q", _FILE)

    def read(self) -> Graph:
        path = existing(self._path)
        edges, data = _Reading(path).graph()
        called = {**_CALLED, **self._called}
        arrays = {"edges": edges}
        for name, array in data.items():
            if name.startswith("group_"):
                arrays[GROUPS + name.removeprefix("group_")] = array
            elif name in called:
                arrays[called[name]] = array
        for wanted, field in self._called.items():
            if field not in arrays:
                raise InputError(f"{path}: node data {wanted!r} are missing; found {shown(', '.join(data))}")
        return graph_of_arrays(path.stem, str(path), arrays, self._both_ways)


class _Reading:
    """Reads one piece after the other; refuses what ends too early, or is not what has to come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content = memoryview(path.read_bytes())
        self._place = 0

    def graph(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the edges (2, E) and the node data by name."""
        self._expect(_FILE, "a file that dgl.save_graphs wrote")
        version, _, graphs = self._take("<QQQ")
        if version != 2 or graphs != 1:
            raise self._wrong(f"expected version 2 with 1 graph, found version {version} with {graphs}")
        self._place = _HEAD
        (self._place,) = self._take("<Q")
        self._expect(_GRAPH, "a graph")
        self._skip_types()
        self._only_one("kind of edges")
        nodes, edges = self._relation()
        self._only_one("kind of nodes")
        if self._take("<Q") != (nodes,):
            raise self._wrong("the number of nodes is told in two ways")
        self._only_one("kind of nodes")
        data = {}
        for _ in range(self._take("<Q")[0]):
            name = bytes(self._bytes(self._take("<Q")[0])).decode("utf-8", "replace")
            data[name] = self._array()
        return edges, data

    def _wrong(self, reason: str) -> InputError:
        return InputError(f"{self._path}: {reason}")

    def _bytes(self, size: int) -> memoryview:
        if size > len(self._content) - self._place:
            raise self._wrong(f"ends too early: {size} bytes are to come at byte {self._place}")
        self._place += size
        return self._content[self._place - size : self._place]

    def _take(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def _expect(self, magic: int, what: str) -> None:
        if self._take("<Q") != (magic,):
            raise self._wrong(f"expected {what} at byte {self._place - 8}")

    def _only_one(self, what: str) -> None:
        (count,) = self._take("<Q")
        if count != 1:
            raise self._wrong(f"expected one {what}, found {count}")

    def _array(self) -> np.ndarray:
        self._expect(_ARRAY, "an array")
        _, _, _, dimensions, code, bits, lanes = self._take("<QiiiBBH")
        kind = _KINDS.get((code, bits))
        if kind is None or lanes != 1 or not 0 <= dimensions <= _MOST_DIMENSIONS:
            raise self._wrong(f"an array of kind {code} with {bits} bits, expected numbers")
        shape = self._take(f"<{dimensions}q")
        (size,) = self._take("<q")
        count = size // np.dtype(kind).itemsize
        if size < 0 or min(shape, default=0) < 0 or _product(shape) * np.dtype(kind).itemsize != size:
            raise self._wrong(f"an array of shape {shape} in {size} bytes")
        return np.frombuffer(self._bytes(size), dtype=kind, count=count).reshape(shape)

    def _skip_types(self) -> None:
        """Read over the table of kinds of nodes, which for one kind says nothing."""
        self._expect(_TYPES, "a table of types")
        self._table("csr")

    def _relation(self) -> tuple[int, np.ndarray]:
        """Return the number of nodes and the edges, from the first of the tables that tell them."""
        self._expect(_RELATION, "a kind of edges")
        code, _ = self._take("<QQ")
        there = [name for bit, name in _FORMATS.items() if code & bit]
        if not there:
            raise self._wrong("the edges are in no table")
        tables = []
        for name in there:
            self._skip_types()
            tables.append(self._table(name))
        return tables[0]

    def _table(self, name: str) -> tuple[int, np.ndarray]:
        self._expect(_COO if name == "coo" else _CSR, "a table of edges")
        rows, columns = self._take("<qq")
        if rows != columns or not rows >= 0:
            raise self._wrong(f"edges between {rows} and {columns} nodes, expected one kind of nodes")
        first, second, _ = self._array(), self._array(), self._array()
        self._bytes(2 if name == "coo" else 1)
        if first.ndim != 1 or second.ndim != 1 or first.dtype.kind != "i" or second.dtype.kind != "i":
            raise self._wrong("the ends of edges are no whole numbers")
        if name == "coo":
            if len(first) != len(second):
                raise self._wrong("edges with one end")
            return rows, np.stack([first, second]).astype(np.int64)
        counts = np.diff(first)
        if len(first) != rows + 1 or first[0] != 0 or first[-1] != len(second) or (counts < 0).any():
            raise self._wrong("a table of edges whose rows do not follow one another")
        ends = np.repeat(np.arange(rows), counts)
        return rows, np.stack([ends, second] if name == "csr" else [second, ends]).astype(np.int64)


def _product(shape: tuple[int, ...]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result
