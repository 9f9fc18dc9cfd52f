import builtins
import io
import os
import pickle
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.unpickle import load_pickle, load_plain
from tests.shared_data import FOLDER, needs

PLAIN = {
    "names": ["a", "b"],
    "nested": (1, 2.5, None, True, b"bytes", {3, 4}, frozenset({5}), OrderedDict(x=1)),
    "scalar": np.float32(1.5),
    "array": np.arange(12, dtype=np.int16).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "text": np.array(["x", "yy"]),
    "objects": np.array([np.zeros(2), np.ones(3)], dtype=object),
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_and_plain_containers_come_back(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "plain.pkl"
    path.write_bytes(pickle.dumps(PLAIN, protocol=protocol))
    loaded = load_pickle(path)
    assert loaded.keys() == PLAIN.keys()
    assert loaded["nested"] == PLAIN["nested"]
    for name in ("scalar", "array", "fortran", "text"):
        np.testing.assert_array_equal(loaded[name], PLAIN[name])
    np.testing.assert_array_equal(loaded["objects"][1], np.ones(3))


class Calls:
    def __init__(self, function: object, *arguments: object) -> None:
        self.reduced = (function, arguments)

    def __reduce__(self) -> tuple:
        return self.reduced


@pytest.mark.parametrize(
    "attack",
    [
        Calls(os.system, "touch executed"),
        Calls(builtins.eval, "open('executed', 'w')"),
        Calls(builtins.getattr, "", "upper"),
        Calls(np.load, "executed"),
        Calls(np.memmap, "executed", "u1", "w+", 0, (1,)),
        Path("somewhere"),
    ],
    ids=["system", "eval", "getattr", "load", "memmap", "path"],
)
def test_anything_else_is_refused_without_being_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: object
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "attack.pkl"
    path.write_bytes(pickle.dumps([1, attack]))
    with pytest.raises(InputError, match=r"attack\.pkl: refused: the pickle asks for"):
        load_pickle(path)
    assert not (tmp_path / "executed").exists()


def test_broken_pickles_are_refused_with_the_file(tmp_path: Path) -> None:
    whole = pickle.dumps(PLAIN)
    for cut in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        with pytest.raises(InputError, match="data: not a readable pickle"):
            load_plain(io.BytesIO(whole[:cut]), "data")
    with pytest.raises(InputError, match="cannot be read"):
        load_pickle(tmp_path / "absent.pkl")


DTYPE = b"cnumpy\ndtype\n(X\x02\x00\x00\x00V8K\x00K\x01tR"
HIDDEN_OBJECT = (  # The state of a type of 8 bytes that claims to hold an object, at any address.
    b"(K\x03X\x01\x00\x00\x00|N(X\x01\x00\x00\x00xt}X\x01\x00\x00\x00x(cnumpy\ndtype\n(X\x01\x00\x00\x00OK\x00K\x01tR"
    b"K\x00tsK\x08K\x01K\x1btb"
)
ARRAY = b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
NUMBERS = (
    b"cnumpy\ndtype\n(X\x02\x00\x00\x00i8K\x00K\x01tR"
    b"(K\x03X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
)
TERA = b"\x8a\x06" + (1 << 40).to_bytes(6, "little")
ATTACKS = {
    "fields": DTYPE + HIDDEN_OBJECT + b".",
    "array of hidden objects": ARRAY + b"(K\x01(K\x01t" + DTYPE + HIDDEN_OBJECT + b"\x89C\x08AAAAAAAAtb.",
    "plain type with hidden fields": NUMBERS.replace(b"NNN", b"N(X\x01\x00\x00\x00xt}") + b".",
    "subtype": NUMBERS.replace(b"NNN", b"(K\x01K\x02tNN") + b".",
    "type by a dict": b"cnumpy\ndtype\n(}K\x00K\x01tR.",
    "objects in bytes": ARRAY + b"(K\x01(K\x01t" + NUMBERS.replace(b"i8", b"O8") + b"\x89C\x08AAAAAAAAtb.",
    "object as a number": b"cnumpy._core.multiarray\nscalar\n(" + NUMBERS.replace(b"i8", b"O8") + b"C\x08AAAAAAAAtR.",
    "objects in a buffer": b"cnumpy._core.numeric\n_frombuffer\n(C\x08AAAAAAAA"
    + NUMBERS.replace(b"i8", b"O8")
    + b"(K\x01tX\x01\x00\x00\x00CtR.",
    "terabytes by shape": ARRAY + b"(K\x01(" + TERA + b"t" + NUMBERS + b"\x89C\x00tb.",
    "terabytes by begin": b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(" + TERA + b"tC\x01btR.",
    "negative shape": ARRAY + b"(K\x01(J\xff\xff\xff\xfft" + NUMBERS + b"\x89C\x00tb.",
    "types of no size": ARRAY + b"(K\x01(" + TERA + b"t" + NUMBERS.replace(b"i8", b"U0") + b"\x89C\x00tb.",
    "terabytes of text": b"\x8d" + (1 << 40).to_bytes(8, "little") + b"x.",
    "terabytes of bytes": b"\x8e" + (1 << 40).to_bytes(8, "little") + b"x.",
    "terabytes of a bytearray": b"\x96" + (1 << 40).to_bytes(8, "little") + b"x.",
    "a bytearray of a number": b"cbuiltins\nbytearray\n(" + TERA + b"tR.",
    "a long number": b"\x8b\x00\x00\x10\x00" + b"\xff" * (1 << 20) + b".",
    "many digits": b"L" + b"9" * 5000 + b"L\n.",
    "deep lists": b"]" * 100_000 + b"a" * 99_999 + b".",
    "deep tuples": b")" + b"\x85" * 100_000 + b".",
    "a list in itself": b"]q\x00h\x00a.",
    "lists of lists, many times": b"]q\x00" + b"".join(b"](" + b"h\x00" * 10 + b"eq\x00" for _ in range(40)) + b".",
    "a key that hashes for ever": b"}(" + b")" + b"q\x00h\x00\x86" * 60 + b"Nu.",
    "a set of one": b"\x8f(" + b")" + b"q\x00h\x00\x86" * 60 + b"\x90.",
    "an array that is not described": ARRAY + b".",
    "an array in a list before it is described": b"]" + ARRAY + b"q\x00a.",
    "a bare name": b"cnumpy\nndarray\n.",
    "a name called": b"cbuiltins\nlist\n(tR.",
    "what is inside a dict": b"}}b.",
    "a class by its parts": b"(cos\nsystem\nS'x'\no.",
    "an instance": b"(S'true'\nios\nsystem\n.",
    "an extension": b"\x82\x01.",
    "something outside": b"Pelsewhere\n.",
    "a buffer outside": b"\x97.",
    "keyword arguments": b"cnumpy\ndtype\n)}\x92.",
    "a type that says itself for ever": b"cnumpy\ndtype\n()" + b"q\x00h\x00\x86" * 60 + b"K\x00K\x01tR.",
    "a name of two lines": b"\x8c\x01\n\x8c\x01\x1b\x93.",
    "too few values": b"a.",
    "no mark": b"t.",
    "nothing": b".",
    "a mark too deep": b"N(\x85.",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_pickles_made_to_harm_are_refused(attack: bytes) -> None:
    with pytest.raises(InputError, match=r"^data: .+") as refused:
        load_plain(io.BytesIO(attack), "data")
    assert "\n" not in str(refused.value)


def test_a_place_in_the_memo_takes_no_memory_before_it() -> None:
    assert load_plain(io.BytesIO(b"Nr\xff\xff\xff\xff0j\xff\xff\xff\xff."), "data") is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"indices": np.array([0, 9])}, "outside its 3 columns"),
        ({"indices": np.array([0, -1])}, "outside its 3 columns"),
        ({"indptr": np.array([0, 2, 1])}, "do not follow one another"),
        ({"indptr": np.array([0, 1])}, "fields of other lengths"),
        ({"_shape": (1 << 40, 3)}, "fields of other lengths"),
        ({"_shape": (2, 1 << 40)}, "too large to be written out"),
        ({"_shape": (2, -3)}, "fields of other lengths"),
        ({"data": np.array(["a", "b"])}, "lacks one of"),
        ({"data": None}, "lacks one of"),
    ],
)
def test_sparse_matrices_that_do_not_fit_together_are_refused(changes: dict, reason: str) -> None:
    matrix = csr_matrix(np.array([[1.0, 0, 0], [0, 2, 0]]))
    np.testing.assert_array_equal(load_plain(io.BytesIO(pickle.dumps(matrix)), "x").dense(), matrix.toarray())
    matrix.__dict__.update(changes)
    with pytest.raises(InputError, match=reason):
        load_plain(io.BytesIO(pickle.dumps(matrix)), "x").dense()


