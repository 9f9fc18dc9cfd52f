"""A study: one small description of what is learned by whom, in which orders and how often: what a study file says."""

import hashlib
import inspect
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Self, get_args

from pydantic import Field, field_validator

from skeleton_cgl.config import Checked, check, put, read_fields, set_field
from skeleton_cgl.engine.draws import LARGEST_SEED, NoiseFloor, Seeds
from skeleton_cgl.engine.orders import Orders
from skeleton_cgl.engine.rows import ComponentRow, Values
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.training import Training
from skeleton_cgl.plain import is_fit, is_plain, shown
from skeleton_cgl.registry import Registry, arguments_of
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.scenarios.settings import check_scenario, make_scenario
from skeleton_cgl.seeds import seed_of

_WHOLE_FLOATS = 2**53
"""Up to here every whole number is a float."""
MOST_VARIANTS = 1000
"""More points of a sweep than these are not planned."""


class Component(Checked):
    """A backbone or a method: its name, its parameters, and the label a user wants it called by."""

    name: str
    label: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)

    def __str__(self) -> str:
        return self.label or Path(self.name).stem

    def written(self) -> dict[str, Any]:
        """Return the component as a study file has it."""
        return {"name": self.name, **({"label": self.label} if self.label else {}), **self.parameters}

    def identity(self, registry: Registry) -> dict[str, Any]:
        """Return what decides what the component does: class, version, all parameters, and the code of a user's own.

        A parameter that came or went while records were kept stands at the value that means "as before", so that old
        keys stay: see `younger` and `gone` of backbones and methods.
        """
        found = registry.find(self.name)
        arguments = arguments_of(found)
        defaults = {
            name: argument.default
            for name, argument in arguments.items()
            if argument.default is not inspect.Parameter.empty
        }
        given = {name: _spelled(value, arguments.get(name)) for name, value in self.parameters.items()}
        parameters = {**found.gone, **defaults, **given}
        if registry.is_built_in(self.name):
            parameters = found.spelled_out(parameters)
        for name, value in parameters.items():
            if not is_plain(value):
                raise InputError(
                    f"{registry.kind} {self.name!r}: parameter {name!r}: expected a number, text, list or map, which "
                    f"the key of a record can tell, found {shown(value)}"
                )
        for name, as_before in found.younger.items():
            if name in parameters and parameters[name] == as_before:
                del parameters[name]
        code = registry.code_of(self.name)
        return {
            "class": found.__qualname__,
            "parameters": parameters,
            **({} if found.version == 1 else {"version": found.version}),
            **({} if code is None else {"code": code}),
        }

    def row(self, registry: Registry) -> ComponentRow:
        """Return the component as the store keeps it."""
        identity = self.identity(registry)
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True, default=repr).encode()).hexdigest()
        return ComponentRow(self.name, self.label, tuple(self.parameters.items()), identity["class"], digest)


