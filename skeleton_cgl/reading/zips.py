"""Opening zips that need not be what they say: damaged ones, and small ones that unpack into terabytes.

What a member claims is checked before it is opened; who reads it reads no more than that.
"""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from skeleton_cgl.errors import InputError

# RuntimeError is how zipfile says that a member is encrypted or compressed in a way it does not know.
UNREADABLE = (
    *(OSError, EOFError, RuntimeError, ValueError, OverflowError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)

_MOST_TIMES = 1100
"""Deflate, at its best, makes a thousandth; skeletons come to a tenth."""

_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA}


@contextmanager
def refusing(where: str) -> Iterator[None]:
    """Within: whatever goes wrong in reading is refused in one line that begins with `where`."""
    try:
        yield
    except InputError:
        raise
    except UNREADABLE as error:
        raise InputError(f"{where}cannot be read: {error or type(error).__name__}") from error


def open_member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """Return the stream of a member, which ends at the size it claims; refuse a claim that cannot be true."""
    member = archive.getinfo(name)
    # The reader of bzip2 unpacks gigabytes before it looks how many were asked for.
    if member.compress_type not in _METHODS:
        raise InputError("compressed in a way that is not read here, expected deflate, as zip programs do by default")
    there = Path(archive.filename).stat().st_size if archive.filename else member.compress_size
    if member.file_size > _MOST_TIMES * max(min(member.compress_size, there), 1):
        raise InputError(
            f"refused: {member.file_size} bytes in {member.compress_size}, which no recording is compressed to"
        )
    return archive.open(member)
