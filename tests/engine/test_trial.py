"""A method that does not save what it remembers is refused before anything is learned, in words that name it."""

import re
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.run import run_study
from skeleton_cgl.engine.store import Store
from skeleton_cgl.engine.study import Study
from skeleton_cgl.engine.trial import NotRepeatable, few, refuse_forgetting
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.learning.training import Training
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.made_up import made_up_clips, made_up_graph
from skeleton_cgl.scenarios.scenario import Experience, Scenario
from skeleton_cgl.skeletons import write_archive
from skeleton_cgl.skeletons.sources.synthetic import SyntheticSource
from tests.conftest import Run

REPLAY = """
import random

import numpy as np
import torch
from torch import nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.learning.method import Method
from skeleton_cgl.scenarios.scenario import Samples, join


class Buffer:
    def __init__(self):
        self.items = []


class Mine(Method):
    def __init__(self):
        self.memory = []
        self.epochs = 0

    def lesson_samples(self, learner, experience):
        past = [Samples(experience.training.pool, *columns) for columns in self.memory]
        return join([*past, experience.training])

    def end_lesson(self, learner, experience):
        training = experience.training
        self.memory.append([training.ids[:5], training.labels[:5], training.step[:5]])
        self.epochs += 1
"""
"""A method that replays, and saves nothing."""

SAVED = """
    def state(self):
        return {"memory": self.memory}

    def restore(self, state):
        self.memory = state["memory"]
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    def written(text: str) -> str:
        path = tmp_path / "mine.py"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


@cache
def scenario(setting: str = "class-il", nodes: bool = False) -> Scenario:
    return made_up_graph(setting) if nodes else made_up_clips(setting)


def experiences(setting: str = "class-il", nodes: bool = False) -> tuple[Experience, Experience]:
    found = scenario(setting, nodes)
    lessons = found.lessons(found.default)
    return few(found.experience(lessons[:1]), 16), few(found.experience(lessons[:2]), 16)


def attempt(method: str = "bare", backbone: str = "gcn", **parameters: float) -> None:
    refuse_forgetting(*learners_and_lessons(method, backbone, **parameters))


def learners_and_lessons(
    method: str, backbone: str = "gcn", **parameters: float
) -> tuple[Callable[[], Learner], Experience, Experience]:
    """Return what makes a learner by a method, and two lessons of a small scenario that it is defined for."""
    training = Training(epochs=2, learning_rate=0.01, batch_size=8, device="cpu")
    needs = METHODS.find(method).needs
    setting, nodes = "task-il" if "revealed task" in needs else "class-il", "nodes" in needs

    def new() -> Learner:
        own = {"width": 6} if backbone in ("gcn", "sgc", "evolving-gcn") else {}
        return make_learner(scenario(setting, nodes), backbone, method, training, 0, own, parameters)

    return new, *experiences(setting, nodes)


def moment(body: str) -> str:
    """Return a method with these moments and no state."""
    head = REPLAY[: REPLAY.index("class Mine")] + "class Mine(Method):\n"
    return head + textwrap.indent(textwrap.dedent(body), "    ")


BACKBONES = {"pdgnn-tem": "sgc", "evolve-gcn": "evolving-gcn"}
"""Of methods that not every backbone will do for."""

SHORT = {"cat": {"steps": 3}, "delome": {"steps": 3}}
"""CaT condenses thousands of times, by default."""


@pytest.mark.parametrize("method", METHODS.names())
def test_every_method_of_the_suite_saves_what_it_remembers(method: str) -> None:
    attempt(method, BACKBONES.get(method, "gcn"), **SHORT.get(method, {}))


@pytest.mark.parametrize("method", METHODS.names())
def test_who_learns_on_from_a_state_leaves_the_state_as_it_was(method: str) -> None:
    """Several may go on from the same one."""
    new, first, second = learners_and_lessons(method, BACKBONES.get(method, "gcn"), **SHORT.get(method, {}))
    before = new()
    before.learn(first, seed=0)
    state = from_bytes(to_bytes(before.method.state()))
    saved = to_bytes(state)
    learner = new()
    learner.restore(from_bytes(to_bytes(before.state())))
    learner.method.restore(state)
    learner.learn(second, seed=1)
    assert to_bytes(state) == saved


def test_a_memory_that_is_not_saved_is_named_with_the_moment_it_changed_in(write: Callable[[str], str]) -> None:
    with pytest.raises(InputError) as refused:
        attempt(write(REPLAY))
    assert str(refused.value) == (
        "method Mine: going on from its saved state is not going on: "
        "`memory` of Mine changed in `end_lesson` and is not in `state()`"
    )


def test_a_memory_that_is_saved_is_fine_whatever_else_is_not_and_makes_no_difference(
    write: Callable[[str], str],
) -> None:
    attempt(write(REPLAY + SAVED))


def test_of_two_things_remembered_the_one_forgotten_is_named(write: Callable[[str], str]) -> None:
    decaying = """
    def loss(self, learner, batch):
        return learner.task_loss(batch) / (1 + self.epochs)
