import builtins
import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.unpickle import load_pickle, load_plain

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
