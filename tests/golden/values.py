"""The committed numbers of all cases: when they may change, and how they are written."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import CASES, Case, Numbers, numbers_of, versions_of

FILE = Path(__file__).parent / "numbers.json"
COMMAND = "python -m tests.golden"
_SMALLEST = 1e-9
"""Below, a number is as good as zero."""


@dataclass(frozen=True)
class Golden:
    """What a case came to: what was asked for, the versions of all that took part, and the numbers."""

    asked: dict[str, Any]
    versions: dict[str, int]
    numbers: Numbers


def committed() -> dict[str, Golden]:
    values = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return {name: Golden(**fields) for name, fields in values.items()}


def now(case: Case, folder: Path) -> Golden:
    asked = json.loads(json.dumps(case.asked))
    return Golden(asked, versions_of(case, folder), numbers_of(case, folder))


def complaint(case: Case, golden: Golden | None, found: Golden) -> str | None:
    """Return what is wrong with a case and what to do about it; None if it comes to its committed numbers."""
    if golden is None or golden.asked != found.asked:
        return f"{case}: has no committed numbers; write them by `{COMMAND}`"
    off = _off(case, golden, found)
    if golden.versions == found.versions:
        if not off:
            return None
        return (
            f"{case}: comes to other numbers ({off}), and every version is as it was. Records made before and now "
            "would have the same keys. Undo the change, or raise the `version` of the component whose numbers changed "
            f"({', '.join(found.versions)}) and write the new numbers by `{COMMAND}`"
        )
    return f"{case}: the numbers are of versions {golden.versions}, now {found.versions}; write them by `{COMMAND}`"


def _off(case: Case, golden: Golden, found: Golden) -> str:
    """Return the first numbers that differ, in words; nothing where all are the same."""
    for name in sorted({*golden.numbers, *found.numbers}):
        before, after = golden.numbers.get(name), found.numbers.get(name)
        if before is None or after != pytest.approx(before, rel=case.tolerance, abs=_SMALLEST):
            return f"{name}: {after} instead of {before}"
    return ""


def write(folder: Path) -> list[str]:
    """Write the numbers of cases that are new or have another version; return why others were left as they are."""
    before, refused, after = committed(), [], {}
    for case in CASES:
        golden, found = before.get(case.name), now(case, folder)
        keeps = golden is not None and (golden.asked, golden.versions) == (found.asked, found.versions)
        after[case.name] = golden if keeps else found
        refused += [complaint(case, golden, found)] if keeps else []
    lines = [f"{json.dumps(name)}: {json.dumps(vars(golden))}" for name, golden in after.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return [each for each in refused if each]
