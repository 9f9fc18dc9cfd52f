"""Reading tables of comma-separated values, plain or gzipped, without trusting them: fast, and telling row and column.

Rows are counted from 1, a line of names not included.
"""

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from skeleton_cgl.errors import InputError
from skeleton_cgl.plain import shown
from skeleton_cgl.reading.zips import UNREADABLE

LAST_SECOND = 253_402_300_799
"""The end of the year 9999 in seconds since 1970, after which dates cannot be written."""

_BEGINNING = 1 << 16
_MOST_TIMES, _ALWAYS = 200, 1 << 28
"""A gzipped table may unpack to this many times its size, or to this many bytes; public ones come to twentyfold."""

_PIECE, _LONGEST_LINE = 1 << 20, 1 << 16


def check_column(
    path: Path, column: str, values: np.ndarray, fit: np.ndarray, expected: str, otherwise: str = ""
) -> None:
    """Refuse the first value (R,) of a column of numbers that is not fit (R,); otherwise: what it is then, in words."""
    if not fit.all():
        row = int(np.argmin(fit))
        found = "nothing" if np.isnan(values[row]) else f"{values[row]:.15g}{otherwise}"
        raise InputError(f"{path}: row {row + 1}: {column}: expected {expected}, found {found}")


def first_rows(path: Path, count: int) -> list[list[str]]:
    """Return the first rows of a table as text, a line of names included: fewer where its first 64 KiB have no more.

    None of what cannot be read, so that a file may be recognised by them before anything is refused.
    """
    try:
        with _opened(path) as file:
            lines = file.read(_BEGINNING).decode("utf-8-sig", "replace").splitlines()
        return [row for row in csv.reader(lines) if row][:count]
    except (InputError, csv.Error):
        return []


def read_numbers(
    path: Path, kind: type[np.generic], columns: int | Sequence[str] | None = None, separator: str = ","
) -> np.ndarray:
    """Return a table of numbers of one kind, (rows, columns).

    columns: how many there are, or their names, which then stand in the first line; None takes as many as the first
    line has. separator: the letter between two values. Refused: a file that cannot be read, other columns, rows of
    other lengths, and what is no such number.
    """
    return np.concatenate(list(numbers_in_pieces(path, kind, columns, separator)))


def numbers_in_pieces(
    path: Path, kind: type[np.generic], columns: int | Sequence[str] | None = None, separator: str = ","
) -> Iterator[np.ndarray]:
    """Yield a table as `read_numbers` returns it, some rows at a time."""
    rows = 0
    with _opened(path) as file:
        _skip_names(path, file, columns)
        for frame in _frames(path, file, separator):
            expected = columns if isinstance(columns, int) else len(columns) if columns else frame.shape[1]
            if frame.shape[1] != expected:
                raise InputError(f"{path}: expected {expected} columns, found {frame.shape[1]}")
            yield _converted(path, frame, kind, rows)
            rows += len(frame)


def names_of(path: Path) -> list[str]:
    """Return what stands in the first line of a table; refuse a file that cannot be read."""
    with _opened(path) as file:
        return next(csv.reader([file.readline(_LONGEST_LINE).decode("utf-8-sig", "replace")]), [])


def read_text(path: Path) -> dict[str, list[str]]:
    """Return the columns of a table by the names in its first line, as text; refuse one without rows or names."""
    return read_numbered_text(path)[0]


def read_numbered_text(path: Path) -> tuple[dict[str, list[str]], list[int]]:
    """Return the columns of a table as `read_text` does, and the number of each row, empty lines counted."""
    with _opened(path) as file:
        numbered = list(_rows_of_text(path, file))
    if len(numbered) < 2:
        raise InputError(f"{path}: expected a line of names and at least one row")
    first, names = numbered[0]
    for place, name in enumerate(names):
        if not name or name in names[:place]:
            raise InputError(f"{path}: column {place + 1}: expected a name of its own, found {shown(name)}")
    for line, row in numbered:
        if len(row) != len(names):
            raise InputError(f"{path}: row {line - first}: expected {len(names)} values, found {len(row)}")
    rows = [row for _, row in numbered[1:]]
    columns = {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    return columns, [line - first for line, _ in numbered[1:]]


def _rows_of_text(path: Path, file: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table with the line that each ends in, empty lines left out."""
    try:
        with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
            reader = csv.reader(text, strict=True)
            yield from ((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


class _Bounded(io.RawIOBase):
    """A gzipped stream that ends in a refusal where it unpacks to more than any table does."""

    def __init__(self, path: Path, file: gzip.GzipFile) -> None:
        self._path, self._file = path, file
        self._left = max(_ALWAYS, _MOST_TIMES * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(min(len(buffer), _PIECE))
        self._left -= len(content)
        if self._left < 0:
            raise InputError(f"{self._path}: refused: unpacks to far more than a table is compressed to")
        buffer[: len(content)] = content
        return len(content)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with _refusing(path), path.open("rb") as file:
        if path.suffix == ".gz":
            with gzip.open(file) as unpacked:
                yield io.BufferedReader(_Bounded(path, unpacked), _PIECE)
        else:
            yield file


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except UNREADABLE as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: cannot be read: {said:.200}") from error


def _skip_names(path: Path, file: IO[bytes], columns: int | Sequence[str] | None) -> None:
    if columns is None or isinstance(columns, int):
        return
    found = file.readline(_LONGEST_LINE).decode("utf-8-sig", "replace").strip().split(",")
    if found != list(columns):
        raise InputError(f"{path}: expected the columns {','.join(columns)}, found {shown(','.join(found))}")


def _frames(path: Path, file: IO[bytes], separator: str) -> Iterator[pd.DataFrame]:
    """Yield pieces of a table without names, its columns numbers where pandas takes them for such."""
    with (
        _refusing(path),
        pd.read_csv(file, sep=separator, header=None, chunksize=_PIECE // 4, low_memory=False) as pieces,
    ):
        yield from pieces


def _converted(path: Path, frame: pd.DataFrame, kind: type[np.generic], rows: int) -> np.ndarray:
    whole = issubclass(kind, np.integer)
    for place, column in enumerate(frame.columns):
        values = frame[column]
        fits = values.dtype.kind in ("iu" if whole else "iufb") and not (whole and values.dtype == np.uint64)
        if not fits:
            row = _first_unfit(values, whole)
            found = values.iloc[row]
            said = "nothing" if pd.isna(found) and not isinstance(found, str) else shown(str(found))
            raise InputError(
                f"{path}: row {rows + row + 1}, column {place + 1}: expected a {'whole ' if whole else ''}number, "
                f"found {said}"
            )
    return np.ascontiguousarray(frame.to_numpy(dtype=kind))


def _first_unfit(values: "pd.Series[Any]", whole: bool) -> int:
    numbers = pd.to_numeric(values, errors="coerce")
    unfit = numbers.isna() | ((numbers % 1 != 0) | (numbers.abs() >= 2.0**63) if whole else False)
    # A column that is unfit without an unfit value has whole numbers written as fractions.
    return int(np.argmax(unfit.to_numpy())) if unfit.any() else 0
