"""Studies of links and of whole graphs, of every kind and setting: sharing beginnings or work changes no bit."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from skeleton_cgl import Study
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.graphs.archive import write_archive
from skeleton_cgl.learning.state import from_bytes, to_bytes
from tests.core.cases import GROUP_ORDERS, records_of
from tests.engine.studies import run, same_records
from tests.graphs.made_sets import random_graph_set, random_link_set

# Dask's scheduler leaves closing some of its sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CLASS_ORDERS = [[[0], [1], [2]], [[0], [2], [1]]]
FEW = ("replay", "lwf")
"""With a memory, and without."""
ALL = ("bare", "replay", "joint", {"name": "joint", "restart": True}, "gem", "ewc", "mas", "lwf", "twp")
PERIODS = 3


@dataclass(frozen=True)
class Case:
    """A kind of scenario in a setting, on a data set, with further fields."""

    kind: str
    setting: str
    data: str
    methods: tuple[Any, ...] = FEW
    fields: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.kind, self.data, self.setting, *self.fields])

    @property
    def orders(self) -> dict[str, Any]:
        """Return two orders that begin alike; periods have one."""
        if self.setting == "time-il":
            return {"tasks": "default"}
        return {"given": GROUP_ORDERS if self.setting == "domain-il" else CLASS_ORDERS}

    def study(self, folder: Path, **changes: Any) -> Study:
        by_setting = {"time-il": {"periods": PERIODS}, "domain-il": {}}.get(self.setting, {"classes_per_task": 1})
        asked = {"negatives": 20, "k": 5} if self.kind == "link-prediction" else {}
        data = {"data": str(folder / f"{self.data}.h5"), "setting": self.setting}
        fields = {
            "name": str(self),
            "scenario": {"kind": self.kind, **data, **by_setting, **asked, **self.fields},
            "backbone": {"name": "gcn", "width": 4},
            "methods": list(self.methods),
            "orders": self.orders,
            "training": {"epochs": 2, "learning_rate": 0.01, "device": "cpu"},
        }
        return Study(**{**fields, **changes})


def _cases() -> Iterator[Case]:
    yield from (Case("link", setting, "links") for setting in ("class-il", "task-il", "time-il"))
    yield Case("link-prediction", "domain-il", "links", ALL)
    yield Case("link-prediction", "domain-il", "links", fields={"inter_task_edges": False, "features": "degrees"})
    yield Case("link-prediction", "time-il", "links", ("replay", "joint", "gem"), {"joins_base": 0.5})
    yield from (Case("graph", setting, "graphs") for setting in ("class-il", "task-il", "domain-il", "time-il"))
    yield from (Case("graph", setting, "labelled graphs") for setting in ("class-il", "task-il", "domain-il"))


CASES = list(_cases())
PAIRS = next(case for case in CASES if case.methods == ALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("links and graphs")
    links = random_link_set(nodes=50, links=300, features="dense", published=False, negatives=False)
    write_archive(links, made / "links.h5")
    for name, many in (("graphs", False), ("labelled graphs", True)):
        write_archive(random_graph_set(graphs=150, many_labels=many, published=False, texts=False), made / f"{name}.h5")
    return made


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_tree_gives_the_records_of_every_order_run_alone(case: Case, folder: Path, tmp_path: Path) -> None:
    study = case.study(folder)
    tree, alone = run(study, tmp_path / "tree.db"), run(study, tmp_path / "alone.db", tree=False)
    assert same_records(tree, alone)
    assert len(records_of(tree)) == (PERIODS if case.setting == "time-il" else 5) * len(case.methods)


def test_two_workers_give_the_records_of_one(folder: Path, tmp_path: Path) -> None:
    study = PAIRS.study(folder, methods=["replay"])
    one, two = (run(study, tmp_path / f"{number}.db", workers=number) for number in (1, 2))
    assert same_records(one, two)


def test_a_study_that_is_taken_up_again_ends_with_the_same_records(folder: Path, tmp_path: Path) -> None:
    """One order first, then both, which begin with stages whose states are gone; past lessons are validated on."""
    patient = {"epochs": 2, "learning_rate": 0.01, "device": "cpu", "patience": 1, "patience_on": "seen"}
    asked = {"methods": ["gem", "joint"], "training": patient}
    whole = run(PAIRS.study(folder, **asked), tmp_path / "whole.db")
    again = tmp_path / "again.db"
    run(PAIRS.study(folder, orders={"given": GROUP_ORDERS[:1]}, **asked), again)
    run(PAIRS.study(folder, **asked), again)
    assert same_records(whole, again)


@pytest.mark.parametrize("method", ALL, ids=str)
def test_a_learner_of_pairs_goes_on_from_a_saved_state_as_if_it_had_never_stopped(method: Any, folder: Path) -> None:
    """Also where in between another learner, of the same process, has learned the lessons in another sequence."""
    study = PAIRS.study(folder, methods=[method])
    plan = make_plan(study)
    first, second = ([plan.stages[key] for key in each.keys] for each in plan.runs)
    scenario: Any = plan.setting(first[0])[1]
    straight = first[0].new_learner(study, scenario)
    saved = b""
    for stage in first:
        saved = to_bytes(straight.state())
        straight.learn(scenario.experience(stage.prefix), stage.seed(study))
    other = second[0].new_learner(study, scenario)
    for stage in second:
        other.learn(scenario.experience(stage.prefix), stage.seed(study))
    resumed = first[0].new_learner(study, scenario)
    resumed.restore(from_bytes(saved))
    resumed.learn(scenario.experience(first[-1].prefix), first[-1].seed(study))
    assert to_bytes(resumed.state()) == to_bytes(straight.state())
    answers = [each.answer(scenario.queries(first[-1].prefix)) for each in (straight, resumed)]
    assert answers[0].equal(answers[1])
