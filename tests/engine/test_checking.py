"""`skeleton-cgl check` finds each mistake by the promise that it breaks, and by no other."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from skeleton_cgl.engine.checking import Finding, Verdict, check_subject, checks_of, find_subject
from skeleton_cgl.engine.checking import of_backbones as backbones
from skeleton_cgl.engine.checking import of_learners as learners
from skeleton_cgl.engine.checking import of_methods as methods
from skeleton_cgl.engine.checking.promise import Check
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import METHODS
from skeleton_cgl.skeletons import write_archive
from skeleton_cgl.skeletons.sources.synthetic import SyntheticSource
from tests.conftest import Run

METHOD = """
import random
import time

import numpy as np
import torch

from skeleton_cgl.learning.method import Method
from skeleton_cgl.scenarios.scenario import Samples, join

KEPT = []


class Mine(Method):
"""

REPLAY = """
    def __init__(self):
        self.memory = []

    def lesson_samples(self, learner, experience):
        past = [Samples(experience.training.pool, *columns) for columns in self.memory]
        return join([*past, experience.training])

    def end_lesson(self, learner, experience):
        training = experience.training
        self.memory.append([training.ids[:5], training.labels[:5], training.step[:5]])

    def state(self):
        return {"memory": self.memory}

    def restore(self, state):
        self.memory = state["memory"]
"""
SAVING = REPLAY.index("    def state")

BACKBONE = """
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from skeleton_cgl.backbones.backbone import Backbone


class Net(Backbone):
    def __init__(self, frames, layout, channels, width=16):
        super().__init__()
        self.norm = nn.BatchNorm1d(len(layout) * channels * frames)
        self.linear = nn.Linear(len(layout) * channels * frames, width)

    def arrange(self, clips):
        return clips.flatten(1)

    def forward(self, clips):
        return self.linear(self.norm(clips)).relu()
