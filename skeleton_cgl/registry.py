"""Finding a class by what a user calls it: a known name, `module:Class`, or a Python file.

One registry serves backbones and methods alike; known names are looked up lazily, so that listing them imports nothing.
"""

import importlib
import importlib.util
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError


@dataclass(frozen=True)
class Registry:
    """Classes of one kind, derived from the class at `base`; `known` maps a name to `module:Class`."""

    kind: str
    base: str
    known: dict[str, str]

    def find(self, name: str) -> type:
        """Return the class called `name`; refuse what is not found or not of this kind, saying what was expected."""
        if name in self.known:
            return _load(self.known[name])
        if name.endswith(".py"):
            return self._from_file(Path(name))
        if ":" in name:
            try:
                found = _load(name)
            except (ImportError, AttributeError, TypeError, ValueError) as error:
                raise InputError(f"{self.kind} {name!r}: {error}") from error
            return self._checked(found, name)
        raise InputError(f"unknown {self.kind} {name!r}{did_you_mean(name, self.known)}")

    def _from_file(self, path: Path) -> type:
        if not path.is_file():
            raise InputError(f"{self.kind} {path}: no such file")
        module_name = f"skeleton_cgl_file_{path.stem}"
        # Among the known modules, so that dataclasses in it, and workers sent its classes, find it.
        spec = importlib.util.spec_from_file_location(module_name, path)
        module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise InputError(f"{self.kind} {path}: cannot be imported: {type(error).__name__}: {error}") from error
        base = _load(self.base)
        own = {
            value
            for value in vars(module).values()
            if inspect.isclass(value) and issubclass(value, base) and value.__module__ == module_name
        }
        if len(own) != 1:
            found = ", ".join(sorted(value.__name__ for value in own)) or "none"
            raise InputError(f"{self.kind} {path}: expected one class derived from {base.__name__}, found {found}")
        return own.pop()

    def _checked(self, found: Any, name: str) -> type:
        base = _load(self.base)
        if not (inspect.isclass(found) and issubclass(found, base)):
            raise InputError(f"{self.kind} {name!r}: expected a class derived from {base.__name__}")
        return found

    def make(self, name: str, parameters: dict[str, Any], offered: dict[str, Any] | None = None) -> Any:
        """Return an instance of the class called `name` with a user's `parameters`.

        Of what is `offered`, the constructor gets what it asks for by name. Refused, with the nearest known name
        suggested: a parameter the constructor does not have; also, a parameter it needs and does not get.
        """
        found = self.find(name)
        accepted = {
            argument.name: argument
            for argument in list(inspect.signature(found.__init__).parameters.values())[1:]
            if argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY)
        }
        offered = {key: value for key, value in (offered or {}).items() if key in accepted}
        free = [key for key in accepted if key not in offered]
        for key in parameters:
            if key not in free:
                raise InputError(f"{self.kind} {name!r}: unknown parameter {key!r}{did_you_mean(key, free)}")
        for key in free:
            if accepted[key].default is inspect.Parameter.empty and key not in parameters:
                raise InputError(f"{self.kind} {name!r}: parameter {key!r} is missing")
        try:
            return found(**offered, **parameters)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"{self.kind} {name!r}: {error}") from error


def _load(address: str) -> Any:
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)
