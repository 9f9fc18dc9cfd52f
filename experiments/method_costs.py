"""What methods cost beside Bare, and where in a lesson they spend it; used by the benchmark scripts beside this file.

Every method learns the second lesson, so that there is a past, again and again from the same state; methods take turns,
and each is compared with Bare on the same backbone in the same setting. Times are of the processor, medians over
rounds. Validation samples are not looked at: that costs every method alike.
"""

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tqdm import tqdm

from skeleton_cgl.engine.compatibility import compatibilities
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import MOMENTS
from skeleton_cgl.learning.training import Training
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.scenario import Scenario

Setting = Literal["class-il", "task-il"]
Backbone = tuple[str, Mapping[str, Any]]
"""A name with parameters."""

HIGH = 3.0
"""Of a method that takes more than so many times as long as Bare, it is told where the time goes."""

_OF_LEARNING = tuple(moment for moment in MOMENTS if moment not in ("answer", "state", "restore"))
_BEFORE = {"gradients_ready": "backward", "step_done": "optimizer"}
"""What the learner does between the moments of a step, by the moment that follows."""


@dataclass(frozen=True)
class Bench:
    """What the methods of a kind of scenario are timed on.

    kind: as `compatibilities` calls it. parameters: of methods that are not timed with their defaults. others:
    backbones of methods that cannot do with the usual one. study_epochs: how many a lesson has in a study; in a
    measurement they are those of the recipe, two at least.
    """

    kind: str
    scenario: Callable[[Setting], Scenario]
    training: Training
    study_epochs: int
    backbone: Backbone
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    others: Mapping[str, Backbone] = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """A method in a setting, on a backbone."""

    method: str
    setting: Setting
    backbone: Backbone

    @property
    def bare(self) -> "Variant":
        return Variant("bare", self.setting, self.backbone)

    @property
    def label(self) -> tuple[str, str, str]:
        """What tells variants apart: a method has one setting and backbone, but Bare has those of all others."""
        return self.method, self.setting, self.backbone[0]


@dataclass(frozen=True)
class Lesson:
    """Processor seconds of a lesson: of all of it, and of one step after the first epoch; how many steps it had.

    Making the batch, and what methods do only when samples are met first, is in the first epoch.
    """

    seconds: float
    step: float
    steps: int

    @property
    def rest(self) -> float:
        """Seconds that do not grow with the number of epochs."""
        return max(self.seconds - self.steps * self.step, 0.0)

    def longer(self, factor: float) -> float:
        """Return the seconds of a lesson of so many times as many epochs."""
        return self.rest + factor * self.steps * self.step


@dataclass(frozen=True)
class Cost:
    """What a method costs: its lesson and that of Bare; the share of every moment in the time of the lesson.

    longer: how many times as many epochs a lesson of a study has.
    """

    variant: Variant
    lesson: Lesson
    bare: Lesson
    longer: float
    shares: Mapping[str, float]

    @property
    def over_bare(self) -> float:
        return self.lesson.seconds / self.bare.seconds

    @property
    def step_over_bare(self) -> float | None:
        """The time of a step; None for a method that takes none."""
        return self.lesson.step / self.bare.step if self.lesson.steps else None

    @property
    def study_over_bare(self) -> float:
        """What is to be expected with the epochs of a study."""
        return self.lesson.longer(self.longer) / self.bare.longer(self.longer)

    @property
    def high(self) -> bool:
        return max(self.over_bare, self.study_over_bare) > HIGH


