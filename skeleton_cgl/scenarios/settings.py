"""Scenarios by kind: from the fields of a study file to a scenario, checked before any data is read."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from skeleton_cgl.blame import blaming
from skeleton_cgl.config import Checked, check
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import SCENARIOS
from skeleton_cgl.scenarios.scenario import Scenario


class ScenarioSettings(Checked):
    """The fields of one kind of scenario: derive from this, with a field `kind`, and make the scenario of them.

    version: raised when the same fields give other lessons, queries or scores that the scenario's digest does not tell.
    """

    version: ClassVar[int] = 1

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
    return check(dict(fields), SCENARIOS.find(kind), where)


def make_scenario(fields: Mapping[str, Any], seed: int, repeat: int = 0) -> Scenario:
    """Return the scenario these fields describe in a repeat, what it draws drawn from `seed`."""
    settings = check_scenario(fields).of_repeat(repeat)
    with blaming(f"scenario {fields.get('kind', 'skeleton')!r}", settings):
        return settings.make(seed)
