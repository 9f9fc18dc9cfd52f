"""The files of a folder or of a zip, seen alike: recordings come either way."""

import zipfile
from collections.abc import Callable
from pathlib import Path

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.zips import open_member, refusing

MOST_BYTES = 1 << 28
"""The largest recordings of the public data sets have a few megabytes."""


class Members:
    """The files below a folder, or in a zip, whose name ends in `suffix`; `names` is sorted by file name.

    Refused: a path that is neither, and one without such a file.
    """

    def __init__(self, path: str | Path, suffix: str) -> None:
        self.path = Path(path)
        self._read: Callable[[str], bytes]
        if self.path.is_dir():
            names = [str(file.relative_to(self.path)) for file in self.path.rglob(f"*{suffix}") if file.is_file()]
            self._read = self._read_file
        elif self.path.is_file() and zipfile.is_zipfile(self.path):
            with refusing(f"{self.path}: "):
                self._archive = zipfile.ZipFile(self.path)
            names = [name for name in self._archive.namelist() if name.endswith(suffix)]
            self._read = self._read_zipped
        elif self.path.exists():
            raise InputError(f"{self.path}: expected a folder or a zip of {suffix} files")
        else:
            raise InputError(f"{self.path}: no such file or folder")
        if not names:
            raise InputError(f"{self.path}: no {suffix} file in it")
        self.names = sorted(names, key=lambda name: (Path(name).name, name))

    def read(self, name: str) -> bytes:
        """Return the content of one member; refuse one that cannot be read, or is too large for a recording."""
        with refusing(""):
            return self._read(name)

    def _read_file(self, name: str) -> bytes:
        path = self.path / name
        _refuse_large(path.stat().st_size)
        return path.read_bytes()

    def _read_zipped(self, name: str) -> bytes:
        _refuse_large(self._archive.getinfo(name).file_size)
        with open_member(self._archive, name) as stream:
            return stream.read()


def _refuse_large(size: int) -> None:
    if size > MOST_BYTES:
        raise InputError(f"refused: {size} bytes, expected a recording of at most {MOST_BYTES}")
