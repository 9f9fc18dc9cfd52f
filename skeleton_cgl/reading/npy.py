"""Reading the arrays of `.npy` and `.npz` files a row at a time, without holding or trusting them."""

import sys
import tokenize
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import is_fit, shown
from skeleton_cgl.reading.unpickle import load_plain
from skeleton_cgl.reading.zips import UNREADABLE, open_member, refusing

_MOST_WHOLE_BYTES = 1 << 31
"""What is not read a row at a time: labels, names and the like."""

_NO_HEADER = (ValueError, TypeError, SyntaxError, LookupError, RecursionError, MemoryError, tokenize.TokenError)


def field_names(path: Path) -> list[str]:
    """Return the names of the arrays in an `.npz`; refuse what is none."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except UNREADABLE as error:
        raise InputError(f"{path}: expected an .npz file as numpy.savez writes it: {error}") from error


def fields_of(path: Path) -> frozenset[str]:
    """Return the names of the arrays in an `.npz`, none of what is no such file."""
    try:
        return frozenset(field_names(path)) if path.suffix == ".npz" else frozenset()
    except InputError:
        return frozenset()


def plain_array(path: Path, field: str) -> np.ndarray:
    """Return an array of an `.npz`; refuse objects, and text that cannot be shown."""
    stored = StoredArray(path, field)
    if stored.dtype.hasobject:
        raise InputError(f"{stored.where}: expected numbers or text, found Python objects")
    array = stored.whole()
    check_text(array, stored.where)
    return array


def check_text(array: np.ndarray, where: str) -> None:
    """Refuse an array of text with what is no letter, or with control characters."""
    if array.dtype.kind != "U":
        return
    letters = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    if letters.max(initial=0) > sys.maxunicode:
        raise InputError(f"{where}: damaged: holds what is no letter")
    for text in array.ravel().tolist():
        if not is_fit(text):
            raise InputError(f"{where}: {shown(text)} has a control character in it")


class StoredArray:
    """The array in an `.npy` file, or in a field of an `.npz`; its head is read at once, its content on request.

    Refused: what is no array, a size that does not fit its shape.
    """

    def __init__(self, path: Path, field: str | None = None) -> None:
        self._path, self._field = path, field
        self.where = f"{path}: array {field!r}" if field else str(path)
        with self._open() as (stream, size):
            self.shape, self._fortran_order, self.dtype = self._read_header(stream)
            self._start = stream.tell()
        if self.dtype.kind not in "biufcUSO" or not self.dtype.itemsize or min(self.shape, default=0) < 0:
            raise InputError(f"{self.where}: expected plain values, found shape {self.shape} of {self.dtype!s:.60}")
        self._row_bytes = prod(self.shape[1:]) * self.dtype.itemsize
        expected = self._start + (self.shape or (1,))[0] * self._row_bytes
        if not self.dtype.hasobject and size != expected:
            raise InputError(f"{self.where}: shape {self.shape} needs {expected} bytes, found {size}: damaged?")

    def _read_header(self, stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
        try:
            version = np.lib.format.read_magic(stream)
            with warnings.catch_warnings():
                # That a head was written by Python 2 is nothing a user need know.
                warnings.simplefilter("ignore", UserWarning)
                if version == (1, 0):
                    return np.lib.format.read_array_header_1_0(stream)
                if version == (2, 0):
                    return np.lib.format.read_array_header_2_0(stream)
        except _NO_HEADER as error:
            said = " ".join(str(error).split())
            raise InputError(f"{self.where}: not an array of NumPy: {said:.200}") from error
        raise InputError(f"{self.where}: expected version 1.0 or 2.0 of the npy format, found {version}")

    def __len__(self) -> int:
        return self.shape[0]

    def refuse_fortran_order(self) -> None:
        """Refuse an array whose rows do not stand one after the other."""
        if self._fortran_order:
            raise InputError(f"{self.where}: in Fortran order, expected C order (numpy.ascontiguousarray)")

    def rows(self, chosen: Sequence[int]) -> Iterator[np.ndarray]:
        """Yield the chosen rows, which must ascend: a compressed file is read forwards only. Refused: Fortran order."""
        self.refuse_fortran_order()
        with self._open() as (stream, _):
            for row in chosen:
                stream.seek(self._start + row * self._row_bytes)
                content = stream.read(self._row_bytes)
                if len(content) < self._row_bytes:
                    raise InputError(f"{self.where}: ends within row {row}")
                yield np.frombuffer(content, dtype=self.dtype).reshape(self.shape[1:])

    def whole(self) -> np.ndarray:
        """Return all of it; objects in it may be arrays and plain containers, and are refused otherwise."""
        with self._open() as (stream, _):
            if self.dtype.hasobject:
                stream.seek(self._start)
                array = load_plain(stream, self.where)
                if not isinstance(array, np.ndarray) or array.shape != self.shape:
                    raise InputError(f"{self.where}: not an array of shape {self.shape}")
                return array
            size = prod(self.shape) * self.dtype.itemsize
            if size > _MOST_WHOLE_BYTES:
                raise InputError(f"{self.where}: {size} bytes, expected at most {_MOST_WHOLE_BYTES}")
            return np.lib.format.read_array(stream, allow_pickle=False)

    @contextmanager
    def _open(self) -> Iterator[tuple[IO[bytes], int]]:
        """Give the stream of the array and its size; refuse what cannot be read."""
        with refusing(f"{self.where}: "):
            if self._field is None:
                with self._path.open("rb") as stream:
                    yield stream, self._path.stat().st_size
                return
            member = f"{self._field}.npy"
            with zipfile.ZipFile(self._path) as archive:
                if member not in archive.namelist():
                    known = ", ".join(sorted(name.removesuffix(".npy") for name in archive.namelist()))
                    raise InputError(f"{self.where} is missing; found {known or 'none'}")
                with self._member(archive, member) as stream:
                    yield stream, archive.getinfo(member).file_size

    def _member(self, archive: zipfile.ZipFile, name: str) -> IO[bytes]:
        try:
            return open_member(archive, name)
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from error
