"""All that is drawn comes from the stage's seed, and every answer has the shape asked for."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from skeleton_cgl import Study
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.engine.record import same_content
from skeleton_cgl.engine.stage import Branch, Outcome, learn_branch
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.feed import Feed
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import Method
from skeleton_cgl.process import seeded
from tests.learning.learners import assert_same_to_the_bit, small_learner
from tests.scenarios.small import lesson, scenario_of

BACKBONE = """
import random
import numpy as np
import torch
from torch import nn
from skeleton_cgl.backbones.clips.gcn import GCN


class Mine(GCN):
    def __init__(self, features, layout):
        super().__init__(features, layout, 6)
        self.scale = 1

    def arrange(self, clips):
        return super().arrange(clips)

    def forward(self, inputs):
        return super().forward(inputs) * self.scale
"""
FORWARD, ARRANGE = "super().forward(inputs) * self.scale", "super().arrange(clips)"
DRAWN = ("torch.randn(())", "random.gauss(0, 1)", "np.random.normal()")


def backbone(path: Path, *changes: tuple[str, str]) -> str:
    text = BACKBONE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return str(path)


def stir(seed: int) -> None:
    """Leave all generators of the process in a state of their own, and nothing arranged."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    Feed._kept.clear()


def draws() -> list[float]:
    return [float(torch.rand(())), random.random(), float(np.random.random())]  # noqa: NPY002


@pytest.mark.parametrize("drawn", DRAWN)
@pytest.mark.parametrize("where", ["forward", "arrange", "constructor"])
def test_what_a_backbone_draws_is_the_same_in_every_run_in_a_tree_and_alone(
    small: Path, tmp_path: Path, where: str, drawn: str
) -> None:
    change = {
        "forward": (FORWARD, f"{FORWARD} + 3 * {drawn}"),
        "arrange": (ARRANGE, f"super().arrange(clips + {drawn})"),
        "constructor": ("self.scale = 1", f"self.scale = {drawn}"),
    }[where]
    study = Study(
        scenario={"data": str(small)},
        backbone=backbone(tmp_path / "mine.py", change),
        orders={"given": [[[0, 1], [2, 3]]]},
        training={"epochs": 2, "learning_rate": 0.01, "device": "cpu"},
    )
    with seeded(0):
        plan = make_plan(study)
        first, second = (plan.stages[key] for key in plan.runs[0].keys)
        kept = frozenset([first.key, second.key])

        def learned(seed: int, branch: Branch) -> list[Outcome]:
            stir(seed)
            return learn_branch(plan.variants[0], plan.scenarios[0][0], branch)

        alone = learned(1, Branch((first, second), None, kept))
        again = learned(2, Branch((first,), None, kept))
        again += learned(3, Branch((second,), again[0].state, kept))
    for one, other in zip(alone, again, strict=True):
        assert one.record is not None
        assert other.record is not None
        assert same_content(one.record, other.record)
        assert one.state == other.state


def test_learning_and_answering_leave_the_generators_as_they_were(small: Path, tmp_path: Path) -> None:
    scenario = scenario_of(small)
    file = backbone(tmp_path / "mine.py", (FORWARD, " + ".join([FORWARD, *DRAWN])))

    def found(before: Callable[[Learner], object]) -> list[float]:
        learner = small_learner(scenario, backbone=file, epochs=1)
        stir(5)
        before(learner)
        return draws()

    with seeded(0):
        expected = found(lambda _: None)
        learner = small_learner(scenario, backbone=file, epochs=1)
        assert found(lambda learner: learner.learn(lesson(scenario, (0, 1)), 0)) == expected
        learner.learn(lesson(scenario, (0, 1)), 0)
        assert found(lambda _: learner.answer(scenario.queries(()))) == expected


def test_answers_follow_their_seed(small: Path, tmp_path: Path) -> None:
    scenario = scenario_of(small)
    file = backbone(tmp_path / "mine.py", (FORWARD, " + ".join([FORWARD, *DRAWN])))
    learner = small_learner(scenario, backbone=file, epochs=1)
    learner.learn(lesson(scenario, (0, 1)), 0)
    queries = scenario.queries(())
    first, again, other = (learner.answer(queries, seed) for seed in (1, 1, 2))
    assert_same_to_the_bit([again], [first])
    assert not torch.equal(other, first)


WRONG = {
    "one for all": ("[:1]", r"\(1, 64\)"),
    "one too few": ("[1:]", r"\(\d+, 64\)"),
    "transposed": (".T", r"\(64, \d+\)"),
    "no tensor": (".tolist()", "list"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("training", [True, False])
def test_embeddings_of_another_shape_are_refused_with_both_shapes(
    small: Path, tmp_path: Path, training: bool, wrong: str
) -> None:
    """Also where two clips, by which a backbone is tried, are embedded well."""
    scenario = scenario_of(small)
    how, shape = WRONG[wrong]
    found = f"found{how} if len(found) > 2 and self.training == {training} else found"
    file = backbone(tmp_path / "mine.py", ("return " + FORWARD, f"found = {FORWARD}; return {found}"))
    learner = small_learner(scenario, backbone=file, epochs=1)
    experience = lesson(scenario, (0, 1))
    asked = len(experience.training) if training else len(scenario.queries(()))
    message = rf"^backbone Mine: expected embeddings \({asked}, 64\), one per place of every query, found {shape}$"
    if not training:
        learner.learn(experience, 0)
    with pytest.raises(InputError, match=message):
        learner.learn(experience, 0) if training else learner.answer(scenario.queries(()))


def test_outputs_of_another_shape_are_refused_with_both_shapes(small: Path) -> None:
    scenario = scenario_of(small)
    learner = small_learner(scenario, epochs=1)
    learner.learn(lesson(scenario, (0, 1)), 0)
    learner.head.__dict__["forward"] = lambda embeddings: embeddings[:1, :2]
    asked = len(scenario.queries(()))
    with pytest.raises(InputError, match=rf"outputs: expected \({asked}, 2\), one row per query, found \(1, 2\)"):
        learner.answer(scenario.queries(()))


class Drawing(Method):
    """Bare that draws when it is made."""

    def __init__(self) -> None:
        self.drawn = draws()


def test_what_a_method_draws_when_it_is_made_follows_the_seed_of_the_learner(small: Path) -> None:
    scenario = scenario_of(small)

    def drawn(seed: int, before: int) -> list[float]:
        stir(before)
        found: list[float] = small_learner(scenario, f"{__name__}:Drawing", seed=seed).method.drawn
        return found

    with seeded(0):
        first, again, other = drawn(0, before=1), drawn(0, before=2), drawn(1, before=1)
    assert first == again
    assert all(one != another for one, another in zip(first, other, strict=True))


def test_what_an_arrangement_draws_does_not_depend_on_who_asks_for_it_first(small: Path, tmp_path: Path) -> None:
    scenario = scenario_of(small)
    pool = scenario.queries(()).pool
    change = (ARRANGE, f"super().arrange(clips + {' + '.join(DRAWN)})")
    module = small_learner(scenario, backbone=backbone(tmp_path / "mine.py", change)).backbone
    found = []
    for seed in (1, 2):
        with seeded(seed):
            Feed._kept.clear()
            found.append(Feed(module, torch.device("cpu")).inputs(pool, torch.arange(3)).content[0])
    assert torch.equal(*found)
