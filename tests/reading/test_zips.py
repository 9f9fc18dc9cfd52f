"""Zips and arrays that are damaged, or claim more than is there, are refused in one line and take no memory."""

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading import members
from skeleton_cgl.reading.members import Members
from skeleton_cgl.reading.npy import StoredArray, field_names
from skeleton_cgl.skeletons.sources.ucla import UclaSource

CONTENT = bytes(np.random.default_rng(0).integers(97, 110, 20_000, dtype=np.uint8))


def zipped(path: Path, content: bytes = CONTENT, method: int = zipfile.ZIP_DEFLATED, name: str = "x.json") -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, content)
    return path


def claiming(path: Path, size: int, compressed: int | None = None) -> Path:
    """Write into the directory of a zip that its one member has another size."""
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = struct.pack("<I", size)
    if compressed is not None:
        content[entry + 20 : entry + 24] = struct.pack("<I", compressed)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_damaged_zips_of_every_kind_are_read_right_or_refused_in_one_line(tmp_path: Path, method: int) -> None:
    whole = zipped(tmp_path / "x.zip", method=method).read_bytes()
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        content = bytearray(whole)
        for place in random.integers(len(content), size=random.integers(1, 4)):
            content[place] ^= 1 << random.integers(8)
        (tmp_path / "x.zip").write_bytes(content)
        try:
            members_there = Members(tmp_path / "x.zip", "")
            found = members_there.read(members_there.names[0])
        except InputError as error:
            refused += "\n" not in str(error)
        else:
            assert found == CONTENT
    assert refused > 200


def test_members_that_unpack_into_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Members(zipped(tmp_path / "x.zip"), ".json").read("x.json") == CONTENT

    def refuse(path: Path, reason: str) -> None:
        with pytest.raises(InputError, match=reason):
            Members(path, ".json").read("x.json")

    refuse(claiming(zipped(tmp_path / "x.zip"), (1 << 32) - 2), "refused: 4294967294 bytes, expected a recording")
    refuse(claiming(zipped(tmp_path / "x.zip", b"x"), 5000, 1), "refused: 5000 bytes in 1")
    refuse(claiming(zipped(tmp_path / "x.zip", b"x"), 1 << 27, 1 << 26), "refused: 134217728 bytes")
    refuse(claiming(zipped(tmp_path / "x.zip"), 100), "cannot be read: Bad CRC-32")
    refuse(zipped(tmp_path / "x.zip", bytes(1 << 20), zipfile.ZIP_BZIP2), "expected deflate")
    refuse(zipped(tmp_path / "x.zip", bytes(1 << 20), zipfile.ZIP_LZMA), "refused: 1048576 bytes in")
    monkeypatch.setattr(members, "MOST_BYTES", 1000)
    refuse(zipped(tmp_path / "x.zip", CONTENT, zipfile.ZIP_STORED), "expected a recording of at most 1000")
    (tmp_path / "x.json").write_bytes(CONTENT)
    refuse(tmp_path, "expected a recording of at most 1000")


def test_a_bomb_among_recordings_is_one_bad_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "MOST_BYTES", 1 << 20)
    good = '{"skeletons": [' + ",".join(["[" + ",".join(["[0.1, 0.2, 0.3]"] * 20) + "]"] * 4) + "]}"
    path = tmp_path / "nw-ucla.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a01_s01_e01_v01.json", good)
        archive.writestr("a02_s01_e01_v01.json", b" " * members.MOST_BYTES + good.encode())
    good_one, bad_one = UclaSource(path).recordings()
    assert good_one.name == "a01_s01_e01_v01"
    assert "expected a recording of at most" in bad_one.reason


def npy(shape: tuple, kind: str = "<f4", content: bytes = b"", **more: object) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape, **more})
    return stream.getvalue() + content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (npy((1 << 40, 4)), "needs .* bytes, found"),
        (npy((1, 1 << 32, 1 << 32)), "needs .* bytes, found"),
        (npy((1 << 50,), "<U0"), "expected plain values"),
        (npy((-1, 4)), "expected plain values"),
        (npy((1,), [("a", "O"), ("b", "<f4")], b"x" * 12), "expected plain values"),
        (npy((1,), ("<f4", (2,)), b"x" * 8), "not an array of NumPy|expected plain values"),
        (npy((1 << 40,), "O", b"N."), "not an array of shape"),
        (npy((1,))[:9] + b"\xff\xff" + b"(" * 60_000, "not an array of NumPy"),
        (npy((1,)).replace(b"}", b"{"), "not an array of NumPy"),
        (b"\x93NUMPY\x03\x00" + b"x" * 100, "expected version 1.0 or 2.0"),
        (b"", "not an array of NumPy"),
    ],
)
@pytest.mark.parametrize("where", [lambda path: (path, None), lambda path: (zipped_npy(path), "x")], ids=["npy", "npz"])
def test_arrays_that_claim_what_is_not_there_are_refused(
    tmp_path: Path, content: bytes, reason: str, where: Callable[[Path], tuple[Path, str | None]]
) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason) as refused:
        StoredArray(*where(path)).whole()
    assert "\n" not in str(refused.value)


def zipped_npy(path: Path) -> Path:
    return zipped(path.with_suffix(".npz"), path.read_bytes(), name="x.npy")


def test_an_array_whose_zip_lies_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    content = npy((1 << 29,))
    path = claiming(zipped(tmp_path / "x.npz", content, name="x.npy"), len(content) + (1 << 31))
    with pytest.raises(InputError, match=r"x\.npz: array 'x': refused: 2147483\d+ bytes in \d+"):
        StoredArray(path, "x").whole()
    assert field_names(path) == ["x"]
