"""The SQLite file behind a store: opened to write where that can be, else to read, and what goes wrong with it told in
one message that says what is known."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from skeleton_cgl.engine.states import files_explained
from skeleton_cgl.errors import InputError

_WAIT_SECONDS = 60
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NOTHING_WRITTEN = (
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN),
)
"""What ends a transaction and leaves the file as it was before."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite or the system says of a file into one message that names it."""
    with files_explained(path):
        try:
            yield
        except sqlite3.DatabaseError as error:
            # The low byte is the kind, the others tell more of it.
            code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
            known = "; the file is damaged, or no store" if code in _DAMAGED else ""
            known = "; nothing was written" if code in _NOTHING_WRITTEN else known
            raise InputError(f"{path}: the store cannot be used: {one_line(error)}{known}") from error
        except UnicodeDecodeError as error:
            # What SQLite says of a damaged file can hold pieces of it.
            raise InputError(f"{path}: the store cannot be used; the file is damaged") from error


def one_line(told: object) -> str:
    """Return what SQLite says of a file, which can hold pieces of it, as a line that can be printed."""
    line = " ".join(str(told).split())
    return line if line.isprintable() else ascii(line)


def is_writable(path: Path) -> bool:
    """Return whether a store can be written to: the file, and its folder, where SQLite writes beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def open_to_write(path: Path) -> sqlite3.Connection:
    """Return a connection to the file at a path, which is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # By the user's umask; SQLite alone would give the group no right to write.
    path.open("ab").close()
    return _connect(str(path))


def open_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection to a file that cannot be written to, in a folder that perhaps cannot either."""
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    log, shared = (path.with_name(f"{path.name}-{beside}") for beside in ("wal", "shm"))
    if not log.is_file() or log.stat().st_size == 0:
        # Nobody writes: without this, SQLite would want to make files beside it.
        return _connect(f"{address}&immutable=1")
    if shared.is_file():
        return _connect(address)
    # Its writer was killed: the last of what it wrote is in the log alone.
    with TemporaryDirectory() as folder:
        for file in (path, log):
            shutil.copyfile(file, Path(folder) / file.name)
        with closing(_connect(str(Path(folder) / path.name))) as copy:
            return in_memory(copy)


def copy(source: sqlite3.Connection, path: Path) -> None:
    """Write a copy of a database."""
    with closing(open_to_write(path)) as target:
        source.backup(target)


def in_memory(source: sqlite3.Connection) -> sqlite3.Connection:
    """Return a copy of a database that is in memory alone."""
    memory = _connect(":memory:")
    source.backup(memory)
    return memory


def _connect(address: str) -> sqlite3.Connection:
    uri = address.startswith("file:")
    connection = sqlite3.connect(address, timeout=_WAIT_SECONDS, isolation_level=None, uri=uri)
    # Damaged text is read as it is, and found by its checksum.
    connection.text_factory = lambda text: text.decode(errors="surrogateescape")
    return connection


def faults(connection: sqlite3.Connection, at_most: int = 100) -> list[str]:
    """Return what SQLite finds wrong with a file: pages, indexes that do not fit their tables, rows out of place."""
    found = [str(fault) for (fault,) in connection.execute(f"PRAGMA integrity_check({at_most})")]
    return [] if found == ["ok"] else found


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at a path from another that takes its place; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
