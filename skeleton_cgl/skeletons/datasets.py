"""Opening a skeleton data set by what a user calls it: the path of an archive, or a reader by name, class or file."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skeleton_cgl.blame import blaming
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import DATASETS, arguments_of
from skeleton_cgl.skeletons.archive import Archive
from skeleton_cgl.skeletons.layout import JointLayout
from skeleton_cgl.skeletons.preparation import Preparation
from skeleton_cgl.skeletons.recording import Source

_DECLARED = {"layout": JointLayout, "classes": tuple, "preparation": Preparation}


def open_dataset(name_or_path: str | Path | Source) -> Archive:
    """Return the archive at a path, or in memory all that a reader yields which needs no file.

    A reader is called by its known name (synthetic), `module:Class` or the path of its Python file, or given as it is.
    A known name comes before a file of that name. Refused: what is none of these, and a reader that needs files.
    """
    if isinstance(name_or_path, Source):
        return Archive.in_memory(name_or_path)
    name = str(name_or_path)
    path = Path(name)
    if name in DATASETS.names() or path.suffix == ".py" or (":" in name and not path.exists()):
        source = make_source(name)
        with blaming(f"dataset {name!r}", source):
            return Archive.in_memory(source)
    if not path.exists() and path.suffix == "":
        raise InputError(f"{name}: neither an archive nor a known data set{did_you_mean(name, DATASETS.names())}")
    return Archive.open(path)


def make_source(name: str, path: Path | None = None, parameters: Mapping[str, Any] | None = None) -> Source:
    """Return the recordings at `path` as the reader called `name` gives them, made with these parameters.

    Refused: an unknown reader or parameter, files for a reader that takes none, no files for one that needs them, and a
    reader that does not say what its recordings are.
    """
    accepted = arguments_of(DATASETS.find(name))
    if path is not None and "path" not in accepted:
        raise InputError(f"dataset {name!r}: takes no files, found {path}")
    if path is None and "path" in accepted and accepted["path"].default is inspect.Parameter.empty:
        raise InputError(
            f"dataset {name!r}: is read from files; make an archive of them: "
            f"skeleton-cgl prepare {name} SOURCE --out ARCHIVE"
        )
    source: Source = DATASETS.make(name, {**({} if path is None else {"path": path}), **(parameters or {})})
    for attribute, kind in _DECLARED.items():
        found = getattr(source, attribute, None)
        if not isinstance(found, kind):
            raise InputError(
                f"dataset {name!r}: {attribute}: expected a {kind.__name__}, "
                f"found {'none' if found is None else type(found).__name__}"
            )
    return source
