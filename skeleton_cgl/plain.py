"""Reading YAML text into plain values, without trusting it: numbers, text, lists and maps with text keys, nothing else.

What differs from YAML 1.1 as PyYAML reads it: `1e6` is a number, `2024-01-31` and `1:30` are text, `010` is ten, and
keys are text. Refused are a key given twice, tags, `<<`, control characters, and whole numbers of more than 64 bits.
Length, depth and the number of values are bounded; the values of an alias count wherever it stands.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from skeleton_cgl.errors import InputError

MOST_LETTERS = 1_000_000
MOST_VALUES = 300_000
DEEPEST = 30
_LARGEST = 2**63 - 1
_LONGEST_NUMBER = 100
_LONGEST_SHOWN = 60

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **{form(word): True for word in ("true", "yes", "on") for form in (str, str.title, str.upper)},
    **{form(word): False for word in ("false", "no", "off") for form in (str, str.title, str.upper)},
}
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")
_OTHER_BASE = re.compile(r"[-+]?0(x[0-9a-fA-F]+|o[0-7]+|b[01]+)")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NOT_A_NUMBER = re.compile(r"\.(nan|NaN|NAN)")
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def is_fit(text: str) -> bool:
    """Return whether a text can be printed, kept in files and name one: whether no control character is in it."""
    return _UNFIT.search(text) is None


def whole_number(text: str) -> int | None:
    """Return the number that a text of at most 18 decimal digits says; None for any other text."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def shown(value: object) -> str:
    """Return a value as messages show it, cut where it is long."""
    words = repr(value[:_LONGEST_SHOWN] if isinstance(value, str) else value)
    return words if len(words) <= _LONGEST_SHOWN else f"{words[:_LONGEST_SHOWN]}…"


