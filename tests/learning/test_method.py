"""Making a method: what would be lost, never called or not offered is refused before anything is learned."""

from pathlib import Path
from typing import Any

import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import MOMENTS, Method, make_method
from tests.learning.learners import FLAT_BACKBONE, small_learner
from tests.scenarios.small import scenario_of

BEGINNING = "from skeleton_cgl.learning.method import Method\nclass Mine(Method):\n"


def method_file(folder: Path, *lines: str, beginning: str = BEGINNING) -> str:
    path = folder / "mine.py"
    path.write_text(beginning + "".join(f"    {line}\n" for line in lines))
    return str(path)


STATE = "def state(self): return {}"
RESTORE = "def restore(self, state): pass"


@pytest.mark.parametrize(
    ("lines", "message"),
    [([STATE], "has `state` but not `restore`"), ([RESTORE], "has `restore` but not `state`")],
)
def test_a_method_that_saves_or_restores_alone_is_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=rf"method '.*mine\.py': {message}; what it remembers would be lost"):
        make_method(method_file(tmp_path, *lines), {})


def test_a_method_that_does_both_or_neither_is_made(tmp_path: Path) -> None:
    assert isinstance(make_method(method_file(tmp_path, STATE, RESTORE), {}), Method)
    assert isinstance(make_method(method_file(tmp_path, "pass"), {}), Method)


def test_what_is_inherited_counts(tmp_path: Path) -> None:
    beginning = "from skeleton_cgl.methods.replay import Replay\nclass Mine(Replay):\n"
    assert isinstance(make_method(method_file(tmp_path, STATE, beginning=beginning), {}), Method)


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("begin_task", "begin_lesson"),
        ("training_samples", "lesson_samples"),
        ("end_task", "end_lesson"),
        ("check", "needs"),
        ("settings", "needs"),
    ],
)
def test_a_moment_by_its_former_name_is_refused_with_the_one_it_has_now(tmp_path: Path, former: str, now: str) -> None:
    line = 'settings = ("task-il",)' if former == "settings" else f"def {former}(self, learner, experience): pass"
    with pytest.raises(InputError, match=rf"mine\.py': `{former}` is called `{now}`; nothing would call it"):
        make_method(method_file(tmp_path, line), {})


def test_the_moments_are_what_a_method_may_override() -> None:
    # Asked before anything is learned, and after a lesson: these are no moments of learning one.
    asked = {"fits", "keeps_all", "samples_kept"}
    assert {*MOMENTS, *asked} == {name for name, value in vars(Method).items() if callable(value)}


def test_a_method_may_refuse_a_learner_before_anything_is_learned(small: Path, tmp_path: Path) -> None:
    lines = (
        "def fits(self, learner):",
        "    from skeleton_cgl.errors import InputError",
        "    raise InputError(f'Mine is not for {learner.lessons} lessons of {len(learner.taught)}')",
    )
    with pytest.raises(InputError) as refused:
        small_learner(scenario_of(small), method_file(tmp_path, *lines))
    assert str(refused.value) == "Mine is not for 3 lessons of 0"


@pytest.mark.parametrize(
    ("need", "setting", "message"),
    [
        (
            "revealed task",
            "class-il",
            "method Mine needs queries that reveal their task (task-il); in this scenario they do not",
        ),
        (
            "task border",
            "task-il",
            "method Mine: needs 'task border', which nothing offers; known: aggregated features, borders, edge "
            "attention, evolving weights, gates, graphs, new classes, nodes, one class, revealed task",
        ),
    ],
)
def test_a_need_that_is_not_met_is_refused_in_one_sentence(
    small: Path, tmp_path: Path, need: str, setting: str, message: str
) -> None:
    with pytest.raises(InputError) as refused:
        small_learner(scenario_of(small, setting), method_file(tmp_path, f"needs = frozenset(['{need}'])"))
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("needs", "setting"),
    [(["borders"], "class-il"), (["borders", "revealed task"], "task-il"), (["edge attention"], "class-il")],
)
def test_needs_that_are_met_are_no_hindrance(small: Path, tmp_path: Path, needs: list[str], setting: str) -> None:
    small_learner(scenario_of(small, setting), method_file(tmp_path, f"needs = frozenset({needs})"))


def test_a_method_that_needs_edge_attention_is_refused_for_a_backbone_without(small: Path, tmp_path: Path) -> None:
    backbone = tmp_path / "flat.py"
    backbone.write_text(FLAT_BACKBONE)
    method = method_file(tmp_path, "needs = frozenset(['edge attention'])")
    with pytest.raises(InputError) as refused:
        small_learner(scenario_of(small), method, backbone=str(backbone))
    assert str(refused.value) == "method Mine needs a backbone with `edge_attention(inputs)`; Flat has none"


class Stream:
    """A scenario in which lessons run into one another."""

    offers: frozenset[str] = frozenset()

    def __init__(self, archive: Path) -> None:
        self._scenario = scenario_of(archive)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scenario, name)


@pytest.mark.parametrize(
    "line",
    [
        "needs = frozenset(['borders'])",
        "def begin_lesson(self, learner, experience): pass",
        "def lesson_samples(self, learner, experience): return experience.training",
        "def end_lesson(self, learner, experience): pass",
    ],
)
def test_a_method_that_needs_borders_or_acts_at_them_is_refused_by_a_stream_without(
    small: Path, tmp_path: Path, line: str
) -> None:
    with pytest.raises(InputError) as refused:
        small_learner(Stream(small), method_file(tmp_path, line))
    expected = "method Mine needs lessons with a beginning and an end; the scenario is a stream without"
    assert str(refused.value) == expected


def test_a_method_that_acts_in_steps_alone_may_learn_from_a_stream(small: Path, tmp_path: Path) -> None:
    small_learner(Stream(small), method_file(tmp_path, "def step_done(self, learner, batch): pass"))
