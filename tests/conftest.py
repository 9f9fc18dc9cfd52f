"""What all tests may use: the command line, run in this process."""

import sys

import pytest
from hypothesis import settings

from skeleton_cgl.cli import main

# A busy machine is no error.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


class Run:
    """Runs the command line in this process, as a user would call it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Return exit code, standard output and standard error."""
        self._monkeypatch.setattr(sys, "argv", ["skeleton-cgl", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            main()
        printed = self._capsys.readouterr()
        return exit_info.value.code or 0, printed.out, printed.err


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)