class Clock:
    """Tells the time that a learner's lessons spend in every moment of its method, and in what lies between them.

    seconds: by moment, without those of another that is called from within it. Between the moments of a step lie
    "backward" and "optimizer"; what else the learner does in training, such as making batches, is "train", and what
    lies outside of all "learn".
    """

    def __init__(self, learner: Learner, now: Callable[[], float] = time.process_time) -> None:
        self._learner, self._now = learner, now
        for moment in _OF_LEARNING:
            self._watch(learner.method, moment)
        self._watch(learner, "train")
        self.begin()

    def begin(self) -> None:
        """Forget all; the time runs from now on."""
        self.seconds = Counter[str]()
        self._repeated = 0.0
        self._steps = self._repeated_steps = 0
        self._open = ["learn"]
        self._since = self._now()

    def lesson(self) -> Lesson:
        """Return the lesson that ends now."""
        self._pass("learn")
        step = self._repeated / self._repeated_steps if self._repeated_steps else 0.0
        return Lesson(sum(self.seconds.values()), step, self._steps)

    def _watch(self, owner: object, name: str) -> None:
        usual = getattr(owner, name)

        def watched(*values: Any) -> Any:
            within = self._open[-1]
            self._pass(_BEFORE.get(name, within) if within == "train" else within)
            self._open.append(name)
            if name == "gradients_ready":
                self._steps += 1
                self._repeated_steps += self._in_later_epoch
            try:
                return usual(*values)
            finally:
                self._pass(name)
                self._open.pop()

        setattr(owner, name, watched)

    def _pass(self, spent_in: str) -> None:
        now = self._now()
        self.seconds[spent_in] += now - self._since
        if self._in_later_epoch:
            self._repeated += now - self._since
        self._since = now

    @property
    def _in_later_epoch(self) -> bool:
        return "train" in self._open and not self._learner.first_pass


def variants_of(bench: Bench, only: Sequence[str] = ()) -> list[Variant]:
    """Return every method that is defined for the kind, class-il if it is there, and Bare beside it; or `only` some."""
    found: dict[tuple[str, str, str], Variant] = {}
    for compatibility in compatibilities():
        name, settings = compatibility.method, compatibility.settings[bench.kind]
        if (only and name not in only) or not settings:
            continue
        setting: Setting = "class-il" if "class-il" in settings else "task-il"
        variant = Variant(name, setting, bench.others.get(name, bench.backbone))
        for each in (variant.bare, variant):
            found.setdefault(each.label, each)
    # Bare first, of the usual setting and backbone before others.
    return sorted(found.values(), key=lambda variant: variant.method != "bare")


def measure(bench: Bench, rounds: int, only: Sequence[str] = ()) -> list[Cost]:
    """Return the costs of methods, learning in turn."""
    variants = variants_of(bench, only)
    scenarios = {setting: bench.scenario(setting) for setting in {variant.setting for variant in variants}}
    turns = {}
    for variant in tqdm(variants, "first lessons", leave=False, disable=None):
        turns[variant.label] = _turns(bench, variant, scenarios[variant.setting])
    lessons: dict[tuple[str, str, str], list[Lesson]] = {label: [] for label in turns}
    spent = {label: Counter[str]() for label in turns}
    for _ in tqdm(range(rounds), "rounds", leave=False, disable=None):
        for label, turn in turns.items():
            lesson, seconds = turn()
            lessons[label].append(lesson)
            spent[label] += seconds
    medians = {label: _median(each) for label, each in lessons.items()}
    longer = bench.study_epochs / bench.training.epochs
    return [
        Cost(variant, medians[variant.label], medians[variant.bare.label], longer, _shares(spent[variant.label]))
        for variant in variants
    ]


def _turns(bench: Bench, variant: Variant, scenario: Scenario) -> Callable[[], tuple[Lesson, Counter[str]]]:
    """Return a function that learns the second lesson from the state after the first, and tells its times."""
    prefix = scenario.lessons(scenario.default)
    name, parameters = variant.backbone
    learner = make_learner(
        scenario,
        name,
        variant.method,
        bench.training,
        backbone_parameters=parameters,
        method_parameters=bench.parameters.get(variant.method, {}),
    )
    learner.learn(scenario.experience(prefix[:1]), 0)
    state, second = learner.state(), scenario.experience(prefix[:2])
    clock = Clock(learner)

    def turn() -> tuple[Lesson, Counter[str]]:
        learner.restore(state)
        clock.begin()
        learner.learn(second, 1)
        return clock.lesson(), clock.seconds

    return turn


