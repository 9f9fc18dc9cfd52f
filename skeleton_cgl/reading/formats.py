"""Which archive of ours a file is, told before it is read: by its seal, and by the format it says it has."""

from pathlib import Path

import h5py

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.seal import HDF5, SIZE, is_intact, is_known, is_sealed

SKELETONS = "skeleton_cgl archive"
GRAPH = "skeleton_cgl graph"
_WORDS = {SKELETONS: "an archive of skeletons", GRAPH: "an archive of a graph"}


def is_hdf5(path: Path) -> bool:
    """Return whether a path is a file that HDF5 would read, with or without the room for a seal in front."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begin = file.read(SIZE + len(HDF5))
    return begin.startswith(HDF5) or begin[SIZE:] == HDF5


def is_changed(path: Path) -> bool:
    """Return whether a file with a seal has other bytes than it was sealed with, unless this process knows it has."""
    return not is_known(path) and is_sealed(path) and not is_intact(path)


def format_of(path: Path) -> str:
    """Return the format an HDF5 file says it has, "" for none; refuse one whose seal is broken."""
    if is_changed(path):
        raise InputError(f"{path}: damaged (its bytes are not those that were written); prepare it again")
    try:
        with h5py.File(path, "r") as file:
            return str(file.attrs.get("format", ""))
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged ({' '.join(str(error).split())}); prepare it again") from error


def refuse_other(path: str | Path, found: object, expected: str) -> None:
    """Refuse a file of another format than expected, saying what it is."""
    if found == expected:
        return
    known = _WORDS.get(found) if isinstance(found, str) else None
    raise InputError(
        f"{path}: {known}, expected {_WORDS[expected]}"
        if known
        else f"{path}: an HDF5 file, but not an archive of skeleton_cgl"
    )
