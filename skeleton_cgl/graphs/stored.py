"""What an HDF5 file holds of a data set of graphs: every field of the value, and nothing twice.

An array is a dataset of its field's name; sparse rows are a group of their `values`, `columns` and `starts`; the
numbers of groups are `groups/0`, `groups/1` and so on. All else is in `told`, as JSON: names, texts, codes, notes, the
width of sparse rows, and the provenance. A field that is None is left out. Attributes tell what is classified, as
`item`, and the digest.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any

import h5py
import numpy as np
from scipy.sparse import csr_array

from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.graphs.items import Groups, ItemKind
from skeleton_cgl.graphs.link_set import LinkSet
from skeleton_cgl.graphs.source import GraphData

_VALUES: dict[ItemKind, type[GraphData]] = {value.item: value for value in (Graph, LinkSet, GraphSet)}
_SPARSE = {"values": "data", "columns": "indices", "starts": "indptr"}
"""The parts of sparse rows: what they are called in a file, and by SciPy."""


def write_data(data: GraphData, file: h5py.File, provenance: Mapping[str, Any]) -> None:
    """Write a data set and where it came from into a new file."""
    arrays: dict[str, np.ndarray] = {}
    told: dict[str, Any] = {"provenance": provenance}
    for field in fields(data):
        name, value = field.name, getattr(data, field.name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, csr_array):
            arrays |= {f"{name}/{part}": getattr(value, called) for part, called in _SPARSE.items()}
            told["width"] = value.shape[1]
        elif name == "groups":
            arrays |= {f"groups/{place}": groups.numbers for place, groups in enumerate(value.values())}
            told["groups"] = [[called, groups.names] for called, groups in value.items()]
        elif value is not None:
            told[name] = value
    # An attribute of HDF5 has room for 64 KiB alone, and names are many.
    arrays["told"] = np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)
    for name, array in arrays.items():
        packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if array.size else {}
        file.create_dataset(name, data=array, **packed)
    file.attrs.update(item=data.item, digest=data.digest)


def read_data(file: h5py.File) -> tuple[GraphData, dict[str, Any]]:
    """Return the data set of a file and its provenance; a KeyError where a field is missing that cannot be None."""
    told = json.loads(file["told"][:].tobytes())
    # Files of the first version hold a graph of nodes, and do not say so.
    value = _VALUES[file.attrs.get("item", Graph.item)]
    found: dict[str, Any] = {}
    for field in fields(value):
        name = field.name
        if name == "groups":
            found[name] = _groups(file, told["groups"])
        elif name in told:
            found[name] = tuple(told[name]) if isinstance(told[name], list) else told[name]
        elif name in file or (field.default is MISSING and field.default_factory is MISSING):
            found[name] = _array(file[name], told)
    return value(**found), dict(told["provenance"])


def _groups(file: h5py.File, told: list[tuple[str, list[str]]]) -> Mapping[str, Groups]:
    found = {name: Groups(file[f"groups/{place}"][:], tuple(names)) for place, (name, names) in enumerate(told)}
    return MappingProxyType(found)


def _array(kept: h5py.Dataset | h5py.Group, told: Mapping[str, Any]) -> np.ndarray | csr_array:
    if isinstance(kept, h5py.Dataset):
        return kept[:]
    rows = tuple(kept[part][:] for part in _SPARSE)
    return csr_array(rows, shape=(len(rows[-1]) - 1, told["width"]))
