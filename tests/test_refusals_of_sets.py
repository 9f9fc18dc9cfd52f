"""Links and sets of graphs that mistakes make, and studies of them: each is refused in one line naming file or field.

Nothing is learned before. The mistakes are in a file that a study names, or in the study; the command line refuses when
it plans it.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.conftest import Run
from tests.refused import refused

LINK, PAIRS, GRAPH = ({"kind": kind} for kind in ("link", "link-prediction", "graph"))
LABELS = {**GRAPH, "reader": {"labels": True}}
TIMES = {"setting": "time-il"}
STARTS = np.arange(0, 37, 3)
EDGES = np.stack([np.arange(36), np.arange(36)])[:, np.arange(36) % 3 < 2] + [[0], [1]]
OWN_GRAPHS = {
    "starts": STARTS,
    "edges": EDGES,
    "features": np.arange(72.0).reshape(36, 2),
    "labels": np.arange(12) % 2,
}
WITH_NEGATIVES = """
import numpy as np
from skeleton_cgl.graphs.link_set import make_link_set
from skeleton_cgl.graphs.source import GraphSource

class Mine(GraphSource):
    def __init__(self, path, negatives=((1, 0),), part=2):
        self.negatives, self.part = negatives, part

    def read(self):
        ends, negatives = np.array([[0, 1, 2], [1, 2, 3]]), np.array(self.negatives).T
        parts = np.full(negatives.shape[1], self.part)
        split, times = np.array([0, 1, 2]), np.zeros(3, int)
        return make_link_set(
            "mine", 4, ends, False, times=times, split=split, negatives=negatives, negatives_split=parts
        )
