"""Reading JSON without trusting it: bounded, and refused in one line where it is none."""

import json
from pathlib import Path
from typing import Any

from skeleton_cgl.errors import InputError

_MOST_BYTES = 1 << 30


def read_json(path: Path) -> Any:
    """Return what a file says in JSON; refuse one that is none, or is larger than any data set is."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path}: more than {_MOST_BYTES:,} bytes")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON: {error!s:.200}") from error
