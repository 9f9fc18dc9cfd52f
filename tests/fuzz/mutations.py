"""Changes to files that damage, carelessness and malice make, drawn from a generator: of bytes, and of plain values."""

import random
from typing import Any

_TOKENS = [
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\n", b": ", b"- ", b"{", b"}", b"[", b"]", b",", b"'", b'"', b"#", b"|", b"%"),
    *(b"!!int ", b"!!binary ", b"!!python/object:os.x ", b"&a ", b"*a", b"<<: ", b"? ", b"---\n", b"...\n", b"\t"),
    *(b"NaN", b".nan", b".inf", b"-Infinity", b"1e999", b"1e6", b"null", b"true", b"-1", b"0x7f", b"2024-13-45"),
    *(b"9" * 5000, b"1" + b"0" * 400, b"[" * 3000, b"{a: " * 3000, b"(", b'"\\ud800"', b'"\\U99999999"', b"\\u0000"),
    *(
        "²".encode(),
        "٣".encode(),
        "é".encode(),
        "\u2028".encode(),
        b"\xef\xbb\xbf",
        b"\x80\x05.",
        b"\x1f\x8b",
        b"PK\3\4",
    ),
]
ODD = [
    *(None, True, False, 0, 1, -1, 2**31, 2**40, 2**63, 10**30, 10**400, 0.5, -0.0, 1e300, float("inf"), float("nan")),
    *("", "x", "²", "a\0b", "a\nb", "\ud800", "9" * 5000, "/", ".", "x.py", "a:b", "~", "1e6", "x" * 3000),
    *([], {}, [[]], [None], {"": 1}, {"a": {"b": []}}, [1, [2, [3]]], list(range(200)), [[[0]]] * 50),
]
"""Values that fields are given by mistake."""


def mutated_bytes(content: bytes, draw: random.Random) -> bytes:
    """Return the content with one to four changes: bits flipped, pieces cut, repeated, moved, or put in."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 4))):
        start = draw.randrange(len(changed) + 1)
        end = min(len(changed), start + draw.choice((1, 1, 4, 30, 300)))
        kind = draw.randrange(6)
        if kind == 0 and start < len(changed):
            changed[start] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del changed[start:end]
        elif kind == 2:
            changed[start:start] = changed[start:end] * draw.choice((1, 2, 20))
        elif kind == 3:
            changed[start:end] = draw.choice(_TOKENS)
        elif kind == 4:
            changed[start:start] = draw.choice(_TOKENS)
        else:
            del changed[start:]
    return bytes(changed)


def mutated_value(value: Any, draw: random.Random) -> Any:
    """Return a copy of plain values with one to three of them changed, dropped, or given another name."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        value = _changed(value, draw)
    return value


def _changed(value: Any, draw: random.Random) -> Any:
    if not isinstance(value, dict | list) or not value or draw.random() < 0.15:
        return draw.choice(ODD)
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    place = draw.choice(list(value)) if isinstance(value, dict) else draw.randrange(len(value))
    kind = draw.random()
    if kind < 0.1:
        del copied[place]
    elif kind < 0.2 and isinstance(copied, dict):
        copied[draw.choice(("", "x", "name", "²", f"{place}s"))] = copied.pop(place)
    elif kind < 0.2:
        copied += copied[:3]
    else:
        copied[place] = _changed(value[place], draw)
    return copied
