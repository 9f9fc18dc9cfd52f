"""Checking a method or a backbone: the promises that the engine relies on, tried one by one on small data, in seconds.

To add one, write a function under `@promise` in `of_methods`, `of_backbones` or `of_learners`, which is for both, and
put it into the list `CHECKS`.
"""

from collections.abc import Iterator, Sequence

from skeleton_cgl.engine.checking import of_backbones, of_methods
from skeleton_cgl.engine.checking.bench import Bench
from skeleton_cgl.engine.checking.fresh import FreshProcesses
from skeleton_cgl.engine.checking.of_learners import learns
from skeleton_cgl.engine.checking.promise import Check, Finding, Verdict
from skeleton_cgl.engine.checking.subject import Subject, find_subject
from skeleton_cgl.process import settle

__all__ = ["Check", "Finding", "Subject", "Verdict", "check_subject", "checks_of", "find_subject"]


def checks_of(subject: Subject) -> tuple[Check, ...]:
    """Return what is checked of a subject, in that sequence."""
    return of_methods.CHECKS if subject.kind == "method" else of_backbones.CHECKS


def check_subject(subject: Subject, checks: Sequence[Check] | None = None) -> Iterator[Finding]:
    """Yield what becomes of the promises of a method or backbone, one after the other; by default of all."""
    settle()
    broken = False
    with FreshProcesses(subject) as fresh:
        bench = Bench(subject, fresh)
        for check in checks_of(subject) if checks is None else checks:
            if broken:
                yield Finding(check.promise, Verdict.UNTRIED)
                continue
            finding = check.on(bench)
            if finding.verdict is Verdict.BROKEN and check.essential:
                broken = True
            elif check is learns and checks is None:
                # They take a while, and there is something else to do meanwhile.
                fresh.start()
            yield finding
