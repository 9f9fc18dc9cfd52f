"""Scenarios by kind: from the fields of a study file to a scenario, checked before any data is read."""

from typing import Any, Literal

from pydantic import Field

from skeleton_cgl.config import Checked, check, did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.scenarios.split import Split
from skeleton_cgl.skeletons.preparation import Augmentation


class SkeletonSettings(Checked):
    """Action recognition on the clips of an archive; see `skeleton_cgl.scenarios.skeleton`."""

    kind: Literal["skeleton"] = "skeleton"
    data: str = "synthetic"
    setting: Literal["class-il", "task-il"] = "class-il"
    classes_per_task: int = Field(default=2, ge=1)
    split: Split = Split()
    preparation: dict[str, Any] = Field(default_factory=dict)
    augmentation: Augmentation | None = None

    def make(self, seed: int) -> Scenario:
        from skeleton_cgl.scenarios.skeleton import SkeletonScenario

        return SkeletonScenario(
            data=self.data,
            setting=self.setting,
            classes_per_task=self.classes_per_task,
            split=self.split if "seed" in self.split.model_fields_set else self.split.model_copy(update={"seed": seed}),
            preparation=self.preparation,
            augmentation=self.augmentation,
        )


class NodeSettings(Checked):
    """Node classification on one graph; see `skeleton_cgl.scenarios.node`."""

    kind: Literal["node"]
    data: str
    dataset: Literal["cora", "citeseer"] = "cora"
    setting: Literal["class-il", "task-il"] = "class-il"
    classes_per_task: int = Field(default=2, ge=1)

    def make(self, seed: int) -> Scenario:  # noqa: ARG002
        from skeleton_cgl.scenarios.node import NodeScenario

        return NodeScenario(self.data, self.dataset, self.setting, self.classes_per_task)


KINDS: dict[str, type[Checked]] = {"skeleton": SkeletonSettings, "node": NodeSettings}
"""The kinds of scenarios and their fields."""


def check_scenario(fields: dict[str, Any], where: str = "scenario") -> Any:
    """Return the checked fields of a scenario; refuse an unknown kind or field with the nearest known one."""
    kind = fields.get("kind", "skeleton")
    if kind not in KINDS:
        raise InputError(f"{where}: unknown kind {kind!r}{did_you_mean(str(kind), KINDS)}")
    return check(fields, KINDS[kind], where)


def make_scenario(fields: dict[str, Any], seed: int) -> Scenario:
    """Return the scenario these fields describe, what it draws drawn from `seed`."""
    return check_scenario(fields).make(seed)
