"""A study: one small description of what is learned by whom, in which orders and how often.

`Study` is what a study file says; `Plan` is the tree of stages it asks for. A stage's key is a digest of everything
that decides its record, so that studies which share a stage share its record.
"""

import hashlib
import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from skeleton_cgl.backbones.backbone import BACKBONES
from skeleton_cgl.config import Checked
from skeleton_cgl.engine.orders import AskedOrder, Order, Orders, describe, make_orders
from skeleton_cgl.errors import InputError
from skeleton_cgl.methods.learner import Learner, make_learner
from skeleton_cgl.methods.method import METHODS
from skeleton_cgl.methods.training import Training
from skeleton_cgl.process import choose_device
from skeleton_cgl.registry import Registry
from skeleton_cgl.scenarios.registry import check_scenario, make_scenario
from skeleton_cgl.scenarios.scenario import Scenario, Task
from skeleton_cgl.seeds import seed_of

if TYPE_CHECKING:
    from skeleton_cgl.engine.results import Results

RECORD_VERSION = 2
"""Changes when the same study would give other records."""


class Component(Checked):
    """A backbone or a method: its name, its parameters, and the label it goes by in tables."""

    name: str
    label: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.label or Path(self.name).stem

    def identity(self, registry: Registry) -> dict[str, Any]:
        """Return what decides what the component does: class, all parameters, and the code of a user's own."""
        found = registry.find(self.name)
        arguments = inspect.signature(found.__init__).parameters.values()
        defaults = {each.name: each.default for each in arguments if each.default is not inspect.Parameter.empty}
        identity = {"class": found.__qualname__, "parameters": {**defaults, **self.parameters}}
        if self.name not in registry.known:
            identity["code"] = hashlib.sha256(Path(inspect.getfile(found)).read_bytes()).hexdigest()
        return identity


def _component(value: Any) -> Any:
    """Return what a study says of a component, `ewc` or `{name: ewc, strength: 100}`, as its fields."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, dict) and "parameters" not in value:
        own = {key: value[key] for key in ("name", "label") if key in value}
        return {**own, "parameters": {key: entry for key, entry in value.items() if key not in own}}
    return value


class Study(Checked):
    """scenario × backbones × methods × orders × repeats.

    Repeat r draws split, first weights and training noise from seed + r. initialisation: "shared" starts all orders of
    a repeat alike, which lets them share their beginnings; "per-order" draws new weights for every order. noise_floor:
    so many runs per repeat of one and the same order, the first, that differ in their seeds alone.
    """

    name: str = "study"
    scenario: dict[str, Any] = Field(default_factory=dict)
    backbone: tuple[Component, ...] = Field(default=("gcn",), validate_default=True)
    methods: tuple[Component, ...] = Field(default=("bare",), validate_default=True)
    orders: Orders = Orders(tasks="all")
    training: Training = Training()
    repeats: int = Field(default=1, ge=1)
    seed: int = Field(default=0, ge=0)
    initialisation: Literal["shared", "per-order"] = "shared"
    noise_floor: int = Field(default=0, ge=0)

    @field_validator("scenario")
    @classmethod
    def _scenario_is_known(cls, fields: dict[str, Any]) -> dict[str, Any]:
        return check_scenario(fields).model_dump(mode="json", exclude_unset=True)

    @field_validator("backbone", "methods", mode="before")
    @classmethod
    def _components(cls, value: Any) -> Any:
        entries = value if isinstance(value, list | tuple) else [value]
        return [_component(entry) for entry in entries]

    @field_validator("backbone", "methods")
    @classmethod
    def _titles_differ(cls, components: tuple[Component, ...]) -> tuple[Component, ...]:
        titles = [component.title for component in components]
        if len(set(titles)) != len(titles):
            raise ValueError(f"{titles}: two of one name; give each a `label`")
        if not titles:
            raise ValueError("at least one is needed")
        return components

    def make_scenario(self, repeat: int) -> Scenario:
        """Return the scenario of a repeat: the same data, divided by a seed of its own."""
        return make_scenario(self.scenario, seed=self.seed + repeat)

    def make_learner(self, scenario: Scenario, stage: "Stage") -> Learner:
        """Return the learner that the first task of a stage's order finds."""
        return make_learner(
            scenario,
            backbone=stage.backbone.name,
            method=stage.method.name,
            training=self.training,
            seed=self.learner_seed(stage),
            backbone_parameters=stage.backbone.parameters,
            method_parameters=stage.method.parameters,
        )

    def learner_seed(self, stage: "Stage") -> int:
        """Return the seed of first weights, memories and training noise."""
        return seed_of("learner", self.seed + stage.repeat, stage.noise, stage.start)

    def run(self, store: str | Path, workers: int = 1, **options: Any) -> "Results":
        """Run what the store lacks of this study and return the results; see `skeleton_cgl.engine.run.run_study`."""
        from skeleton_cgl.engine.run import run_study

        return run_study(self, store, workers=workers, **options)


