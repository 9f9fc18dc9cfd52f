"""Running a study: scenarios, plan, store, workers and driver brought together, with a bar and a way to stop."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tqdm import tqdm

from skeleton_cgl.engine.orders import TooManyOrders
from skeleton_cgl.engine.results import Results
from skeleton_cgl.engine.schedule import Driver, Summary
from skeleton_cgl.engine.stage import Branch, Stage, learn_branch
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.study import Plan, Study, make_plan
from skeleton_cgl.engine.workers import DaskWorkers, InProcess
from skeleton_cgl.errors import InputError

_A_YEAR = 365 * 24 * 3600
_REDRAW_SECONDS = 0.5


def run_study(
    study: Study,
    store: str | Path,
    workers: int = 1,
    cluster: str | None = None,
    tree: bool = True,
    retry: bool = False,
    progress: bool = True,
) -> Results:
    """Run what `store` lacks of a study; return its results, with a summary of what was run.

    workers: one runs in this process, more as a local Dask cluster; cluster: the address of a scheduler instead.
    tree: False runs every order alone, from its first task on. retry: run what failed before again. The first Ctrl-C
    finishes what is in flight and saves it, the second stops at once.
    """
    plan = _plan(study)
    with Store(store) as opened:
        number = opened.add_study(plan)
        if retry:
            opened.forget_failures(plan.stages)
        summary = _run_tree(plan, opened, workers, cluster, progress) if tree else _run_alone(plan, opened, progress)
    results = Results(store, number)
    results.summary = summary
    return results


def _plan(study: Study) -> Plan:
    """Return the plan of a study; where there are too many orders, say how long they would take at this speed."""
    try:
        return make_plan(study)
    except TooManyOrders as error:
        seconds = _seconds_of_a_stage(study.variants()[0].study)
        if seconds is None:
            raise
        whole = f"about {_duration(seconds * error.stages)} on one worker, at {seconds:.2g} s a stage"
        raise InputError(f"{error}\nall of them would take {whole}") from error


def _seconds_of_a_stage(study: Study) -> float | None:
    """Return about how long a first stage takes, by its first epochs; None if it fails."""
    epochs = min(study.training.epochs, 5)
    short = study.model_copy(update={"training": study.training.model_copy(update={"epochs": epochs})})
    scenario = short.make_scenario(0)
    prefix = scenario.default_tasks[:1]
    stage = Stage("", None, 0, short.backbone[0], short.methods[0], 0, 0, "", prefix)
    for _ in range(2):  # The first time, things are loaded and arranged.
        (outcome,) = learn_branch(short, scenario, Branch((stage,), None))
    return outcome.record.seconds * study.training.epochs / epochs if outcome.record else None


def _run_tree(plan: Plan, store: Store, workers: int, cluster: str | None, progress: bool) -> Summary:
    with _stopping() as stop:
        waiting = Driver(plan, store, InProcess(plan)).to_learn
        if not waiting:
            return Driver(plan, store, InProcess(plan)).run()
        alone = workers == 1 and cluster is None
        with _Bar(waiting, plan, progress) as bar:
            here = InProcess(plan, bar.epoch)
            with here if alone else DaskWorkers(plan, workers, cluster) as hands:
                return Driver(plan, store, hands, stop, bar.finished).run()


def _run_alone(plan: Plan, store: Store, progress: bool) -> Summary:
    """Learn every order from its first task on, in this process; what the store has must come out the same."""
    summary = Summary()
    done = store.done()
    runs = [run.keys for run in plan.runs if any(key not in done for key in run.keys)]
    with _stopping() as stop, _Bar(sum(map(len, runs)), plan, progress) as bar:
        for run in runs:
            if stop():
                summary.interrupted = True
                break
            stages = tuple(plan.stages[key] for key in run)
            outcomes = learn_branch(*plan.setting(stages[0]), Branch(stages, None), bar.epoch)
            for stage, outcome in zip(stages, outcomes, strict=False):
                if outcome.failure is None:
                    store.add([(stage, outcome.record)])
                    summary.learned += 1
                else:
                    store.add_failure(stage, outcome.failure)
                    summary.failures[str(stage)] = outcome.failure
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
        self._bar.set_postfix_str(f"{stage.method.title}, step {len(stage.prefix)}", refresh=False)
        self._bar.update()

    def epoch(self, stage: Stage, epoch: int, loss: float) -> None:
        epochs = self._plan.setting(stage)[0].training.epochs
        words = f"{stage.method.title}, step {len(stage.prefix)}, epoch {epoch + 1}/{epochs}, loss {loss:.3f}"
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


@dataclass(frozen=True)
class Forecast:
    """What running a study would mean."""

    orders: int
    runs: int
    stages: int
    alone: int
    done: int
    seconds: float | None
    shares: bool

    def __str__(self) -> str:
        shared = 1 - self.stages / self.alone if self.alone else 0
        lines = [
            f"{self.orders} orders, {self.runs} runs",
            f"{self.stages} stages instead of {self.alone} ({shared:.0%} shared)"
            if self.shares
            else f"{self.stages} stages: every order has first weights of its own, so that nothing can be shared",
            f"{self.done} done, {self.stages - self.done} left",
        ]
        if self.seconds is not None:
            lines.append(f"about {_duration(self.seconds)} on one worker, by the time of a first stage of each method")
        return "\n".join(lines)


def forecast(study: Study, store: str | Path | None = None, timed: bool = True) -> Forecast:
    """Return what a study would run and about how long it takes, by timing one stage of every method."""
    plan = _plan(study)
    done: set[str] = set()
    if store is not None and Path(store).is_file():
        with Store(store) as opened:
            done = opened.done() & plan.stages.keys()
    return Forecast(
        orders=len(plan.orders),
        runs=len(plan.runs),
        stages=len(plan.stages),
        alone=plan.alone,
        done=len(done),
        seconds=_expected_seconds(plan, done) if timed else None,
        shares=study.initialisation == "shared",
    )


def _expected_seconds(plan: Plan, done: set[str]) -> float:
    """Return the seconds of all stages left, by the seconds of the first two of every method."""
    total = 0.0
    left: dict[tuple[str, str], int] = {}
    first: dict[tuple[str, str], list[Stage]] = {}
    for key, stage in plan.stages.items():
        kind = (stage.backbone.title, stage.method.title)
        left[kind] = left.get(kind, 0) + (key not in done)
        if kind not in first:
            run = next(run for run in plan.runs if run.keys[0] == key)
            first[kind] = [plan.stages[entry] for entry in run.keys[:2]]
    for kind, number in left.items():
        if number:
            outcomes = learn_branch(*plan.setting(first[kind][0]), Branch(tuple(first[kind]), None))
            seconds = [outcome.record.seconds for outcome in outcomes if outcome.record]
            total += number * (seconds[-1] if seconds else 0)
    return total


def _duration(seconds: float) -> str:
    if seconds > _A_YEAR:
        return f"{seconds / _A_YEAR:,.0f} years"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
