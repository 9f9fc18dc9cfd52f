"""Every method of the suite, in every kind of scenario it is defined for: sharing beginnings changes no bit."""

from pathlib import Path
from typing import Any

import pytest

from skeleton_cgl import Study
from skeleton_cgl.engine.compatibility import Compatibility, compatibilities
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.archive import write_archive
from skeleton_cgl.learning.training import Training
from skeleton_cgl.registry import METHODS
from tests.conftest import Run
from tests.core.cases import GROUP_ORDERS, records_of
from tests.engine import studies
from tests.engine.studies import same_records
from tests.graphs.made_sets import random_graph_set, random_link_set
from tests.scenarios.graphs import label_graph, node_graph, write_npz
from tests.scenarios.small import write_small

SMALL: dict[str, dict[str, Any]] = {
    **{key: {"count": 9} for key in ("er", "a-gem", "der", "der-pp", "gss", "cgnn")},
    **{key: {"per_class": 2} for key in ("ssm", "sem", "er-gnn", "pdgnn-tem")},
    "mas-star": {"recent": 9, "hard": 4, "window": 2, "mean": 9.0, "variance": 9.0, "strength": 20.0},
    "cat": {"count": 6, "steps": 2},
    "delome": {"count": 2, "steps": 2},
    "dmsg": {"count": 2},
    **{key: {"count": 12, "fan_outs": [2, 2]} for key in ("ssm-stream", "sem-stream")},
    "dmsg-stream": {"count": 9},
    "ridge": {"projection": 12},
}
"""What makes a method quick, or its memory felt."""
BACKBONES = {"pdgnn-tem": {"name": "sgc", "width": 6}, "evolve-gcn": {"name": "evolving-gcn", "width": 6}}
DATA = {"skeleton": "small", "node": "nodes", "multilabel": "labels", "link": "links", "link-prediction": "links"}
DATA |= {"graph": "graphs", "graph, labels": "labelled graphs"}
STREAMED = ("graph", "link", "node", "skeleton")
TASKS = [[[0, 1], [2, 3], [4, 5]], [[0, 1], [4, 5], [2, 3]]]
SINGLES = [[[0], [1], [2]], [[0], [2], [1]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("every method")
    write_small(made / "small.h5")
    write_npz(node_graph(), made / "nodes.npz")
    write_npz(label_graph(), made / "labels.npz")
    links = random_link_set(nodes=50, links=300, features="dense", published=False, negatives=False)
    write_archive(links, made / "links.h5")
    for name, many in (("graphs", False), ("labelled graphs", True)):
        write_archive(random_graph_set(graphs=150, many_labels=many, published=False, texts=False), made / f"{name}.h5")
    return made


def study_of(method: str, kind: str, setting: str, folder: Path) -> Study:
    """Return a study of two orders that begin alike; periods have one."""
    (file,) = (path for path in folder.iterdir() if path.stem == DATA[kind])
    scenario: dict[str, Any] = {"kind": kind.partition(",")[0], "data": str(file), "setting": setting}
    orders: dict[str, Any] = {"given": SINGLES if kind in ("link", "graph", "graph, labels") else TASKS}
    if kind in ("link", "graph", "graph, labels") and setting in ("class-il", "task-il"):
        scenario["classes_per_task"] = 1
    if setting == "domain-il":
        orders = {"given": GROUP_ORDERS}
    if setting == "time-il":
        scenario["periods"], orders = 3, {"tasks": "default"}
    if kind == "link-prediction":
        scenario |= {"negatives": 20, "k": 5}
    return Study(
        name=f"{method} {kind} {setting}",
        scenario=scenario,
        backbone=BACKBONES.get(method, {"name": "gcn", "width": 6}),
        methods=[{"name": method, **SMALL.get(method, {})}],
        orders=orders,
        training={"epochs": 2, "learning_rate": 0.01, "device": "cpu"},
    )


def stream_of(method: str, kind: str, folder: Path) -> Study:
    """Return a study of two hard streams of the samples of a kind, which begin alike."""
    study = study_of(method, kind, "class-il", folder)
    scenario = {"kind": "stream", "of": study.scenario, "transition": "hard", "batch": 5, "examinations": 6}
    training = {"learning_rate": 0.01, "device": "cpu", **({"epochs": 2} if METHODS.find(method).offline else {})}
    return Study(**{**study.model_dump(), "scenario": scenario, "training": training})


def one_of_each(each: Compatibility) -> list[tuple[str, str, str]]:
    """Return a setting of every kind that a method is defined for; over all methods, all settings are met."""
    defined = [(kind, settings) for kind, settings in each.settings.items() if settings]
    return [(each.method, kind, settings[len(each.method) % len(settings)]) for kind, settings in defined]


FOUND = compatibilities()
CASES = [case for each in FOUND for case in one_of_each(each)]


@pytest.mark.parametrize(("method", "kind", "setting"), CASES, ids=str)
def test_the_tree_gives_the_records_of_every_order_run_alone(
    method: str, kind: str, setting: str, folder: Path, tmp_path: Path
) -> None:
    study = study_of(method, kind, setting, folder)
    tree, alone = (studies.run(study, tmp_path / f"{tree}.db", tree=tree) for tree in (True, False))
    assert same_records(tree, alone)
    assert records_of(tree)


@pytest.mark.parametrize("each", [each for each in FOUND if each.streams], ids=lambda each: each.method)
def test_on_a_stream_the_tree_gives_the_records_of_every_order_run_alone(
    each: Compatibility, folder: Path, tmp_path: Path
) -> None:
    """Of one kind for every method; over all methods, all kinds are met."""
    study = stream_of(each.method, each.streams[len(each.method) % len(each.streams)], folder)
    tree, alone = (studies.run(study, tmp_path / f"{tree}.db", tree=tree) for tree in (True, False))
    assert same_records(tree, alone)
    assert 6 < len(records_of(tree)) < 12


@pytest.mark.parametrize("kind", STREAMED)
def test_a_method_is_planned_on_a_stream_or_refused_in_one_sentence(kind: str, folder: Path) -> None:
    scenario = stream_of("bare", kind, folder).make_scenario(0)
    for each in FOUND:
        backbone = "gcn" if kind == "skeleton" else BACKBONES.get(each.method, {"name": "gcn"})["name"]
        if kind in each.streams:
            make_learner(scenario, backbone, each.method, Training(device="cpu"))
            continue
        with pytest.raises(InputError, match=r"^method \w+ needs [^.]*$"):
            make_learner(scenario, backbone, each.method, Training(device="cpu"))


def test_streams_are_of_kinds_with_one_class_per_sample() -> None:
    assert {kind for each in FOUND for kind in each.streams} == set(STREAMED)
    assert {each.method for each in FOUND if each.streams} >= {"bare", "joint", "er", "a-gem", "gss"}
    assert "stream" not in FOUND[0].settings


@pytest.mark.parametrize("each", FOUND, ids=lambda each: each.method)
def test_where_a_method_is_not_defined_it_is_refused_in_one_sentence(each: Compatibility, folder: Path) -> None:
    for kind, setting in (
        ("skeleton", "class-il"),
        ("skeleton", "task-il"),
        ("node", "class-il"),
        ("graph", "class-il"),
    ):
        if setting in each.settings[kind]:
            continue
        study = study_of(each.method, kind, setting, folder)
        backbone = study.backbone[0]
        name = "gcn" if kind == "skeleton" else backbone.name
        with pytest.raises(InputError, match=r"^method \w+ needs [^.]*$"):
            make_learner(study.make_scenario(0), name, each.method, Training(device="cpu"))


def test_the_list_of_methods_tells_where_each_is_defined(run: Run) -> None:
    code, printed, _ = run("ls", "methods")
    assert code == 0
    lines = printed.splitlines()
    table = lines[lines.index("") + 1 :]
    rows = {line.split()[0]: line for line in table[2 : table.index("")]}
    for each in FOUND:
        assert each.paper in rows[each.method]
    assert rows["packnet"].split()[1:6] == ["t", "t", "t", "–", "t"]
    # Classes, tasks, domains, periods and a stream of graphs; of their labels there is none.
    assert rows["bare"].split()[1:9] == ["c", "t", "d", "τ", "s", "c", "t", "d"]
    assert "s" not in rows["ewc"].split()
    assert "d domain-il, τ time-il, s on a stream." in printed
