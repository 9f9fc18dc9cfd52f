"""Processes that know nothing of this one: what is learned there shows what is kept outside of a learner here."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from functools import cached_property

from skeleton_cgl.engine.checking.subject import Subject
from skeleton_cgl.errors import InputError

_COMMAND = "from skeleton_cgl.engine.checking.bench import learn_alone; learn_alone()"


class FreshProcesses:
    """New processes, one per subject, each learning all lessons while this one goes on with other things.

    Sets are gone through in another order in each of them.
    """

    def __init__(self, subjects: Iterable[Subject]) -> None:
        self._running = [_start(subject, number) for number, subject in enumerate(subjects, start=1)]

    @cached_property
    def outcomes(self) -> list[str]:
        """What each of them came to, as `Bench.outcome` tells; waits for them."""
        return [_outcome(process) for process in self._running]

    def __enter__(self) -> "FreshProcesses":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.kill()
            process.communicate()


def _start(subject: Subject, number: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": str(number)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if process.stdin is not None:
        process.stdin.write(json.dumps(asdict(subject)))
        process.stdin.close()
        process.stdin = None
    return process


def _outcome(process: "subprocess.Popen[str]") -> str:
    printed, errors = process.communicate()
    if process.returncode:
        raise InputError(f"fails in a process of its own: {' '.join(errors.splitlines()[-1:])}")
    return printed.splitlines()[-1]