"""
    with pytest.raises(
        InputError, match=r"not going on: `epochs` of Mine changed in `end_lesson` and is not in .state"
    ):
        attempt(write(REPLAY + SAVED + decaying))
    with pytest.raises(InputError, match=r"`epochs` of Mine .*; `memory` of Mine changed in `end_lesson` and is not"):
        attempt(write(REPLAY + decaying))


def test_what_a_helper_object_remembers_is_named_by_the_way_to_it(write: Callable[[str], str]) -> None:
    with_helper = REPLAY.replace("self.memory = []", "self.buffer = Buffer()").replace(
        "self.memory", "self.buffer.items"
    )
    with pytest.raises(InputError, match=r": `buffer.items` of Mine changed in `end_lesson` and is not in `state"):
        attempt(write(with_helper))


def test_what_is_kept_after_every_step_is_found(write: Callable[[str], str]) -> None:
    with pytest.raises(InputError, match=r"`weights` of Mine changed in `step_done` and is not in `state\(\)`$"):
        attempt(
            write(
                moment("""
                weights = None
                def loss(self, learner, batch):
                    loss = learner.task_loss(batch)
                    if self.weights is None or len(self.weights) == len(learner.parameter_vector()):
                        return loss
                    return loss + (learner.parameter_vector()[:len(self.weights)] - self.weights).square().sum()
                def step_done(self, learner, batch):
                    if len(learner.taught) == 1:
                        self.weights = learner.parameter_vector().detach().clone()
                """)
            )
        )


GENERATORS = {
    "torch": ("torch.Generator().manual_seed(0)", "int(torch.randint(99, (1,), generator=self.random))"),
    "numpy": ("np.random.default_rng(0)", "int(self.random.integers(99))"),
    "old numpy": ("np.random.RandomState(0)", "int(self.random.randint(99))"),
    "python": ("random.Random(0)", "self.random.randrange(99)"),
}


@pytest.mark.parametrize(("made", "draw"), GENERATORS.values(), ids=GENERATORS.keys())
def test_a_generator_whose_state_is_not_saved_is_found(write: Callable[[str], str], made: str, draw: str) -> None:
    drawing = moment(f"""
        def __init__(self):
            self.random = {made}
        def loss(self, learner, batch):
            return learner.task_loss(batch) * (1 + {draw})
    """)
    with pytest.raises(InputError, match=r"`random` of Mine changed in `loss` and is not in `state\(\)`$"):
        attempt(write(drawing))


def test_a_generator_whose_state_is_saved_is_fine(write: Callable[[str], str]) -> None:
    attempt(
        write(
            moment("""
            def __init__(self):
                self.random = torch.Generator().manual_seed(0)
            def loss(self, learner, batch):
                return learner.task_loss(batch) * torch.rand((), generator=self.random)
            def state(self):
                return {"random": self.random.get_state()}
            def restore(self, state):
                self.random.set_state(state["random"])
            """)
        )
    )


def test_what_restore_brings_back_otherwise_is_told_as_such(write: Callable[[str], str]) -> None:
    shorter = SAVED.replace('state["memory"]', 'state["memory"][1:]')
    with pytest.raises(InputError, match=r"`memory` of Mine changed in `end_lesson` and does not come back from `rest"):
        attempt(write(REPLAY + shorter))


def test_restore_may_use_up_what_it_is_given(write: Callable[[str], str]) -> None:
    attempt(write(REPLAY + SAVED.replace('state["memory"]', 'state.pop("memory")')))


def test_what_cannot_be_saved_or_restored_is_told_in_one_line(write: Callable[[str], str]) -> None:
    arrays = SAVED.replace("self.memory}", "np.zeros(3)}")
    with pytest.raises(
        InputError, match=r"^method Mine: cannot be saved and restored: a state holds .* found ndarray$"
    ):
        attempt(write(REPLAY + arrays))
    with pytest.raises(
        InputError, match=r"restored: KeyError: 'memories' \(.*mine.py, line \d+, in `restore` of Mine\)$"
    ):
        attempt(write(REPLAY + SAVED.replace('state["memory"]', 'state["memories"]')))


@pytest.mark.parametrize("draw", ["random.Random().random()", "np.random.default_rng().random()"])
def test_randomness_without_a_seed_is_told_as_such(write: Callable[[str], str], draw: str) -> None:
    noisy = moment(f"""
        def loss(self, learner, batch):
            return learner.task_loss(batch) * (1 + {draw})
    """)
    with pytest.raises(NotRepeatable, match="learned again from the same seeds, gave something else"):
        attempt(write(noisy))


def test_what_a_backbone_remembers_beside_its_state_is_named(write: Callable[[str], str]) -> None:
    backbone = """
from torch import nn
from skeleton_cgl.backbones.backbone import Backbone


