"""A study: one small description of what is learned by whom, in which orders and how often.

`Study` is what a study file says; `Plan` is the tree of stages it asks for. A stage's key is a digest of everything
that decides its record, so that studies which share a stage share its record. A sweep is one plan of several variants.
"""

import hashlib
import inspect
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, field_validator

from skeleton_cgl.backbones.backbone import BACKBONES
from skeleton_cgl.config import Checked, check, put, read_fields, set_field
from skeleton_cgl.engine.orders import AskedOrder, Orders, make_orders
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner, make_learner
from skeleton_cgl.learning.method import METHODS
from skeleton_cgl.learning.training import Training
from skeleton_cgl.process import choose_device
from skeleton_cgl.registry import Registry
from skeleton_cgl.scenarios.lessons import Order, describe
from skeleton_cgl.scenarios.registry import check_scenario, make_scenario
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.seeds import seed_of

if TYPE_CHECKING:
    from skeleton_cgl.analysis.results import Results

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

    def written(self) -> dict[str, Any]:
        """Return the component as a study file has it."""
        return {"name": self.name, **({"label": self.label} if self.label else {}), **self.parameters}

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
    so many runs per repeat of one and the same order, the first, that differ in their seeds alone. sweep: values of any
    field, such as {"backbone.width": [32, 64]}; everything is run with each of them, or with each combination.
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
    sweep: dict[str, tuple[Any, ...]] = Field(default_factory=dict)

    @field_validator("sweep")
    @classmethod
    def _sweep_is_possible(cls, sweep: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        for path, values in sweep.items():
            if path.split(".")[0] not in cls.model_fields.keys() - {"name", "seed", "repeats", "sweep"}:
                raise ValueError(f"{path!r} cannot be swept")
            if not values or len({json.dumps(value) for value in values}) < len(values):
                raise ValueError(f"{path!r}: give at least one value, and each once")
        return sweep

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

    @classmethod
    def from_file(cls, path: str | Path, changes: Iterable[str] = ()) -> Self:
        """Return the study in a file, some fields changed (`training.epochs=20`); unless it has a name, the file's.

        The file named by `include`, sought beside this one, gives the fields that this one does not.
        """
        path = Path(path)
        fields = {"name": path.stem, **read_fields(path)}
        for change in changes:
            set_field(fields, change)
        included = fields.pop("include", None)
        if included is not None:
            fields = {**read_fields(path.parent / str(included)), **fields}
        return check(fields, cls, where=str(path))

    def variants(self) -> list["Variant"]:
        """Return the studies a sweep consists of; a study without one is its only variant."""
        if not self.sweep:
            return [Variant({}, self)]
        points = [dict(zip(self.sweep, values, strict=True)) for values in itertools.product(*self.sweep.values())]
        return [Variant(point, self._at(point)) for point in points]

    def _at(self, point: dict[str, Any]) -> "Study":
        """Return this study at one point of its sweep; its backbones are named after the point."""
        fields = self.model_dump(mode="json", exclude={"sweep"})
        for part, components in (("backbone", self.backbone), ("methods", self.methods)):
            fields[part] = [component.written() for component in components]
        where = ", ".join(f"{path}={value}" for path, value in point.items())
        try:
            for path, value in point.items():
                put(fields, path, value)
        except InputError as error:
            raise InputError(f"study {self.name!r}: sweep: {where}: {error}") from error
        study = check(fields, Study, where=f"study {self.name!r}: sweep: {where}")
        label = ", ".join(f"{path.removeprefix('backbone.')}={point[path]}" for path in point if path != "backbone")
        named = [each.model_copy(update={"label": f"{each.title} {label}".strip()}) for each in study.backbone]
        return study.model_copy(update={"backbone": tuple(named)})

    def make_scenarios(self) -> list[list[Scenario]]:
        """Return the scenarios of every variant, one per repeat; those that are the same are made once."""
        made: dict[str, Scenario] = {}
        variants = []
        for variant in self.variants():
            scenarios = []
            for repeat in range(self.repeats):
                wanted = json.dumps([variant.study.scenario, repeat], sort_keys=True)
                if wanted not in made:
                    made[wanted] = variant.study.make_scenario(repeat)
                scenarios.append(made[wanted])
            variants.append(scenarios)
        return variants

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
class Variant:
    """One point of a sweep, the swept fields and their values, and the study at it."""

    point: dict[str, Any]
    study: Study


@dataclass(frozen=True)
class Stage:
    """The last task of `prefix` learned from the state its other tasks left.

    variant counts the points of the study's sweep. noise counts re-seeded runs of one order, 0 being the ordinary one.
    start names the order whose own first weights are used, and is empty where all orders start alike.
    """

    key: str
    parent: str | None
    variant: int
    backbone: Component
    method: Component
    repeat: int
    noise: int
    start: str
    prefix: Order

    def __str__(self) -> str:
        return f"{self.method.title} {describe(self.prefix)}"


@dataclass(frozen=True)
class Run:
    """One order learned once: what by, and the keys of its stages."""

    kind: str
    backbone: str
    method: str
    repeat: int
    noise: int
    order: Order
    keys: tuple[str, ...]


@dataclass
class Plan:
    """The stages of a study, every one once, parents before children; and the runs they make up."""

    study: Study
    variants: list[Study]
    scenarios: list[list[Scenario]]
    stages: dict[str, Stage] = field(default_factory=dict)
    children: dict[str | None, list[str]] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    @property
    def alone(self) -> int:
        """The number of stages if every order were run by itself."""
        return sum(len(run.keys) for run in self.runs)

    @property
    def digests(self) -> list[str]:
        """The digests of all scenarios, variant by variant."""
        return [scenario.digest for scenarios in self.scenarios for scenario in scenarios]

    @property
    def orders(self) -> set[Order]:
        return {run.order for run in self.runs}

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
    plan = Plan(study, [variant.study for variant in study.variants()], study.make_scenarios())
    units = plan.scenarios[0][0].units
    for number, scenarios in enumerate(plan.scenarios):
        if scenarios[0].units != units:
            raise InputError(f"study {study.name!r}: sweep: the classes differ; make studies of their own of them")
        _add_variant(plan, number)
    return plan


def _add_variant(plan: Plan, number: int) -> None:
    study, scenarios = plan.variants[number], plan.scenarios[number]
    orders = make_orders(study.orders, scenarios[0].default_tasks)
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
                for asked, noise in _runs(study, orders):
                    root = Stage("", None, number, backbone, method, repeat, noise, "", ())
                    _add_run(plan, own, root, asked)


def _runs(study: Study, orders: list[AskedOrder]) -> Iterator[tuple[AskedOrder, int]]:
    """Yield the orders to run, each with its number of noise."""
    for asked in orders:
        yield asked, 0
    for noise in range(1, study.noise_floor):
        yield orders[0], noise


def _add_run(plan: Plan, identity: str, root: Stage, asked: AskedOrder) -> None:
    """Add the stages of an order; `root` says by what, in which repeat."""
    start = describe(asked.order) if plan.variants[root.variant].initialisation == "per-order" else ""
    parent: str | None = None
    keys = []
    for step in range(1, len(asked.order) + 1):
        prefix = asked.order[:step]
        content = json.dumps([identity, root.noise, start, describe(prefix)])
        key = hashlib.sha256(content.encode()).hexdigest()[:32]
        if key not in plan.stages:
            plan.stages[key] = replace(root, key=key, parent=parent, start=start, prefix=prefix)
            plan.children.setdefault(parent, []).append(key)
        keys.append(key)
        parent = key
    names = (root.backbone.title, root.method.title)
    plan.runs.append(Run(asked.kind, *names, root.repeat, root.noise, asked.order, tuple(keys)))


def _check_fit(study: Study, scenario: Scenario, backbone: Component, method: Component) -> None:
    """Refuse, before anything runs, a backbone or method that does not fit the scenario or each other."""
    try:
        make_learner(scenario, backbone.name, method.name, study.training, 0, backbone.parameters, method.parameters)
    except InputError as error:
        raise InputError(f"study {study.name!r}: {error}") from error
