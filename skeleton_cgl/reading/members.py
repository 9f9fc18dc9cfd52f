"""The files of a folder or of a zip, seen alike: recordings come either way."""

import zipfile
from collections.abc import Callable
from pathlib import Path

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.npy import UNREADABLE


class Members:
    """The files below a folder, or in a zip, whose name ends in `suffix`; `names` is sorted by file name.

    Refused: a path that is neither, and one without such a file.
    """

    def __init__(self, path: str | Path, suffix: str) -> None:
        self.path = Path(path)
        self._read: Callable[[str], bytes]
        if self.path.is_dir():
            names = [str(file.relative_to(self.path)) for file in self.path.rglob(f"*{suffix}") if file.is_file()]
            self._read = lambda name: (self.path / name).read_bytes()
        elif self.path.is_file() and zipfile.is_zipfile(self.path):
            archive = zipfile.ZipFile(self.path)
            names = [name for name in archive.namelist() if name.endswith(suffix)]
            self._read = archive.read
        elif self.path.exists():
            raise InputError(f"{self.path}: expected a folder or a zip of {suffix} files")
        else:
            raise InputError(f"{self.path}: no such file or folder")
        if not names:
            raise InputError(f"{self.path}: no {suffix} file in it")
        self.names = sorted(names, key=lambda name: (Path(name).name, name))

    def read(self, name: str) -> bytes:
        """Return the content of one member; refuse one that cannot be read."""
        try:
            return self._read(name)
        except UNREADABLE as error:
            raise InputError(f"cannot be read: {error}") from error
