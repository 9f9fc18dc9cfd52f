"""Graphs and scenarios of nodes that mistakes make: each is refused in one line that names file or field.

Nothing is learned before. The mistakes are in a file that a study names, or in the study; the command line refuses when
it plans it.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Run
from tests.refused import refused
from tests.scenarios.graphs import CLASSES, NODES, label_graph, node_graph, write_npz

NODE, LABELS = node_graph(), label_graph()
TWO = NODE.labels % 2
ONE_CLASS_IN_B = np.where(NODE.groups["domain"].numbers == 1, 0, TWO)
ALIKE_IN_B = np.where((LABELS.groups["domain"].numbers == 1)[:, None], np.arange(CLASSES) == 0, LABELS.labels)
NO_TEST = np.where(NODE.labels == 3, np.arange(NODES) % 2, np.arange(NODES) % 3)


def _orders(fields: dict[str, Any]) -> dict[str, Any]:
    return {"orders": fields["orders"]} if "orders" in fields else {}


def changed(array: np.ndarray, place: Any, value: Any, kind: Any = None) -> np.ndarray:
    found = array.astype(kind or array.dtype)
    found[place] = value
    return found


@pytest.mark.parametrize(
    ("kind", "arrays", "reason"),
    [
        ("node", {"edges": changed(NODE.edges, (0, 5), NODES)}, "own.npz: edges: edge 5, 360 – "),
        ("node", {"edges": changed(NODE.edges, (1, 0), -1)}, "has an end outside the nodes 0–359"),
        ("node", {"edges": NODE.edges.astype(float)}, "own.npz: edges: expected whole numbers (2, E)"),
        ("node", {"features": NODE.features[:0]}, "own.npz: features: expected at least one node"),
        ("node", {"features": changed(NODE.features, (7, 2), np.nan)}, "own.npz: features: node 7 has one that is not"),
        ("node", {"features": changed(NODE.features, (7, 2), np.inf)}, "own.npz: features: node 7 has one that is not"),
        ("node", {"labels": None}, "own.npz: array 'labels' is missing"),
        ("node", {"labels": NODE.labels[1:]}, "own.npz: labels: expected one class (360,)"),
        ("node", {"labels": changed(NODE.labels, 4, np.nan, float)}, "labels: expected a whole number, found nan"),
        ("node", {"labels": changed(NODE.labels, 4, "", "U9")}, "array 'labels': node 4: expected a class, or -1"),
        ("node", {"split": NO_TEST}, "scenario: split: class 'class 3' has no test node"),
        ("node", {"times": changed(NODE.times, 4, "soon", "U9")}, "own.npz: times: expected a whole number, found"),
        ("node", {"times": changed(NODE.times, 4, 2000.5, float)}, "times: expected a whole number, found"),
        ("node", {"weights": NODE.labels}, "own.npz: unknown array 'weights'"),
        ("multilabel", {"labels": changed(LABELS.labels, (2, 1), 2)}, "labels: expected 0 or 1, found 2 as label 1 of"),
        (
            "multilabel",
            {"labels": changed(LABELS.labels, (2, 1), np.nan, float)},
            "own.npz: labels: label 1 of node 2 is not a number",
        ),
        (
            "multilabel",
            {"labels": changed(LABELS.labels, (slice(None), 3), 0)},
            "own.npz: labels: no node has 'label 3",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else value[-30:],
)
def test_a_wrong_graph_is_refused_with_file_and_field(
    run: Run, tmp_path: Path, kind: str, arrays: dict[str, Any], reason: str
) -> None:
    path = write_npz(NODE if kind == "node" else LABELS, tmp_path / "own.npz")
    with np.load(path) as stored:
        content = {**stored, **arrays}
    np.savez(path, **{name: array for name, array in content.items() if array is not None})
    assert reason in refused(run, tmp_path, {"kind": kind, "data": str(path)})


@pytest.mark.parametrize(
    ("nodes", "edges", "reason"),
    [
        ("id,label,x\na,0,1\nb,1,2\n", "source,target\na,c\n", "edges.csv: column 'target': row 1: 'c' is no node"),
        ("id,label,x\na,0,1\na,1,2\n", "source,target\na,a\n", "nodes.csv: column 'id': row 2: expected an id of its"),
        ("id,label,x\na,,1\nb,1,2\n", "source,target\na,b\n", "nodes.csv: column 'label': row 1: expected a class"),
        ("id,label,x\na,0,1\nb,1,nan\n", "source,target\na,b\n", "nodes.csv: column 'x': row 2: expected a finite"),
        (
            "id,label,x,time\na,0,1,2024-01-31\nb,1,2,2024-02-30\n",
            "source,target\na,b\n",
            "nodes.csv: column 'time': row 2: expected a date as 2024-01-31 like the first, found '2024-02-30'",
        ),
        (
            "id,label,x,time\na,0,1,soon\nb,1,2,3\n",
            "source,target\na,b\n",
            "nodes.csv: column 'time': row 1: expected a whole number, or a date as 2024-01-31",
        ),
        (
            "id,label:p,label:q,x\na,1,0,1\nb,2,1,2\n",
            "source,target\na,b\n",
            "nodes.csv: column 'label:p': row 2: expected 0 or 1",
        ),
    ],
)
def test_wrong_tables_are_refused_with_file_column_and_row(
    run: Run, tmp_path: Path, nodes: str, edges: str, reason: str
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "nodes.csv").write_text(nodes)
    (tmp_path / "own" / "edges.csv").write_text(edges)
    assert reason in refused(run, tmp_path, {"kind": "node", "data": str(tmp_path / "own")})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"setting": "domain-il", "score": "roc_auc", "labels": ONE_CLASS_IN_B},
            "roc_auc is undefined: all test nodes",
        ),
        ({"score": "roc_auc"}, "scenario: score: roc_auc needs two classes in every lesson"),
        ({"setting": "time-il", "orders": {"tasks": "all"}}, "period"),
        ({"setting": "time-il", "orders": {"given": [[[1], [0]]]}}, "periods have one order, the calendar's"),
        ({"reader": {"both_way": True}}, "both_way"),
        ({"reader": "npzz"}, "unknown graph-dataset 'npzz'; did you mean 'npz'"),
        ({"dataset": "cora"}, "dataset"),
        ({"setting": "clas-il"}, "setting"),
        ({"view": "tasks"}, "view"),
        ({"kind": "nodes"}, "did you mean 'node'"),
        ({"settings": "class-il"}, "did you mean 'setting'"),
        ({"data": "sythetic"}, "did you mean 'synthetic'"),
        ({"split": {"by": "file", "file": "nowhere.npz"}}, "scenario: split: file: nowhere.npz: no such file"),
        ({"split": {"by": "country"}}, "split: by 'country': no such groups"),
        ({"domains": "domain"}, "scenario: domains: there are none in class-il"),
        ({"inter_task_edges": True}, "scenario: inter_task_edges: the whole graph has all edges"),
        (
            {"orders": {"given": [[[0, 1], [2, CLASSES]]]}},
            "orders: given ((0, 1), (2, 6)): class 6 is unknown; classes are 0–5",
        ),
        ({"kind": "multilabel"}, "own has one class per node; that is kind: node"),
        ({"kind": "multilabel", "labels": LABELS.labels, "setting": "time-il"}, "setting"),
        ({"labels": LABELS.labels}, "own has many labels per node; that is kind: multilabel"),
        (
            {"kind": "multilabel", "labels": LABELS.labels, "classes_per_task": 1, "rest": "own"},
            "so that its average precision is not defined",
        ),
        (
            {"kind": "multilabel", "labels": ALIKE_IN_B, "setting": "domain-il"},
            "domain (1): every label is that of all or of none of its test nodes, so that its average precision",
        ),
        ({"kind": "multilabel", "labels": LABELS.labels, "split": {"by": "class"}}, "take by: task or by: node"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else value[:30],
)
def test_a_wrong_scenario_is_refused_with_its_field(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    labels = fields.get("labels", NODE.labels)
    graph = LABELS if labels.ndim == 2 else NODE
    path = write_npz(graph, tmp_path / "own.npz")
    with np.load(path) as stored:
        content = {**stored, "labels": labels}
    np.savez(path, **content)
    scenario = {name: value for name, value in fields.items() if name not in ("labels", "orders")}
    assert reason in refused(run, tmp_path, {"kind": "node", "data": str(path), **scenario}, **_orders(fields))
