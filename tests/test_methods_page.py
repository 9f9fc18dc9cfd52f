"""What models/methods.md tells of writing a method is true: its code runs, its output is real."""

import itertools
import re
import shlex
from pathlib import Path

import pytest
import torch

from skeleton_cgl import Study
from skeleton_cgl.engine.checking import check_subject, checks_of, find_subject
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.learning.learner import Learner
from tests.conftest import Run
from tests.learning.learners import answers_after_every_stage, assert_same_to_the_bit, learn_tasks, small_learner
from tests.scenarios.small import lesson, scenario_of, write_small
from tests.test_models_page import SLOW, without_numbers

PAGE = (Path(__file__).parents[1] / "models" / "methods.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, flags=re.DOTALL)
(CODE,) = (text for language, text in BLOCKS if language)
CHECKED, FAILED, RUN = (text for language, text in BLOCKS if not language)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    written = tmp_path / "dark_replay.py"
    written.write_text(CODE, encoding="utf-8")
    return written


@pytest.mark.usefixtures("file")
def test_the_output_of_check_is_that_of_the_page(run: Run) -> None:
    command, *expected = CHECKED.splitlines()
    code, printed, _ = run(*command.removeprefix("$ skeleton-cgl ").split())
    assert code == 0
    assert without_numbers(printed.splitlines()) == without_numbers(expected)


def test_a_state_without_the_memory_is_refused_in_the_words_of_the_page(file: Path) -> None:
    file.write_text(CODE.replace(', "memory": self.memory}', "}"), encoding="utf-8")
    subject = find_subject("dark_replay.py")
    findings = check_subject(subject, [check for check in checks_of(subject) if check not in SLOW])
    assert FAILED.strip() in [str(finding) for finding in findings]


def learned(file: Path, archive: Path, parameters: dict, **training: object) -> Learner:
    scenario = scenario_of(archive)
    return learn_tasks(small_learner(scenario, str(file), parameters, **training), scenario, (0, 1), (2, 3), (4, 5))


@pytest.mark.parametrize("training", [{}, {"batch_size": 6}, {"patience": 1}], ids=str)
def test_the_memory_has_past_samples_with_the_outputs_known_then(file: Path, tmp_path: Path, training: dict) -> None:
    archive = write_small(tmp_path / "small.h5")
    learner = learned(file, archive, {"count": 40}, **training)
    memory = learner.method.memory
    samples = [lesson(scenario_of(archive), task).training for task in ((0, 1), (2, 3), (4, 5))]
    assert learner.method.met == sum(map(len, samples))
    assert learner.method.samples_kept() == 40
    labels = {int(i): int(label) for part in samples for i, label in zip(part.ids, part.labels, strict=True)}
    assert [labels[int(i)] for i in memory["ids"]] == memory["labels"].tolist()
    assert len(set(memory["ids"].tolist())) == 40
    widths = (~memory["outputs"].isnan()).sum(dim=1)
    assert widths.tolist() == [2 + 2 * (int(label) // 2) for label in memory["labels"]]


def test_without_strengths_and_with_one_slot_it_is_nearly_bare_and_with_them_it_is_not(
    file: Path, tmp_path: Path
) -> None:
    scenario = scenario_of(write_small(tmp_path / "small.h5"))
    weak = {"alpha": 0.0, "beta": 0.0}
    found = [answers_after_every_stage(small_learner(scenario, str(file), each), scenario) for each in (weak, weak, {})]
    assert_same_to_the_bit(found[0], found[1])
    assert not torch.equal(found[0][-1], found[2][-1])


def test_the_study_of_the_page_can_be_made(file: Path) -> None:
    assert str(file.name) in RUN
    study = Study(methods=["bare", str(file), "der-pp"])
    assert [str(method) for method in study.methods] == ["bare", "dark_replay", "der-pp"]


@pytest.mark.usefixtures("file")
def test_the_stream_of_the_page_can_be_planned() -> None:
    (command,) = (line for line in RUN.splitlines() if "stream_quickstart" in line)
    _, _, _, study, *settings = shlex.split(command)
    changes = [value for option, value in itertools.pairwise(settings) if option == "--set"]
    plan = make_plan(Study.from_file(Path(__file__).parents[1] / study, changes))
    assert [str(method) for method in plan.study.methods] == ["bare", "dark_replay", "joint"]