def value_text(value: Any) -> str:
    """Return a plain value in few letters; of a choice that has a name, such as a transition, that and its fields."""
    if isinstance(value, dict) and "name" in value:
        fields = [f"{field}={value_text(own)}" for field, own in value.items() if field != "name"]
        return " ".join([str(value["name"]), *fields])
    return f"{value:g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def is_plain(value: object) -> bool:
    """Return whether a value is made of numbers, text, lists and maps alone, so that JSON can tell it."""
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def copied(value: Any) -> Any:
    """Return a copy of plain values that shares no list or map with them."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value


def read_plain(text: str) -> Any:
    """Return the value of a YAML text; refuse what is none, with its line and field, but without the name of a file."""
    if len(text) > MOST_LETTERS:
        raise InputError(f"longer than {MOST_LETTERS:,} letters")
    try:
        return _Reader().read(yaml.parse(text, yaml.SafeLoader))
    except InputError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f"line {mark.line + 1}: "
        raise InputError(f"{line}not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The parser lets out what int and chr say of numbers in escapes and directives.
        raise InputError(f"not valid YAML: {' '.join(str(error).split())}") from error


@dataclass
class _Open:
    """A list or map that is being read; key: of the value that comes next, None where a key has to come."""

    content: Any
    anchor: str | None
    key: str | None = None

    @property
    def awaits_key(self) -> bool:
        return isinstance(self.content, dict) and self.key is None

    @property
    def place(self) -> str:
        return (self.key or "") if isinstance(self.content, dict) else str(len(self.content))

    def take(self, value: Any) -> None:
        if isinstance(self.content, dict):
            self.content[self.key] = value
            self.key = None
        else:
            self.content.append(value)


class _Reader:
    """Builds values from the events of a parser, so that depth and number are checked before anything is built."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._anchored: dict[str, Any] = {}
        self._count = 0
        self._line = 0
        self._documents = 0
        self._result: Any = None

    def read(self, events: Iterator[yaml.Event]) -> Any:
        for event in events:
            self._line = self._line if event.start_mark is None else event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                self._documents += 1
                if self._documents > 1:
                    raise self._error("a second document begins, expected one")
            elif isinstance(event, yaml.ScalarEvent):
                self._refuse_tag(event.tag)
                self._take_scalar(event)
            elif isinstance(event, yaml.AliasEvent):
                self._take_alias(str(event.anchor))
            elif isinstance(event, yaml.CollectionStartEvent):
                self._refuse_tag(event.tag)
                self._begin({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor)
            elif isinstance(event, yaml.CollectionEndEvent):
                closed = self._open.pop()
                self._take(closed.content, closed.anchor)
        return self._result

    def _error(self, message: str) -> InputError:
        path = ".".join(place for place in (each.place for each in self._open) if place)
        field = f"field {shown(path)}: " if path else ""
        return InputError(f"line {self._line}: {field}{message}")

    def _refuse_tag(self, tag: str | None) -> None:
        if tag is not None:
            said = tag.replace("tag:yaml.org,2002:", "!!")[:_LONGEST_SHOWN]
            raise self._error(f"tag {said} is not read; write plain values")

    def _begin(self, content: Any, anchor: str | None) -> None:
        if self._open and self._open[-1].awaits_key:
            raise self._error("a key is a list or map, expected text")
        if len(self._open) == DEEPEST:
            raise self._error(f"deeper than {DEEPEST} levels")
        self._spend(1)
        self._open.append(_Open(content, anchor))

    def _take_scalar(self, event: yaml.ScalarEvent) -> None:
        if not is_fit(event.value):
            raise self._error(f"{shown(event.value)} has a control character in it")
        if self._open and self._open[-1].awaits_key:
            self._take_key(event.value)
            return
        self._spend(1)
        plain = event.implicit[0]
        self._take(self._resolved(event.value) if plain else event.value, event.anchor)

    def _take_key(self, key: str) -> None:
        inner = self._open[-1]
        if key == "<<":
            raise self._error("`<<` is not read; write the fields out")
        if key in inner.content:
            raise self._error(f"key {shown(key)} is given twice")
        inner.key = key

    def _take_alias(self, anchor: str) -> None:
        if self._open and self._open[-1].awaits_key:
            raise self._error("a key is an alias, expected text")
        if anchor not in self._anchored:
            raise self._error(f"alias *{anchor[:_LONGEST_SHOWN]} names no value that ends before it")
        value = self._anchored[anchor]
        if len(self._open) + _depth(value) > DEEPEST:
            raise self._error(f"deeper than {DEEPEST} levels")
        self._spend(_size(value))
        self._take(copied(value), None)

    def _take(self, value: Any, anchor: str | None) -> None:
        if anchor is not None:
            self._anchored[anchor] = value
        if self._open:
            self._open[-1].take(value)
        else:
            self._result = value

    def _spend(self, number: int) -> None:
        self._count += number
        if self._count > MOST_VALUES:
            raise self._error(f"more than {MOST_VALUES:,} values, those of aliases included")

    def _resolved(self, text: str) -> Any:
        """Return what a scalar without quotes says."""
        if text in _WORDS:
            return _WORDS[text]
        if _NOT_A_NUMBER.fullmatch(text):
            raise self._error(".nan is no number to reckon with")
        if _INFINITE.fullmatch(text):
            return -math.inf if text[0] == "-" else math.inf
        whole, other = _WHOLE.fullmatch(text), _OTHER_BASE.fullmatch(text)
        if not (whole or other or _FLOAT.fullmatch(text)):
            return text
        digits = text.replace("_", "")
        if len(digits) > _LONGEST_NUMBER:
            raise self._error(f"a number of {len(digits)} digits, expected at most {_LONGEST_NUMBER}")
        if not whole and not other:
            return self._finite(float(digits), text)
        number = int(digits, 10 if whole else 0)
        if abs(number) > _LARGEST:
            raise self._error(f"{shown(number)} is beyond 64 bits; write it as {number:.3g} if it need not be whole")
        return number

    def _finite(self, number: float, text: str) -> float:
        if math.isinf(number):
            raise self._error(f"{text} is beyond the largest number")
        return number


def _size(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_size(each) for each in inner)


def _depth(value: Any) -> int:
    """Return how many lists and maps are inside one another, this one included."""
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max((_depth(each) for each in inner), default=0)
