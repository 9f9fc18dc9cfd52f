"""What running a study would mean, told before it runs: orders, stages, and about how long they take here."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from skeleton_cgl.durations import duration
from skeleton_cgl.engine.orders import TooManyOrders
from skeleton_cgl.engine.plan import Plan, Stage, make_plan
from skeleton_cgl.engine.stage import Branch, Outcome, learn_branch
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.study import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.scenario import Scenario

_TELLING_SECONDS = 0.1
"""A stage of fewer epochs that takes this long tells how long the whole one will."""


@dataclass(frozen=True)
class Forecast:
    """What running a study would mean; seconds: on one worker, None where they were not asked for or not to be had.

    remarks: which methods have more to go by than others.
    """

    orders: int
    runs: int
    stages: int
    alone: int
    done: int
    seconds: float | None
    shares: bool
    remarks: tuple[str, ...] = ()

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
            lines.append(f"about {duration(self.seconds)} on one worker, by some epochs of each method")
        return "\n".join([*lines, *self.remarks])


def forecast(study: Study, store: str | Path | None = None, timed: bool = True) -> Forecast:
    """Return what a study would run and about how long that takes, by timing some epochs of every method."""
    plan = plan_of(study)
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
        remarks=plan.remarks,
    )


def plan_of(study: Study) -> Plan:
    """Return the plan of a study; where there are too many orders, say how long they would take at this speed."""
    try:
        return make_plan(study)
    except TooManyOrders as error:
        asked = study.variants()[0].study
        scenario = asked.make_scenario(0)
        lessons = scenario.lessons(scenario.default)
        by = (asked.backbone[0], asked.methods[0])
        first_two = tuple(Stage("", None, 0, 0, *by, 0, 0, "", lessons[:step]) for step in (1, 2))
        seconds = _seconds_of_second(asked, scenario, first_two)
        if seconds is None:
            raise
        whole = f"about {duration(seconds * error.stages)} on one worker, at {seconds:.2g} s a stage"
        raise InputError(f"{error}\nall of them would take {whole}") from error


def _expected_seconds(plan: Plan, done: set[str]) -> float | None:
    """Return the seconds of all stages left, by the seconds of a second one of every method; None if one fails."""
    first_two: dict[int, tuple[Stage, ...]] = {}
    for run in plan.runs:
        first_two.setdefault(run.learner, tuple(plan.stages[key] for key in run.keys[:2]))
    left = Counter(stage.learner for key, stage in plan.stages.items() if key not in done)
    total = 0.0
    for learner, number in tqdm(left.items(), desc="timing some epochs", unit=" methods", leave=False):
        seconds = _seconds_of_second(*plan.setting(first_two[learner][0]), first_two[learner])
        if seconds is None:
            return None
        total += number * seconds
    return total


def _seconds_of_second(study: Study, scenario: Scenario, stages: tuple[Stage, ...]) -> float | None:
    """Return about how long the second of two stages takes, by as few epochs as tell; None if one fails.

    The first loads and arranges things, and has no past lesson to look after. What a stage takes beside its epochs is
    told by a stage of one; a method that trains nothing takes the same for any number of them.
    """
    trained = list[int]()

    def learned(stage: Stage, epochs: int, state: bytes | None) -> Outcome:
        short = study.model_copy(update={"training": study.training.model_copy(update={"epochs": epochs})})
        trained.clear()
        branch = Branch((stage,), state, frozenset([stage.key]))
        return learn_branch(short, scenario, branch, lambda _, epoch, __: trained.append(epoch))[0]

    start = learned(stages[0], 1, None)
    whole, first, epochs = stages[0].epochs(study, scenario), 0.0, 1
    if start.record is None:
        return None
    if len(stages) == 1:
        return start.record.made.seconds * whole
    while True:
        record = learned(stages[1], epochs, start.state).record
        if record is None:
            return None
        seconds, first = record.made.seconds, first or record.made.seconds
        if epochs == whole or not trained:
            return seconds
        if seconds >= _TELLING_SECONDS:
            # With a stage of one epoch to compare with, what does not grow with the epochs is known.
            by_epoch = seconds if epochs == 1 else max(0.0, seconds - first) / (epochs - 1)
            return first + by_epoch * (whole - 1)
        epochs = min(4 * epochs, whole)
