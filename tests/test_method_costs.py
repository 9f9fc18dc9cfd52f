"""Benchmarks list what every method costs beside Bare, and tell the time of a lesson by the moments of its method."""

import importlib
import json
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from torch import Tensor

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import Method
from skeleton_cgl.learning.training import Training
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.scenario import Experience, Samples

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
OF_NODES_ALONE = {"cat", "cgnn", "delome", "dmsg", "er-gnn", "evolve-gcn", "pdgnn-tem", "sem", "ssm"}
OF_NODES_ALONE |= {"dmsg-stream", "sem-stream", "ssm-stream"}
OF_REVEALED_TASKS = {"hat", "packnet", "piggyback"}
SHORT = {"cat": {"steps": 2, "width": 8}, "delome": {"steps": 2, "width": 8}, "ridge": {"projection": 20}}

MakeModule = Callable[[str], ModuleType]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> MakeModule:
    """Return the modules of experiments/ by name, found as their scripts find one another."""
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module


@pytest.mark.parametrize(
    ("module", "bench", "size", "missing"),
    [
        ("benchmark_learning", "clip_bench", (20, 4), OF_NODES_ALONE),
        ("benchmark_graphs", "node_bench", ((200, 300, 30, 4, 4), 8), set()),
        ("benchmark_graphs", "molecule_bench", (150,), OF_NODES_ALONE),
    ],
)
def test_every_method_that_is_defined_is_listed_beside_bare_of_its_setting_and_backbone(
    script: MakeModule, module: str, bench: str, size: tuple[object, ...], missing: set[str]
) -> None:
    costs = script("method_costs")
    made = getattr(script(module), bench)(*size)
    made = replace(made, training=made.training.model_copy(update={"epochs": 2}), parameters=made.parameters | SHORT)
    found = costs.measure(made, rounds=1)
    methods = [cost.variant.method for cost in found if cost.variant.method != "bare"]
    assert sorted([*methods, "bare"]) == sorted(set(METHODS.names()) - missing)
    bare = {cost.variant.label[1:]: cost for cost in found if cost.variant.method == "bare"}
    for cost in found:
        method, *where = cost.variant.label
        assert cost.bare == bare[tuple(where)].lesson
        assert method == "bare" or where[0] == ("task-il" if method in OF_REVEALED_TASKS else "class-il")
        assert sum(cost.shares.values()) == pytest.approx(1)
        assert (cost.step_over_bare is None) == (method in ("cosine", "ncm", "ridge"))
    assert all(cost.over_bare == cost.step_over_bare == cost.study_over_bare == 1 for cost in bare.values())
    table = costs.table_of(found, made).splitlines()
    assert [line.split()[0] for line in table[2 : 2 + len(found)]] == [cost.variant.method for cost in found]


class Ticking(Method):
    """Makes its own time pass, so much in every moment, more in the first epoch, and some at the end of a lesson."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def tick(self, *_: object, seconds: float) -> None:
        self.time += seconds

    def begin_lesson(self, learner: Learner, experience: Experience) -> None:  # noqa: ARG002
        self.tick(seconds=10)

    def lesson_samples(self, learner: Learner, experience: Experience) -> Samples:
        self.tick(seconds=1)
        return super().lesson_samples(learner, experience)

    def step_samples(self, learner: Learner, samples: Samples) -> Samples:  # noqa: ARG002
        self.tick(seconds=2)
        return samples

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        self.tick(seconds=103 if learner.first_pass else 3)
        loss = super().loss(learner, batch)
        loss.register_hook(lambda _: self.tick(seconds=6))
        return loss

    def gradients_ready(self, learner: Learner) -> None:  # noqa: ARG002
        self.tick(seconds=4)

    def step_done(self, learner: Learner, batch: Batch) -> None:  # noqa: ARG002
        self.tick(seconds=5)

    def end_lesson(self, learner: Learner, experience: Experience) -> None:
        self.tick(seconds=20)
        self.loss(learner, learner.batch(experience.training))


def test_time_is_told_by_moment_and_what_repeats_with_epochs_apart_from_the_rest(script: MakeModule) -> None:
    scenario = script("benchmark_learning").RandomScenario(clips=40, frames=4)
    learner = make_learner(scenario, training=Training(epochs=3, device="cpu"))
    method = learner.method = Ticking()
    learner.optimizer.register_step_post_hook(lambda *_: method.tick(seconds=7))
    clock = script("method_costs").Clock(learner, method.now)
    learner.learn(scenario.everything(), 0)
    lesson = clock.lesson()
    spent = {moment: seconds for moment, seconds in clock.seconds.items() if seconds}
    assert spent == {
        "begin_lesson": 10,
        "lesson_samples": 1,
        "step_samples": 3 * 2,
        "loss": 100 + 3 * 3 + 3,
        "backward": 3 * 6,
        "gradients_ready": 3 * 4,
        "optimizer": 3 * 7,
        "step_done": 3 * 5,
        "end_lesson": 20,
    }
    assert (lesson.steps, lesson.step) == (3, 2 + 3 + 6 + 4 + 7 + 5)
    assert lesson.rest == 10 + 1 + 100 + 20 + 3
    assert lesson.longer(10) == lesson.rest + 10 * 3 * lesson.step


def test_where_the_time_goes_is_told_of_what_takes_more_than_three_times_as_long_as_bare(script: MakeModule) -> None:
    costs, bench = script("method_costs"), script("benchmark_learning").clip_bench(20, 4)
    bare = costs.Lesson(seconds=10.0, step=1.0, steps=10)

    def cost(name: str, seconds: float, step: float) -> object:
        variant = costs.Variant(name, "class-il", ("gcn", {}))
        return costs.Cost(variant, costs.Lesson(seconds, step, 10), bare, 5.0, {"loss": 0.7, "end_lesson": 0.3})

    many = [cost("cheap", 29, 2.9), cost("slow", 31, 3.1), cost("late", 40, 1)]
    told = costs.table_of(many, bench).splitlines()[5:]
    assert told == ["slow: loss 70%, end_lesson 30%", "late: loss 70%, end_lesson 30%"]
    figures = costs.figures_of(many, "method")
    assert [name for name in figures if "share_loss" in name] == ["method_slow_share_loss", "method_late_share_loss"]
    assert figures["method_late_rest_s"] == 30
    assert figures["method_late_study_over_bare"] == (30 + 50) / 50
    assert figures["method_slow_step_over_bare"] == pytest.approx(3.1)


@pytest.mark.parametrize("name", ["benchmark_learning", "benchmark_graphs"])
def test_a_benchmark_prints_the_methods_it_is_asked_for_and_figures_in_the_end(
    script: MakeModule, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    script("method_costs")
    arguments = ["--part", "methods", "--methods", "ncm", "replay", "--method-rounds", "1", "--method-epochs", "2"]
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    runpy.run_path(str(EXPERIMENTS / f"{name}.py"), run_name="__main__")
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["bare", "ncm", "replay"]
    figures = json.loads(last)
    assert figures["method_replay_step_over_bare"] > 0
    assert figures["method_ncm_over_bare"] > 0
