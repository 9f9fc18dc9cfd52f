"""Tables of comma-separated values are read to the bit, or refused in one line with row and column."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading import tables
from skeleton_cgl.reading.tables import numbers_in_pieces, read_numbers, read_text


def written(path: Path, text: str, name: str = "t.csv") -> Path:
    (path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path / name


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_numbers_are_those_that_python_reads(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    path = written(tmp_path, "".join(",".join(map(str, row)) + "\n" for row in values.tolist()), name)
    assert (read_numbers(path, np.float32, 3) == values).all()
    monkeypatch.setattr(tables, "_PIECE", 64)
    pieces = list(numbers_in_pieces(path, np.float32))
    assert len(pieces) > 3
    assert (np.concatenate(pieces) == values).all()


def test_whole_numbers_keep_all_their_digits(tmp_path: Path) -> None:
    path = written(tmp_path, f"a,b\n{2**62 + 1},-3\n")
    assert read_numbers(path, np.int64, ("a", "b")).tolist() == [[2**62 + 1, -3]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1,2\n3,x\n", "row 2, column 2: expected a whole number, found 'x'"),
        ("1,2\n3,4.5\n", "row 2, column 2: expected a whole number, found '4.5'"),
        ("1.0,2\n", "row 1, column 1: expected a whole number, found '1.0'"),
        ("1,2\n3\n", "row 2, column 2: expected a whole number, found nothing"),
        (f"1,2\n{2**64},4\n", "row 2, column 1: expected a whole number"),
        (f"1,2\n{2**63},4\n", "row 2, column 1: expected a whole number"),
        ("1,2,3\n", "expected 2 columns, found 3"),
        ("1,2\n3,4,5\n", "cannot be read: .*Expected 2 fields in line 2, saw 3"),
        ("", "cannot be read: No columns"),
    ],
)
def test_what_is_no_table_of_whole_numbers_is_refused_with_row_and_column(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(InputError, match=rf"t\.csv: {reason}"):
        read_numbers(written(tmp_path, text), np.int64, 2)


def test_rows_are_counted_over_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_PIECE", 16)
    with pytest.raises(InputError, match=r"t\.csv: row 11, column 1: expected a number, found 'x'"):
        read_numbers(written(tmp_path, "1\n" * 10 + "x\n"), np.float64)


def test_a_table_that_unpacks_into_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "0\n" * 100_000, "t.csv.gz")
    assert len(read_numbers(path, np.int64)) == 100_000
    monkeypatch.setattr(tables, "_ALWAYS", 1000)
    with pytest.raises(InputError, match=r"t\.csv\.gz: refused: unpacks to far more than a table is compressed to"):
        read_numbers(path, np.int64)


def test_text_is_as_written(tmp_path: Path) -> None:
    text = '\ufeffid,name,a b\n007,"Müller, ""Karl""",NA\n1e3,,null\n'
    assert read_text(written(tmp_path, text)) == {
        "id": ["007", "1e3"],
        "name": ['Müller, "Karl"', ""],
        "a b": ["NA", "null"],
    }
    for text, reason in (
        ("a,b\n", "expected a line of names and at least one row"),
        ("a,a\n1,2\n", "column 2: expected a name of its own, found 'a'"),
        ("a,\n1,2\n", "column 2: expected a name of its own, found ''"),
        ("a,b\n1\n", "row 1: expected 2 values, found 1"),
        ("a,b\n1,2,3\n", "row 1: expected 2 values, found 3"),
        ('a,b\n"1,2\n', "cannot be read"),
    ):
        with pytest.raises(InputError, match=rf"t\.csv: {reason}"):
            read_text(written(tmp_path, text))