class Net(Backbone):
    def __init__(self, frames):
        super().__init__()
        self.linear = nn.Linear(frames, 4)
        self.centre = 0

    def forward(self, clips):
        seen = clips.mean((1, 3))
        if self.training:
            self.centre = 0.9 * self.centre + 0.1 * seen.mean(0)
        return self.linear(seen - self.centre)
"""
    with pytest.raises(InputError, match=r"^backbone Net: .*: `centre` of Net changed and is not in `state_dict\(\)`$"):
        attempt(backbone=write(backbone))


def test_parameters_may_lie_in_memory_as_they_like(write: Callable[[str], str]) -> None:
    """A transposed one does in the CTR-GCN: an optimizer restored in another layout would mix up its moments."""
    attempt(
        backbone=write("""
import torch
from torch import nn
from skeleton_cgl.backbones.backbone import Backbone


class Net(Backbone):
    def __init__(self, frames):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(frames, 4).T)

    def forward(self, clips):
        return clips.mean((1, 3)) @ self.weight.T
""")
    )


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trial") / "small.h5"
    write_archive(SyntheticSource(subjects=3, views=1, repetitions=4), path)
    return path


def study_of(archive: Path, method: str, orders: Sequence[Sequence[tuple[int, int]]] = (((0, 1), (2, 3)),)) -> Study:
    return Study(
        scenario={"data": str(archive), "preparation": {"frames": 8}},
        backbone={"name": "gcn", "width": 6},
        methods=["bare", method],
        orders={"given": orders},
        training={"epochs": 1, "device": "cpu"},
    )


def test_a_run_refuses_a_forgetful_method_before_anything_is_learned(
    archive: Path, tmp_path: Path, write: Callable[[str], str]
) -> None:
    with pytest.raises(InputError, match="`memory` of Mine"):
        run_study(study_of(archive, write(REPLAY)), tmp_path / "x.db", progress=False)
    with Store(tmp_path / "x.db") as store:
        assert not store.done()
        assert not store.studies()
    run_study(study_of(archive, write(REPLAY + SAVED)), tmp_path / "x.db", progress=False)
    with Store(tmp_path / "x.db") as store:
        assert len(store.done()) == 4


def test_the_command_line_refuses_it_in_one_line(
    run: Run, archive: Path, tmp_path: Path, write: Callable[[str], str]
) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(
        f"scenario: {{data: {archive}}}\nmethods: [{write(REPLAY)}]\norders: {{given: [[[0, 1], [2, 3]]]}}\n"
    )
    code, printed, errors = run("run", file, "--store", tmp_path / "x.db")
    assert (code, printed) == (2, "")
    assert re.fullmatch(r"error: method Mine: [^\n]* is not in `state\(\)`\n", errors.split("\r")[-1])


def test_a_method_is_tried_once_and_again_when_its_code_changed(
    archive: Path, tmp_path: Path, write: Callable[[str], str]
) -> None:
    counted = moment(f"""
        def begin_lesson(self, learner, experience):
            with open({str(tmp_path / "lessons")!r}, "a") as log:
                log.write("x")
    """)

    def lessons_of(text: str, **changes: int) -> int:
        (tmp_path / "lessons").write_text("")
        study = study_of(archive, write(text)).model_copy(update=changes)
        run_study(study, tmp_path / "x.db", progress=False)
        return len((tmp_path / "lessons").read_text())

    assert lessons_of(counted) == 3 + 2
    assert lessons_of(counted) == 0
    assert lessons_of(counted, seed=1) == 2
    assert lessons_of(counted + "\n# another version\n") == 3 + 2


def test_a_method_that_fails_is_left_to_the_stages_to_tell(
    archive: Path, tmp_path: Path, write: Callable[[str], str]
) -> None:
    failing = moment("""
        def end_lesson(self, learner, experience):
            raise KeyError("nothing")
    """)
    _, summary = run_study(study_of(archive, write(failing)), tmp_path / "x.db", progress=False)
    assert summary.learned == 2
    (failure,) = summary.failures.values()
    assert "in `end_lesson` of Mine" in failure.reason


@pytest.mark.parametrize("mistake", ["restore", "state"])
def test_an_error_in_a_later_state_or_restore_costs_its_branch_and_is_told(
    archive: Path, tmp_path: Path, write: Callable[[str], str], mistake: str
) -> None:
    late = {
        "state": SAVED.replace("return {", "assert len(self.memory) < 3\n        return {"),
        "restore": SAVED.replace("self.memory =", "assert len(state['memory']) < 3\n        self.memory ="),
    }
    orders = [((0, 1), (2, 3), (4, 5), last) for last in ((6, 7), (8, 9))]
    study = study_of(archive, write(REPLAY + late[mistake]), orders)
    _, summary = run_study(study, tmp_path / "x.db", progress=False)
    assert {f"in `{mistake}` of Mine" in failure.reason for failure in summary.failures.values()} == {True}
