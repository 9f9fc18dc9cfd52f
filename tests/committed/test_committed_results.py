"""What is committed under results/ stays valid: its exports give the numbers they always gave, and their studies find
nothing left to learn."""

import csv
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from skeleton_cgl.analysis.results import Results
from skeleton_cgl.engine.exchange import import_export
from skeleton_cgl.engine.plan import make_plan
from skeleton_cgl.engine.rows import LearnerRow
from skeleton_cgl.engine.store import Store
from skeleton_cgl.skeletons import write_archive
from skeleton_cgl.skeletons.sources.ucla import UclaSource
from skeleton_cgl.study import Study
from tests import shared_data

RESULTS = Path(__file__).parents[2] / "results"
NUMBERS = json.loads((Path(__file__).parent / "numbers.json").read_text())
STAGES = {
    ("ucla-gcn/records", "ucla_task_order"): 7770,
    ("ucla-gcn/records", "ucla_class_order"): 5593,
    ("ucla-gcn/sweeps", "ucla_depth"): 350,
    ("ucla-gcn/sweeps", "ucla_width"): 350,
    ("ucla-stgcn/records", "ucla_stgcn_task_order"): 15,
    ("ucla-stgcn/short", "ucla_stgcn_short"): 222,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("committed")


@cache
def imported(folder: Path, export: str) -> Path:
    store = folder / f"{export.replace('/', '-')}.db"
    with Store(store) as opened:
        import_export(RESULTS / f"{export}.csv.gz", opened)
    return store


@cache
def ucla(folder: Path) -> Path:
    archive = folder / "ucla.h5"
    write_archive(UclaSource(shared_data.FOLDER / "nw-ucla.zip"), archive)
    return archive


@cache
def exported(export: str) -> tuple[dict[str, Any], dict[str, set[str]]]:
    """Return the studies of an export by name, as written in its first line, and the keys of the stages of each."""
    with gzip.open(RESULTS / f"{export}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        studies = json.loads(file.readline().removeprefix("# "))["studies"]
        names = {str(study["id"]): study["name"] for study in studies}
        keys: dict[str, set[str]] = {}
        for row in csv.DictReader(file):
            keys.setdefault(names[row["study"]], set()).add(row["key"])
    return {study["name"]: study for study in studies}, keys


@pytest.mark.parametrize(("export", "name"), [pair for pair in STAGES if pair[1] in NUMBERS])
def test_an_import_gives_the_numbers_it_always_gave(folder: Path, export: str, name: str) -> None:
    results = Results(imported(folder, export), name)
    runs, expected = results.runs(), NUMBERS[name]
    assert len(runs) == expected["runs"]
    names = {learner.number: recorded_names(learner) for learner in results.scores.learners}
    ordinary = runs[runs["noise"] == 0].groupby("learner", sort=False)
    for measure in ("AA", "AF", "validation_AA"):
        found = {" / ".join(names[number]): value / 100 for number, value in ordinary[measure].mean().items()}
        assert found == pytest.approx(expected[measure], abs=1e-12)
    for level, by_method in expected["disparity"].items():
        found = results.disparity(level)
        found.index = [names[number][1] for number in found["learner"]]
        assert set(found.index) == set(by_method)
        for method, values in by_method.items():
            for column, value in values.items():
                wanted = float("nan") if value is None else value
                unit = 1 if column in ("orders", "repeats", "R") else 100
                assert found.loc[method, column] / unit == pytest.approx(wanted, abs=1e-12, nan_ok=True)


def recorded_names(learner: LearnerRow) -> tuple[str, str]:
    """Return a learner as the numbers name it: its backbone, with the point of the sweep, and its method."""
    point = [f"{field.removeprefix('backbone.')}={value}" for field, value in learner.point]
    return " ".join([learner.backbone.name, *point]), learner.method.name


def spelled_out(spec: dict[str, Any], data: Path) -> dict[str, Any]:
    """Return the study of an old release with what was the only way then: splits by class, one floor of one order."""
    scenario = spec["scenario"]
    runs = spec.get("noise_floor", 0)
    return {
        **spec,
        "scenario": {**scenario, "data": str(data), "split": {"by": "class", **scenario.get("split", {})}},
        "noise_floor": {"runs": runs, "orders": 1, "kinds": ["seeds"]} if runs > 1 else 0,
    }


@shared_data.needs("nw-ucla.zip")
@pytest.mark.parametrize(("export", "name"), STAGES)
def test_a_committed_study_asks_for_exactly_the_stages_of_its_export(folder: Path, export: str, name: str) -> None:
    studies, keys = exported(export)
    study = Study.model_validate(spelled_out(studies[name]["spec"], ucla(folder)))
    plan = make_plan(study)
    assert len(plan.stages) == STAGES[export, name]
    assert plan.stages.keys() == keys[name]
    assert plan.digests == studies[name]["digests"]
    with Store(imported(folder, export)) as store:
        assert plan.stages.keys() <= store.done()
