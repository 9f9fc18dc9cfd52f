"""Opening a skeleton data set by what a user calls it: the name of a built-in one, or the path of an archive."""

from pathlib import Path

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.skeletons.archive import Archive
from skeleton_cgl.skeletons.synthetic import SyntheticSource

BUILT_IN = {"synthetic": SyntheticSource}
"""Data sets that need no file."""


def open_dataset(name_or_path: str | Path) -> Archive:
    """Return the archive at a path, or the built-in data set of that name; refuse what is neither."""
    name = str(name_or_path)
    if name in BUILT_IN:
        return Archive.in_memory(BUILT_IN[name]())
    if not Path(name).exists() and Path(name).suffix == "":
        raise InputError(f"{name}: neither an archive nor a built-in data set{did_you_mean(name, BUILT_IN)}")
    return Archive.open(name)
