"""A seal in front of an HDF5 file: the checksum of all its bytes, checked before HDF5 reads a single one.

HDF5 has room for it, the user block, which it leaves alone. Checksums inside an HDF5 file come too late for damage to
what leads to them: HDF5 then reads something else, or crashes.
"""

import hashlib
from pathlib import Path

SIZE = 512
"""The bytes of the user block, the fewest that HDF5 offers."""

HDF5 = b"\x89HDF\r\n\x1a\n"
"""What HDF5 begins with, after the user block if there is one."""

_MAGIC = b"skeleton_cgl seal 1\n"
_KNOWN: dict[Path, tuple[int, ...]] = {}
"""The files found intact by this process: their inode, length and time of change."""


def seal(path: Path) -> None:
    """Write the checksum of a closed file with a user block into that block."""
    with path.open("r+b") as file:
        file.seek(SIZE)
        content = _MAGIC + hashlib.file_digest(file, "sha256").hexdigest().encode() + b"\n"
        file.seek(0)
        file.write(content.ljust(SIZE, b"\0"))


def is_sealed(path: Path) -> bool:
    """Return whether a file has a seal: what begins as HDF5 begins has none."""
    with path.open("rb") as file:
        return file.read(len(HDF5)) != HDF5


def is_intact(path: Path) -> bool:
    """Return whether a file has exactly the bytes it was sealed with."""
    with path.open("rb") as file:
        block = file.read(SIZE)
        expected = _MAGIC + hashlib.file_digest(file, "sha256").hexdigest().encode() + b"\n"
    return block == expected.ljust(SIZE, b"\0")


def is_known(path: Path) -> bool:
    """Return whether this process found the file intact and it has not changed since, by its time of change."""
    return _KNOWN.get(path.resolve()) == _state(path)


def remember(path: Path) -> None:
    """Note that the file was found intact as it is."""
    _KNOWN[path.resolve()] = _state(path)


def _state(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
