"""Reading pickles of public data sets without trusting them: arrays and plain containers only.

Some data sets circulate as pickles, a format that can name any function for the reader to call. The unpickler here
knows the few names that arrays need and refuses every other one.
"""

import codecs
import pickle
import struct
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from skeleton_cgl.errors import InputError

_LONG_TEXT = 4096
_BROKEN = (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, struct.error)


def load_pickle(path: str | Path) -> Any:
    """Return the content of the pickle at `path`; refuse anything but numbers, text, arrays and plain containers."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            return load_plain(file, str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def load_plain(file: IO[bytes], where: str) -> Any:
    """Return the next pickled object of `file`, restricted as in `load_pickle`; errors begin with `where`."""
    try:
        return _PlainUnpickler(file).load()
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    except _BROKEN as error:
        raise InputError(f"{where}: not a readable pickle: {error}") from error


def _encode(text: str, encoding: str) -> bytes:
    """`codecs.encode` for the one encoding with which old pickles write bytes."""
    if encoding != "latin1":
        raise InputError(f"the pickle asks for the encoding {encoding!r}, expected 'latin1'")
    return codecs.encode(text, encoding)


def _numpy_names() -> dict[tuple[str, str], Callable[..., Any]]:
    """Return what a pickled array refers to, under the module names of NumPy 1 and 2."""
    # The public way to the functions that rebuild arrays is to ask an array how it is pickled.
    reconstruct: Any = np.zeros(1).__reduce__()[0]
    scalar: Any = np.float64(0).__reduce__()[0]
    from_buffer: Any = np.zeros(1).__reduce_ex__(5)[0]
    names: dict[tuple[str, str], Callable[..., Any]] = {("numpy", "ndarray"): np.ndarray, ("numpy", "dtype"): np.dtype}
    for package in ("numpy.core", "numpy._core"):
        names[f"{package}.multiarray", "_reconstruct"] = reconstruct
        names[f"{package}.multiarray", "scalar"] = scalar
        names[f"{package}.numeric", "_frombuffer"] = from_buffer
    return names


class SparseRows:
    """What a pickled SciPy matrix of compressed sparse rows says of itself: data, indices, indptr and shape."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    _shape: tuple[int, int]

    def dense(self) -> np.ndarray:
        """Return the matrix as an ordinary array."""
        dense = np.zeros(self._shape, dtype=self.data.dtype)
        rows = np.repeat(np.arange(self._shape[0]), np.diff(self.indptr))
        dense[rows, self.indices] = self.data
        return dense


_PLAIN = (set, frozenset, complex, bytearray, list, dict, tuple)
_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    **_numpy_names(),
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "defaultdict"): defaultdict,
    ("_codecs", "encode"): _encode,
    ("scipy.sparse.csr", "csr_matrix"): SparseRows,
    ("scipy.sparse._csr", "csr_matrix"): SparseRows,
    **{(module, kind.__name__): kind for module in ("builtins", "__builtin__") for kind in _PLAIN},
}


class _Memo(dict[int, Any]):
    """The memo of an unpickler, which would keep the bytes of every array as text until the end, without that text.

    Old protocols write bytes as text, and a pickler never refers to such a text again.
    """

    def __setitem__(self, key: int, value: Any) -> None:
        content = value[0] if isinstance(value, tuple) and value else value
        if not isinstance(content, str) or len(content) < _LONG_TEXT:
            super().__setitem__(key, value)


class _PlainUnpickler(pickle._Unpickler):
    """The unpickler in Python, because that in C has no way to keep its memo small."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, encoding="latin1")
        self.memo = _Memo()

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise InputError(
                f"refused: the pickle asks for {module}.{name}; only arrays and plain containers are read"
            ) from None
