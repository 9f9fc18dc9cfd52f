"""Which methods are defined for which kinds of scenario, in which settings: what they need against what is offered."""

from dataclasses import dataclass
from typing import Any, get_args

from skeleton_cgl.engine.learners import BACKBONE_NEEDS
from skeleton_cgl.learning.method import make_method, needs_of
from skeleton_cgl.registry import METHODS, SCENARIOS
from skeleton_cgl.scenarios.graph_labels import GraphLabelsSettings
from skeleton_cgl.scenarios.scenario import Need, offers_in, offers_on_stream
from skeleton_cgl.scenarios.settings import ScenarioSettings

_MORE = {"graph, labels": GraphLabelsSettings}
"""Kinds that a study does not name: what `kind: graph` is where graphs have binary labels."""


@dataclass(frozen=True)
class Compatibility:
    """A method with its default parameters: where it is from, the settings of every kind of scenario it is defined for.

    of_backbone: what it needs of a backbone besides. streams: the kinds of whose samples it may be given a stream.
    """

    method: str
    paper: str
    settings: dict[str, tuple[str, ...]]
    of_backbone: tuple[str, ...]
    streams: tuple[str, ...]


def compatibilities() -> list[Compatibility]:
    """Return the compatibility of every method that can be named and made with its defaults."""
    found = []
    for name in METHODS.names():
        method = make_method(name, {})
        of_backbone = needs_of(method) & BACKBONE_NEEDS.keys()
        needed = needs_of(method) - of_backbone
        kinds = _kinds()
        settings = {
            kind: tuple(setting for setting in _settings_of(fields) if needed <= offers_in(setting, fields.offered))
            for kind, fields in kinds.items()
        }
        streams = tuple(kind for kind, fields in kinds.items() if _streamed(fields, needed))
        found.append(Compatibility(name, method.paper, settings, tuple(sorted(of_backbone)), streams))
    return found


def _kinds() -> dict[str, type[ScenarioSettings]]:
    """Return the kinds of scenario that have settings; a stream has those of what it is of."""
    built_in = {name: SCENARIOS.find(name) for name in SCENARIOS.names() if SCENARIOS.is_built_in(name)}
    own = {name: fields for name, fields in built_in.items() if "setting" in fields.model_fields}
    return dict(sorted((own | _MORE).items()))


def _streamed(fields: type[ScenarioSettings], needed: frozenset[Need]) -> bool:
    """Return whether there are streams of a kind, and a method with these needs runs on them."""
    offered = offers_on_stream(fields.offered)
    return "one class" in offered and needed <= offered


def _settings_of(fields: type[Any]) -> tuple[str, ...]:
    settings: tuple[str, ...] = get_args(fields.model_fields["setting"].annotation)
    return settings
