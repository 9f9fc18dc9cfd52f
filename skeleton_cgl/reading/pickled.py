"""What the pickles of public data sets name, built from its bytes by hand: arrays, numbers, sparse rows, containers.

Nothing a pickle says reaches the constructors of NumPy unchecked: types are plain ones, sizes those of the bytes. What
is not as picklers write it is an `UnpicklingError`; what is not to be had here at all, an `InputError`. Tensors of
PyTorch, which it pickles as files of its own, become arrays.
"""

import io
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from pickle import UnpicklingError
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError

_PLAIN_TYPE = re.compile(r"b1|[iu][1248]|f[248]|f16|c(?:8|16)|[US][1-9]\d{0,5}|O8?")
_MOST_DIMENSIONS = 32
_MOST_DENSE_BYTES = 1 << 32
"""Public citation graphs of this form have up to 40 MB."""

_KEYS = (str, bytes, int, float, complex, type(None))


@dataclass
class Unfinished(ABC):
    """Something that a pickle names first and describes afterwards; `places` in the memo refer to it meanwhile."""

    places: list[int] = field(default_factory=list)

    @abstractmethod
    def finished(self, state: Any) -> Any:
        """Return what it is, now that its state is known; refuse a state that is not as expected."""


@dataclass
class UnfinishedArray(Unfinished):
    def finished(self, state: Any) -> np.ndarray:
        match state:
            case (int(), tuple() as shape, np.dtype() as kind, int() as fortran_order, content):
                return _array(kind, shape, "F" if fortran_order else "C", content)
        raise UnpicklingError("an array is not described by shape, type, order and content")


@dataclass
class UnfinishedType(Unfinished):
    name: str = ""

    def finished(self, state: Any) -> np.dtype:
        # What may follow the byte order describes fields, which can hide pointers, and sizes other than the name's.
        match state:
            case (3 | 4, "<" | ">" | "|" | "=" as order, None, None, None, int(), int(), int()):
                return np.dtype(self.name).newbyteorder(order)
        raise UnpicklingError(f"the type {self.name!r} of an array is not a plain one")