@dataclass(frozen=True)
class Stage:
    """The last task of `prefix` learned from the state its other tasks left.

    noise counts re-seeded runs of one order, 0 being the ordinary one; start names the order whose own first weights
    are used, and is empty where all orders start alike.
    """

    key: str
    parent: str | None
    backbone: Component
    method: Component
    repeat: int
    noise: int
    start: str
    prefix: Order

    def __str__(self) -> str:
        return f"{self.method.title} {describe(self.prefix)}"


@dataclass
class Plan:
    """The stages of a study, every one once, parents before children; and which of them each order consists of."""

    study: Study
    orders: list[AskedOrder]
    default_tasks: tuple[Task, ...]
    digests: list[str]
    stages: dict[str, Stage] = field(default_factory=dict)
    children: dict[str | None, list[str]] = field(default_factory=dict)
    runs: list[list[str]] = field(default_factory=list)

    @property
    def alone(self) -> int:
        """The number of stages if every order were run by itself."""
        return sum(len(run) for run in self.runs)

    def descendants(self, key: str) -> Iterator[str]:
        """Yield all stages below one."""
        for child in self.children.get(key, []):
            yield child
            yield from self.descendants(child)


def make_plan(study: Study, scenarios: list[Scenario]) -> Plan:
    """Return the plan of a study over its scenarios, one per repeat; refuse what does not fit together."""
    tasks = scenarios[0].default_tasks
    plan = Plan(study, make_orders(study.orders, tasks), tasks, [each.digest for each in scenarios])
    common = {
        "version": RECORD_VERSION,
        "training": {**study.training.model_dump(mode="json"), "device": choose_device(study.training.device).type},
    }
    for backbone in study.backbone:
        for method in study.methods:
            _check_fit(study, scenarios[0], backbone, method)
            identity = {
                **common,
                "backbone": backbone.identity(BACKBONES),
                "method": method.identity(METHODS),
            }
            for repeat, scenario in enumerate(scenarios):
                own = json.dumps({**identity, "scenario": scenario.digest, "seed": study.seed + repeat}, sort_keys=True)
                for order, noise in _runs(study, plan.orders):
                    _add_run(plan, own, backbone, method, repeat, noise, order)
    return plan


def _runs(study: Study, orders: list[AskedOrder]) -> Iterator[tuple[Order, int]]:
    """Yield the orders to run, each with its number of noise."""
    for asked in orders:
        yield asked.order, 0
    for noise in range(1, study.noise_floor):
        yield orders[0].order, noise


def _add_run(
    plan: Plan, identity: str, backbone: Component, method: Component, repeat: int, noise: int, order: Order
) -> None:
    start = describe(order) if plan.study.initialisation == "per-order" else ""
    parent: str | None = None
    run = []
    for step in range(1, len(order) + 1):
        prefix = order[:step]
        content = json.dumps([identity, noise, start, describe(prefix)])
        key = hashlib.sha256(content.encode()).hexdigest()[:32]
        if key not in plan.stages:
            plan.stages[key] = Stage(key, parent, backbone, method, repeat, noise, start, prefix)
            plan.children.setdefault(parent, []).append(key)
        run.append(key)
        parent = key
    plan.runs.append(run)


def _check_fit(study: Study, scenario: Scenario, backbone: Component, method: Component) -> None:
    """Refuse, before anything runs, a backbone or method that does not fit the scenario or each other."""
    try:
        make_learner(scenario, backbone.name, method.name, study.training, 0, backbone.parameters, method.parameters)
    except InputError as error:
        raise InputError(f"study {study.name!r}: {error}") from error