def test_a_value_given_twice_and_the_axes_of_an_array_come_back() -> None:
    numbers = np.arange(24).reshape(2, 3, 4)
    long = "x" * 5000
    original = {"a": numbers, "b": numbers, "turned": numbers.transpose(2, 0, 1), "long": [long, "after"], "after": "y"}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        loaded = load_plain(io.BytesIO(pickle.dumps(original, protocol)), "x")
        assert loaded["a"] is loaded["b"]
        np.testing.assert_array_equal(loaded["a"], numbers)
        np.testing.assert_array_equal(loaded["turned"], original["turned"])
        assert (loaded["long"], loaded["after"]) == ([long, "after"], "y")


@needs("planetoid")
def test_the_planetoid_files_are_read_as_python_reads_them() -> None:
    for path in sorted(set((FOLDER / "planetoid").glob("ind.*")) - set((FOLDER / "planetoid").glob("*.index"))):
        ours = load_pickle(path)
        with warnings.catch_warnings(), path.open("rb") as file:
            warnings.simplefilter("ignore")
            theirs = pickle.load(file, encoding="latin1")
        if isinstance(ours, dict):
            assert ours == theirs
        elif isinstance(ours, np.ndarray):
            np.testing.assert_array_equal(ours, theirs)
        else:
            np.testing.assert_array_equal(ours.dense(), theirs.toarray())


