"""The plan of a study: the tree of stages it asks for, and the runs they make up.

A stage's key is a digest of everything that decides its record, so that studies which share a stage share its record. A
sweep is one plan of several variants.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Literal

import numpy as np
from torch import Tensor

from skeleton_cgl.backbones.backbone import backbones_for
from skeleton_cgl.blame import blaming
from skeleton_cgl.engine.draws import FLOORS, FloorKind
from skeleton_cgl.engine.identity import code_of_scenario, identity_of
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.orders import AskedOrder, make_orders
from skeleton_cgl.engine.rows import LearnerRow, RunRow, StudyRow
from skeleton_cgl.engine.study import Component, Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import Method, make_method, overrides
from skeleton_cgl.learning.training import Training
from skeleton_cgl.plain import value_text
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.lessons import Order, Prefix, describe, tokens
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.seeds import seed_of


@dataclass(frozen=True)
class Stage:
    """The last lesson of `prefix` learned from the state its others left.

    variant counts the points of the study's sweep, learner the learners of the study. noise and division count seeds
    and data splits drawn anew for noise floors, 0 being those of the ordinary runs. start names the order whose own
    first weights are used, and is empty where all orders start alike.
    """

    key: str
    parent: str | None
    variant: int
    learner: int
    backbone: Component
    method: Component
    repeat: int
    noise: int
    start: str
    prefix: Prefix
    division: int = 0

    def __str__(self) -> str:
        return f"{self.method} {tokens(self.prefix)}"

    def seed(self, study: Study) -> int:
        """Return the seed the stage is learned with."""
        return seed_of("stage", self._noise_seed(study), *(lesson.seed for lesson in self.prefix))

    def _noise_seed(self, study: Study) -> int:
        """Return the seed of memories and training noise."""
        return seed_of("learner", study.noise_seed(self.repeat), self.noise, self.start)

    def epochs(self, study: Study, scenario: Scenario) -> int:
        """Return how often samples pass: as the recipe says; on a stream once, but for who learns it offline."""
        streamed = "borders" not in scenario.offers and not METHODS.find(self.method.name).offline
        return 1 if streamed else study.training.epochs

    def new_learner(self, study: Study, scenario: Scenario) -> Learner:
        """Return the learner that the first lesson of the stage's order finds."""
        return make_learner(
            scenario,
            backbone=self.backbone.name,
            method=self.method.name,
            training=study.training,
            seed=seed_of("learner", study.weights_seed(self.repeat), self.noise, self.start),
            backbone_parameters=self.backbone.parameters,
            method_parameters=self.method.parameters,
            noise_seed=self._noise_seed(study),
        )


Turn = tuple[int, ...]
"""When a stage is due, compared with others: the lower, the sooner."""


