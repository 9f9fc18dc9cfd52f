"""Numbers that change under the same versions are found out: records made before and after would share keys."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skeleton_cgl.methods.ewc import EWC
from skeleton_cgl.registry import CLIP_BACKBONES, GRAPH_BACKBONES, METHODS, SCENARIOS, Registry
from skeleton_cgl.scenarios import problem
from tests.golden import values
from tests.golden.cases import CASES, Case
from tests.golden.values import committed, complaint, now

GOLDEN = committed()
EWC_CASE = next(case for case in CASES if case.name == "ewc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_component_comes_to_its_committed_numbers(case: Case, folder: Path) -> None:
    wrong = complaint(case, GOLDEN.get(case.name), now(case, folder))
    assert wrong is None, wrong


def test_no_numbers_are_of_cases_that_are_gone() -> None:
    assert list(GOLDEN) == [case.name for case in CASES]


@pytest.mark.parametrize(
    ("part", "registry"), [("method", METHODS), ("backbone", CLIP_BACKBONES), ("backbone", GRAPH_BACKBONES)]
)
def test_every_built_in_component_has_a_case(part: str, registry: Registry) -> None:
    built_in = {f"{part} {name}" for name in registry.names() if registry.is_built_in(name)}
    assert built_in <= {name for golden in GOLDEN.values() for name in golden.versions}


def test_every_built_in_kind_of_scenario_and_every_problem_has_a_case() -> None:
    kinds = {f"scenario {name}" for name in SCENARIOS.names() if SCENARIOS.is_built_in(name)}
    problems = {f"problem {name}" for name, value in vars(problem).items() if hasattr(value, "losses")}
    assert kinds | (problems - {"problem Problem"}) <= {name for golden in GOLDEN.values() for name in golden.versions}


def test_other_numbers_under_the_same_versions_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = EWC.with_penalty

    def stronger(self: EWC, learner: Any, loss: Any) -> Any:
        return loss + 1.1 * (usual(self, learner, loss) - loss)

    monkeypatch.setattr(EWC, "with_penalty", stronger)
    found = now(EWC_CASE, folder)
    wrong = complaint(EWC_CASE, GOLDEN["ewc"], found)
    assert wrong is not None
    assert "raise the `version` of the component whose numbers changed" in wrong
    monkeypatch.setattr(EWC, "version", EWC.version + 1)
    raised = complaint(EWC_CASE, GOLDEN["ewc"], now(EWC_CASE, folder))
    assert raised is not None
    assert "write them by `python -m tests.golden`" in raised
    assert "raise" not in raised


def test_numbers_are_written_only_where_a_version_was_raised(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "FILE", tmp_path / "numbers.json")
    monkeypatch.setattr(values, "CASES", (EWC_CASE,))
    assert values.write(folder) == []
    written = values.committed()["ewc"]
    other = replace(written, numbers=copy.deepcopy(written.numbers))
    other.numbers["answers 1"][0] *= 1.1
    monkeypatch.setattr(values, "now", lambda _case, _folder: other)
    assert [line.partition(":")[0] for line in values.write(folder)] == ["ewc"]
    assert values.committed()["ewc"] == written
    monkeypatch.setattr(values, "now", lambda _case, _folder: replace(other, versions={**other.versions, "learner": 9}))
    assert values.write(folder) == []
    assert values.committed()["ewc"].numbers == other.numbers
