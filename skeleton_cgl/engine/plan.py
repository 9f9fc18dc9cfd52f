"""The plan of a study: the tree of stages it asks for, and the runs they make up.

A stage's key is a digest of everything that decides its record, so that studies which share a stage share its record. A
sweep is one plan of several variants.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from skeleton_cgl.backbones.backbone import backbones_for
from skeleton_cgl.blame import blaming
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.orders import AskedOrder, make_orders
from skeleton_cgl.engine.rows import LearnerRow, RunRow, StudyRow
from skeleton_cgl.engine.study import Component, Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.process import choose_device
from skeleton_cgl.registry import METHODS, SCENARIOS
from skeleton_cgl.scenarios.lessons import Order, Prefix, describe, tokens
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.seeds import seed_of

RECORD_VERSION = 2
"""Changes when the same study would give other records."""


@dataclass(frozen=True)
class Stage:
    """The last lesson of `prefix` learned from the state its others left.

    variant counts the points of the study's sweep, learner the learners of the study. noise counts re-seeded runs of
    one order, 0 being the ordinary one. start names the order whose own first weights are used, and is empty where all
    orders start alike.
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

    def __str__(self) -> str:
        return f"{self.method} {tokens(self.prefix)}"

    def learner_seed(self, study: Study) -> int:
        """Return the seed of first weights, memories and training noise."""
        return seed_of("learner", study.seed + self.repeat, self.noise, self.start)

    def seed(self, study: Study) -> int:
        """Return the seed the stage is learned with."""
        return seed_of("stage", self.learner_seed(study), *(lesson.seed for lesson in self.prefix))

    def new_learner(self, study: Study, scenario: Scenario) -> Learner:
        """Return the learner that the first lesson of the stage's order finds."""
        return make_learner(
            scenario,
            backbone=self.backbone.name,
            method=self.method.name,
            training=study.training,
            seed=self.learner_seed(study),
            backbone_parameters=self.backbone.parameters,
            method_parameters=self.method.parameters,
        )


@dataclass
class Plan:
    """The stages of a study, every one once, parents before children; and the runs they make up."""

    study: Study
    variants: list[Study]
    scenarios: list[list[Scenario]]
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
            codes[_code_of_scenario(variant)] = None
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
        )

    def setting(self, stage: Stage) -> tuple[Study, Scenario]:
        """Return what a stage is learned in."""
        return self.variants[stage.variant], self.scenarios[stage.variant][stage.repeat]

    def descendants(self, key: str) -> Iterator[str]:
        """Yield all stages below one."""
        for child in self.children.get(key, []):
            yield child
            yield from self.descendants(child)


def make_plan(study: Study) -> Plan:
    """Return the plan of a study; refuse what does not fit together."""
    variants = study.variants()
    plan = Plan(study, [variant.study for variant in variants], study.make_scenarios())
    first = plan.scenarios[0][0]
    for number, (variant, scenarios) in enumerate(zip(variants, plan.scenarios, strict=True)):
        if scenarios[0].units != first.units:
            raise InputError(f"study {study.name!r}: sweep: the classes differ; make studies of their own of them")
        if scenarios[0].problem.metrics != first.problem.metrics:
            raise InputError(f"study {study.name!r}: sweep: the metrics differ; make studies of their own of them")
        for backbone, method in itertools.product(variant.study.backbone, variant.study.methods):
            with blaming(f"study {study.name!r}: scenario", *scenarios):
                _check_fit(variant.study, scenarios[0], backbone, method)
                registry = backbones_for(scenarios[0].facts.takes)
                rows = (backbone.row(registry), method.row(METHODS))
                plan.learners.append(LearnerRow(len(plan.learners), *rows, variant.point))
                _add_learner(plan, Stage("", None, number, len(plan.learners) - 1, backbone, method, 0, 0, "", ()))
    return plan


def _add_learner(plan: Plan, root: Stage) -> None:
    """Add all runs of a learner; `root` says which, at which point of the sweep."""
    study, scenarios = plan.variants[root.variant], plan.scenarios[root.variant]
    orders = make_orders(study.orders, scenarios[0].default, scenarios[0].unit_kind)
    training = study.training.model_dump(mode="json", exclude=study.training.as_before)
    identity = {
        "version": RECORD_VERSION,
        "training": {**training, "device": choose_device(study.training.device).type},
        "backbone": root.backbone.identity(backbones_for(scenarios[0].facts.takes)),
        "method": root.method.identity(METHODS),
    }
    code = _code_of_scenario(study)
    if code is not None:
        identity["scenario code"] = code
    for repeat, scenario in enumerate(scenarios):
        own = json.dumps({**identity, "scenario": scenario.digest, "seed": study.seed + repeat}, sort_keys=True)
        for asked, noise in _runs(study, orders):
            _add_run(plan, own, replace(root, repeat=repeat, noise=noise), scenario.lessons(asked.order), asked)


def _code_of_scenario(study: Study) -> str | None:
    return SCENARIOS.code_of(study.scenario.get("kind", "skeleton"))


def _runs(study: Study, orders: list[AskedOrder]) -> Iterator[tuple[AskedOrder, int]]:
    """Yield the orders to run, each with its number of noise."""
    for asked in orders:
        yield asked, 0
    for noise in range(1, study.noise_floor):
        yield orders[0], noise


def _add_run(plan: Plan, identity: str, root: Stage, lessons: Prefix, asked: AskedOrder) -> None:
    """Add the stages of an order; `root` says by what, in which repeat."""
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
        keys.append(key)
        parent = key
    plan.runs.append(RunRow(root.learner, asked.kind, root.repeat, root.noise, asked.order, tuple(keys)))


def _check_fit(study: Study, scenario: Scenario, backbone: Component, method: Component) -> None:
    """Refuse, before anything runs, a backbone or method that does not fit the scenario or each other."""
    try:
        make_learner(scenario, backbone.name, method.name, study.training, 0, backbone.parameters, method.parameters)
    except InputError as error:
        raise InputError(f"study {study.name!r}: {error}") from error
