"""The states of stages whose branches are not finished, in a folder beside the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skeleton_cgl.errors import InputError
from skeleton_cgl.files import remove_abandoned, write_beside


class States:
    """The states of stages that still have children to learn, a file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, key: str) -> bool:
        return self._file(key).is_file()

    def write(self, key: str, state: bytes) -> None:
        with files_explained(self._folder), write_beside(self._file(key)) as unfinished:
            unfinished.write_bytes(state)

    def read(self, key: str) -> bytes | None:
        """Return a state, or None where it is gone."""
        try:
            return self._file(key).read_bytes()
        except FileNotFoundError:
            return None

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
        raise InputError(f"{path}: {error.strerror or error}; what the store holds is intact") from error
