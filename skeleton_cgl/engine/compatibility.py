"""Which methods are defined for which kinds of scenario, in which settings: what they need against what is offered."""

from dataclasses import dataclass
from typing import Any, get_args

from skeleton_cgl.engine.learners import BACKBONE_NEEDS
from skeleton_cgl.learning.method import make_method, needs_of
from skeleton_cgl.registry import METHODS, SCENARIOS
from skeleton_cgl.scenarios.graph_labels import GraphLabelsSettings
from skeleton_cgl.scenarios.scenario import offers_in
from skeleton_cgl.scenarios.settings import ScenarioSettings

_MORE = {"graph, labels": GraphLabelsSettings}
"""Kinds that a study does not name: what `kind: graph` is where graphs have binary labels."""


@dataclass(frozen=True)
class Compatibility:
    """A method with its default parameters: where it is from, the settings of every kind of scenario it is defined for.

    of_backbone: what it needs of a backbone besides.
    """

    method: str
    paper: str
    settings: dict[str, tuple[str, ...]]
    of_backbone: tuple[str, ...]


def compatibilities() -> list[Compatibility]:
    """Return the compatibility of every method that can be named and made with its defaults."""
    found = []
    for name in METHODS.names():
        method = make_method(name, {})
        of_backbone = needs_of(method) & BACKBONE_NEEDS.keys()
        needed = needs_of(method) - of_backbone
        settings = {
            kind: tuple(setting for setting in _settings_of(fields) if needed <= offers_in(setting, fields.offered))
            for kind, fields in _kinds().items()
        }
        found.append(Compatibility(name, method.paper, settings, tuple(sorted(of_backbone))))
    return found


def _kinds() -> dict[str, type[ScenarioSettings]]:
    built_in = {name: SCENARIOS.find(name) for name in SCENARIOS.names() if SCENARIOS.is_built_in(name)}
    return dict(sorted((built_in | _MORE).items()))


def _settings_of(fields: type[Any]) -> tuple[str, ...]:
    settings: tuple[str, ...] = get_args(fields.model_fields["setting"].annotation)
    return settings
