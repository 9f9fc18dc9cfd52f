import re
from pathlib import Path
from unittest.mock import ANY

import pytest

from skeleton_cgl import Study
from skeleton_cgl.analysis.report import report_page
from skeleton_cgl.analysis.results import Results
from skeleton_cgl.engine.exchange import export, import_export
from skeleton_cgl.engine.forecast import forecast
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.engine.store import Store
from skeleton_cgl.errors import InputError
from tests.engine.studies import contents, small_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sweep")


def test_a_sweep_is_the_studies_it_consists_of(folder: Path, tmp_path: Path) -> None:
    """The same records as one study per combination, told apart in every frame, here and after an export."""
    sweep = {"backbone.width": [8, 5], "training.epochs": [1, 2]}
    swept = small_study(folder, sweep=sweep, repeats=2)
    results = swept.run(tmp_path / "swept.db", progress=False)
    alone = tmp_path / "alone.db"
    for width in (8, 5):
        for epochs in (1, 2):
            training = {"epochs": epochs, "learning_rate": 0.01, "device": "cpu"}
            small_study(folder, backbone={"name": "gcn", "width": width}, training=training, repeats=2).run(
                alone, progress=False
            )
    assert contents(tmp_path / "swept.db") == contents(alone)
    runs = results.runs()
    assert len(runs) == 4 * 2 * 2 * 3
    points = runs[["backbone", "backbone.width", "training.epochs"]].drop_duplicates().values.tolist()
    assert points == [["GCN", 8, 1], ["GCN", 8, 2], ["GCN", 5, 1], ["GCN", 5, 2]]
    assert len(results.disparity("class")) == 4 * 2
    with Store(tmp_path / "swept.db") as store, Store(tmp_path / "again.db") as again:
        export(store, tmp_path / "swept.csv.gz")
        import_export(tmp_path / "swept.csv.gz", again)
    assert Results(tmp_path / "again.db").runs().equals(runs)


def test_the_report_of_a_sweep_begins_its_figures_with_the_sweep(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods="bare", orders={"tasks": 1}, sweep={"backbone.width": [8, 5]})
    page = report_page(study.run(tmp_path / "x.db", progress=False))
    captions = re.findall(r"<figcaption><strong>(.*?)\.</strong> (.*?)</figcaption>", page)
    assert captions[0] == ("What was swept", ANY)
    not_drawn = [title for title, meaning in captions if meaning.startswith("Not drawn")]
    of_orders = ["The fate of a class", "Disparity and the number of orders", "The kindest and the cruellest orders"]
    assert not_drawn == of_orders


def test_variants_are_run_by_workers_too(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods="bare", sweep={"scenario.classes_per_task": [2, 5]}, orders={"tasks": 2})
    study.run(tmp_path / "one.db", progress=False)
    study.run(tmp_path / "two.db", workers=2, progress=False)
    assert contents(tmp_path / "one.db") == contents(tmp_path / "two.db")
    assert {len(order) for order in Results(tmp_path / "two.db").runs()["order"]} == {2, 5}


def test_a_point_that_changes_nothing_shares_its_stages_and_keeps_its_name(folder: Path, tmp_path: Path) -> None:
    study = small_study(folder, methods="bare", orders={}, sweep={"orders.tasks": [1, 2]})
    plan = make_plan(study)
    assert forecast(study, timed=False).runs == len(plan.runs) == 3
    runs = study.run(tmp_path / "x.db", progress=False).runs()
    assert runs["orders.tasks"].tolist() == [1, 2, 2]
    assert runs["AA"][0] == runs["AA"][1]


def test_every_backbone_of_a_list_is_swept(folder: Path) -> None:
    study = small_study(folder, backbone=["gcn", {"name": "gcn", "label": "deep", "depth": 3}], methods="bare")
    swept = Study(**{**study.model_dump(mode="json"), "sweep": {"backbone.width": [4]}})
    (variant,) = swept.variants()
    assert variant.point == (("backbone.width", 4),)
    assert [(str(each), each.parameters) for each in variant.study.backbone] == [
        ("gcn", {"width": 4}),
        ("deep", {"depth": 3, "width": 4}),
    ]


def test_backbones_are_swept_by_name(folder: Path, tmp_path: Path) -> None:
    sweep = {"backbone": ["gcn", {"name": "gcn", "label": "deep", "depth": 3}], "backbone.width": [4, 5]}
    runs = small_study(folder, methods="bare", sweep=sweep).run(tmp_path / "x.db", progress=False).runs()
    assert runs[["backbone", "backbone.width"]].drop_duplicates().values.tolist() == [
        ["GCN", 4],
        ["GCN", 5],
        ["deep", 4],
        ["deep", 5],
    ]


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"backbne.width": [1]}, "'backbne.width' cannot be swept"),
        ({"seed": [1, 2]}, "'seed' cannot be swept"),
        ({"backbone.width": []}, "at least one value"),
        ({"backbone.width": [4, 4]}, "each once"),
    ],
)
def test_impossible_sweeps_are_refused(folder: Path, sweep: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_study(folder, sweep=sweep)


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"training.epoch": [1]}, r"sweep: training.epoch=1: unknown field 'training.epoch'; did you mean 'epochs'"),
        ({"backbone.widht": [1]}, "unknown parameter 'widht'; did you mean 'width'"),
        ({"training.epochs.x": [1]}, "2 has no field 'x'"),
        ({"methods.9.strength": [1]}, "no entry 9 among 2"),
    ],
)
def test_sweeps_of_what_is_not_there_are_refused_before_anything_runs(folder: Path, sweep: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_plan(small_study(folder, sweep=sweep))
