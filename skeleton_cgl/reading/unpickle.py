"""Reading pickles of public data sets without trusting them: arrays and plain containers only.

Some data sets circulate as pickles: small programs that can name any function for the reader to call. The machine here
runs the instructions that data need, makes what they name by `pickled`, and refuses the rest.
"""

import codecs
import pickle
import pickletools
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import IO, Any

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.pickled import Named, SparseRows, Unfinished, check_key, named

_PIECE = 1 << 20
_LONG_TEXT = 4096
_MOST_DIGITS = 300
_MOST_CONTAINERS, _MOST_VALUES, _DEEPEST = 10_000_000, 50_000_000, 50
"""Public data sets have half a million containers, a few million values, five levels."""

_BROKEN = (UnpicklingError, EOFError, ValueError, TypeError, LookupError, OverflowError, MemoryError, struct.error)
_PLAIN = (str, bytes, bytearray, int, float, complex, type(None), np.generic)


def load_pickle(path: str | Path) -> Any:
    """Return the content of the pickle at `path`; refuse anything but numbers, text, arrays and plain containers.

    Mappings of any kind come as dicts, arrays may be read-only, sparse matrices come as `SparseRows`.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            return load_plain(file, str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def load_plain(file: IO[bytes], where: str) -> Any:
    """Return the next pickled object of `file`, restricted as in `load_pickle`; errors begin with `where`."""
    try:
        value = _Machine(file).run()
        _refuse_bombs(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    except _BROKEN as error:
        raise InputError(f"{where}: not a readable pickle: {error!s:.200}") from error
    return value


@dataclass
class _Extent:
    """How much a container comes to when it is written out: so many values, so many levels; as far as it was read."""

    inside: Iterator[Any]
    values: int = 1
    levels: int = 1
    whole: bool = False

    def take(self, inner: "_Extent") -> None:
        self.values += inner.values
        self.levels = max(self.levels, 1 + inner.levels)


def _refuse_bombs(value: Any) -> None:
    """Refuse what is nested too deeply or in itself, too much when written out, or was named and never described.

    A few bytes can refer to a list again and again that itself does so: small in memory, without end for who reads it.
    """
    extents: dict[int, _Extent] = {}
    reading = [_Extent(iter((value,)))]
    while reading:
        extent = reading[-1]
        for each in extent.inside:
            inside = _inside(each)
            if inside is None:
                extent.values += 1
            elif id(each) in extents and extents[id(each)].whole:
                extent.take(extents[id(each)])
            elif id(each) in extents:
                raise InputError("refused: a container in the pickle contains itself")
            else:
                reading.append(extents.setdefault(id(each), _Extent(inside)))
                break
        else:
            reading.pop().whole = True
            if reading:
                reading[-1].take(extent)
        if extent.values > _MOST_VALUES or max(extent.levels, len(reading)) > _DEEPEST:
            raise InputError("refused: the content of the pickle is nested too deeply or too often")


def _inside(value: Any) -> Iterator[Any] | None:
    """Return what a container holds, None for what holds nothing; refuse what is neither."""
    if isinstance(value, _PLAIN) or (isinstance(value, np.ndarray) and not value.dtype.hasobject):
        return None
    if isinstance(value, list | tuple | set | frozenset):
        return iter(value)
    if isinstance(value, dict):
        return iter(value.values())
    if isinstance(value, np.ndarray):
        return iter(value.flat)
    if isinstance(value, SparseRows):
        return None
    raise UnpicklingError("a name stands where a value is expected")


class _Machine:
    """Runs a pickle: a stack of values, marks on it, and a memo of values referred to again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._memoized = 0
        self._containers = 0

    def run(self) -> Any:
        """Return the value that is left at the end; refuse an instruction that is not known."""
        while True:
            code = self._read(1)
            if code == pickle.STOP:
                return self._pop()
            instruction = _INSTRUCTIONS.get(code)
            if instruction is None:
                raise InputError(f"refused: the pickle uses the instruction {_name_of(code)}")
            instruction(self)

    def _read(self, size: int) -> bytes:
        """Return the next bytes; of a size that is claimed, memory is taken piece by piece as they come."""
        content = self._file.read(min(size, _PIECE))
        if len(content) < size:
            pieces = [content]
            while content and (size := size - len(content)):
                content = self._file.read(min(size, _PIECE))
                pieces.append(content)
            if size:
                raise EOFError("it ends too early")
            return b"".join(pieces)
        return content

    def read_number(self, form: str) -> Any:
        """Return a number in binary form, as `struct` describes it."""
        return struct.unpack(form, self._read(struct.calcsize(form)))[0]

    def read_sized(self, form: str) -> bytes:
        """Return bytes whose number comes before them."""
        size = self.read_number(form)
        if size < 0:
            raise UnpicklingError("a size is negative")
        return self._read(size)

    def read_line(self) -> bytes:
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise EOFError("it ends too early")
        return line[:-1]

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def push_container(self, value: Any) -> None:
        self._containers += 1
        if self._containers > _MOST_CONTAINERS:
            raise InputError(f"refused: the pickle has more than {_MOST_CONTAINERS} containers")
        self._stack.append(value)

    def _pop(self) -> Any:
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise UnpicklingError("a value is missing")
        return self._stack.pop()

    def _top(self, *kinds: type) -> Any:
        """Return the last value, which stays; refuse one of another kind."""
        value = self._pop()
        if not isinstance(value, kinds):
            raise UnpicklingError(f"expected {kinds[0].__name__}, found {type(value).__name__}")
        self._stack.append(value)
        return value

    def since_mark(self) -> list[Any]:
        if not self._marks:
            raise UnpicklingError("a mark is missing")
        start = self._marks.pop()
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def drop(self) -> None:
        """Take off a value, or a mark that stands above the last."""
        if self._marks and self._marks[-1] == len(self._stack):
            self._marks.pop()
        else:
            self._pop()

    def drop_to_mark(self) -> None:
        self.since_mark()

    def mark(self) -> None:
        self._marks.append(len(self._stack))

    def skip(self, size: int) -> None:
        self._read(size)

    def tuple_of(self, size: int) -> None:
        values = [self._pop() for _ in range(size)]
        self.push_container(tuple(reversed(values)))

    def append(self) -> None:
        value = self._pop()
        self._top(list).append(value)

    def extend(self) -> None:
        values = self.since_mark()
        self._top(list).extend(values)

    def set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._top(dict)[check_key(key)] = value

    def set_items(self) -> None:
        values = self.since_mark()
        self._top(dict).update(_pairs(values))

    def add(self) -> None:
        values = self.since_mark()
        self._top(set).update(map(check_key, values))

    def call(self) -> None:
        """Make what a name stands for of its arguments; making anew, without initialising, is the same here."""
        arguments, name = self._pop(), self._pop()
        if not isinstance(name, Named) or not isinstance(arguments, tuple):
            raise UnpicklingError("something is called that is no name")
        self.push_container(name.made_of(arguments))

    def build(self) -> None:
        state = self._pop()
        unfinished = self._pop()
        if not isinstance(unfinished, Unfinished):
            raise InputError(f"refused: the pickle changes what is inside a {type(unfinished).__name__}")
        value = unfinished.finished(state)
        for place in unfinished.places:
            self._memo[place] = value
        self.push(value)

    def look_up(self) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise UnpicklingError("a name is not text")
        self.push(named(module, name))

    def put(self, place: int) -> None:
        value = self._pop()
        self.push(value)
        if isinstance(value, Unfinished):
            value.places.append(place)
        # Old protocols write bytes as text, to which a pickler never refers again; kept, it would double the memory.
        content = value[0] if isinstance(value, tuple) and value else value
        if not isinstance(content, str) or len(content) < _LONG_TEXT:
            self._memo[place] = value

    def memoize(self) -> None:
        self.put(self._memoized)
        self._memoized += 1

    def get(self, place: int) -> None:
        if place not in self._memo:
            raise UnpicklingError("it refers to a value that is not there")
        self.push(self._memo[place])


