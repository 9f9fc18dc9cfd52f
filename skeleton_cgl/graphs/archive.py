"""The archive of a graph, of links or of a set of graphs: one HDF5 file with all that the value holds.

How the file holds it, and where it came from, is told in `stored`; attributes hold format and version.

Promises: a file at its final path is complete (it is written beside and renamed) and sealed, so that damage is noticed
before HDF5 reads any of it; the data are given back to the bit, which their digest proves each time they are read.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from skeleton_cgl.errors import InputError
from skeleton_cgl.files import write_beside
from skeleton_cgl.graphs.source import GraphData
from skeleton_cgl.graphs.stored import read_data, write_data
from skeleton_cgl.reading.formats import GRAPH, format_of, is_hdf5, refuse_other
from skeleton_cgl.reading.seal import SIZE as SEAL_SIZE
from skeleton_cgl.reading.seal import is_sealed, remember, seal
from skeleton_cgl.version import __version__

VERSION = 2
_READ = (1, 2)
"""The versions that are read; the first knows graphs of nodes alone."""

_UNREADABLE = (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError)
"""What h5py raises, and what is raised of values that are not what they should be, in a damaged file."""


def write_archive(data: GraphData, path: str | Path, provenance: Mapping[str, Any] | None = None) -> None:
    """Write a data set to a new archive at `path`; provenance: what JSON can tell of its source and options.

    What cannot be written leaves no file behind, and leaves an archive that stood at `path` as it was.
    """
    with write_beside(Path(path)) as unfinished:
        with h5py.File(unfinished, "w", userblock_size=SEAL_SIZE) as file:
            write_data(data, file, {"skeleton_cgl": __version__, **(provenance or {})})
            file.attrs.update(format=GRAPH, version=VERSION)
        seal(unfinished)


def is_archive(path: str | Path) -> bool:
    """Return whether a path is to be read as an archive: an HDF5 file. What it holds, reading it tells."""
    path = Path(path)
    return is_hdf5(path) or (path.is_file() and path.suffix in (".h5", ".hdf5"))


def read_archive(path: str | Path) -> GraphData:
    """Return the data of an archive; refuse other files and archives, a damaged one and one of another version."""
    return _read(Path(path))[0]


def read_provenance(path: str | Path) -> dict[str, Any]:
    """Return where the data of an archive came from; refuse what `read_archive` refuses."""
    return _read(Path(path))[1]


def _read(path: Path) -> tuple[GraphData, dict[str, Any]]:
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
            if version not in _READ:
                read = " and ".join(map(str, _READ))
                raise InputError(
                    f"{path}: graph archive version {version}, this release reads {read}; prepare it again"
                )
            data, provenance = read_data(file)
            found, expected = data.digest, str(file.attrs["digest"])
    except InputError:
        raise
    except _UNREADABLE as error:
        raise _damaged(path, error) from error
    if found != expected:
        raise _damaged(path, f"digest {found[:12]}…, expected {expected[:12]}…")
    remember(path)
    return data, provenance


def _damaged(path: Path, reason: object) -> InputError:
    said = " ".join(str(reason).split())
    return InputError(f"{path}: damaged, or not an archive ({said}); prepare it again from its source")