def test_thousands_of_damaged_pickles_are_refused_or_harmless() -> None:
    random = np.random.default_rng(0)
    wholes = [pickle.dumps(content, protocol) for protocol in range(6) for content in (PLAIN, csr_matrix(np.eye(3)))]
    wholes += ATTACKS.values()
    wholes = [whole for whole in wholes if len(whole) < 10_000]
    refused = 0
    for _ in range(4000):
        content = _damaged(wholes[random.integers(len(wholes))], wholes[random.integers(len(wholes))], random)
        try:
            load_plain(io.BytesIO(content), "data")
        except InputError:
            refused += 1
    assert refused > 2000


def _damaged(whole: bytes, other: bytes, random: np.random.Generator) -> bytes:
    """Return a pickle with some bytes flipped, cut out, given twice, or put in from another."""
    content = bytearray(whole)
    for _ in range(random.integers(1, 4)):
        place, size = random.integers(len(content) + 1), random.integers(1, 12)
        match random.integers(5):
            case 0:
                content[place : place + 1] = random.bytes(1)
            case 1:
                del content[place : place + size]
            case 2:
                content[place:place] = content[place : place + size]
            case 3:
                start = random.integers(len(other))
                content[place:place] = other[start : start + size]
            case 4:
                content[place : place + 1] = random.choice(np.array([b"b", b"R", b"h", b"(", b"t", b"\x81", b"."]))
    return bytes(content)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_tensors_come_back_as_arrays(protocol: int) -> None:
    table = torch.arange(24.0).reshape(4, 6)
    content = {"part": table[1:, ::2].T, "whole": torch.tensor([3, 1]), "none": torch.zeros(0, 300), "flags": table > 5}
    loaded = load_plain(io.BytesIO(pickle.dumps(content, protocol=protocol)), "x")
    for name, tensor in content.items():
        assert type(loaded[name]) is np.ndarray
        assert loaded[name].dtype == tensor.numpy().dtype
        np.testing.assert_array_equal(loaded[name], tensor.numpy())


CLAIMS = [
    (0, (5,), (1,)),
    (1, (4,), (1,)),
    (0, (2, 2), (3, 1)),
    (0, (8,), (0,)),
    (-1, (2,), (1,)),
    (0, (2,), (-1,)),
    (0, (2,), (1, 1)),
    (0, (-2,), (1,)),
]


def saved(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def test_tensors_that_claim_more_than_they_hold_or_hold_other_things_are_refused(tmp_path: Path) -> None:
    rebuild, load = torch._utils._rebuild_tensor_v2, torch.storage._load_from_bytes
    values = np.arange(4.0)
    for attack in (
        *(Calls(rebuild, values, first, shape, steps, False, {}) for first, shape, steps in CLAIMS),
        Calls(load, saved(Calls(os.mkdir, str(tmp_path / "ran")))),
        Calls(load, saved(torch.zeros(2))),
        Calls(load, saved({"a": 1})),
        Calls(load, b"x" * 40),
        Calls(load, "text"),
    ):
        with pytest.raises(InputError, match="x: not a readable pickle"):
            load_plain(io.BytesIO(pickle.dumps(attack)), "x")
    assert not (tmp_path / "ran").exists()
