"""What is said of methods before a study runs: which of them have more to go by than others."""

from pathlib import Path
from typing import Any

import pytest
import torch

from skeleton_cgl import Study
from skeleton_cgl.engine.forecast import forecast
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.engine.run import run_study
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.training import Training
from skeleton_cgl.methods.cgnn import CGNN
from tests.engine.studies import small_study
from tests.methods.on_nodes import learned, lessons_of, nodes

TOTALS = ("er", "a-gem", "der", "der-pp", "gss", "cgnn", "ssm-stream", "sem-stream")
"""Methods whose `count` is of all lessons together."""
PER_CLASS = {"er-gnn": "per_class", "ssm": "per_class", "sem": "per_class", "pdgnn-tem": "per_class", "dmsg": "count"}
PER_TASK = ("replay", "gem")

FAILING = """
from skeleton_cgl.methods.replay import Replay


class Mine(Replay):
    def keeps_all(self, taught):
        return len(taught) / 0
"""


def remarks_on(folder: Path, *methods: Any, **changes: Any) -> tuple[str, ...]:
    return make_plan(small_study(folder, methods=list(methods), **changes)).remarks


def sizes() -> tuple[int, int, int]:
    """Return the numbers of training nodes of all tasks, of the largest task and of the largest class."""
    labels = [lesson.training.labels for lesson in lessons_of(nodes())]
    largest_class = max(int(of_task.bincount().max()) for of_task in labels)
    return sum(map(len, labels)), max(map(len, labels)), largest_class


@pytest.mark.parametrize("method", [*TOTALS, *PER_CLASS, *PER_TASK])
def test_a_memory_keeps_all_from_the_size_on_at_which_it_is_said_to(method: str) -> None:
    total, largest_task, largest_class = sizes()
    name = PER_CLASS.get(method, "count")
    enough = largest_class if method in PER_CLASS else largest_task if method in PER_TASK else total
    scenario, backbone = nodes(), "sgc" if method == "pdgnn-tem" else "gcn"
    taught = [lesson.training.labels for lesson in lessons_of(scenario)]
    more = {"fan_outs": [1]} if method.endswith("-stream") else {}
    recipe = Training(epochs=1, learning_rate=0.01, device="cpu")
    for size in (enough, enough - 1):
        learner = make_learner(scenario, backbone, method, recipe, 0, {"width": 6}, {name: size, **more})
        keeping = learned(learner, scenario, len(taught)).method
        # CGNN goes by which nodes have come, besides those it replays.
        kept = len(keeping.memory) if isinstance(keeping, CGNN) else keeping.samples_kept()
        assert make_method(method, {name: size, **more}).keeps_all(taught) == (kept == total) == (size == enough)


@pytest.mark.parametrize(("variant", "all_of_them"), [("own", False), ("begin", False), ("cglb", True)])
def test_gem_as_cglb_has_it_keeps_all_however_few_it_draws(variant: str, all_of_them: bool) -> None:
    scenario, recipe = nodes(), Training(epochs=1, learning_rate=0.01, device="cpu")
    parameters = {"count": 4, "variant": variant}
    taught = [lesson.training.labels for lesson in lessons_of(scenario)]
    learner = make_learner(scenario, "gcn", "gem", recipe, 0, {"width": 6}, parameters)
    kept = learned(learner, scenario, len(taught)).method.samples_kept()
    assert make_method("gem", parameters).keeps_all(taught) == (kept == sum(map(len, taught))) == all_of_them


@pytest.mark.parametrize("method", PER_CLASS)
def test_a_lesson_without_samples_needs_no_room(method: str) -> None:
    none, some = torch.zeros(0, dtype=torch.int64), torch.tensor([0, 1, 1])
    for size, enough in ((1, False), (2, True)):
        assert make_method(method, {PER_CLASS[method]: size}).keeps_all([none, some]) == enough


@pytest.mark.parametrize("method", ["cat", "delome", "bare", "joint", "mas"])
def test_of_methods_that_keep_no_samples_nothing_is_said(method: str) -> None:
    taught = [lesson.training.labels for lesson in lessons_of(nodes())]
    assert not make_method(method, {"count": 10**6} if method in ("cat", "delome") else {}).keeps_all(taught)


def test_a_memory_larger_than_the_data_is_said_to_be_a_kind_of_joint(tmp_path: Path) -> None:
    number = sum(len(lesson.training) for lesson in _lessons(small_study(tmp_path)))
    meaning = f"its memory has room for all {number} training samples, which makes it a kind of Joint"
    large = {"name": "replay", "label": "mine", "count": 10**6}
    assert remarks_on(tmp_path, "bare", large, "replay", {"name": "er", "count": number}) == (
        f"mine: {meaning}",
        f"er count={number}: {meaning}",
    )
    assert remarks_on(tmp_path, {"name": "replay", "fraction": 1}) == (f"replay fraction=1: {meaning}",)
    assert remarks_on(tmp_path, {"name": "er", "count": number - 1}, {"name": "replay", "fraction": 0.9}) == ()


def test_it_is_told_before_and_when_a_study_runs_and_stays_in_the_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = small_study(tmp_path, methods=[{"name": "er", "count": 10**6}], orders={"given": [[[0, 1]]]})
    (remark,) = make_plan(study).remarks
    assert remark in str(forecast(study, timed=False)).splitlines()
    run_study(study, tmp_path / "store.db")
    assert remark in capsys.readouterr().err.splitlines()
    assert remark in make_plan(study).row().notes


def test_an_error_in_a_method_of_a_users_own_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FAILING)
    with pytest.raises(
        InputError, match=r"method .*mine.*: ZeroDivisionError.*mine.py, line 7, in `keeps_all` of Mine"
    ):
        remarks_on(tmp_path, str(path))


def _lessons(study: Study) -> list[Any]:
    scenario = study.make_scenario(0)
    lessons = scenario.lessons(scenario.default)
    return [scenario.experience(lessons[: place + 1]) for place in range(len(lessons))]
