"""What models/scenarios.md says is true: its commands and code run; models/sensors.py scores and hides as it says."""

import inspect
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from sklearn.metrics import r2_score

from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import SCENARIOS
from skeleton_cgl.scenarios.problem import Problem
from skeleton_cgl.scenarios.scenario import Scenario
from skeleton_cgl.scenarios.settings import make_scenario
from tests.conftest import Run
from tests.core.reach import reached

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "models" / "sensors.py"
CODE = EXAMPLE.read_text(encoding="utf-8")
PAGE = (ROOT / "models" / "scenarios.md").read_text(encoding="utf-8")
SETTINGS, OWN_DATA, FROM_PYTHON = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
(STUDY,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = re.findall(r"^skeleton-cgl (.*)$", PAGE, flags=re.MULTILINE)
FEW = ("--set", "training.epochs=2")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with the files of the page in it."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY, encoding="utf-8")
    return tmp_path


def rows_below(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a line of the page."""
    lines = PAGE[PAGE.index(heading) :].splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("|"))
    table = lines[start + 2 :][: lines[start + 2 :].index("")]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table]


def sensors(**fields: Any) -> Scenario:
    return make_scenario({"kind": "sensors.py", **fields}, seed=0)


def arrays() -> dict[str, np.ndarray]:
    """Return the made-up data as they are before the scenario shuffles them."""
    made: dict[str, np.ndarray] = inspect.getmodule(SCENARIOS.find("sensors.py")).made_up()  # type: ignore[union-attr]
    return made


def nodes_of(scenario: Scenario, ids: torch.Tensor) -> np.ndarray:
    """Return which nodes of the arrays samples are, found again by their features."""
    features = scenario.queries(()).pool.whole().content.dense_features[ids].numpy()
    alike = (features[:, None] == arrays()["features"].astype(np.float32)).all(axis=2)
    assert (alike.sum(axis=1) == 1).all()
    return alike.argmax(axis=1)


def test_the_commands_of_the_page_run(run: Run) -> None:
    exec(compile(OWN_DATA, "scenarios.md", "exec"), {})
    assert len(COMMANDS) == 6
    for command in COMMANDS:
        arguments = shlex.split(command)
        code, _, errors = run(*arguments, *(FEW if arguments[0] == "run" else ()))
        assert code == 0, errors


def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert FROM_PYTHON.count("epochs=100") == 1
    exec(compile(FROM_PYTHON.replace("epochs=100", "epochs=5"), "scenarios.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 4 * 2 * 2


def test_the_page_shows_the_settings_and_the_study_that_are_there() -> None:
    assert SETTINGS in CODE
    there = yaml.safe_load((ROOT / "experiments" / "sensors_quickstart.yaml").read_text(encoding="utf-8"))
    assert yaml.safe_load(STUDY) == {**there, "scenario": {"kind": "sensors.py"}}


@pytest.mark.parametrize(("heading", "protocol"), [("**The problem**", Problem), ("**The scenario**", Scenario)])
def test_the_page_names_all_that_a_scenario_and_a_problem_have(heading: str, protocol: type) -> None:
    told = [row[0] for row in rows_below(heading)]
    expected = {*protocol.__annotations__, *(name for name in vars(protocol) if not name.startswith("_"))}
    assert set(re.findall(r"`(\w+)", " ".join(told))) - {"notes"} == expected
    for name, arguments in re.findall(r"`(\w+)\((.*?)\)`", " ".join(told)):
        assert ["self", *arguments.split(", ")] == list(inspect.signature(getattr(protocol, name)).parameters)


def test_scores_are_those_of_a_computation_from_the_arrays() -> None:
    scenario = sensors(tolerance=0.3)
    lessons = scenario.lessons(scenario.default)
    queries = scenario.queries(lessons)
    nodes = nodes_of(scenario, queries.ids)
    values, regions = arrays()["values"][nodes], arrays()["regions"][nodes]
    validation = torch.cat([scenario.experience(lessons[: step + 1]).validation.ids for step in range(4)])
    chosen = np.isin(queries.ids.numpy(), validation.numpy())
    answers = values + np.random.default_rng(0).normal(scale=np.where(regions == "east", 5, 0.3))
    measures = scenario.score(torch.from_numpy(answers.astype(np.float32))[:, None], lessons)
    assert [(each.part, each.metric) for each in measures] == [
        (part, metric) for part in ("test", "validation") for metric in ("within", "explained")
    ]
    for measure in measures:
        for unit, found, asked in zip(scenario.units, measure.values, measure.asked, strict=True):
            rows = (regions == unit.name) & (chosen == (measure.part == "validation"))
            right = sum(abs(answer - value) <= 0.3 for answer, value in zip(answers[rows], values[rows], strict=True))
            expected = {"within": right / rows.sum(), "explained": max(0, r2_score(values[rows], answers[rows]))}
            assert found == pytest.approx(expected[measure.metric], abs=1e-5)
            assert asked == rows.sum() == 15


def test_every_node_is_learned_from_or_asked_about_in_its_region() -> None:
    scenario = sensors()
    lessons = scenario.lessons(((2,), (0, 3), (1,)))
    names = [unit.name for unit in scenario.units]
    asked = scenario.queries(()).ids
    learned = []
    for step, lesson in enumerate(lessons):
        experience = scenario.experience(lessons[: step + 1])
        for samples in (experience.training, experience.validation):
            nodes = nodes_of(scenario, samples.ids)
            assert set(arrays()["regions"][nodes]) == {names[unit] for unit in lesson.units}
            np.testing.assert_array_equal(samples.labels.numpy(), arrays()["values"][nodes].astype(np.float32))
        assert np.isin(experience.validation.ids, asked).all()
        learned.append(experience.training.ids)
    assert sorted(torch.cat([*learned, asked]).tolist()) == list(range(300))


def test_no_value_that_was_not_taught_is_within_reach() -> None:
    scenario = sensors()
    lessons = scenario.lessons(scenario.default)
    experience, queries = scenario.experience(lessons[:1]), scenario.queries(lessons[:1])
    told = torch.cat([experience.training.labels, experience.validation.labels]).numpy()
    hidden = np.setdiff1d(arrays()["values"].astype(np.float32), told)
    assert len(hidden) == 300 - 60
    for array in reached(experience, queries, scenario.facts, scenario.problem, experience.training.pool.whole()):
        assert not np.isin(array.astype(np.float32), hidden).any()


def test_neither_the_numbers_of_queries_nor_their_sequence_tell_the_region() -> None:
    scenario = sensors()
    ids = scenario.queries(()).ids
    regions = arrays()["regions"][nodes_of(scenario, ids)]
    alike = (regions[1:] == regions[:-1]).mean()
    # 119 pairs of neighbours, each alike with a chance of 29 in 119: four standard deviations.
    assert alike < 0.25 + 4 * np.sqrt(0.25 * 0.75 / 119)
    means = [ids[torch.from_numpy(regions == region)].float().mean() for region in np.unique(regions)]
    assert max(means) - min(means) < 100, "sorted by region they would be 75 apart from one to the next"


def test_the_digest_tells_the_data_the_split_and_the_settings_apart(folder: Path) -> None:
    changed = arrays()
    np.savez(folder / "same.npz", **changed)
    changed["values"][7] += 1
    np.savez(folder / "other.npz", **changed)
    assert sensors().digest == sensors(data="same.npz").digest
    others = [make_scenario({"kind": "sensors.py"}, seed=1), sensors(tolerance=1), sensors(data="other.npz")]
    assert len({scenario.digest for scenario in [sensors(), *others]}) == 4


def without(text: str) -> str:
    """Return the code of the example without what begins with `text`, up to the next empty line."""
    start = CODE.index(text)
    return CODE[:start] + CODE[CODE.index("\n\n", start) + 2 :].lstrip("\n")


MISTAKES: dict[str, tuple[str, tuple[str, ...]]] = {
    "no `kind: str`": (CODE.replace("    kind: str\n", ""), ()),
    "no `make`": (CODE.replace("def make(", "def build("), ()),
    "no `digest`": (CODE.replace("self.digest =", "self.other ="), ()),
    "no `distillation`": (without("    def distillation("), ()),
    "no `clamp(min=0)`": (CODE.replace(".clamp(min=0)", ""), ()),
    "`data: no.npz`": (CODE, ("--set", "scenario.data=no.npz")),
    "`backbone: stgcn`": (CODE, ("--set", "backbone=stgcn")),
    "`skeleton-cgl check sensors.py`": (CODE, ("check", "sensors.py")),
}


def test_all_mistakes_of_the_page_are_tried() -> None:
    assert [row[0] for row in rows_below("## Mistakes")] == list(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_the_words_of_the_page(folder: Path, run: Run, mistake: str) -> None:
    code, arguments = MISTAKES[mistake]
    (folder / "sensors.py").write_text(code, encoding="utf-8")
    command = arguments if arguments[:1] == ("check",) else ("run", "study.yaml", *FEW, *arguments)
    failed, _, errors = run(*command)
    assert failed
    assert "Traceback" not in errors
    told = next(row[1] for row in rows_below("## Mistakes") if row[0] == mistake).strip("` ")
    assert told.removesuffix("…") in errors


def test_a_metric_that_was_left_out_is_told(folder: Path, run: Run) -> None:
    (folder / "sensors.py").write_text(CODE.replace("in by_region)\n", "in by_region)[:1]\n"), encoding="utf-8")
    code, _, errors = run("run", "study.yaml", *FEW)
    assert code == 1
    assert "scenario Sensors: score: test explained: expected values of 4 units, found none" in errors


def test_answers_that_are_no_numbers_are_refused() -> None:
    scenario = sensors()
    answers = torch.zeros(len(scenario.queries(())), 1)
    answers[3] = torch.nan
    with pytest.raises(InputError, match="answers: expected finite numbers"):
        scenario.score(answers, scenario.lessons(scenario.default))
