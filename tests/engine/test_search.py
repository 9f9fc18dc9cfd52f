from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from skeleton_cgl import Study
from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import TEST
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


def test_every_combination_is_tried_on_the_default_order_and_validation_decides(folder: Path, tmp_path: Path) -> None:
    search = small_search(folder, repeats=2)
    results, choices = run_search(search, tmp_path / "x.db", progress=False)
    assert set(results.runs()["order"]) == {((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))}
    assert [len(choice.scores) for choice in choices] == [1, 2, 4]
    for choice in choices:
        by_hand = {}
        for label in choice.scores.index:
            last = results.records[(results.records["method"] == label) & (results.records["step"] == 5)]
            accuracies = [np.diag(counts) / counts.sum(axis=1) for counts in last["validation"]]
            by_hand[label] = np.mean(accuracies)
        assert choice.winner.label == max(by_hand, key=by_hand.get)
        assert choice.scores.to_dict() == pytest.approx(by_hand)
        assert choice.scores.is_monotonic_decreasing
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
    assert [choice.winner for choice in false_choices] == [choice.winner for choice in choices]
    assert all(a.scores.equals(b.scores) for a, b in zip(choices, false_choices, strict=True))
    assert not false_results.runs()["AA"].equals(results.runs()["AA"])


def test_the_first_of_equals_wins_and_noise_takes_no_part() -> None:
    search = Search(methods="replay", grid={"replay": {"fraction": [0.1, 0.2, 0.3]}})
    labels = [f"replay fraction={fraction}" for fraction in (0.1, 0.2, 0.3)]
    runs = pd.DataFrame(
        {
            "method": [*labels, labels[0], labels[0]],
            "noise": [0, 0, 0, 0, 1],
            "validation_AA": [0.5, 0.6, 0.6, 0.4, 9],
            "AA": 0.0,
        }
    )
    (choice,) = choose(search, runs)
    assert choice.winner.label == labels[1]
    assert choice.scores.to_dict() == pytest.approx({labels[1]: 0.6, labels[2]: 0.6, labels[0]: 0.45})
    with pytest.raises(InputError, match=r"no finished run of replay fraction=0\.1"):
        choose(search, runs[runs["method"] != labels[0]])


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
    assert [(each.title, each.parameters) for each in study.methods] == [
        ("bare", {}),
        ("replay", {"fraction": winner}),
        ("lwf", {}),
    ]
    assert study.orders.tasks == 3
    assert Study.from_file(tmp_path / "orders.yaml", ["methods=[bare]"]).methods == study.methods[:1]


def test_labels_of_methods_survive_a_search(tmp_path: Path) -> None:
    search = Search(methods=[{"name": "replay", "label": "mine", "count": 3}], grid={"mine": {"count": [3, 9]}})
    labels = ["mine count=3", "mine count=9"]
    runs = pd.DataFrame({"method": labels, "noise": 0, "validation_AA": [0.1, 0.2]})
    write_fragment(search, choose(search, runs), tmp_path / "best.yaml")
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
