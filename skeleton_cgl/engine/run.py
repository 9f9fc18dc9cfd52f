"""Running a study: scenarios, plan, store, workers and driver brought together, with a bar and a way to stop."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tqdm import tqdm

from skeleton_cgl.engine.forecast import plan_of
from skeleton_cgl.engine.mixing import Fingerprints, Unmixed
from skeleton_cgl.engine.plan import Plan, Stage
from skeleton_cgl.engine.schedule import Driver, Summary
from skeleton_cgl.engine.stage import Branch, Failure, learn_branch
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.study import Study
from skeleton_cgl.engine.trial import refuse_forgetful_methods
from skeleton_cgl.engine.workers import DaskWorkers, InProcess, check_address

_REDRAW_SECONDS = 0.5


def run_study(
    study: Study,
    store: str | Path,
    workers: int = 1,
    cluster: str | None = None,
    tree: bool = True,
    retry: bool = False,
    progress: bool = True,
    mix: bool = False,
) -> tuple[int, Summary]:
    """Run what `store` lacks of a study; return its number in the store and what running it came to.

    workers: one runs in this process, more as a local Dask cluster; cluster: the address of a scheduler instead.
    tree: False runs every order alone, from its first task on. retry: run what failed before again. mix: go on with a
    repeat that was begun on another kind of machine, which is refused otherwise. The first Ctrl-C finishes what is in
    flight and saves it, the second stops at once.
    """
    if cluster is not None:
        check_address(cluster)
    plan = plan_of(study)
    with Store(store) as opened:
        fingerprints = None if mix else Fingerprints(plan, opened)
        if fingerprints is not None:
            if progress:
                _tell_of_unknown(fingerprints)
            if cluster is None:
                fingerprints.refuse_here(failed_too=retry)
        refuse_forgetful_methods(plan, opened, progress)
        if progress:
            _tell_of_methods(plan)
        number = opened.add_study(plan.row(), plan.learners, plan.runs)
        if retry:
            opened.forget_failures(plan.stages)
        summary = (
            _run_tree(plan, opened, workers, cluster, progress, fingerprints)
            if tree
            else _run_alone(plan, opened, progress)
        )
    if progress:
        _tell_of_notes(summary)
    return number, summary


def _tell_of_unknown(fingerprints: Fingerprints) -> None:
    numbers = ", ".join(f"{number} of repeat {repeat}" for repeat, number in fingerprints.unknown().items())
    if numbers:
        words = f"records without a fingerprint: {numbers}; whether this machine would give the same cannot be told"
        print(words, file=sys.stderr)


def _tell_of_methods(plan: Plan) -> None:
    for remark in plan.remarks:
        print(remark, file=sys.stderr)


def _tell_of_notes(summary: Summary) -> None:
    for note, stages in summary.notes.items():
        methods = ", ".join(f"{method} {number}" for method, number in stages.items())
        print(f"{stages.total()} stages ({methods}) {note}", file=sys.stderr)


def _run_tree(
    plan: Plan, store: Store, workers: int, cluster: str | None, progress: bool, fingerprints: Fingerprints | None
) -> Summary:
    with _stopping() as stop:
        waiting = Driver(plan, store, InProcess(plan)).to_learn
        if not waiting:
            return Driver(plan, store, InProcess(plan)).run()
        alone = workers == 1 and cluster is None
        with _Bar(waiting, plan, progress) as bar:
            here = InProcess(plan, bar.epoch)
            with here if alone else DaskWorkers(plan, workers, cluster, bar.epoch, store.check_still_there) as hands:
                checked = hands if fingerprints is None else Unmixed(hands, fingerprints)
                return Driver(plan, store, checked, stop, bar.finished).run()


def _run_alone(plan: Plan, store: Store, progress: bool) -> Summary:
    """Learn every order from its first task on, in this process; what the store has must come out the same."""
    summary = Summary()
    done = store.done()
    runs = [run.keys for run in plan.runs if any(key not in done for key in run.keys)]
    runs.sort(key=lambda keys: plan.turns[keys[-1]])
    with _stopping() as stop, _Bar(sum(map(len, runs)), plan, progress) as bar:
        for run in runs:
            if stop():
                summary.interrupted = True
                break
            stages = tuple(plan.stages[key] for key in run)
            outcomes = learn_branch(*plan.setting(stages[0]), Branch(stages, None), bar.epoch)
            for stage, outcome in zip(stages, outcomes, strict=False):
                if outcome.record is not None:
                    store.add([(str(stage), outcome.record)])
                    summary.count_learned(stage, outcome.notes)
                else:
                    failure = outcome.failure or Failure("no record", "")
                    store.add_failure(stage.key, str(stage), failure.reason)
                    summary.failures[str(stage)] = failure
                bar.finished(stage)
    return summary


class _Bar:
    """A progress bar over stages with the time left, method and depth; and the epoch, where a stage takes long."""

    def __init__(self, total: int, plan: Plan, shown: bool) -> None:
        self._plan = plan
        self._bar = tqdm(
            total=total,
            desc=plan.study.name,
            unit=" stages",
            disable=not shown,
            mininterval=_REDRAW_SECONDS,
            smoothing=0.05,
        )
        self._drawn = time.monotonic()

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def finished(self, stage: Stage) -> None:
        self._bar.set_postfix_str(f"{stage.method}, step {len(stage.prefix)}", refresh=False)
        self._bar.update()

    def epoch(self, stage: Stage, epoch: int, loss: float) -> None:
        epochs = stage.epochs(*self._plan.setting(stage))
        words = f"{stage.method}, step {len(stage.prefix)}, epoch {epoch + 1}/{epochs}, loss {loss:.3f}"
        self._bar.set_postfix_str(words, refresh=False)
        # Not update(0): it would count as the moment from which the next stage is timed.
        if time.monotonic() - self._drawn >= _REDRAW_SECONDS:
            self._drawn = time.monotonic()
            self._bar.refresh()


@contextmanager
def _stopping() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether Ctrl-C was pressed once; the second time it interrupts as usual."""
    pressed = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    usual = signal.getsignal(signal.SIGINT)

    def press(_number: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, usual)
        print("\nfinishing what is in flight; press Ctrl-C again to stop at once", file=sys.stderr, flush=True)

    signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, usual)