"""
"""A backbone without a mistake."""


@dataclass(frozen=True)
class Mistake:
    """A file with one mistake, the promise it breaks, a pattern of what is told of it, and the data it shows on."""

    code: str
    broken: Check
    told: str
    data: str | None = None


def loss(expression: str) -> str:
    return f"{METHOD}\n    def loss(self, learner, batch):\n        return {expression}\n"


def begin(statement: str) -> str:
    return f"{METHOD}\n    def begin_lesson(self, learner, experience):\n        {statement}\n"


def net(*changes: tuple[str, str]) -> str:
    code = BACKBONE
    for before, after in changes:
        assert before in code
        code = code.replace(before, after)
    return code


SHARED_MEMORY = (
    REPLAY.replace("self):", "self, kept=[]):", 1)
    .replace("self.memory = []", "self.memory = kept")
    .replace("        training = ", "        KEPT.append(1)\n        self.counts[0] += 1\n        training = ")
    .replace("    def __init__", "    counts = [0]\n\n    def __init__")
    .replace("self.memory = state", "_ = state")
)
"""A replay whose memory is shared by all that are made, as are two counts."""

FORWARD = "return self.linear(self.norm(clips)).relu()"

MISTAKES = {
    "a parameter without a default": Mistake(
        f"{METHOD}\n    def __init__(self, strength):\n        self.strength = strength\n",
        learners.is_made,
        r"parameter 'strength' is missing",
    ),
    "an error in the constructor": Mistake(
        f"{METHOD}\n    def __init__(self):\n        self.x = {{}}['x']\n",
        learners.is_made,
        r"KeyError: 'x' \(\S*mine.py, line 17, in `__init__` of Mine\)",
    ),
    "state without restore": Mistake(
        f"{METHOD}\n    def state(self):\n        return {{}}\n", learners.is_made, "has `state` but not `restore`"
    ),
    "an error in a moment": Mistake(
        loss("learner.tax_loss(batch)"),
        learners.learns,
        r"AttributeError: 'Learner' object has no attribute 'tax_loss' \(\S*mine.py, line 17, in `loss` of Mine\)",
    ),
    "a loss that is not a number": Mistake(
        loss("learner.task_loss(batch) * torch.nan"), learners.learns, r"the loss of lesson 1 \(.*\) is nan"
    ),
    "a loss that forgets the data": Mistake(
        loss("learner.parameter_vector().square().sum()"), learners.learns, r"\d+% of its first lesson right after 40"
    ),
    "an error in task-il": Mistake(
        begin("assert (experience.training.step < 0).all()"),
        methods.works_in_both_settings,
        r"AssertionError: .*\(\S*mine.py, line 17, in `begin_lesson` of Mine\)",
    ),
    "labels changed": Mistake(
        begin("experience.training.labels.sort()[0]; experience.validation.labels[:] = 0"),
        learners.leaves_data_alone,
        r"`experience.validation.labels` changed while learning",
    ),
    "a graph changed": Mistake(
        METHOD + "\n    def step_done(self, learner, batch):\n        batch.inputs.features.mul_(0.99)\n",
        learners.learns,
        "it or the method writes into features or edges that all learners share",
        data="graph",
    ),
    "a batch changed": Mistake(
        METHOD + "\n    def step_done(self, learner, batch):\n        batch.inputs.parts[0].mul_(0.99)\n",
        learners.leaves_data_alone,
        "a batch changed while learning",
    ),
    "the order of a set": Mistake(
        loss("learner.task_loss(batch) * len(next(iter({'a', 'bb', 'ccc', 'dddd', 'eeeee', 'ffffff', 'ggggggg'})))"),
        learners.repeats_itself,
        "two new processes",
    ),
    "a memory in module, class and default": Mistake(
        METHOD + SHARED_MEMORY,
        learners.keeps_nothing_outside,
        "^`KEPT` and `Mine.counts` and a default of `Mine.__init__` changed while other lessons were learned",
    ),
    "a state of arrays": Mistake(
        METHOD + REPLAY.replace('{"memory": self.memory}', '{"memory": np.zeros(3)}'),
        learners.saves_what_it_remembers,
        "cannot be saved and restored: a state holds tensors and plain values, found ndarray",
    ),
    "an error in restore": Mistake(
        METHOD + REPLAY.replace('state["memory"]', 'state["memories"]'),
        learners.saves_what_it_remembers,
        r"KeyError: 'memories' \(\S*mine.py, line \d+, in `restore` of Mine\)",
    ),
    "a memory that is not saved": Mistake(
        METHOD + REPLAY[:SAVING],
        learners.saves_what_it_remembers,
        r"`memory` of Mine changed in `end_lesson` and is not in `state\(\)`$",
    ),
    "a memory saved for two lessons only": Mistake(
        METHOD + REPLAY.replace('{"memory": self.memory}', '{"memory": self.memory[-1:]}'),
        learners.is_the_same_in_a_tree,
        "after 3 lessons, each learned from the saved state",
    ),
    "no forward": Mistake(
        net(("def forward", "def forwards")), backbones.gives_embeddings, "method `forward` is missing"
    ),
    "embeddings of the wrong shape": Mistake(
        net((FORWARD, f"{FORWARD}[:, :, None]")), backbones.gives_embeddings, r"found torch.float32 \(8, 16, 1\)"
    ),
    "one clip without its dimension": Mistake(
        net((FORWARD, f"{FORWARD}.squeeze()")), backbones.gives_embeddings, r"expected embeddings \(1, width\)"
    ),
    "an error in forward": Mistake(
        net(("self.norm(clips)", "self.norms(clips)")),
        backbones.gives_embeddings,
        r"AttributeError: .*'norms' \(\S*mine.py, line 22, in `forward` of Net\)",
    ),
    "arrange writes": Mistake(
        net(("clips.flatten(1)", "clips.sub_(clips.mean()).flatten(1)")), backbones.arranges, "`arrange` writes into"
    ),
    "arrange uses weights": Mistake(
        net(("clips.flatten(1)", "clips.flatten(1) * self.linear.weight.detach()[0, 0]")),
        backbones.arranges,
        "something else when the first weights are others",
    ),
    "arrange uses other clips": Mistake(
        net(("clips.flatten(1)", "clips.flatten(1) - clips.flatten(1).mean(0)")),
        backbones.arranges,
        "something else of a clip when others are there",
    ),
    "arrange loses rows": Mistake(
        net(("clips.flatten(1)", "clips.flatten(1)[1:]")),
        backbones.arranges,
        "expected tensors with 200 rows, one per clip",
    ),
    "dropout while answering": Mistake(
        net((FORWARD, f"{FORWARD.replace('clips)', 'functional.dropout(clips))')}")),
        backbones.draws_nothing_while_answering,
        "`forward` draws from torch in the mode of answering; is it dropout",
    ),
    "noise while answering": Mistake(
        net((FORWARD, f"{FORWARD} * np.random.random()")), backbones.draws_nothing_while_answering, "draws from numpy"
    ),
    "a weight of every call": Mistake(
        net(
            ("self.norm =", "self.calls = 0\n        self.norm ="),
            ("return self.lin", "self.calls += 1\n        return self.calls * self.lin"),
        ),
        backbones.draws_nothing_while_answering,
        "something else for the same clips when it is asked again",
    ),
    "detached embeddings": Mistake(
        net((FORWARD, f"{FORWARD}.detach()")), learners.learns, "none of the backbone's weights changed"
    ),
    "nothing but zeros": Mistake(
        net((FORWARD, f"0 * {FORWARD[7:]}".join(["return ", ""]))), learners.learns, "by chance;"
    ),
    "BatchNorm without running statistics": Mistake(
        net(
            ("* frames)\n        self.linear", "* frames, track_running_stats=False)\n        self.linear"),
            ("self.norm(clips)", "self.norm(clips) if len(clips) > 1 else clips"),
        ),
        backbones.answers_each_by_itself,
        "a clip alone has another embedding than among others",
    ),
    "statistics of the batch": Mistake(
        net(("self.norm(clips)", "clips - clips.mean(0) / 2")),
        backbones.answers_each_by_itself,
        "a clip alone has another embedding than among others",
    ),
    "statistics gathered while answering": Mistake(
        net(
            ("self.norm =", "self.register_buffer('seen', torch.zeros(()))\n        self.norm ="),
            ("return self.lin", "self.seen += len(clips)\n        return self.lin"),
        ),
        backbones.answers_each_by_itself,
        "answering changes the backbone",
    ),
    "BatchNorm that never trains": Mistake(
        BACKBONE
        + "\n    def train(self, mode=True):\n        super().train(mode)\n        self.norm.eval(); return self\n",
        backbones.answers_each_by_itself,
        "BatchNorm `norm` stays in the mode of answering while training",
    ),
    "attention that is no list": Mistake(
        BACKBONE + "\n    def edge_attention(self, clips):\n        return self.linear(clips)\n",
        backbones.attends_to_edges,
        "a list with a tensor per layer, found Tensor",
    ),
    "attention without a gradient": Mistake(
        BACKBONE + "\n    def edge_attention(self, clips):\n        return [self.linear(clips).detach()]\n",
        backbones.attends_to_edges,
        "does not depend on the weights differentiably",
    ),
    "clips changed in forward": Mistake(
        net(("self.norm(clips)", "self.norm(clips.mul_(0.99).clone())")), learners.leaves_data_alone, "a batch changed"
    ),
    "a count of all backbones": Mistake(
        net(
            ("class Net(Backbone):", "class Net(Backbone):\n    made = 0\n"),
            ("self.norm =", "Net.made += 1\n        self.scale = Net.made\n        self.norm ="),
            ("self.norm(clips)", "self.norm(clips) * self.scale"),
        ),
        learners.keeps_nothing_outside,
        "^`Net.made` changed while other lessons were learned",
    ),
    "statistics that are no buffer": Mistake(
        net(
            ("self.norm =", "self.centre = 0\n        self.norm ="),
            (
                "return self.lin",
                "if self.training: self.centre = (self.centre + clips.mean(0)) / 2\n        return self.lin",
            ),
            ("self.norm(clips)", "self.norm(clips) - self.centre"),
        ),
        learners.saves_what_it_remembers,
        r"backbone Net: .*: `centre` of Net changed and is not in `state_dict\(\)`",
    ),
}


SLOW = (learners.repeats_itself, learners.keeps_nothing_outside)
"""They start new processes."""


def findings(path: Path, code: str, slow: bool = False, data: str | None = None) -> list[Finding]:
    path.write_text(code, encoding="utf-8")
    subject = find_subject(str(path), data=data)
    return list(check_subject(subject, [check for check in checks_of(subject) if slow or check not in SLOW]))


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_breaks_the_promise_that_tells_of_it_and_no_other(tmp_path: Path, mistake: Mistake) -> None:
    found = findings(tmp_path / "mine.py", mistake.code, mistake.broken in SLOW, mistake.data)
    broken = {finding.promise: finding.words for finding in found if finding.verdict is Verdict.BROKEN}
    assert list(broken) == [mistake.broken.promise], broken
    (words,) = broken.values()
    assert re.search(mistake.told, words), words
    assert "\n" not in words


@pytest.mark.parametrize(("code", "slow"), [(METHOD + REPLAY, True), (BACKBONE, False)], ids=["method", "backbone"])
def test_what_has_no_mistake_keeps_every_promise(tmp_path: Path, code: str, slow: bool) -> None:
    assert {finding.verdict for finding in findings(tmp_path / "mine.py", code, slow)} == {Verdict.KEPT}


def test_every_promise_is_broken_by_some_mistake() -> None:
    assert {mistake.broken for mistake in MISTAKES.values()} == {*methods.CHECKS, *backbones.CHECKS}


def test_backbones_for_graphs_are_checked_on_a_graph() -> None:
    subject = find_subject("gcn", data="graph")
    assert subject.found.takes == "graph"
    checks = [check for check in checks_of(subject) if check not in SLOW]
    assert {finding.verdict for finding in check_subject(subject, checks)} == {Verdict.KEPT}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n", r"mine.py: no class derived from Method or from Backbone in it"),
        ("def broken(:\n", r"mine.py: cannot be imported: SyntaxError"),
        (METHOD + "    pass\n" + BACKBONE, "both a method and a backbone"),
    ],
)
def test_what_cannot_be_loaded_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        find_subject(str(path))


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(InputError, match="unknown method or backbone 'stgnc'; did you mean 'stgcn'"):
        find_subject("stgnc")


def test_the_command_prints_a_line_per_promise_and_ends_with_one_where_one_is_broken(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(loss("learner.tax_loss(batch)"), encoding="utf-8")
    code, printed, errors = run("check", path)
    title, *lines = printed.splitlines()
    assert (code, title) == (1, f"method Mine ({path})")
    assert [line.split()[0] for line in lines] == ["ok", "FAILED", *["not"] * 6]
    assert "Traceback" not in errors
    assert "Traceback" in run("check", path, "--traceback")[2]
    assert run("check", tmp_path / "none.py")[0] == 2


def test_the_data_to_check_on_can_be_given(run: Run, tmp_path: Path) -> None:
    write_archive(SyntheticSource(subjects=3, views=1, repetitions=4), tmp_path / "few.h5")
    subject = find_subject("gcn", {"width": 8}, str(tmp_path / "few.h5"))
    checks = [check for check in checks_of(subject) if check not in SLOW]
    assert {finding.verdict for finding in check_subject(subject, checks)} == {Verdict.KEPT}
    code, _, errors = run("check", "gcn", "--data", tmp_path / "none.h5")
    assert code == 2
    assert "none.h5" in errors


def test_parameters_reach_the_constructor(run: Run) -> None:
    code, printed, _ = run("check", "ewc", "--set", "strength=-1")
    assert code == 1
    assert "FAILED     can be made with its defaults: method 'ewc': strength -1 is negative" in printed


def test_what_a_constructor_refuses_is_told_once_wherever_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("from skeleton_cgl.methods.ewc import EWC\n\n\nclass Mine(EWC):\n    pass\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"^method '{path}': strength -1 is negative$"):
        METHODS.make(str(path), {"strength": -1})
    path.write_text(f"{METHOD}\n    def __init__(self, a=0):\n        raise ValueError('no')\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"^method '{path}': no$"):
        METHODS.make(str(path), {})
