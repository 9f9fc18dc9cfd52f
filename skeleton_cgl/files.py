"""Writing files so that a path never shows half a file: beside it first, renamed when complete."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skeleton_cgl.errors import InputError


@contextmanager
def write_beside(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to; rename it to `path` when all went well, remove it when not.

    Refused: the path of a folder. A place that cannot be written to is an OSError with `path` in it.
    """
    if not path.name or path.is_dir():
        raise InputError(f"{path}: a folder, expected the name of a file to write")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.touch()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    except ValueError as error:
        raise InputError(f"{path}: no file can have this name: {error}") from error
    try:
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def remove_abandoned(folder: Path) -> None:
    """Remove what `write_beside` left in a folder when its process was killed; files of living processes stay."""
    for file in folder.glob(".*.unfinished"):
        process = re.fullmatch(r".*\.(\d+)\.unfinished", file.name)
        if process and not _lives(int(process[1])):
            file.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
