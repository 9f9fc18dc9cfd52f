import itertools
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from skeleton_cgl import Study
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.engine.rows import ComponentRow, LearnerRow
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from skeleton_cgl.parts import TEST
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.labelled import LabelledSamples
from skeleton_cgl.search import Search, choose, describe_choices, run_search, write_fragment
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
    pairs = itertools.product(search.points(), components)
    return [
        LearnerRow(number, ComponentRow("gcn"), each.row(METHODS), point) for number, (point, each) in enumerate(pairs)
    ]


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


def test_a_grid_of_methods_alone_writes_methods_alone(tmp_path: Path) -> None:
    search = Search(methods=["bare", "replay"], grid={"replay": {"fraction": [0.1, 0.2]}}, training={"epochs": 7})
    runs = pd.DataFrame({"learner": [0, 1, 2], "noise": 0, "validation_AA": [5, 10, 20.126]})
    choices = choose(search, learners_of(search), runs)
    write_fragment(search, choices, tmp_path / "best.yaml")
    assert (tmp_path / "best.yaml").read_text() == (
        "# Chosen by validation AA (percent) in the search study; to be included in a study file.\n"
        "#   replay fraction=0.2: 20.13\n"
        "methods:\n- {name: bare}\n- {name: replay, fraction: 0.2}\n"
    )
    assert describe_choices(search, choices) == (
        "bare:\n  5.00  bare <\nreplay:\n  20.13  replay fraction=0.2 <\n  10.00  replay fraction=0.1"
    )


SLOW = "training.learning_rate=0.1 backbone.dropout=0"
DROPPED = "training.learning_rate=0.1 backbone.dropout=0.5"
FAST = "training.learning_rate=0.2 backbone.dropout=0"


def search_of_recipes() -> tuple[Search, pd.DataFrame]:
    """Return a search of a recipe and a backbone, and scores of bare and two kinds of replay at each of four points."""
    search = Search(
        name="made",
        methods=["bare", "replay"],
        backbone={"name": "gcn", "width": 8},
        training={"epochs": 7, "plateau": {"patience": 3}},
        grid={
            "replay": {"fraction": [0.1, 0.2]},
            "backbone": {"dropout": [0, 0.5]},
            "training": {"learning_rate": [0.1, 0.2]},
        },
    )
    # Two runs of each. In the mean, the better replay has 55 at the first point, and 58, 51 and 50 at the others.
    first = [(50, 40, 50), (30, 60, 20), (58, 50, 52), (10, 50, 40)]
    second = [(50, 40, 60), (32, 56, 20), (62, 52, 50), (10, 50, 40)]
    values = list(itertools.chain(*first, *second))
    return search, pd.DataFrame({"learner": [*range(12), *range(12)], "noise": 0, "validation_AA": values})


def test_one_recipe_is_chosen_for_all_methods_and_each_one_s_own_is_told(tmp_path: Path) -> None:
    """By hand, the mean of bare and of the better replay: 52.5, 44.5, 55.5 and 30."""
    search, runs = search_of_recipes()
    choices = choose(search, learners_of(search), runs)
    bare, replay = choices
    assert (str(bare.winner), bare.winner.score) == (f"bare at {FAST}", 60)
    assert bare.own_best == bare.winner
    # Both kinds of replay have 51 there.
    assert (str(replay.winner), replay.winner.score) == (f"replay fraction=0.1 at {FAST}", 51)
    assert (str(replay.own_best), replay.own_best.score) == (f"replay fraction=0.1 at {DROPPED}", 58)
    assert [candidate.score for candidate in bare.tried] == [60, 50, 31, 10]
    write_fragment(search, choices, tmp_path / "best.yaml")
    text = (tmp_path / "best.yaml").read_text()
    assert [line for line in text.splitlines() if line.startswith("#")][1:] == [
        f"# For all methods {FAST}: 55.50 in the mean.",
        "#   bare: 60.00",
        f"#   replay fraction=0.1: 51.00; by itself replay fraction=0.1 at {DROPPED}: 58.00",
    ]
    assert yaml.safe_load(text) == {
        "training": {"epochs": 7, "plateau": {"patience": 3}, "learning_rate": 0.2},
        "backbone": {"name": "gcn", "width": 8, "dropout": 0},
        "methods": [{"name": "bare"}, {"name": "replay", "fraction": 0.1}],
    }
    assert describe_choices(search, choices).splitlines()[-8:] == [
        "all methods, the mean of their best:",
        f"  55.50  {FAST} <",
        f"  52.50  {SLOW}",
        f"  44.50  {DROPPED}",
        "  30.00  training.learning_rate=0.2 backbone.dropout=0.5",
        f"chosen for all methods: {FAST}",
        "  bare: 60.00",
        f"  replay fraction=0.1: 51.00; by itself replay fraction=0.1 at {DROPPED}: 58.00",
    ]