@dataclass
class SparseRows(Unfinished):
    """What a pickled SciPy matrix of compressed sparse rows says of itself: data, indices, indptr and shape."""

    data: np.ndarray = field(default_factory=lambda: np.zeros(0))
    indices: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    indptr: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.int32))
    shape: tuple[int, int] = (0, 0)

    def finished(self, state: Any) -> "SparseRows":
        """Take over the fields; refuse those that do not fit together."""
        match state:
            case {
                "data": np.ndarray(ndim=1) as data,
                "indices": np.ndarray(ndim=1) as indices,
                "indptr": np.ndarray(ndim=1) as indptr,
                "_shape": (int() as rows, int() as columns),
            } if data.dtype.kind in "biuf" and indices.dtype.kind in "iu" and indptr.dtype.kind in "iu":
                pass
            case _:
                raise UnpicklingError("a sparse matrix lacks one of data, indices, indptr and _shape")
        if min(rows, columns) < 0 or len(indptr) != rows + 1 or len(indices) != len(data):
            raise UnpicklingError(f"a sparse matrix of {rows} × {columns} has fields of other lengths")
        if indptr[0] != 0 or indptr[-1] != len(data) or (indptr[1:] < indptr[:-1]).any():
            raise UnpicklingError("a sparse matrix has rows that do not follow one another")
        if len(indices) and (indices.min() < 0 or indices.max() >= columns):
            raise UnpicklingError(f"a sparse matrix has entries outside its {columns} columns")
        self.data, self.indices, self.indptr, self.shape = data, indices, indptr, (rows, columns)
        return self

    def sparse(self) -> csr_array:
        """Return the matrix as SciPy's."""
        return csr_array((self.data, self.indices, self.indptr), shape=self.shape)

    def dense(self) -> np.ndarray:
        """Return the matrix as an ordinary array; refuse one that would not fit into memory."""
        if prod(self.shape) * self.data.dtype.itemsize > _MOST_DENSE_BYTES:
            raise InputError(f"a matrix of {self.shape[0]} × {self.shape[1]} is too large to be written out")
        dense = np.zeros(self.shape, dtype=self.data.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        dense[rows, self.indices] = self.data
        return dense


def check_key(key: Any) -> Any:
    """Return a key of a dict or an element of a set; refuse others than plain values and tuples of them.

    The hash of a tuple of tuples takes as long as it is deep when written out, which may be for ever.
    """
    if isinstance(key, _KEYS) or (isinstance(key, tuple) and all(isinstance(each, _KEYS) for each in key)):
        return key
    raise UnpicklingError(f"expected a plain value as a key, found {type(key).__name__}")


def _array(kind: np.dtype, shape: tuple[Any, ...], order: str, content: Any) -> np.ndarray:
    """Return an array of just the bytes, or just the objects, that are there; refuse a shape that needs others."""
    if len(shape) > _MOST_DIMENSIONS or not all(type(size) is int and size >= 0 for size in shape):
        raise UnpicklingError("the shape of an array is not a tuple of sizes")
    if kind.hasobject:
        if not isinstance(content, list) or len(content) != prod(shape):
            raise UnpicklingError(f"the shape {shape} of an array does not fit its objects")
        objects = np.empty(len(content), dtype=object)
        for index, each in enumerate(content):
            objects[index] = each
        return objects.reshape(shape, order="F" if order == "F" else "C")
    raw = _bytes(content)
    if prod(shape) * kind.itemsize != len(raw):
        raise UnpicklingError(f"the shape {shape} of an array does not fit its {len(raw)} bytes")
    return np.frombuffer(raw, dtype=kind).reshape(shape, order="F" if order == "F" else "C")


def _bytes(content: Any) -> bytes:
    """Return the bytes of an array, which Python 2 wrote as text."""
    if isinstance(content, str):
        return content.encode("latin1")
    if not isinstance(content, bytes | bytearray):
        raise UnpicklingError(f"expected the bytes of an array, found {type(content).__name__}")
    return bytes(content)


def _new_array(arguments: tuple[Any, ...]) -> UnfinishedArray:
    match arguments:
        case (named, (0,), "b" | b"b") if named is _only_named:
            return UnfinishedArray()
    raise UnpicklingError("an array does not begin as an empty one")


def _new_type(arguments: tuple[Any, ...]) -> UnfinishedType:
    match arguments:
        case (str() as name, int(), int()) if _PLAIN_TYPE.fullmatch(name):
            return UnfinishedType(name=name)
    asked = arguments[0] if arguments and isinstance(arguments[0], str) else "that is described otherwise"
    raise InputError(f"refused: the pickle asks for an array of a type {asked[:40]!r}, expected a plain one")


def _scalar(arguments: tuple[Any, ...]) -> Any:
    match arguments:
        case (np.dtype() as kind, content) if not kind.hasobject:
            return _array(kind, (1,), "C", content)[0]
    raise UnpicklingError("a number is not described by type and content")


def _array_in_bytes(arguments: tuple[Any, ...]) -> np.ndarray:
    """Return what protocol 5 writes; the order "K" comes with the sequence in which the axes are to be taken."""
    match arguments:
        case (content, np.dtype() as kind, tuple() as shape, "C" | "F" as order) if not kind.hasobject:
            return _array(kind, shape, order, content)
        case (content, np.dtype() as kind, tuple() as shape, "K", tuple() as axes) if not kind.hasobject:
            array = _array(kind, shape, "C", content)
            if len(axes) == array.ndim and {*axes} == {*range(array.ndim)}:
                return array.transpose(axes)
    raise UnpicklingError("an array is not described by content, type, shape and order")


def _stored_values(arguments: tuple[Any, ...]) -> np.ndarray:
    """Return what a tensor is stored as, which PyTorch pickles as a whole file; nothing but values is read from it."""
    import torch

    match arguments:
        case (bytes() as content,):
            with warnings.catch_warnings():
                # That storages of one type are deprecated is nothing a user need know.
                warnings.simplefilter("ignore", UserWarning)
                try:
                    stored = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
                except (RuntimeError, AttributeError, OSError) as error:
                    raise UnpicklingError(f"a tensor cannot be read: {' '.join(str(error).split()):.100}") from error
                if (
                    isinstance(stored, torch.storage.TypedStorage)
                    and not stored.dtype.is_complex
                    and stored.dtype != torch.bfloat16
                ):
                    return torch.empty(0, dtype=stored.dtype).set_(stored.untyped()).numpy()
    raise UnpicklingError("a tensor is not stored as plain values")


def _tensor(arguments: tuple[Any, ...]) -> np.ndarray:
    """Return a tensor as an array: the values from a first one on, so many apart along each axis."""
    match arguments:
        case (np.ndarray(ndim=1) as values, int() as first, tuple() as shape, tuple() as steps, *_):
            numbers = (first, *shape, *steps)
            if len(shape) != len(steps) or not all(type(number) is int and number >= 0 for number in numbers):
                raise UnpicklingError("the shape of a tensor is not a tuple of sizes")
            if 0 in shape:
                return np.zeros(shape, values.dtype)
            last = first + sum((size - 1) * step for size, step in zip(shape, steps, strict=True))
            if last < len(values) and prod(shape) <= len(values):
                apart = [step * values.itemsize for step in steps]
                return np.lib.stride_tricks.as_strided(values[first:], shape, apart).copy()
    raise UnpicklingError("a tensor is not described by its values, shape and steps")


def _encoded(arguments: tuple[Any, ...]) -> bytes:
    match arguments:
        case (str() as text, "latin1"):
            return text.encode("latin1")
    raise UnpicklingError("the pickle asks for another encoding than 'latin1'")


def _mapping(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """Return an OrderedDict or defaultdict as a dict; entries that are there already are those Python 2 wrote."""
    match arguments:
        case () | (Named(),):
            return {}
        case (list() as pairs,) if all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            return {check_key(key): value for key, value in pairs}
    raise UnpicklingError("a mapping does not begin as an empty one")


def _elements(arguments: tuple[Any, ...]) -> list[Any]:
    match arguments:
        case ():
            return []
        case (list() | tuple() as elements,):
            return [check_key(each) for each in elements]
    raise UnpicklingError("a set is not made of a list")


def _complex(arguments: tuple[Any, ...]) -> complex:
    match arguments:
        case (float() as real, float() as imaginary):
            return complex(real, imaginary)
    raise UnpicklingError("a complex number is not made of two numbers")


def _bytearray(arguments: tuple[Any, ...]) -> bytearray:
    match arguments:
        case ():
            return bytearray()
        case (bytes() as content,):
            return bytearray(content)
        case (str() as text, "latin-1"):
            return bytearray(text.encode("latin1"))
    raise UnpicklingError("a bytearray is not made of bytes")


def _nothing(_arguments: tuple[Any, ...]) -> Any:
    raise UnpicklingError("a name is called that is only to be referred to")


@dataclass(frozen=True)
class Named:
    """A name that a pickle may refer to, and what calling it makes of its arguments."""

    made_of: Callable[[tuple[Any, ...]], Any]


_only_named = Named(_nothing)


def _known_names() -> dict[tuple[str, str], Named]:
    """Return what is known under the names that Python 2 and 3, NumPy 1 and 2 and old and new SciPy write."""
    known = {
        ("numpy", "ndarray"): _only_named,
        ("numpy", "dtype"): Named(_new_type),
        ("collections", "OrderedDict"): Named(_mapping),
        ("collections", "defaultdict"): Named(_mapping),
        ("_codecs", "encode"): Named(_encoded),
        ("torch._utils", "_rebuild_tensor_v2"): Named(_tensor),
        ("torch.storage", "_load_from_bytes"): Named(_stored_values),
    }
    for package in ("numpy.core", "numpy._core"):
        known[f"{package}.multiarray", "_reconstruct"] = Named(_new_array)
        known[f"{package}.multiarray", "scalar"] = Named(_scalar)
        known[f"{package}.numeric", "_frombuffer"] = Named(_array_in_bytes)
    for module in ("scipy.sparse.csr", "scipy.sparse._csr"):
        known[module, "csr_matrix"] = Named(lambda arguments: SparseRows() if arguments == () else _nothing(arguments))
    for module in ("builtins", "__builtin__"):
        known[module, "set"] = Named(lambda arguments: set(_elements(arguments)))
        known[module, "frozenset"] = Named(lambda arguments: frozenset(_elements(arguments)))
        known[module, "complex"] = Named(_complex)
        known[module, "bytearray"] = Named(_bytearray)
        known.update({(module, kind): _only_named for kind in ("list", "dict", "tuple")})
    return known


_KNOWN = _known_names()


def named(module: str, name: str) -> Named:
    """Return what is known under a name; refuse every other one."""
    try:
        return _KNOWN[module, name]
    except KeyError:
        asked = f"{module[:80]}.{name[:80]}"
        raise InputError(
            f"refused: the pickle asks for {asked if asked.isprintable() else repr(asked)}; "
            "only arrays and plain containers are read"
        ) from None
