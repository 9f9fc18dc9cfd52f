"""What is checked: a method or a backbone, by what a user calls it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from skeleton_cgl.backbones.backbone import backbones_for
from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import CLIP_BACKBONES, GRAPH_BACKBONES, METHODS, SCENARIOS, Registry


@dataclass(frozen=True)
class Subject:
    """A method or a backbone by what a user calls it, with parameters.

    data: "clips" or "graph" for made-up ones, else an archive or a skeleton data set by name.
    """

    kind: Literal["method", "backbone"]
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    data: str = "clips"

    @property
    def found(self) -> type[Any]:
        """The class."""
        return self._registry.find(self.name)

    @property
    def _registry(self) -> Registry:
        if self.kind == "method":
            return METHODS
        return backbones_for("graph" if self.data == "graph" else "clips")


def find_subject(name: str, parameters: Mapping[str, Any] | None = None, data: str | None = None) -> Subject:
    """Return the method or backbone called `name`, a known name, `module:Class` or a file; refuse what is neither."""
    found = []
    reasons = []
    registries = (METHODS, GRAPH_BACKBONES if data == "graph" else CLIP_BACKBONES)
    for registry in registries:
        try:
            found.append((registry, registry.find(name)))
        except InputError as error:
            reasons.append(error)
    if len(found) == 2:
        raise InputError(f"{name}: both a method and a backbone; put them into files of their own")
    if not found:
        if not (name.endswith(".py") or ":" in name):
            known = [each for registry in registries for each in registry.names()]
            raise InputError(f"unknown method or backbone {name!r}{did_you_mean(name, known)}")
        missing = all("found none" in str(reason) for reason in reasons)
        raise _neither(name) if missing else reasons[0]
    registry, kind = found[0]
    takes = "clips" if registry is METHODS else kind.takes
    return Subject("method" if registry is METHODS else "backbone", name, dict(parameters or {}), data or takes)


def _neither(name: str) -> InputError:
    """Return what to say of a file without a method or backbone; of a scenario's, how that is tried."""
    try:
        scenario = SCENARIOS.find(name).__name__
    except InputError:
        return InputError(f"{name}: no class derived from Method or from Backbone in it")
    return InputError(
        f"{name}: {scenario} is of a scenario, and methods and backbones are checked; a study with `kind: {name}` "
        "tries it, and `run STUDY --dry-run` whether it can be made"
    )
