"""A study that is refused when it is planned, as a user sees it."""

from pathlib import Path
from typing import Any

import yaml

from tests.conftest import Run


def refused(run: Run, folder: Path, scenario: dict[str, Any], **fields: Any) -> str:
    """Return the one line in which a study is refused; nothing is printed else, and no store is left."""
    content = {"name": "x", "scenario": scenario, "methods": ["bare"], **fields}
    (folder / "x.yaml").write_text(yaml.safe_dump(content))
    code, printed, errors = run("run", folder / "x.yaml", "--store", folder / "x.db", "--dry-run")
    assert (code, printed) == (2, "")
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert not (folder / "x.db").exists()
    return line
