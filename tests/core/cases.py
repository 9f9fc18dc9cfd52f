"""The cases that one learner and one loop have to carry, as small studies, and what a store holds of them."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from skeleton_cgl import Study
from skeleton_cgl.engine.record import Record
from skeleton_cgl.engine.store import Store
from tests.scenarios.small import write_small

MADE_UP = Path(__file__).parent / "made_up"
RESERVOIR = str(MADE_UP / "reservoir.py")
AT_BORDERS = ("replay", "ewc", "mas", "twp", "lwf", "gem")
METHODS = ("bare", "joint", *AT_BORDERS)
SAMPLE_EWC = {"name": "ewc", "importance": "sample"}
TASK_ORDERS = ([[0, 1], [2, 3], [4, 5]], [[0, 1], [4, 5], [2, 3]])
GROUP_ORDERS = ([[0], [1], [2]], [[0], [2], [1]])
"""Of four groups: the last one is asked about, and never learned."""


@dataclass(frozen=True)
class Case:
    """A scenario by its fields; the orders asked for; how many stages they are as a tree, for every method."""

    name: str
    scenario: dict[str, Any]
    stages: int
    orders: dict[str, Any] = field(default_factory=lambda: {"given": TASK_ORDERS})
    methods: tuple[Any, ...] = METHODS

    def __str__(self) -> str:
        return self.name


def _made_up(name: str, stages: int, setting: str = "", **choices: Any) -> Case:
    fields = {"kind": str(MADE_UP / f"{name}.py"), **({"setting": setting} if setting else {})}
    return Case(f"{name} {setting}".strip(), fields, stages, **choices)


DOMAINS = _made_up("groups", 5, "domain-il", orders={"given": GROUP_ORDERS})
PERIODS = _made_up("groups", 4, "time-il", orders={"tasks": "default"})
LINKS = _made_up("links", 5, orders={"given": GROUP_ORDERS}, methods=(*METHODS, SAMPLE_EWC))
LABELS = [_made_up("labels", 5, setting) for setting in ("class-il", "task-il")]
STREAM = _made_up("stream", 11, methods=("bare", RESERVOIR))
CASES = [
    *(Case(f"skeletons {setting}", {"setting": setting}, 5) for setting in ("class-il", "task-il")),
    *(_made_up("nodes", 5, setting) for setting in ("class-il", "task-il")),
    *(*LABELS, DOMAINS, PERIODS, LINKS, STREAM),
]


@cache
def _archive(folder: Path) -> Path:
    return write_small(folder / "small.h5")


def study_of(case: Case, folder: Path, **changes: Any) -> Study:
    """Return a case as a study of few epochs; `folder` is where the skeletons' archive is."""
    scenario = {**case.scenario, **({} if "kind" in case.scenario else {"data": str(_archive(folder))})}
    fields = {
        "name": case.name,
        "scenario": scenario,
        "backbone": {"name": "gcn", "width": 8},
        "methods": list(case.methods),
        "orders": case.orders,
        "training": {**({} if case.name == "stream" else {"epochs": 2}), "learning_rate": 0.01, "device": "cpu"},
    }
    return Study(**{**fields, **changes})


def records_of(store: Path) -> dict[str, Record]:
    with Store(store, must_exist=True) as opened:
        return {key: opened.record(key) for key in opened.done()}