"""


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ({**LINK, "data": "synthetic"}, "a graph of nodes with classes or labels; that is kind: node, multilabel or"),
        ({**LINK, "data": "synthetic-graphs"}, "data: synthetic-graphs has whole graphs with classes or labels; that"),
        ({**PAIRS, "data": "synthetic-graphs"}, "that is kind: graph"),
        ({**GRAPH, "data": "synthetic"}, "that is kind: node, multilabel or link-prediction"),
        ({**GRAPH, "data": "synthetic-links"}, "data: synthetic-links has links; that is kind: link or link-pred"),
        ({"kind": "node", "data": "synthetic-links"}, "that is kind: link or link-prediction"),
        ({"kind": "multilabel", "data": "synthetic-graphs"}, "that is kind: graph"),
        ({"kind": "links"}, "did you mean 'link'"),
        ({"kind": "link_prediction"}, "did you mean 'link-prediction'"),
        ({**LINK, "setting": "domain-il"}, "field 'setting': Input should be 'class-il', 'task-il' or 'time-il'"),
        ({**LINK, "domains": "domain"}, "scenario: domains: there are none in class-il"),
        ({**LINK, "periods": 3}, "scenario: periods: there are none in class-il"),
        ({**LINK, **TIMES, "periods": 9}, "scenario: periods: 5 different times do not make 9 periods"),
        ({**LINK, **TIMES, "tasks": [[0], [1]]}, "scenario: tasks: all classes are learned in every lesson of time-il"),
        ({**LINK, "leaking_degrees": True}, "leaking_degrees: all links are there from the beginning in class-il"),
        ({**LINK, **TIMES, "leaking_degrees": True}, "leaking_degrees: the features are given; it goes with features"),
        ({**LINK, "score": "roc_auc"}, "scenario: score: roc_auc needs two classes in every lesson"),
        ({**LINK, "score": "hits"}, "field 'score': Input should be 'accuracy'"),
        ({**LINK, "view": "task"}, "unknown field 'view'"),
        ({**LINK, "k": 50}, "unknown field 'k'"),
        ({**PAIRS, "setting": "class-il"}, "field 'setting': Input should be 'domain-il' or 'time-il'"),
        ({**PAIRS, "data": "synthetic"}, "say which groups of synthetic are the domains; there are: ends, same ends"),
        ({**PAIRS, "data": "synthetic", "domains": "end"}, "synthetic has no groups 'end'; did you mean 'ends'"),
        ({**PAIRS, "data": "synthetic", **TIMES}, "synthetic does not tell the times of its links"),
        ({**PAIRS, "domains": "dmain"}, "synthetic-links has no groups 'dmain'; did you mean 'domain'"),
        ({**PAIRS, "periods": 3}, "scenario: periods: there are no periods in domain-il"),
        ({**PAIRS, "joins_base": 0.5}, "scenario: joins_base: there are no periods in domain-il"),
        ({**PAIRS, **TIMES, "joins_base": 2}, "field 'joins_base': Input should be less than or equal to 1"),
        ({**PAIRS, **TIMES, "domains": "domain"}, "scenario: domains: there are none in time-il"),
        ({**PAIRS, **TIMES, "inter_task_edges": False}, "inter_task_edges: in time-il, joins_base says what stays of"),
        ({**PAIRS, "negatives": 0}, "field 'negatives': Input should be greater than or equal to 1"),
        ({**PAIRS, "negatives": 100_000}, "too many to draw for 'domain 0': its 108 nodes have "),
        ({**PAIRS, "k": 0}, "field 'k': Input should be greater than or equal to 1"),
        (
            {**PAIRS, "negatives": 500, "k": 2501},
            "scenario: k: expected at most the 2500 test pairs without a link that are asked about, found 2501",
        ),
        (
            {**PAIRS, **TIMES, "negatives": 500, "k": 501},
            "k: expected at most the 500 test pairs without a link that are asked about after the first period, found",
        ),
        ({**PAIRS, "score": "accuracy"}, "field 'score': Input should be 'hits' or 'roc_auc'"),
        ({**PAIRS, "classes_per_task": 2}, "unknown field 'classes_per_task'"),
        ({**PAIRS, "balanced": False}, "unknown field 'balanced'"),
        ({**PAIRS, "leaking_degrees": True}, "leaking_degrees: the features are given; it goes with features: degrees"),
        ({**PAIRS, "features": "degree"}, "field 'features': Input should be 'auto', 'given' or 'degrees'"),
        ({**PAIRS, "split": {"by": "file", "file": "x.csv"}}, "scenario: split: by: links are taken as pairs in"),
        ({**PAIRS, "split": {"by": "published"}}, "split: by: synthetic-links comes without a published split"),
        ({**PAIRS, "split": {"by": "publishd"}}, "scenario: split: by 'publishd': no such groups; did you mean 'publi"),
        ({**PAIRS, "split": {"by": "domain"}}, "has no training link"),
        ({**PAIRS, "split": {"by": "class", "test": [0]}}, "scenario: split: 'test' and 'validation' name groups"),
        (
            {**GRAPH, "split": {"by": "domain", "test": [7]}},
            "scenario: split: test: no domain 7; there are [0, 1",
        ),
        ({**GRAPH, "split": {"by": "graph"}}, "scenario: split: by 'graph': no such groups"),
        ({**GRAPH, "score": "roc_auc"}, "scenario: score: roc_auc needs two classes in every lesson"),
        ({**GRAPH, "setting": "domain-il", "score": "roc_auc"}, "score: roc_auc needs two classes in every lesson"),
        ({**GRAPH, "score": "average_precision"}, "is of labels; synthetic-graphs has one class per graph"),
        ({**GRAPH, "setting": "domain-il", "domains": "species"}, "synthetic-graphs has no groups 'species'; known"),
        ({**GRAPH, "setting": "domain-il", "classes": [0]}, "classes: all classes are learned in every lesson of dom"),
        ({**GRAPH, "fewest_nodes": 3}, "unknown field 'fewest_nodes'"),
        ({**GRAPH, "classes": ["red ring", "pink ring"]}, "scenario: classes: no class 'pink ring'"),
        ({**GRAPH, "tasks": [[0, 1], [1, 2]]}, "scenario: tasks: class 'red star' is in two tasks"),
        ({**GRAPH, "reader": {"label": True}}, "unknown parameter 'label'; did you mean 'labels'"),
        ({**GRAPH, "reader": {"graphs": 3}}, "graphs must be 96–100000, found 3"),
        ({**LABELS, "score": "accuracy"}, "score: accuracy is of one class; synthetic-graphs has many labels per"),
        ({**LABELS, **TIMES}, "setting: time-il is of one class per graph; synthetic-graphs has many labels"),
        ({**LABELS, "periods": 3}, "scenario: periods: there are none in class-il"),
        ({**LABELS, "split": {"by": "class"}}, "graphs have many labels; take by: graph or by: task"),
        (
            {**LABELS, "setting": "domain-il", "score": "average_precision_so_far"},
            "scenario: score: average_precision_so_far is of class-il, not of domain-il",
        ),
    ],
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else value[:30],
)
def test_a_wrong_scenario_is_refused_with_its_field_and_the_study_s_file(
    run: Run, tmp_path: Path, scenario: dict[str, Any], reason: str
) -> None:
    line = refused(run, tmp_path, scenario)
    assert reason in line
    assert "x.yaml: " in line or "graph-dataset 'synthetic-graphs': " in line


@pytest.mark.parametrize(
    ("scenario", "fields", "reason"),
    [
        (GRAPH, {"backbone": "stgcn"}, "backbone 'stgcn' takes clips; the scenario has graphs"),
        (GRAPH, {"backbone": {"name": "gcn", "read_out": "max"}}, "unknown read_out 'max'; known: gated, mean, sum"),
        (GRAPH, {"backbone": {"name": "gin", "read_out": "gatd"}}, "unknown read_out 'gatd'; did you mean 'gated'"),
        (PAIRS, {"backbone": {"name": "gat", "read_out": "sum"}}, "sum is of whole graphs; the scenario has pairs"),
        ({"kind": "node"}, {"backbone": {"name": "gin", "read_out": "gated"}}, "gated is of whole graphs; the"),
        (GRAPH, {"backbone": {"name": "gcn", "after": 32}}, "after must be a list of widths, found 32"),
        (GRAPH, {"backbone": {"name": "gat", "after": "32"}}, "after must be a list of widths, found '32'"),
        (LINK, {"backbone": {"name": "gcn", "after": [32, 0]}}, "after must have widths of 1 to 8192, found 0"),
        (LINK, {"backbone": {"name": "gin", "after": [1.5]}}, "after must have widths of 1 to 8192, found 1.5"),
        (LINK, {"backbone": {"name": "gcn", "after": [True]}}, "after must have widths of 1 to 8192, found True"),
        (GRAPH, {"backbone": {"name": "gcn", "after_dropout": 1}}, "after_dropout must be at least 0 and below 1"),
        (GRAPH, {"backbone": {"name": "gcn", "encoder": "yes"}}, "encoder must be true or false, found 'yes'"),
        (GRAPH, {"backbone": {"name": "gin", "encoder": 1}}, "encoder must be true or false, found 1"),
        (GRAPH, {"backbone": {"name": "gcn", "preset": "begin-graph"}}, "did you mean 'begin-graphs'"),
        (GRAPH, {"backbone": {"name": "gcn", "rows": "nodes"}}, "unknown parameter 'rows'"),
        (GRAPH, {"training": {"fan_outs": [5], "batch_size": 8}}, "training: fan_outs: graphs have no neighbours"),
        (PAIRS, {"training": {"fan_outs": [5]}}, "fan_outs: give a batch_size as well"),
        (GRAPH, {"training": {"batch_size": 1}}, "'training.batch_size': Input should be greater than or equal to 2"),
        (LINK, {"training": {"batch_size": "all"}}, "'training.batch_size': Input should be a valid integer"),
        (LINK, {"orders": {"tasks": 7}}, "x.yaml: orders: tasks: 7 of 6 orders cannot be drawn"),
        (PAIRS, {"orders": {"classes": 7}}, "x.yaml: orders: classes: there are domains to arrange, not classes"),
        (PAIRS, {"orders": {"given": [[[0], [9]]]}}, "domain 9 is unknown; domains are 0–4"),
        ({**PAIRS, **TIMES}, {"orders": {"tasks": "all"}}, "x.yaml: orders: periods have one order, the calendar's"),
        ({**GRAPH, **TIMES}, {"orders": {"given": [[[1], [0]]]}}, "orders: periods have one order, the calendar's"),
        (GRAPH, {"orders": {"given": [[[0, 1], [2, 9]]]}}, "class 9 is unknown; classes are 0–5"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_does_not_fit_the_scenario_is_refused_with_its_name(
    run: Run, tmp_path: Path, scenario: dict[str, Any], fields: dict[str, Any], reason: str
) -> None:
    assert reason in refused(run, tmp_path, scenario, **fields)


@pytest.mark.parametrize(
    ("kind", "preset"),
    [("node", "begin-graphs"), ("link", "begin-graphs"), ("link-prediction", "begin"), ("graph", "begin-links")],
)
def test_presets_fit_whatever_is_classified_and_attention_of_edges_is_there(
    run: Run, tmp_path: Path, kind: str, preset: str
) -> None:
    fields = {"scenario": {"kind": kind}, "backbone": {"name": "gcn", "preset": preset, "width": 4, "after": [4]}}
    more = {"methods": ["twp"], "orders": {"tasks": "default"}, "training": {"epochs": 1}}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump({**fields, **more}))
    code, printed, errors = run("run", tmp_path / "x.yaml", "--dry-run")
    assert (code, "1 orders, 1 runs" in printed) == (0, True), errors


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("link", "source,target\na,b\nb,c\n", "own has links without classes; that is kind: link-prediction"),
        ("link", "source,target,label\na,b,1\nb,c,\n", "own.csv: column 'label': row 2: expected a class"),
        ("link", "source,target,label\na,b,1\n,c,2\n", "own.csv: column 'source': row 2"),
        ("link", "source,target,label,time\na,b,1,soon\n", "own.csv: column 'time': row 1: expected a whole number"),
        ("link", "source,target,label,weight\na,b,1,3\n", "own.csv: unknown column 'weight'"),
        ("link-prediction", "source,target\na,a\n", "own.csv: nodes: expected at least 2, found 1"),
        ("link", "1,2,5,100\n2,3,11,200\n", "own.csv: row 2: rating: expected a whole number, -10 to -1 or 1 to 10"),
        ("graph", "smiles,label\nCCO,1\nnonsense,0\n", "own.csv: row 2: column 'smiles': not a molecule: 'nonsense'"),
        ("graph", "smiles,label\nCCO,1\n,0\n", "own.csv: row 2: column 'smiles': a molecule without atoms: ''"),
        ("graph", "smiles,a,b\nCCO,1,0\nC,2,1\n", "own.csv: labels: expected 0 or 1, found 2.0 as label 0 of graph 1"),
    ],
)
def test_wrong_tables_are_refused_with_file_column_and_row(
    run: Run, tmp_path: Path, kind: str, text: str, reason: str
) -> None:
    if kind == "graph":
        pytest.importorskip("rdkit")
    (tmp_path / "own.csv").write_text(text)
    assert reason in refused(run, tmp_path, {"kind": kind, "data": str(tmp_path / "own.csv")})


def test_a_smiles_that_does_not_parse_is_set_aside_on_request_and_counted(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    rows = [f"{'C' * (1 + number)}{'OCN'[number % 3]},{number % 2}" for number in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(["smiles,label", *rows[:30], "nonsense,1", *rows[30:]]))
    prepare = ("prepare", "graph", tmp_path / "own.csv", "--out", tmp_path / "own.h5")
    code, printed, errors = run(*prepare)
    assert (code, printed) == (2, "")
    assert "own.csv: row 31: column 'smiles': not a molecule: 'nonsense'" in errors
    code, printed, _ = run(*prepare, "--skip-bad")
    assert code == 0
    assert "60 graphs" in printed
    assert "1 molecule set aside, no molecule: row 31" in printed
    study = {"scenario": {"kind": "graph", "data": str(tmp_path / "own.csv"), "classes_per_task": 1}}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(study))
    aside = ("--set", "scenario.reader={skip_bad: true}", "--set", "training.epochs=1")
    assert run("run", tmp_path / "x.yaml", "--dry-run")[0] == 2
    assert run("run", tmp_path / "x.yaml", "--dry-run", *aside)[0] == 0


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"starts": np.array([0, 3, 3, *STARTS[3:]])}, "own.npz: starts: graph 1 has no nodes"),
        ({"starts": STARTS[:-1]}, "own.npz: starts: expected to begin with 0 and to end with 36, found 0 and 33"),
        ({"edges": np.array([[0], [3]])}, "own.npz: edges: edge 0 – 3 leads from one graph to another"),
        ({"edges": EDGES + 36}, "own.npz: edges: edge 0, 36 – 37, has an end outside the nodes 0–35"),
        ({"features": np.full((36, 2), np.nan)}, "own.npz: features: "),
        ({"edge_features": np.ones((2, 1))}, "own.npz: edge_features: expected numbers (24, B)"),
        ({"labels": None}, "own.npz: array 'labels' is missing"),
        ({"labels": np.arange(11)}, "own.npz: labels: expected one class (12,)"),
        ({"labels": np.zeros((12, 2))}, "own.npz: labels: no graph has 'label 0'"),
        ({"labels": np.arange(12)}, "scenario: split: class 'class 0' has no training graph"),
        ({"split": np.zeros(12, int)}, "scenario: split: class 'class 0' has no validation graph"),
        ({"weights": STARTS}, "own.npz: unknown array 'weights'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else value[-30:],
)
def test_a_wrong_set_of_graphs_is_refused_with_file_and_field(
    run: Run, tmp_path: Path, arrays: dict[str, Any], reason: str
) -> None:
    content = {name: array for name, array in {**OWN_GRAPHS, **arrays}.items() if array is not None}
    np.savez(tmp_path / "own.npz", **content)
    assert reason in refused(run, tmp_path, {"kind": "graph", "data": str(tmp_path / "own.npz")})


def test_where_two_classes_are_alike_in_a_domain_roc_auc_is_refused(run: Run, tmp_path: Path) -> None:
    groups = np.repeat(["a", "b"], 60)
    labels = np.where(groups == "b", 0, np.arange(120) % 2)
    starts = np.arange(121)
    own = {"starts": starts, "edges": np.zeros((2, 0), int), "features": np.ones((120, 1)), "groups_land": groups}
    np.savez(tmp_path / "own.npz", **own, labels=labels)
    scenario = {"kind": "graph", "data": str(tmp_path / "own.npz"), "setting": "domain-il"}
    reason = "scenario: score: roc_auc is undefined: all test graphs of domain 'b' are 'class 0'"
    assert reason in refused(run, tmp_path, {**scenario, "score": "roc_auc"})


@pytest.mark.parametrize(
    ("reader", "fields", "reason"),
    [
        ({}, {}, "negatives: the pair 1 – 0 is listed as a link and as a negative"),
        ({"negatives": [[0, 2]]}, {}, "scenario: data: mine has no validation negatives"),
        ({"negatives": [[0, 9]]}, {}, "negatives: edge 0, 0 – 9, has an end outside the nodes 0–3"),
        ({"negatives": [[0, 2]]}, {"negatives": 5}, "scenario: data: mine has no validation negatives"),
    ],
)
def test_wrong_negatives_are_refused(
    run: Run, tmp_path: Path, reader: dict[str, Any], fields: dict[str, Any], reason: str
) -> None:
    (tmp_path / "mine.py").write_text(WITH_NEGATIVES)
    named = {"name": str(tmp_path / "mine.py"), **reader}
    scenario = {"kind": "link-prediction", "data": str(tmp_path), "reader": named, "setting": "time-il", **fields}
    assert reason in refused(run, tmp_path, scenario)
