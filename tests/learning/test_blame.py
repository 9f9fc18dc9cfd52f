"""Errors in a user's method or backbone are told with file, line and moment; those of the library without a place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from skeleton_cgl.blame import blamed
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import MOMENTS
from skeleton_cgl.learning.training import Training
from tests.learning.learners import learn_tasks, small_learner
from tests.scenarios.small import lesson, scenario_of

ARGUMENTS = {
    "begin_lesson": "learner, experience",
    "lesson_samples": "learner, experience",
    "learn_lesson": "learner, experience",
    "step_samples": "learner, samples",
    "loss": "learner, batch",
    "gradients_ready": "learner",
    "step_done": "learner, batch",
    "end_lesson": "learner, experience",
    "answer": "learner, queries, step",
    "state": "",
    "restore": "state",
}


def whole_life(learner: Learner, small: Path) -> None:
    """Do with a learner all that a study does."""
    scenario = scenario_of(small)
    learn_tasks(learner, scenario, (0, 1), (2, 3))
    learner.answer(scenario.queries(scenario.lessons(((0, 1), (2, 3)))))
    learner.restore(learner.state())


def caught(learner: Learner, run: Callable[[], object]) -> str:
    """Return what a user is told of the error of a run."""
    with pytest.raises(Exception) as raised:  # noqa: PT011
        run()
    return blamed(raised.value, learner.method, learner.backbone)


def line_of(file: Path, text: str) -> int:
    return next(number for number, line in enumerate(file.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_error_in_any_moment_of_a_method_is_told_with_file_line_and_moment(
    small: Path, tmp_path: Path, moment: str
) -> None:
    file = tmp_path / "mine.py"
    saving = {"state": "def state(self): return {}", "restore": "def restore(self, state): pass"}
    others = [f"    {text}\n" for name, text in saving.items() if name != moment and moment in saving]
    file.write_text(
        "from skeleton_cgl.learning.method import Method\n"
        "class Mine(Method):\n"
        f"{''.join(others)}"
        f"    def {moment}(self, {ARGUMENTS[moment]}):\n"
        "        notes = {}\n"
        "        return notes['gone']\n"
    )
    learner = small_learner(scenario_of(small), str(file), epochs=1)
    told = caught(learner, lambda: whole_life(learner, small))
    assert told == f"KeyError: 'gone' ({file}, line {line_of(file, 'gone')}, in `{moment}` of Mine)"


BACKBONE = (
    "from torch import nn\n"
    "from skeleton_cgl.backbones.backbone import Backbone\n"
    "class Net(Backbone):\n"
    "    def __init__(self, channels):\n"
    "        super().__init__()\n"
    "        self.linear = nn.Linear(channels, 4)\n"
    "        self.broken = False\n"
    "    def arrange(self, clips):\n"
    "        return helped(clips)\n"
    "    def forward(self, clips):\n"
    "        if self.broken:\n"
    "            return self.linear(clips)\n"
    "        return self.linear(clips.mean(dim=(2, 3)))\n"
    "def helped(clips):\n"
    "    return clips\n"
)


def test_an_error_in_forward_is_told_with_its_place_though_it_happens_inside_torch(small: Path, tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(BACKBONE)
    learner = small_learner(scenario_of(small), backbone=str(file))
    learner.backbone.broken = True
    told = caught(learner, lambda: whole_life(learner, small))
    assert told.startswith("RuntimeError: mat1 and mat2 shapes cannot be multiplied")
    assert told.endswith(f"({file}, line {line_of(file, 'self.linear(clips)')}, in `forward` of Net)")
    assert "\n" not in told


def test_an_error_in_forward_is_found_before_anything_is_learned_with_the_same_place(
    small: Path, tmp_path: Path
) -> None:
    file = tmp_path / "net.py"
    file.write_text(BACKBONE.replace("self.broken = False", "self.broken = True"))
    with pytest.raises(InputError) as refused:
        small_learner(scenario_of(small), backbone=str(file))
    place = f"({file}, line {line_of(file, 'self.linear(clips)')}, in `forward` of Net); expected embeddings (2, width)"
    assert str(refused.value).startswith("backbone Net: fails on (2, 3, 4, 5): RuntimeError: mat1 and mat2")
    assert str(refused.value).endswith(place)


def test_an_error_in_arrange_is_told_with_the_line_and_the_moment_that_led_there(small: Path, tmp_path: Path) -> None:
    """The line is in a function beside the class; the moment is what the suite called."""
    file = tmp_path / "net.py"
    file.write_text(BACKBONE.replace("    return clips\n", "    return clips.nonsense\n"))
    with pytest.raises(InputError) as refused:
        small_learner(scenario_of(small), backbone=str(file))
    found = f"({file}, line {line_of(file, 'nonsense')}, in `arrange` of Net)"
    expected = f"backbone Net: `arrange` fails: AttributeError: 'Tensor' object has no attribute 'nonsense' {found}"
    assert str(refused.value) == expected


def test_of_a_method_and_a_backbone_the_one_that_was_reached_last_is_blamed(small: Path, tmp_path: Path) -> None:
    method, backbone = tmp_path / "mine.py", tmp_path / "net.py"
    backbone.write_text(BACKBONE)
    method.write_text(
        "from skeleton_cgl.learning.method import Method\n"
        "class Mine(Method):\n"
        "    def loss(self, learner, batch):\n"
        "        return learner.task_loss(batch)\n"
    )
    learner = small_learner(scenario_of(small), str(method), backbone=str(backbone))
    learner.backbone.broken = True
    assert "in `forward` of Net)" in caught(learner, lambda: whole_life(learner, small))


def test_an_error_inside_the_library_that_a_method_led_to_is_told_with_the_methods_line(
    small: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from skeleton_cgl.methods.replay import Replay\n"
        "class Mine(Replay):\n"
        "    def end_lesson(self, learner, experience):\n"
        "        super().end_lesson(learner, None)\n"
    )
    learner = small_learner(scenario_of(small), str(file))
    told = caught(learner, lambda: whole_life(learner, small))
    assert told.endswith(f"({file}, line {line_of(file, 'super')}, in `end_lesson` of Mine)")


def test_an_error_that_passed_through_no_line_of_a_user_has_no_place(small: Path, tmp_path: Path) -> None:
    """Neither that of a built-in method, nor one that a user's method had no part in."""
    file = tmp_path / "mine.py"
    file.write_text("from skeleton_cgl.learning.method import Method\nclass Mine(Method):\n    pass\n")
    scenario = scenario_of(small)
    for method in ("bare", "ewc", str(file)):
        learner = make_learner(scenario, "gcn", method, Training(learning_rate=1e30, optimizer="sgd", device="cpu"))
        told = caught(learner, lambda learner=learner: learner.learn(lesson(scenario, (0, 1)), 0))
        assert told in [f"LearningFailed: the loss of lesson 1 (wave, nod) is {value}" for value in ("nan", "inf")]


def test_a_file_below_the_working_directory_is_told_from_there(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("models").mkdir()
    Path("models/net.py").write_text(BACKBONE.replace("self.broken = False", "self.broken = True"))
    with pytest.raises(InputError, match=r"\(models/net\.py, line 12, in `forward` of Net\)"):
        small_learner(scenario_of(small), backbone="models/net.py")


def test_a_message_of_several_lines_becomes_one(small: Path, tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    broken = "raise ValueError('first\\n   second')"
    file.write_text(BACKBONE.replace("return self.linear(clips.mean(dim=(2, 3)))", broken))
    with pytest.raises(InputError, match=r"ValueError: first second \("):
        small_learner(scenario_of(small), backbone=str(file))
