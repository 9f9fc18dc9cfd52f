"""What CaT, DeLoMe and DMSG share: where they are defined, and that they go on from a saved state as if never ended."""

from typing import Any

import pytest
import torch

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.trial import refuse_forgetting
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.learning.training import Training
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.made_up import made_up_clips
from tests.methods.on_nodes import SMALL, learner_of, lessons_of, nodes
from tests.scenarios.graphs import label_scenario

VIEWS: dict[str, dict[str, Any]] = {
    "whole": {"view": "whole"},
    "own": {"view": "task"},
    "so far": {"view": "task", "inter_task_edges": True},
}
DEFINED = {
    "cat": ("class-il", "task-il", "domain-il", "time-il"),
    "delome": ("class-il", "task-il"),
    "dmsg": ("class-il", "task-il"),
}
RECIPES: list[dict[str, Any]] = [
    {"batch_size": 16},
    {"batch_size": 16, "fan_outs": (2, 2)},
    {"patience": 1, "reset_optimizer": True},
    {"plateau": {"patience": 0}, "weight_decay": 1e-3, "monitor": "score"},
    {"patience": 1, "patience_on": "seen", "recalibrate": True},
]


def assert_goes_on(method: str, scenario: Any, **training: Any) -> None:
    """Save before every lesson; another learner, restored from that, must end it the same to the bit, and answer so."""
    going_on = learner_of(scenario, method, SMALL[method], **training)
    prefix = scenario.lessons(scenario.default)
    for step, experience in enumerate(lessons_of(scenario)):
        resumed = learner_of(scenario, method, SMALL[method], **training)
        resumed.restore(from_bytes(to_bytes(going_on.state())))
        for learner in (going_on, resumed):
            learner.learn(experience, step)
        assert to_bytes(resumed.state()) == to_bytes(going_on.state())
        answers = [learner.answer(scenario.queries(prefix[: step + 1])) for learner in (going_on, resumed)]
        assert torch.equal(*answers)
        assert answers[0].isfinite().any()


@pytest.mark.parametrize(
    ("method", "setting", "view"),
    [
        (method, setting, view)
        for method, settings in DEFINED.items()
        for setting in settings
        for view in (VIEWS if setting in ("class-il", "task-il") else ["whole"])
    ],
)
def test_in_every_setting_and_view_it_goes_on_from_a_saved_state_as_if_never_stopped(
    method: str, setting: str, view: str
) -> None:
    assert_goes_on(method, nodes(setting, **({} if setting == "time-il" else VIEWS[view])))


@pytest.mark.parametrize("training", RECIPES, ids=str)
@pytest.mark.parametrize("method", SMALL)
def test_with_every_recipe_it_goes_on_from_a_saved_state_as_if_never_stopped(method: str, training: dict) -> None:
    assert_goes_on(method, nodes(), **training)


@pytest.mark.parametrize("method", SMALL)
def test_nothing_is_remembered_that_is_not_saved(method: str) -> None:
    scenario = nodes()
    first, second, _ = lessons_of(scenario)
    refuse_forgetting(lambda: learner_of(scenario, method, SMALL[method]), first, second)


@pytest.mark.parametrize("method", SMALL)
def test_it_says_how_many_samples_it_keeps_and_whether_by_content(method: str) -> None:
    scenario = nodes()
    learner = learner_of(scenario, method, SMALL[method])
    assert learner.method.samples_kept() == 0
    for step, experience in enumerate(lessons_of(scenario)):
        learner.learn(experience, step)
    state = learner.state()["method"]
    kept = state["memory"]["ids"] if method == "dmsg" else torch.cat(state["rows"])
    assert learner.method.samples_kept() == len(kept) == {"cat": 21, "delome": 30, "dmsg": 24}[method]
    assert getattr(METHODS.find(method), "by_content", False) == kept.is_floating_point()


@pytest.mark.parametrize(
    ("method", "setting"),
    [(method, setting) for method in ("delome", "dmsg") for setting in ("domain-il", "time-il")],
)
def test_where_lessons_bring_no_classes_of_their_own_it_is_refused(method: str, setting: str) -> None:
    with pytest.raises(InputError, match="needs lessons that bring classes or labels of their own"):
        learner_of(nodes(setting), method, SMALL[method])


@pytest.mark.parametrize("method", SMALL)
def test_other_samples_than_nodes_of_one_class_are_refused(method: str) -> None:
    for scenario, message in (
        (made_up_clips("class-il"), "needs samples that are nodes of one graph"),
        (label_scenario(classes_per_task=2), "needs samples of one class each"),
    ):
        with pytest.raises(InputError, match=message):
            make_learner(scenario, "gcn", method, Training(device="cpu"))
