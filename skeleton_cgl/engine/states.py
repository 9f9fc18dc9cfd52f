"""The states of stages whose branches are not finished, in a folder beside the store that its owner alone can open."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from skeleton_cgl.errors import InputError
from skeleton_cgl.files import remove_abandoned, write_beside

_CHECKSUM_SIZE = 32
"""A state begins with so many bytes: the SHA-256 of all others."""


class States:
    """The states of stages that still have children to learn, a file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sound: set[str] = set()

    def has(self, key: str) -> bool:
        """Return whether there is a state that is not damaged."""
        return self._file(key).is_file() if key in self._sound else self.read(key) is not None

    def write(self, key: str, state: bytes) -> None:
        with files_explained(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with write_beside(self._file(key)) as unfinished:
                unfinished.write_bytes(state)

    def read(self, key: str) -> bytes | None:
        """Return a state, or None where it is gone; a damaged one is removed, and that is said."""
        with files_explained(self._folder):
            try:
                state = self._file(key).read_bytes()
            except FileNotFoundError:
                return None
            if sha256(state[_CHECKSUM_SIZE:]).digest() != state[:_CHECKSUM_SIZE]:
                print(f"{self._file(key)}: damaged; removed, and its stage is learned again", file=sys.stderr)
                self.remove(key)
                return None
        self._sound.add(key)
        return state

    def remove(self, key: str) -> None:
        self._file(key).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what a killed process left half-written, and the folder when nothing is in it."""
        remove_abandoned(self._folder)
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.safetensors"


@contextmanager
def files_explained(path: Path) -> Iterator[None]:
    """Turn what the system says of a file of a store into one message that names it."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; nothing was written") from error
