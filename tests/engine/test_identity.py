"""One meaning, one key: how a study spells a value changes nothing, what changes a number changes the key."""

from pathlib import Path
from typing import Any

import pytest

from skeleton_cgl import Study
from skeleton_cgl.backbones.clips.gcn import GCN
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.methods.ewc import EWC
from skeleton_cgl.methods.mas import MAS
from skeleton_cgl.methods.twp import TWP
from skeleton_cgl.scenarios.lessons import Order
from skeleton_cgl.scenarios.problem import OneClass
from skeleton_cgl.scenarios.skeleton import SkeletonSettings
from tests.engine.studies import small_study
from tests.scenarios.graphs import label_graph, write_npz

TRAINING = {"epochs": 2, "learning_rate": 0.01, "device": "cpu"}
OWN = """
from skeleton_cgl.learning.method import Method
class Own(Method):
    def __init__(self, most=1, share: float = 1, number: int = 1):
        self.most = most
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studies")


def keys(study: Study) -> set[str]:
    return set(make_plan(study).stages)


def keys_of(folder: Path, method: Any, **changes: Any) -> set[str]:
    return keys(small_study(folder, methods=[method], **changes))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"name": "ewc", "strength": 1000000}, {"name": "ewc", "strength": 1e6}),
        ({"name": "ewc", "strength": 1000000}, "ewc"),
        ({"name": "ewc", "strength": 100}, {"name": "ewc", "strength": 100.0}),
        ({"name": "mas", "strength": 100.0}, "mas"),
        ({"name": "mas", "importance": "absolute-mean"}, {"name": "mas", "importance": "absolute"}),
        ({"name": "replay", "fraction": 0.2}, "replay"),
        ({"name": "replay", "fraction": 1}, {"name": "replay", "fraction": 1.0}),
        ({"name": "gem", "fraction": 0.2, "margin": 5.0}, "gem"),
    ],
)
def test_two_spellings_of_a_parameter_have_one_key(folder: Path, one: Any, other: Any) -> None:
    assert keys_of(folder, one) == keys_of(folder, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"name": "ewc", "strength": 10**17}, {"name": "ewc", "strength": 10**17 + 1}),
        ({"name": "replay", "fraction": 0.2}, {"name": "replay", "fraction": 0.3}),
        ({"name": "replay", "count": 3}, "replay"),
        ({"name": "mas", "importance": "absolute-mean"}, {"name": "mas", "importance": "absolute-samples"}),
        ("joint", {"name": "replay", "fraction": 1}),
    ],
)
def test_two_values_of_a_parameter_have_two_keys(folder: Path, one: Any, other: Any) -> None:
    assert not keys_of(folder, one) & keys_of(folder, other)


def test_whole_numbers_and_fractions_are_told_apart_unless_an_argument_is_a_float(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN)

    def with_parameters(**parameters: float) -> set[str]:
        return keys_of(folder, {"name": str(own), **parameters})

    assert with_parameters(share=2) == with_parameters(share=2.0)
    assert with_parameters(share=1.0) == with_parameters()
    assert not with_parameters(most=1) & with_parameters(most=1.0)
    assert not with_parameters(number=1) & with_parameters(number=1.0)


def test_what_is_unsaid_is_spelled_out_for_built_in_methods_alone(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "everything.py"
    own.write_text(
        "from skeleton_cgl.methods.replay import Replay\n"
        "class Everything(Replay):\n"
        "    def __init__(self, fraction: float | None = None, count: int | None = None):\n"
        "        super().__init__(fraction or 1)\n"
    )
    assert not keys_of(folder, str(own)) & keys_of(folder, {"name": str(own), "fraction": 0.2})


@pytest.mark.parametrize("ratios", [[8.0, 1, 1], [80, 10, 10], [0.8, 0.1, 0.1], [24, 3, 3]])
def test_ratios_in_one_proportion_have_one_key(folder: Path, ratios: list[float]) -> None:
    def with_ratios(ratios: list[float]) -> set[str]:
        split = {"by": "class", "ratios": ratios}
        return keys(small_study(folder, scenario={**small_study(folder).scenario, "split": split}))

    assert with_ratios(ratios) == with_ratios([8, 1, 1])
    assert not with_ratios(ratios) & with_ratios([81, 10, 10])


def test_a_batch_that_holds_all_there_is_to_learn_from_has_the_key_of_none(folder: Path) -> None:
    plan = make_plan(small_study(folder))
    scenario = plan.scenarios[0][0]
    lessons = scenario.lessons(scenario.default)
    number = sum(len(scenario.experience(lessons[: step + 1]).training) for step in range(len(lessons)))

    def with_batches(size: int | None, method: str = "joint") -> set[str]:
        return keys_of(folder, method, training={**TRAINING, "batch_size": size})

    assert with_batches(number) == with_batches(number + 1) == with_batches(None)
    assert not with_batches(number - 1) & with_batches(None)


def test_a_batch_size_counts_for_a_method_that_may_learn_from_a_sample_twice(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN)
    large = {**TRAINING, "batch_size": 10**6}
    assert not keys_of(folder, str(own), training=large) & keys_of(folder, str(own))


def test_a_batch_size_counts_where_another_order_may_have_more_samples(tmp_path: Path) -> None:
    """A node of many labels is learned from in every task that has some of its labels."""
    scenario = {"kind": "multilabel", "data": str(write_npz(label_graph(), tmp_path / "labels.npz"))}
    study = Study(name="labels", scenario=scenario, backbone="gcn", methods=["joint"], orders={"classes": 9})
    plan = make_plan(study)

    def samples(order: Order) -> int:
        lessons = plan.scenarios[0][0].lessons(order)
        return sum(len(plan.scenarios[0][0].experience(lessons[: step + 1]).training) for step in range(len(lessons)))

    default = samples(plan.scenarios[0][0].default)
    assert any(samples(order) > default for order in plan.orders)
    batches = study.training.model_copy(update={"batch_size": default})
    assert not keys(study.model_copy(update={"training": batches})) & set(plan.stages)


AS_BEFORE = {"plateau": None, "monitor": "method", "recalibrate": False, "fan_outs": None}


@pytest.mark.parametrize("recipe", [AS_BEFORE, {"monitor": "task"}, {"patience_on": "seen"}])
def test_fields_of_the_recipe_that_change_nothing_leave_keys_as_they_were(folder: Path, recipe: dict[str, Any]) -> None:
    """What is monitored changes nothing where nobody looks."""
    assert keys_of(folder, "bare", training={**TRAINING, **recipe}) == keys_of(folder, "bare")


def test_fields_of_the_recipe_that_change_numbers_change_keys(folder: Path) -> None:
    recipes: list[dict[str, Any]] = [
        {},
        {"recalibrate": True},
        {"patience": 3},
        {"patience": 3, "monitor": "task"},
        {"patience": 3, "monitor": "score"},
        {"plateau": {}},
        {"plateau": {}, "patience_on": "seen"},
        {"plateau": {}, "monitor": "task"},
        {"plateau": {"patience": 50}},
        {"plateau": {"stop": False}},
    ]
    found = [frozenset(keys_of(folder, "bare", training={**TRAINING, **recipe})) for recipe in recipes]
    assert len(frozenset.union(*found)) == sum(map(len, found))
    spelled_out = {"factor": 0.1, "patience": 20, "floor": 0.002, "stop": True}
    assert keys_of(folder, "bare", training={**TRAINING, "plateau": spelled_out}) == found[5]


@pytest.mark.parametrize("component", [EWC, GCN, Learner, OneClass, SkeletonSettings])
def test_another_version_is_another_key(folder: Path, monkeypatch: pytest.MonkeyPatch, component: type) -> None:
    before = keys_of(folder, "ewc")
    monkeypatch.setattr(component, "version", 1, raising=False)
    assert keys_of(folder, "ewc") == before
    monkeypatch.setattr(component, "version", 2, raising=False)
    second = keys_of(folder, "ewc")
    monkeypatch.setattr(component, "version", 3, raising=False)
    assert not before & second
    assert not second & keys_of(folder, "ewc")


def test_a_version_counts_for_what_derives_from_it_and_for_nothing_else(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.py"
    own.write_text("from skeleton_cgl.methods.ewc import EWC\nclass Own(EWC):\n    pass\n")
    assert issubclass(TWP, EWC)
    assert not issubclass(MAS, EWC)
    before = {method: keys_of(folder, method) for method in ("twp", str(own), "mas")}
    monkeypatch.setattr(EWC, "version", 2)
    after = {method: keys_of(folder, method) for method in before}
    assert [before[method] == after[method] for method in before] == [False, False, True]
