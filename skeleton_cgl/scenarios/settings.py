"""Scenarios by kind: from the fields of a study file to a scenario, checked before any data is read."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from skeleton_cgl.blame import blaming
from skeleton_cgl.config import Checked, check
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import SCENARIOS
from skeleton_cgl.scenarios.problem import Problem
from skeleton_cgl.scenarios.scenario import Need, Scenario


class ScenarioSettings(Checked):
    """The fields of one kind of scenario: derive from this, with a field `kind`, and make the scenario of them.

    version: raised when the same fields give other lessons, queries or scores that the scenario's digest does not tell.
    """

    version: ClassVar[int] = 1
    offered: ClassVar[tuple[Need, ...]] = ()
    """What methods may need, in all settings, beside what a setting offers."""

    def of_repeat(self, repeat: int) -> Self:  # noqa: ARG002
        """Return the fields as a repeat of a study has them, however its data are divided; usually the same."""
        return self

    def make(self, seed: int) -> Scenario:  # noqa: ARG002
        """Return the scenario, what it draws drawn from `seed`."""
        raise InputError(f"scenario {type(self).__name__}: method `make` is missing; expected make(seed) -> Scenario")


def check_scenario(fields: Mapping[str, Any], where: str = "scenario") -> ScenarioSettings:
    """Return the checked fields of a scenario; refuse an unknown kind or field with the nearest known one."""
    kind = fields.get("kind", "skeleton")
    if not isinstance(kind, str):
        raise InputError(f"{where}: kind: expected a name, found {kind!r}")
    settings = SCENARIOS.find(kind)
    if "kind" not in settings.model_fields:
        raise InputError(f"{where}: kind: {settings.__name__} has no field `kind`; expected `kind: str` in it")
    return check(dict(fields), settings, where)


def make_scenario(fields: Mapping[str, Any], seed: int, repeat: int = 0) -> Scenario:
    """Return the scenario these fields describe in a repeat, what it draws drawn from `seed`."""
    settings = check_scenario(fields).of_repeat(repeat)
    with blaming(f"scenario {fields.get('kind', 'skeleton')!r}", settings):
        scenario = settings.make(seed)
    _refuse_incomplete(scenario, Scenario)
    _refuse_incomplete(scenario.problem, Problem)
    return scenario


def _refuse_incomplete(made: object, protocol: type[Any]) -> None:
    """Refuse what lacks something that all scenarios, or all problems, have: long work would meet it late."""
    expected = (*protocol.__annotations__, *(name for name in vars(protocol) if not name.startswith("_")))
    missing = [f"`{name}`" for name in expected if not hasattr(made, name)]
    if missing:
        kind, where = protocol.__name__, protocol.__module__.replace(".", "/")
        raise InputError(
            f"{kind.lower()} {type(made).__name__}: no {', '.join(missing)}; `{kind}` in {where}.py says what each is"
        )