def _spelled(value: Any, argument: inspect.Parameter | None) -> Any:
    """Return the value of a parameter; a number in one spelling, the default's where it equals that, else a float's.

    Whole numbers and fractions are told apart unless the argument is a float, perhaps or None. A whole number that is
    no float stays as it is.
    """
    if argument is None or type(value) not in (int, float):
        return value
    kinds = get_args(argument.annotation) or (argument.annotation,)
    if [kind for kind in kinds if kind is not NoneType] != [float]:
        return value
    if value == argument.default:
        return argument.default
    return float(value) if abs(value) <= _WHOLE_FLOATS else value


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

    Repeat r draws split, first weights and training noise from seed + r; `seeds` gives one or the other a seed of its
    own. initialisation: "shared" starts all orders of a repeat alike, which lets them share their beginnings;
    "per-order" draws new weights for every order. noise_floor: runs of the same order that differ in what is drawn.
    sweep: values of any field, such as {"backbone.width": [32, 64]}; everything is run with each of them, or with each
    combination.
    """

    name: str = "study"
    scenario: dict[str, Any] = Field(default_factory=dict)
    backbone: tuple[Component, ...] = Field(default=("gcn",), validate_default=True)
    methods: tuple[Component, ...] = Field(default=("bare",), validate_default=True)
    orders: Orders = Orders(tasks="all")
    training: Training = Training()
    repeats: int = Field(default=1, ge=1, le=10_000)
    seed: int = Field(default=0, ge=0, le=LARGEST_SEED)
    seeds: Seeds = Seeds()
    initialisation: Literal["shared", "per-order"] = "shared"
    noise_floor: NoiseFloor | None = None
    sweep: dict[str, tuple[Any, ...]] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _name_is_fit(cls, name: str) -> str:
        if not is_fit(name):
            raise ValueError(f"{shown(name)} has a control character in it")
        return name

    @field_validator("sweep")
    @classmethod
    def _sweep_is_possible(cls, sweep: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        for path, values in sweep.items():
            if path.split(".")[0] not in cls.model_fields.keys() - {"name", "seed", "seeds", "repeats", "sweep"}:
                raise ValueError(f"{path!r} cannot be swept")
            if not all(is_plain(value) for value in values):
                raise ValueError(f"{path!r}: expected numbers, text, lists or maps")
            if not values or len({json.dumps(value) for value in values}) < len(values):
                raise ValueError(f"{path!r}: give at least one value, and each once")
        points = math.prod(map(len, sweep.values()))
        if points > MOST_VARIANTS:
            raise ValueError(f"{points:,} combinations, expected at most {MOST_VARIANTS:,}")
        return sweep

    @field_validator("noise_floor", mode="before")
    @classmethod
    def _one_run_is_no_floor(cls, value: Any) -> Any:
        return None if value in (0, 1) and not isinstance(value, bool) else value

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
    def _components_differ(cls, components: tuple[Component, ...]) -> tuple[Component, ...]:
        if not components:
            raise ValueError("at least one is needed")
        given = [json.dumps([each.name, each.parameters], sort_keys=True, default=repr) for each in components]
        labels = [each.label for each in components if each.label]
        for kind, entries in (("components", given), ("labels", labels)):
            if len(set(entries)) < len(entries):
                raise ValueError(f"{[str(each) for each in components]}: two {kind} are the same")
        return components

    @classmethod
    def from_file(cls, path: str | Path, changes: Sequence[str] = ()) -> Self:
        """Return the study in a file, some fields changed (`training.epochs=20`); unless it has a name, the file's.

        The file named by `include`, sought beside this one, gives the fields that this one does not; it may include
        another in turn. Fields are taken whole: one file's `training` is not mixed with another's. Changes are made to
        what comes of it, so that one field of an included `training` can be changed; only `include=` comes before.
        """
        path = Path(path)
        fields = {"name": path.stem, **read_fields(path)}
        of_include = [change for change in changes if change.startswith("include=")]
        for change in of_include:
            set_field(fields, change)
        fields = _with_included(fields, path)
        for change in changes:
            if change not in of_include:
                set_field(fields, change)
        return check(fields, cls, where=str(path))

    def variants(self) -> list["Variant"]:
        """Return the studies a sweep consists of; a study without one is its only variant."""
        if not self.sweep:
            return [Variant((), self)]
        points = [dict(zip(self.sweep, values, strict=True)) for values in itertools.product(*self.sweep.values())]
        return [Variant(tuple(point.items()), self._at(point)) for point in points]

    def _at(self, point: dict[str, Any]) -> "Study":
        """Return this study at one point of its sweep."""
        fields = self.model_dump(mode="json", exclude={"sweep"})
        for part, components in (("backbone", self.backbone), ("methods", self.methods)):
            fields[part] = [component.written() for component in components]
        where = ", ".join(f"{path}={value}" for path, value in point.items())
        try:
            for path, value in point.items():
                put(fields, path, value)
        except InputError as error:
            raise InputError(f"study {self.name!r}: sweep: {where}: {error}") from error
        return check(fields, Study, where=f"study {self.name!r}: sweep: {where}")

    def make_scenario(self, repeat: int, division: int = 0) -> Scenario:
        """Return the scenario of a repeat: the same data, divided by a seed of its own.

        division: 0 is how the repeat's orders have the data; others are divisions that noise floors draw anew.
        """
        seed = self._seed("split") + repeat
        return make_scenario(self.scenario, seed if division == 0 else seed_of("division", seed, division), repeat)

    def weights_seed(self, repeat: int) -> int:
        """Return the seed of first weights."""
        return self._seed("weights") + repeat

    def noise_seed(self, repeat: int) -> int:
        """Return the seed of training noise and memories."""
        return self._seed("noise") + repeat

    def _seed(self, purpose: str) -> int:
        own: int | None = getattr(self.seeds, purpose)
        return self.seed if own is None else own


def _with_included(fields: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the fields of the file at `path` with those that included files give besides, the nearer one first.

    Refused: files that include one another in a circle.
    """
    first, met = path, [path.resolve()]
    while (included := fields.pop("include", None)) is not None:
        path = path.parent / str(included)
        fields = {**read_fields(path), **fields}
        if path.resolve() in met:
            names = " → ".join(each.name for each in [*met, path.resolve()])
            raise InputError(f"{first}: include: files include one another in a circle: {names}")
        met.append(path.resolve())
    return fields


@dataclass(frozen=True)
class Variant:
    """One point of a sweep, the swept fields and their values, and the study at it."""

    point: Values
    study: Study
