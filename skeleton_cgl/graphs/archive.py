"""The archive of a graph: one HDF5 file with everything a `Graph` holds, and where it came from.

Layout of the file: `edges`, `features` (a table, or a group of the `values`, `columns` and `starts` of sparse rows),
`labels`, `groups/0`, `groups/1` …, `times` and `split` hold the arrays; `told` is JSON: the graph's name, the names of
classes and groups, the width of sparse features, and the provenance. Attributes hold format, version and digest.

Promises: a file at its final path is complete (it is written beside and renamed) and sealed, so that damage is noticed
before HDF5 reads any of it; a graph is given back to the bit, which its digest proves each time it is read.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import h5py
import numpy as np
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.graphs.graph import Features, Graph, Groups
from skeleton_cgl.reading.formats import GRAPH, format_of, is_hdf5, refuse_other
from skeleton_cgl.reading.seal import SIZE as SEAL_SIZE
from skeleton_cgl.reading.seal import is_sealed, remember, seal
from skeleton_cgl.version import __version__

VERSION = 1

_UNREADABLE = (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError)
"""What h5py raises, and what is raised of values that are not what they should be, in a damaged file."""


def write_archive(graph: Graph, path: str | Path, provenance: Mapping[str, Any] | None = None) -> None:
    """Write a graph to a new archive at `path`; provenance: what JSON can tell of its source and options.

    What cannot be written leaves no file behind, and leaves an archive that stood at `path` as it was.
    """
    with write_beside(Path(path)) as unfinished:
        with h5py.File(unfinished, "w", userblock_size=SEAL_SIZE) as file:
            _write(graph, file, {"skeleton_cgl": __version__, **(provenance or {})})
        seal(unfinished)


def is_archive(path: str | Path) -> bool:
    """Return whether a path is to be read as an archive: an HDF5 file. Whether it holds a graph, reading it tells."""
    path = Path(path)
    return is_hdf5(path) or (path.is_file() and path.suffix in (".h5", ".hdf5"))


def read_archive(path: str | Path) -> Graph:
    """Return the graph of an archive; refuse other files and archives, a damaged one and one of another version."""
    return _read(Path(path))[0]


def read_provenance(path: str | Path) -> dict[str, Any]:
    """Return where the graph of an archive came from; refuse what `read_archive` refuses."""
    return _read(Path(path))[1]


def _write(graph: Graph, file: h5py.File, provenance: Mapping[str, Any]) -> None:
    arrays: dict[str, np.ndarray] = {"edges": graph.edges, "labels": graph.labels}
    if isinstance(graph.features, np.ndarray):
        arrays["features"] = graph.features
    else:
        rows = graph.features
        arrays |= {"features/values": rows.data, "features/columns": rows.indices, "features/starts": rows.indptr}
    arrays |= {f"groups/{place}": groups.numbers for place, groups in enumerate(graph.groups.values())}
    arrays |= {name: array for name, array in (("times", graph.times), ("split", graph.split)) if array is not None}
    told = {
        "name": graph.name,
        "classes": graph.classes,
        "width": graph.features.shape[1],
        "groups": [[name, groups.names] for name, groups in graph.groups.items()],
        "provenance": provenance,
    }
    # An attribute of HDF5 has room for 64 KiB alone, and names are many.
    arrays["told"] = np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)
    for name, array in arrays.items():
        packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if array.size else {}
        file.create_dataset(name, data=array, **packed)
    file.attrs.update(format=GRAPH, version=VERSION, digest=graph.digest)


def _read(path: Path) -> tuple[Graph, dict[str, Any]]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; make it with `skeleton-cgl prepare graph`")
    if not is_hdf5(path):
        raise _damaged(path, "it does not begin as one")
    refuse_other(path, format_of(path), GRAPH)
    if not is_sealed(path):
        raise _damaged(path, "it has no seal")
    try:
        with h5py.File(path, "r") as file:
            version = file.attrs["version"]
            if version != VERSION:
                raise InputError(
                    f"{path}: graph archive version {version}, this release reads {VERSION}; prepare it again"
                )
            told = json.loads(file["told"][:].tobytes())
            graph = _graph_of(file, told)
            provenance = dict(told["provenance"])
            found, expected = graph.digest, str(file.attrs["digest"])
    except InputError:
        raise
    except _UNREADABLE as error:
        raise _damaged(path, error) from error
    if found != expected:
        raise _damaged(path, f"digest {found[:12]}…, expected {expected[:12]}…")
    remember(path)
    return graph, provenance


def _graph_of(file: h5py.File, told: Mapping[str, Any]) -> Graph:
    labels = file["labels"][:]
    features: Features
    if isinstance(file["features"], h5py.Dataset):
        features = file["features"][:]
    else:
        rows = tuple(file[f"features/{name}"][:] for name in ("values", "columns", "starts"))
        features = csr_array(rows, shape=(len(labels), told["width"]))
    groups = {
        name: Groups(file[f"groups/{place}"][:], tuple(names)) for place, (name, names) in enumerate(told["groups"])
    }
    return Graph(
        told["name"],
        file["edges"][:],
        features,
        labels,
        tuple(told["classes"]),
        MappingProxyType(groups),
        file["times"][:] if "times" in file else None,
        file["split"][:] if "split" in file else None,
    )


def _damaged(path: Path, reason: object) -> InputError:
    said = " ".join(str(reason).split())
    return InputError(f"{path}: damaged, or not an archive ({said}); prepare it again from its source")