def test_the_first_of_equal_recipes_wins_and_undefined_scores_never_do() -> None:
    search, runs = search_of_recipes()
    runs["validation_AA"] = 50.0
    assert {str(each.winner) for each in choose(search, learners_of(search), runs)} == {
        f"bare at {SLOW}",
        f"replay fraction=0.1 at {SLOW}",
    }
    runs.loc[runs["learner"] == 0, "validation_AA"] = nan
    assert {str(each.winner) for each in choose(search, learners_of(search), runs)} == {
        f"bare at {DROPPED}",
        f"replay fraction=0.1 at {DROPPED}",
    }
    runs["validation_AA"] = nan
    with pytest.raises(InputError, match="no run of bare has a validation AA"):
        choose(search, learners_of(search), runs)


def test_a_study_includes_the_recipe_that_a_search_found(tmp_path: Path, run: Run) -> None:
    (tmp_path / "grid.yaml").write_text(
        "scenario: {kind: node, data: synthetic, setting: class-il, classes_per_task: 5}\n"
        "backbone: {name: gcn, width: 4, depth: 1}\n"
        "methods: [bare, {name: replay, count: 3}]\n"
        "grid:\n"
        "  training: {learning_rate: [0.1, 0.01], weight_decay: [0.0, 0.5]}\n"
        "  backbone: {dropout: [0, 0.25]}\n"
        "  replay: {count: [3, 9]}\n"
        "training: {epochs: 1, reset_optimizer: true}\n"
    )
    store, best = tmp_path / "x.db", tmp_path / "best.yaml"
    code, text, _ = run("search", tmp_path / "grid.yaml", "--out", best, "--store", store)
    assert code == 0
    assert "48 stages learned; 24 of 24 runs" in text
    runs = Results(store).runs()
    fields = ["training.learning_rate", "training.weight_decay", "backbone.dropout"]
    by_method = runs.assign(kind=runs["method"].str.split().str[0]).groupby([*fields, "kind"])["validation_AA"]
    by_point = by_method.max().groupby(fields).mean()
    (tmp_path / "study.yaml").write_text("include: best.yaml\norders: {tasks: 1}\n")
    study = Study.from_file(tmp_path / "study.yaml")
    point = (study.training.learning_rate, study.training.weight_decay, study.backbone[0].parameters["dropout"])
    assert by_point[point] == by_point.max()
    chosen = dict(zip(fields, point, strict=True))
    assert "chosen for all methods: " + " ".join(f"{path}={value}" for path, value in chosen.items()) in text
    assert (study.training.epochs, study.training.reset_optimizer) == (1, True)
    assert study.backbone[0].parameters == {"width": 4, "depth": 1, "dropout": point[2]}
    assert [str(method) for method in study.methods] == ["bare", "replay"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid": {"training": {"learning_rat": [1]}}}, "training: unknown field 'learning_rat'; did you mean 'learn"),
        ({"grid": {"trainig": {"learning_rate": [1]}}}, "none of the methods; did you mean 'training'"),
        ({"grid": {"training": {"learning_rate": []}}}, "at least one value"),
        ({"grid": {"backbone": {"name": ["gcn", "stgcn"]}}}, "backbone: 'name' is no parameter"),
        ({"grid": {"backbone": {"0.width": [4]}}}, r"backbone: '0\.width' is no parameter"),
        ({"sweep": {"training.epochs": [1, 2]}, "grid": {"training": {"epochs": [3]}}}, r"'training\.epochs' is swept"),
        ({"sweep": {"backbone.0.width": [4]}, "grid": {"backbone": {"width": [3]}}}, r"'backbone\.0\.width' is swept"),
        ({"sweep": {"backbone": ["gcn"]}, "grid": {"backbone": {"width": [3]}}}, "'backbone' is swept"),
        ({"sweep": {"methods.fraction": [0.1]}}, r"'methods\.fraction': methods cannot be swept in a search"),
        (
            {"methods": [{"name": "bare", "label": "training"}], "grid": {"training": {"epochs": [3]}}},
            "'training' is a method, too",
        ),
        ({"methods": ["lwf", "replay", {"name": "replay", "count": 3}]}, "two are called 'replay'"),
    ],
)
def test_grids_of_recipe_and_backbone_are_refused_where_they_mean_nothing(
    folder: Path, changes: dict, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        small_search(folder, **changes)


def test_a_grid_beside_a_sweep_of_other_fields_is_no_grid_on_a_swept_field(folder: Path) -> None:
    sweep = {"training.plateau": [{"patience": 3}], "backbone.depth": [1]}
    small_search(folder, sweep=sweep, grid={"training": {"patience": [3, 4]}, "backbone": {"width": [3, 4]}})


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"backbone": {"dropuot": [0, 0.5]}}, "unknown parameter 'dropuot'"),
        ({"backbone": {"widht": [4, 8]}}, "unknown parameter 'widht'; did you mean 'width'"),
        ({"training": {"learning_rate": [0.1, -1]}}, "greater than 0"),
        ({"training": {"learning_rate": [0.1, 0.1]}}, "each once"),
        ({"training": {"epochs": list(range(1, 42)), "patience": list(range(1, 42))}}, "1,681 combinations"),
    ],
)
def test_a_value_that_cannot_be_tried_is_refused_before_anything_runs(
    folder: Path, tmp_path: Path, grid: dict, message: str
) -> None:
    with pytest.raises((InputError, ValueError), match=message):
        run_search(small_search(folder, grid=grid), tmp_path / "x.db", progress=False)
    assert not (tmp_path / "x.db").exists()


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
