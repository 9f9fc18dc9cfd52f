from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from skeleton_cgl import Study
from skeleton_cgl.engine.rows import ComponentRow, LearnerRow
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import TEST
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.search import Search, choose, run_search, write_fragment
from tests.conftest import Run
from tests.engine.studies import contents, small_study

GRID = {"replay": {"fraction": [0.05, 0.6]}, "lwf": {"strength": [0.1, 10], "temperature": [1, 4]}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("search")


def small_search(folder: Path, **changes: object) -> Search:
    fields = small_study(folder, methods=["bare", "replay", "lwf"]).model_dump(mode="json")
    del fields["orders"]
    return Search(**{**fields, "grid": GRID, "training": {"epochs": 5, "learning_rate": 0.01}, **changes})


def learners_of(search: Search) -> list[LearnerRow]:
    components = [component for tried in search.candidates().values() for component in tried]
    return [LearnerRow(number, ComponentRow("gcn"), each.row(METHODS)) for number, each in enumerate(components)]


def test_every_combination_is_tried_on_the_default_order_and_validation_decides(folder: Path, tmp_path: Path) -> None:
    search = small_search(folder, repeats=2)
    results, choices = run_search(search, tmp_path / "x.db", progress=False)
    assert set(results.runs()["order"]) == {((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))}
    assert [len(choice.tried) for choice in choices] == [1, 2, 4]
    with Store(tmp_path / "x.db") as store:
        learners, runs = store.learners(results.study.number), store.runs(results.study.number)
        last = {run: store.record(run.keys[-1]).measure("validation", "accuracy").counts for run in runs}
    by_component = {(each.method.name, each.method.parameters): each.number for each in learners}
    for choice in choices:
        by_hand = []
        for candidate in choice.tried:
            learner = by_component[candidate.component.name, tuple(candidate.component.parameters.items())]
            counts = [each for run, each in last.items() if run.learner == learner]
            by_hand.append(100 * np.mean([np.diag(each) / each.sum(axis=1) for each in counts]))
        assert [candidate.score for candidate in choice.tried] == pytest.approx(by_hand)
        assert by_hand == sorted(by_hand, reverse=True)
    assert results.summary.learned == len(contents(tmp_path / "x.db")) == 2 * 7 * 5
    again, same = run_search(search, tmp_path / "x.db", progress=False)
    assert again.summary.learned == 0
    assert [choice.winner for choice in same] == [choice.winner for choice in choices]


def test_changing_test_labels_changes_no_choice(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = small_search(folder)
    results, choices = run_search(search, tmp_path / "true.db", progress=False)
    score = LabelledSamples.score

    def score_with_false_tests(self: LabelledSamples, *arguments: object) -> object:
        true = self._labels
        self._labels = torch.where(self._parts == TEST, (true + 3) % len(self.units), true)
        try:
            return score(self, *arguments)
        finally:
            self._labels = true

    monkeypatch.setattr(LabelledSamples, "score", score_with_false_tests)
    false_results, false_choices = run_search(search, tmp_path / "false.db", progress=False)
    assert false_choices == choices
    assert not false_results.runs()["AA"].equals(results.runs()["AA"])


def test_the_first_of_equals_wins_and_noise_takes_no_part() -> None:
    search = Search(methods="replay", grid={"replay": {"fraction": [0.1, 0.2, 0.3]}})
    columns = {"learner": [0, 1, 2, 0, 0], "noise": [0, 0, 0, 0, 1], "validation_AA": [50, 60, 60, 40, 900], "AA": 0.0}
    runs, learners = pd.DataFrame(columns), learners_of(search)
    (choice,) = choose(search, learners, runs)
    found = [(str(candidate), candidate.score) for candidate in choice.tried]
    assert found == [("replay fraction=0.2", 60), ("replay fraction=0.3", 60), ("replay fraction=0.1", 45)]
    with pytest.raises(InputError, match=r"no finished run of replay fraction=0\.1"):
        choose(search, learners, runs[runs["learner"] != 0])


def test_winners_are_included_in_a_study(folder: Path, tmp_path: Path, run: Run) -> None:
    search = small_search(folder, grid={"replay": {"fraction": [0.05, 0.6]}})
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(search.model_dump(mode="json", exclude={"name"})))
    best = tmp_path / "best.yaml"
    code, text, _ = run("search", tmp_path / "grid.yaml", "--out", best, "--store", tmp_path / "x.db")
    assert code == 0
    assert "replay fraction=0.6 <" in text or "replay fraction=0.05 <" in text
    winner = 0.6 if "replay fraction=0.6 <" in text else 0.05
    (tmp_path / "orders.yaml").write_text("include: best.yaml\norders: {tasks: 3}\n")
    study = Study.from_file(tmp_path / "orders.yaml")
    assert [(str(each), each.parameters) for each in study.methods] == [
        ("bare", {}),
        ("replay", {"fraction": winner}),
        ("lwf", {}),
    ]
    assert study.orders.tasks == 3
    assert Study.from_file(tmp_path / "orders.yaml", ["methods=[bare]"]).methods == study.methods[:1]


def test_labels_of_methods_survive_a_search(tmp_path: Path) -> None:
    search = Search(methods=[{"name": "replay", "label": "mine", "count": 3}], grid={"mine": {"count": [3, 9]}})
    runs = pd.DataFrame({"learner": [0, 1], "noise": 0, "validation_AA": [10, 20]})
    choices = choose(search, learners_of(search), runs)
    assert [str(candidate) for candidate in choices[0].tried] == ["mine count=9", "mine count=3"]
    write_fragment(search, choices, tmp_path / "best.yaml")
    fragment = yaml.safe_load((tmp_path / "best.yaml").read_text())
    assert fragment == {"methods": [{"name": "replay", "label": "mine", "count": 9}]}


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"replya": {"fraction": [0.1]}}, "'replya' is none of the methods; did you mean 'replay'"),
        ({"replay": {"fraction": []}}, "at least one value"),
        ({}, "at least 1"),
    ],
)
def test_impossible_grids_are_refused(folder: Path, grid: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_search(folder, grid=grid)


def test_an_unknown_parameter_is_refused_before_anything_runs(folder: Path, tmp_path: Path) -> None:
    search = small_search(folder, grid={"replay": {"fractoin": [0.1]}})
    with pytest.raises(InputError, match="unknown parameter 'fractoin'; did you mean 'fraction'"):
        run_search(search, tmp_path / "x.db", progress=False)
    assert not (tmp_path / "x.db").exists()