@dataclass
class Plan:
    """The stages of a study, every one once, parents before children; and the runs they make up.

    scenarios: of every variant, one per repeat; divided: those that noise floors divide anew, by variant, repeat and
    division. turns: repeat by repeat, ordinary runs before floors, learner by learner, the orders in a random sequence
    that is the same for all. What is done of a study at any time is thus a random sample of its orders.
    """

    study: Study
    variants: list[Study]
    scenarios: list[list[Scenario]]
    divided: dict[tuple[int, int, int], Scenario] = field(default_factory=dict)
    turns: dict[str, Turn] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    children: dict[str | None, list[str]] = field(default_factory=dict)
    learners: list[LearnerRow] = field(default_factory=list)
    runs: list[RunRow] = field(default_factory=list)

    @property
    def alone(self) -> int:
        """The number of stages if every order were run by itself."""
        return sum(len(run.keys) for run in self.runs)

    @property
    def digests(self) -> list[str]:
        """The digests of all scenarios, variant by variant; then those of the code of users' own, if any takes part."""
        codes: dict[str | None, None] = {}
        for variant, (scenario, *_) in zip(self.variants, self.scenarios, strict=True):
            codes[code_of_scenario(variant)] = None
            for components, registry in (
                (variant.backbone, backbones_for(scenario.facts.takes)),
                (variant.methods, METHODS),
            ):
                codes.update(dict.fromkeys(registry.code_of(component.name) for component in components))
        found = [scenario.digest for scenarios in self.scenarios for scenario in scenarios]
        return [*found, *(f"code {code}" for code in codes if code is not None)]

    @property
    def orders(self) -> set[Order]:
        return {run.order for run in self.runs}

    def row(self) -> StudyRow:
        """Return the study as the store keeps it."""
        scenario = self.scenarios[0][0]
        return StudyRow(
            number=0,
            name=self.study.name,
            spec=json.dumps(self.study.model_dump(mode="json")),
            digests=tuple(self.digests),
            units=tuple(unit.name for unit in scenario.units),
            default=scenario.default,
            metrics=scenario.problem.metrics,
            notes=(*self._notes(), *self.remarks),
        )

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Return which methods have more to go by than others: whatever their names, a reader must be able to tell."""
        told: dict[str, None] = {}
        for study, (scenario, *_) in zip(self.variants, self.scenarios, strict=True):
            taught = cache(partial(_taught, scenario))
            for component in study.methods:
                method = make_method(component.name, component.parameters)
                with blaming(f"study {self.study.name!r}: method {component}", method, scenario):
                    found = list(_remarks_on(method, scenario, taught))
                given = (f"{name}={value}" for name, value in component.parameters.items())
                called = component.label or " ".join([str(component), *given])
                told.update((f"{called}: {remark}", None) for remark in found)
        return tuple(told)

    def _notes(self) -> tuple[str, ...]:
        """Return what the first scenario says of its data; of variants and repeats with other tasks, what differs."""
        first = self.scenarios[0][0]
        told = list(getattr(first, "notes", ()))
        for variant, scenarios in zip(self.study.variants(), self.scenarios, strict=True):
            point = [f"{path}={value_text(value)}" for path, value in variant.point]
            for repeat, scenario in enumerate(scenarios):
                whose = ", ".join([*point, *([f"repeat {repeat}"] if repeat else [])])
                if repeat == 0 or scenario.default != scenarios[0].default:
                    told += [f"{whose}: {note}" for note in getattr(scenario, "notes", ()) if note not in told]
        return tuple(told)

    def setting(self, stage: Stage) -> tuple[Study, Scenario]:
        """Return what a stage is learned in."""
        place = (stage.variant, stage.repeat, stage.division)
        scenario = self.divided[place] if stage.division else self.scenarios[stage.variant][stage.repeat]
        return self.variants[stage.variant], scenario

    def descendants(self, key: str) -> Iterator[str]:
        """Yield all stages below one."""
        for child in self.children.get(key, []):
            yield child
            yield from self.descendants(child)


def make_plan(study: Study) -> Plan:
    """Return the plan of a study; refuse what does not fit together."""
    variants = study.variants()
    make = _Making()
    scenarios_of = [[make(variant.study, repeat) for repeat in range(study.repeats)] for variant in variants]
    plan = Plan(study, [variant.study for variant in variants], scenarios_of)
    for number in range(len(variants)):
        _divide_anew(plan, number, make)
    first = plan.scenarios[0][0]
    for number, (variant, scenarios) in enumerate(zip(variants, plan.scenarios, strict=True)):
        if scenarios[0].units != first.units:
            raise InputError(f"study {study.name!r}: sweep: the classes differ; make studies of their own of them")
        if scenarios[0].problem.metrics != first.problem.metrics:
            raise InputError(f"study {study.name!r}: sweep: the metrics differ; make studies of their own of them")
        _refuse_idle_training(variant.study, scenarios[0])
        for backbone, method in itertools.product(variant.study.backbone, variant.study.methods):
            with blaming(f"study {study.name!r}: scenario", *scenarios):
                _check_fit(variant.study, scenarios[0], backbone, method)
                registry = backbones_for(scenarios[0].facts.takes)
                rows = (backbone.row(registry), method.row(METHODS))
                plan.learners.append(LearnerRow(len(plan.learners), *rows, variant.point))
                _add_learner(plan, Stage("", None, number, len(plan.learners) - 1, backbone, method, 0, 0, "", ()))
    return plan


def _taught(scenario: Scenario) -> list[Tensor]:
    """Return the labels of what is learned from in every lesson of the default order."""
    lessons = scenario.lessons(scenario.default)
    return [scenario.experience(lessons[: place + 1]).training.labels for place in range(len(lessons))]


def _remarks_on(method: Method, scenario: Scenario, taught: Callable[[], list[Tensor]]) -> Iterator[str]:
    if method.offline and "borders" not in scenario.offers:
        yield "offline; learns every piece of the stream as a lesson"
    if overrides(type(method), "keeps_all") and method.keeps_all(taught()):
        number = sum(map(len, taught()))
        yield f"its memory has room for all {number} training samples, which makes it a kind of Joint"


class _Making:
    """Makes scenarios, those that are the same once."""

    def __init__(self) -> None:
        self._made: dict[str, Scenario] = {}

    def __call__(self, study: Study, repeat: int, division: int = 0) -> Scenario:
        wanted = json.dumps([study.scenario, repeat, division], sort_keys=True)
        if wanted not in self._made:
            self._made[wanted] = study.make_scenario(repeat, division)
        return self._made[wanted]


def _divide_anew(plan: Plan, variant: int, make: _Making) -> None:
    """Add the scenarios of noise floors that draw splits; refuse such floors where there is nothing to draw."""
    study = plan.variants[variant]
    floor = study.noise_floor
    if floor is None or floor.kinds == ("seeds",):
        return
    for repeat in range(study.repeats):
        ordinary = plan.scenarios[variant][repeat]
        for division in range(1, floor.runs):
            divided = make(study, repeat, division)
            if divided.digest == ordinary.digest:
                if floor.kinds is None:
                    return
                raise InputError(
                    f"study {study.name!r}: noise_floor: kinds: the data are divided in one way only, so that no split "
                    "can be drawn anew; ask for kinds: [seeds]"
                )
            plan.divided[variant, repeat, division] = divided


def _add_learner(plan: Plan, root: Stage) -> None:
    """Add all runs of a learner; `root` says which, at which point of the sweep."""
    study, scenarios = plan.variants[root.variant], plan.scenarios[root.variant]
    asked: dict[Order, list[AskedOrder]] = {}
    counts_lessons = make_method(root.method.name, root.method.parameters).counts_lessons
    for repeat, ordinary in enumerate(scenarios):
        if ordinary.default not in asked:
            asked[ordinary.default] = make_orders(study.orders, ordinary.default, ordinary.unit_kind)
        orders = asked[ordinary.default]
        sequence = _sequence(study, orders)
        identities: dict[int, str] = {}
        for wanted in _runs(plan, root.variant, orders, sequence):
            stage = replace(root, repeat=repeat, noise=wanted.noise, division=wanted.division)
            _, scenario = plan.setting(stage)
            if stage.division not in identities:
                identity = identity_of(study, scenario, root.backbone, root.method)
                decided = {**identity, "seed": _seed_in_keys(study, repeat), "scenario": scenario.digest}
                identities[stage.division] = json.dumps(decided, sort_keys=True)
            lessons = scenario.lessons(wanted.asked.order)
            if counts_lessons and len(lessons) > len(scenario.default):
                raise InputError(
                    f"study {plan.study.name!r}: method {root.method} goes by the number of tasks, which is "
                    f"{len(scenario.default)} by default; order {describe(wanted.asked.order)} has {len(lessons)}"
                )
            _add_run(plan, identities[stage.division], stage, lessons, wanted)


def _seed_in_keys(study: Study, repeat: int) -> int | list[int]:
    weights, noise = study.weights_seed(repeat), study.noise_seed(repeat)
    return weights if weights == noise else [weights, noise]


def _sequence(study: Study, orders: list[AskedOrder]) -> list[int]:
    """Return the place (orders,) of every order in the random sequence they are run in."""
    places: list[int] = np.random.default_rng(seed_of("sequence", study.orders.seed)).permutation(len(orders)).tolist()
    return places


@dataclass(frozen=True)
class _Wanted:
    """A run that a study asks for: an order, ordinary or as the so manieth run of a floor; turn: see `Plan.turns`."""

    asked: AskedOrder
    turn: Turn
    floor: FloorKind | Literal[""] = ""
    run: int = 0

    @property
    def noise(self) -> int:
        return self.run if self.floor in ("seeds", "both") else 0

    @property
    def division(self) -> int:
        return self.run if self.floor in ("splits", "both") else 0


def _runs(plan: Plan, variant: int, orders: list[AskedOrder], sequence: list[int]) -> Iterator[_Wanted]:
    """Yield the runs of a learner in a repeat: the orders, then the floors of the first and of others at random."""
    for asked, place in zip(orders, sequence, strict=True):
        yield _Wanted(asked, (0, place))
    floor = plan.variants[variant].noise_floor
    if floor is None:
        return
    possible = FLOORS if (variant, 0, 1) in plan.divided else FLOORS[:1]
    others = sorted(range(1, len(orders)), key=sequence.__getitem__)
    for kind in floor.kinds or possible:
        for run in range(1, floor.runs):
            for place in (0, *others)[: floor.orders]:
                yield _Wanted(orders[place], (1, FLOORS.index(kind), run, sequence[place]), kind, run)


def _add_run(plan: Plan, identity: str, root: Stage, lessons: Prefix, wanted: _Wanted) -> None:
    """Add the stages of a run; `root` says by what, in which repeat."""
    asked = wanted.asked
    first, *rest = wanted.turn
    turn = (root.repeat, first, root.learner, *rest)
    start = describe(asked.order) if plan.variants[root.variant].initialisation == "per-order" else ""
    parent: str | None = None
    keys = []
    for step in range(1, len(lessons) + 1):
        prefix = lessons[:step]
        content = json.dumps([identity, root.noise, start, tokens(prefix)])
        key = hashlib.sha256(content.encode()).hexdigest()[:32]
        if key not in plan.stages:
            plan.stages[key] = replace(root, key=key, parent=parent, start=start, prefix=prefix)
            plan.children.setdefault(parent, []).append(key)
        plan.turns[key] = min(turn, plan.turns.get(key, turn))
        keys.append(key)
        parent = key
    run = RunRow(root.learner, asked.kind, root.repeat, wanted.run, asked.order, tuple(keys), wanted.floor)
    plan.runs.append(run)


_OF_LESSONS = ("patience", "plateau", "recalibrate", "reset_optimizer")
_OF_THE_RECIPE = ("epochs", "batch_size")


def _refuse_idle_training(study: Study, scenario: Scenario) -> None:
    """Refuse fields of the training recipe that mean nothing on a stream, where they were set to something."""
    if "borders" in scenario.offers:
        return
    reason = "a stream passes once, without lessons that something could be watched in or begin anew with"
    idle = dict.fromkeys(_OF_LESSONS, reason)
    if not any(METHODS.find(method.name).offline for method in study.methods):
        reason = "a stream passes once, in batches of its own; this goes with a method that learns it offline, as joint"
        idle |= dict.fromkeys(_OF_THE_RECIPE, reason)
    usual = Training()
    for name, why in idle.items():
        if getattr(study.training, name) != getattr(usual, name):
            raise InputError(f"study {study.name!r}: training: {name}: {why}")


def _check_fit(study: Study, scenario: Scenario, backbone: Component, method: Component) -> None:
    """Refuse, before anything runs, a backbone or method that does not fit the scenario or each other."""
    try:
        make_learner(scenario, backbone.name, method.name, study.training, 0, backbone.parameters, method.parameters)
    except InputError as error:
        raise InputError(f"study {study.name!r}: {error}") from error