def _median(lessons: Sequence[Lesson]) -> Lesson:
    return Lesson(
        statistics.median(lesson.seconds for lesson in lessons),
        statistics.median(lesson.step for lesson in lessons),
        lessons[0].steps,
    )


def _shares(seconds: Counter[str]) -> dict[str, float]:
    whole = sum(seconds.values())
    return {moment: spent / whole for moment, spent in seconds.most_common()}


def figures_of(costs: Sequence[Cost], prefix: str) -> dict[str, float]:
    """Return the costs as figures with names; of Bare, one for every setting and backbone."""
    found: dict[str, float] = {}
    for cost in costs:
        method, setting, backbone = cost.variant.label
        if method == "bare":
            found[f"{prefix}_bare_{setting}_{backbone}_s"] = cost.lesson.seconds
            continue
        name = f"{prefix}_{method}"
        found |= {f"{name}_over_bare": cost.over_bare, f"{name}_study_over_bare": cost.study_over_bare}
        found[f"{name}_rest_s"] = cost.lesson.rest
        if cost.step_over_bare is not None:
            found[f"{name}_step_over_bare"] = cost.step_over_bare
        if cost.high:
            found |= {f"{name}_share_{moment}": share for moment, share in cost.shares.items() if share >= 0.01}
    return found


def table_of(costs: Sequence[Cost], bench: Bench) -> str:
    """Return the costs as lines: a table, and where the time goes of what takes more than HIGH times as long as Bare.

    lesson: seconds of one of `epochs`. × Bare: of the lesson, of a step, and of a lesson with the epochs of a study.
    rest: the seconds of a lesson that do not grow with its epochs.
    """
    epochs, study = f"{bench.training.epochs} epochs", f"{bench.study_epochs} epochs"
    title = f"{bench.kind}: processor seconds of the second lesson, and how many times those of Bare"
    lines = [
        title,
        f"{'method':12}{'setting':10}{'backbone':14}{epochs:>10}{'× Bare':>8}{'step':>8}{'rest s':>9}{study:>13}",
    ]
    for cost in costs:
        method, setting, backbone = cost.variant.label
        step = "–" if cost.step_over_bare is None else f"{cost.step_over_bare:.2f}"
        lines.append(
            f"{method:12}{setting:10}{backbone:14}{cost.lesson.seconds:10.3f}{cost.over_bare:8.2f}{step:>8}"
            f"{cost.lesson.rest:9.3f}{cost.study_over_bare:13.2f}"
        )
    for cost in costs:
        if cost.high:
            told = ", ".join(f"{moment} {share:.0%}" for moment, share in cost.shares.items() if share >= 0.03)
            lines.append(f"{cost.variant.method}: {told}")
    return "\n".join(lines)


def report(bench: Bench, options: argparse.Namespace, prefix: str) -> dict[str, float]:
    """Measure as the options say, print the table, and return the figures."""
    asked = replace(bench, training=bench.training.model_copy(update={"epochs": options.method_epochs}))
    costs = measure(asked, options.method_rounds, options.methods)
    print(table_of(costs, asked))
    return figures_of(costs, prefix)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `report`."""
    parser.add_argument("--method-rounds", type=_at_least(1), default=5, help="turns of every method")
    parser.add_argument("--method-epochs", type=_at_least(2), default=20, help="epochs of a lesson, two at least")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS.names(),
        default=[],
        metavar="NAME",
        help="only these methods, and Bare; those that are not defined for the data are left out",
    )


def _at_least(fewest: int) -> Callable[[str], int]:
    def number(given: str) -> int:
        if not given.isdecimal() or int(given) < fewest:
            raise argparse.ArgumentTypeError(f"{given} is not a whole number of at least {fewest}")
        return int(given)

    return number
