"""Finding a component by what a user calls it: a known name, `module:Class`, or a Python file.

One registry class serves everything that can be added: backbones, methods, scenarios, data sets, figures, metrics. A
built-in component is a module of its kind's package, found by the module's name; a separate package adds its own by an
entry point in the group of the kind. Nothing is imported until it is asked for.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from skeleton_cgl.blame import blamed, blamed_on_file
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.userfiles import UserFile


@dataclass(frozen=True)
class Registry:
    """Classes of one kind, derived from the class at `base` (`module:Class`).

    package: its modules, but for those its `SHARED` names, are the built-in components, one class each; `-` in a name
    is `_` in that of the module. Entry points of the group `skeleton_cgl.KINDs` add more.
    """

    kind: str
    base: str
    package: str

    @property
    def group(self) -> str:
        """The group of entry points by which a package adds components of this kind."""
        return f"skeleton_cgl.{self.kind}s"

    def names(self) -> list[str]:
        """Return all known names: the built-in ones and those that installed packages add."""
        return sorted({*_modules(self.package), *_entry_points(self.group)})

    def knows(self, name: str) -> bool:
        """Return whether a name is that of a component, built-in or added."""
        return self.is_built_in(name) or name in _entry_points(self.group)

    def is_built_in(self, name: str) -> bool:
        return name in _modules(self.package)

    def code_of(self, name: str) -> str | None:
        """Return a digest of the file that a component of a user's own is in, and of all modules of theirs it imports.

        None for a built-in one.
        """
        if self.is_built_in(name):
            return None
        found = self.find(name)
        known_by = "" if name.endswith(".py") else found.__module__
        return UserFile.read(Path(inspect.getfile(found)).resolve(), known_by).digest

    def find(self, name: str) -> type[Any]:
        """Return the class called `name`; refuse what is not found or not of this kind, saying what was expected."""
        if self.is_built_in(name):
            return self._only_class(importlib.import_module(_modules(self.package)[name]), name)
        if name in _entry_points(self.group):
            return self._loaded(_entry_points(self.group)[name], name)
        if name.endswith(".py"):
            return self._from_file(Path(name))
        if ":" in name:
            return self._loaded(name, name)
        raise InputError(f"unknown {self.kind} {name!r}{did_you_mean(name, self.names())}")

    def _loaded(self, address: str, name: str) -> type[Any]:
        try:
            found = _load(address)
        except Exception as error:
            raise InputError(f"{self.kind} {name!r}: {error}") from error
        base = _load(self.base)
        if not (inspect.isclass(found) and issubclass(found, base)):
            raise InputError(f"{self.kind} {name!r}: expected a class derived from {base.__name__}")
        return found

    def _from_file(self, path: Path) -> type[Any]:
        if not path.is_file():
            raise InputError(f"{self.kind} {path}: no such file")
        try:
            module = UserFile.read(path.resolve()).module()
        except InputError as error:
            raise InputError(f"{self.kind} {path}: {error}") from error
        except Exception as error:
            raise InputError(
                f"{self.kind} {path}: cannot be imported: {blamed_on_file(error, path.resolve())}"
            ) from error
        return self._only_class(module, str(path))

    def _only_class(self, module: Any, name: str) -> type[Any]:
        """Return the one class of a module that is of this kind and defined there."""
        base = _load(self.base)
        own = {
            value
            for value in vars(module).values()
            if inspect.isclass(value) and issubclass(value, base) and value.__module__ == module.__name__
        }
        if len(own) != 1:
            found = ", ".join(sorted(value.__name__ for value in own)) or "none"
            raise InputError(f"{self.kind} {name}: expected one class derived from {base.__name__}, found {found}")
        return own.pop()

    def make(self, name: str, parameters: Mapping[str, Any], offered: Mapping[str, Any] | None = None) -> Any:
        """Return an instance of the class called `name` with a user's `parameters`.

        Of what is `offered`, the constructor gets what it asks for by name. Refused, with the nearest known name
        suggested: a parameter the constructor does not have; also, a parameter it needs and does not get.
        """
        found = self.find(name)
        accepted = arguments_of(found)
        given = {key: value for key, value in (offered or {}).items() if key in accepted}
        free = [key for key in accepted if key not in given]
        for key in parameters:
            if key not in free:
                raise InputError(f"{self.kind} {name!r}: unknown parameter {key!r}{did_you_mean(key, free)}")
        for key in free:
            if accepted[key].default is inspect.Parameter.empty and key not in parameters:
                raise InputError(f"{self.kind} {name!r}: parameter {key!r} is missing")
        try:
            return found(**given, **parameters)
        except ValueError as error:
            # How a constructor refuses a value: in its own words.
            raise InputError(f"{self.kind} {name!r}: {error}") from error
        except Exception as error:
            raise InputError(f"{self.kind} {name!r}: {blamed(error, found)}") from error

    def described(self) -> dict[str, str]:
        """Return, for every known name, the first sentence of its description and the parameters it may be given."""
        return {name: _summary(self.find(name)) for name in self.names()}


_BACKBONE = "skeleton_cgl.backbones.backbone:Backbone"
CLIP_BACKBONES = Registry("backbone", _BACKBONE, "skeleton_cgl.backbones.clips")
GRAPH_BACKBONES = Registry("backbone", _BACKBONE, "skeleton_cgl.backbones.graphs")
METHODS = Registry("method", "skeleton_cgl.learning.method:Method", "skeleton_cgl.methods")
SCENARIOS = Registry("scenario", "skeleton_cgl.scenarios.settings:ScenarioSettings", "skeleton_cgl.scenarios")
DATASETS = Registry("dataset", "skeleton_cgl.skeletons.recording:Source", "skeleton_cgl.skeletons.sources")
GRAPH_DATASETS = Registry("graph-dataset", "skeleton_cgl.graphs.source:GraphSource", "skeleton_cgl.graphs.sources")
FIGURES = Registry("figure", "skeleton_cgl.analysis.figure:StudyFigure", "skeleton_cgl.analysis.figures")
METRICS = Registry("metric", "skeleton_cgl.analysis.metric:Metric", "skeleton_cgl.analysis.metrics")
LISTED = {
    "methods": METHODS,
    "backbones": CLIP_BACKBONES,
    "graph-backbones": GRAPH_BACKBONES,
    "datasets": DATASETS,
    "graph-datasets": GRAPH_DATASETS,
    "scenarios": SCENARIOS,
    "figures": FIGURES,
    "metrics": METRICS,
}
"""Everything that can be added, as `skeleton-cgl ls` calls it."""


def arguments_of(found: type[Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments of a class's constructor that can be given by name."""
    signature = inspect.signature(found)
    return {
        argument.name: argument
        for argument in signature.parameters.values()
        if argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY)
    }


@cache
def _modules(package: str) -> dict[str, str]:
    """Return the built-in components of a package: their names and modules."""
    found = importlib.import_module(package)
    shared: Iterable[str] = getattr(found, "SHARED", ())
    return {
        module.name.replace("_", "-"): f"{package}.{module.name}"
        for module in pkgutil.iter_modules(found.__path__)
        if module.name not in shared
    }


@cache
def _entry_points(group: str) -> dict[str, str]:
    return {entry.name: entry.value for entry in entry_points(group=group)}


def _summary(found: type[Any]) -> str:
    settable = [*getattr(found, "model_fields", ())] or [
        each.name for each in arguments_of(found).values() if each.default is not inspect.Parameter.empty
    ]
    description = inspect.getdoc(inspect.getmodule(found)) or inspect.getdoc(found) or ""
    first = description.splitlines()[0] if description else ""
    return f"{first} [{', '.join(settable)}]" if settable else first


def _load(address: str) -> Any:
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)
