"""Writing files so that a path never shows half a file: beside it first, renamed when complete."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_beside(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to; rename it to `path` when all went well, remove it when not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