def _pairs(values: list[Any]) -> dict[Any, Any]:
    if len(values) % 2:
        raise UnpicklingError("a key has no value")
    return {check_key(key): value for key, value in zip(values[::2], values[1::2], strict=True)}


def _name_of(code: bytes) -> str:
    names = {instruction.code: instruction.name for instruction in pickletools.opcodes}
    return names.get(code.decode("latin1"), repr(code))


def _whole(text: bytes) -> int:
    """Return the number of a line, as protocol 0 writes it; its truth values have two digits."""
    if text in (b"00", b"01"):
        return text == b"01"
    if len(text) > _MOST_DIGITS:
        raise UnpicklingError("a number has too many digits")
    return int(text.removesuffix(b"L"))


def _long(content: bytes) -> int:
    if len(content) > _MOST_DIGITS:
        raise UnpicklingError("a number has too many digits")
    return int.from_bytes(content, "little", signed=True)


def _quoted(line: bytes) -> str:
    """Return the text of Python 2 that stands in quotation marks."""
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise UnpicklingError("a text is not in quotation marks")
    return codecs.escape_decode(line[1:-1])[0].decode("latin1")


def _utf8(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")


def _latin1(content: bytes) -> str:
    return content.decode("latin1")


def _named_in_lines(machine: _Machine) -> None:
    module, name = machine.read_line(), machine.read_line()
    machine.push(named(_utf8(module), _utf8(name)))


Instruction = Callable[[_Machine], None]


def _number(form: str, then: Callable[[_Machine, int], None] = _Machine.push) -> Instruction:
    """Return the instruction that reads a number in binary form, by default to push it."""
    return lambda machine: then(machine, machine.read_number(form))


def _sized(form: str, made_of: Callable[[bytes], Any] = bytes) -> Instruction:
    """Return the instruction that pushes what is made of bytes, whose number comes before them."""
    return lambda machine: machine.push(made_of(machine.read_sized(form)))


def _line(made_of: Callable[[bytes], Any], then: Callable[[_Machine, Any], None] = _Machine.push) -> Instruction:
    """Return the instruction that reads a line, by default to push what is made of it."""
    return lambda machine: then(machine, made_of(machine.read_line()))


def _since_mark(made_of: Callable[[list[Any]], Any]) -> Instruction:
    return lambda machine: machine.push_container(made_of(machine.since_mark()))


_INSTRUCTIONS: dict[bytes, Instruction] = {
    pickle.PROTO: lambda machine: machine.skip(1),
    pickle.FRAME: lambda machine: machine.skip(8),
    pickle.NONE: lambda machine: machine.push(None),
    pickle.NEWTRUE: lambda machine: machine.push(True),
    pickle.NEWFALSE: lambda machine: machine.push(False),
    pickle.INT: _line(_whole),
    pickle.LONG: _line(_whole),
    pickle.BININT: _number("<i"),
    pickle.BININT1: _number("<B"),
    pickle.BININT2: _number("<H"),
    pickle.LONG1: _sized("<B", _long),
    pickle.LONG4: _sized("<i", _long),
    pickle.FLOAT: _line(float),
    pickle.BINFLOAT: _number(">d"),
    pickle.STRING: _line(_quoted),
    pickle.BINSTRING: _sized("<i", _latin1),
    pickle.SHORT_BINSTRING: _sized("<B", _latin1),
    pickle.UNICODE: _line(lambda line: str(line, "raw-unicode-escape")),
    pickle.SHORT_BINUNICODE: _sized("<B", _utf8),
    pickle.BINUNICODE: _sized("<I", _utf8),
    pickle.BINUNICODE8: _sized("<Q", _utf8),
    pickle.SHORT_BINBYTES: _sized("<B"),
    pickle.BINBYTES: _sized("<I"),
    pickle.BINBYTES8: _sized("<Q"),
    pickle.BYTEARRAY8: _sized("<Q", bytearray),
    pickle.EMPTY_TUPLE: lambda machine: machine.push(()),
    pickle.TUPLE: _since_mark(tuple),
    pickle.TUPLE1: lambda machine: machine.tuple_of(1),
    pickle.TUPLE2: lambda machine: machine.tuple_of(2),
    pickle.TUPLE3: lambda machine: machine.tuple_of(3),
    pickle.EMPTY_LIST: lambda machine: machine.push_container([]),
    pickle.LIST: _since_mark(list),
    pickle.APPEND: _Machine.append,
    pickle.APPENDS: _Machine.extend,
    pickle.EMPTY_DICT: lambda machine: machine.push_container({}),
    pickle.DICT: _since_mark(_pairs),
    pickle.SETITEM: _Machine.set_item,
    pickle.SETITEMS: _Machine.set_items,
    pickle.EMPTY_SET: lambda machine: machine.push_container(set()),
    pickle.ADDITEMS: _Machine.add,
    pickle.FROZENSET: _since_mark(lambda values: frozenset(map(check_key, values))),
    pickle.MARK: _Machine.mark,
    pickle.POP: _Machine.drop,
    pickle.POP_MARK: _Machine.drop_to_mark,
    pickle.GLOBAL: _named_in_lines,
    pickle.STACK_GLOBAL: _Machine.look_up,
    pickle.REDUCE: _Machine.call,
    pickle.NEWOBJ: _Machine.call,
    pickle.BUILD: _Machine.build,
    pickle.PUT: _line(_whole, _Machine.put),
    pickle.BINPUT: _number("<B", _Machine.put),
    pickle.LONG_BINPUT: _number("<I", _Machine.put),
    pickle.MEMOIZE: _Machine.memoize,
    pickle.GET: _line(_whole, _Machine.get),
    pickle.BINGET: _number("<B", _Machine.get),
    pickle.LONG_BINGET: _number("<I", _Machine.get),
}
