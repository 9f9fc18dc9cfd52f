"""A promise that the engine relies on: a sentence, and a small function that tries it."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from skeleton_cgl.blame import blamed
from skeleton_cgl.engine.checking.bench import Bench
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import LearningFailed


class Broken(Exception):
    """A promise is not kept; the message says what was found and what to do."""


class Verdict(Enum):
    KEPT = "ok"
    BROKEN = "FAILED"
    UNTRIED = "not tried"


@dataclass(frozen=True)
class Finding:
    """What became of a promise: whether it is kept, and what there is to say; trace: the way to an error."""

    promise: str
    verdict: Verdict
    words: str = ""
    trace: str = ""

    def __str__(self) -> str:
        return f"{self.verdict.value:<9}  {self.promise}{self.words and f': {self.words}'}"


@dataclass(frozen=True)
class Check:
    """A promise and how it is tried: `find` returns what is worth telling, and raises `Broken`, or whatever is wrong.

    essential: whether those after it would only tell of the same mistake again where this one is broken.
    """

    promise: str
    find: Callable[[Bench], str]
    essential: bool = True

    def on(self, bench: Bench) -> Finding:
        """Return what becomes of it on a bench."""
        try:
            return Finding(self.promise, Verdict.KEPT, self.find(bench))
        except Broken as broken:
            return Finding(self.promise, Verdict.BROKEN, str(broken))
        except (Exception, SystemExit) as error:  # noqa: BLE001
            # A user's code may raise anything.
            return Finding(self.promise, Verdict.BROKEN, _told(error, bench), _trace(error))


def promise(sentence: str, essential: bool = True) -> Callable[[Callable[[Bench], str]], Check]:
    """Make a check of a function that tries what the sentence says of a method or backbone: it …"""
    return lambda find: Check(sentence, find, essential)


def _told(error: BaseException, bench: Bench) -> str:
    """Return an error in one line, with file, line and moment where it happened in the subject's code."""
    if isinstance(error, InputError | LearningFailed):
        return str(error)
    return blamed(error, bench.subject.found)


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
