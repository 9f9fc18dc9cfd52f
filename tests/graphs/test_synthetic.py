import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.homophily import graph_homophily
from skeleton_cgl.registry import GRAPH_DATASETS


def make(name: str, **options: int) -> Graph:
    return GRAPH_DATASETS.make(name, options).read()


def neighbours(graph: Graph, values: np.ndarray) -> np.ndarray:
    """Return (N, …) the mean of the values of a node's neighbours, zero where it has none."""
    sums = np.zeros(values.shape)
    np.add.at(sums, graph.edges[1], values[graph.edges[0]])
    degrees = np.bincount(graph.edges[1], minlength=len(graph))
    return sums / np.maximum(degrees, 1)[:, None]


def told_by(graph: Graph, clues: np.ndarray) -> float:
    """Return how well a linear model tells the labels of the nodes not learned from: mean average precision."""
    labels = graph.labels if graph.many_labels else np.eye(len(graph.classes))[graph.labels]
    training = learned_from(graph)
    found = []
    for column in labels.T:
        model = LogisticRegression(max_iter=300).fit(clues[training], column[training])
        found.append(average_precision_score(column[~training], model.decision_function(clues[~training])))
    return float(np.mean(found))


def learned_from(graph: Graph) -> np.ndarray:
    return np.random.default_rng(0).random(len(graph)) < 0.6


@pytest.mark.parametrize("name", ["synthetic", "synthetic-labels"])
@pytest.mark.parametrize("seed", [0, 1])
def test_neither_features_nor_neighbours_tell_alone_what_both_tell(name: str, seed: int) -> None:
    graph = make(name, seed=seed)
    labels = graph.labels if graph.many_labels else np.eye(len(graph.classes))[graph.labels]
    known = neighbours(graph, labels * learned_from(graph)[:, None])
    around = np.hstack([known, neighbours(graph, known)])
    features = np.asarray(graph.features)
    by_features, by_graph = told_by(graph, features), told_by(graph, around)
    by_both = told_by(graph, np.hstack([features, neighbours(graph, features), around]))
    assert by_both > max(by_features, by_graph) + 0.08
    assert max(by_features, by_graph) < 0.8
    assert min(by_features, by_graph) > 2 * labels.mean()


def test_classes_domains_and_periods_are_spread_evenly() -> None:
    graph = make("synthetic")
    domains = graph.groups["domain"]
    assert (len(graph), len(graph.classes), len(domains.names)) == (1500, 10, 5)
    assert graph.times is not None
    assert sorted(set(graph.times.tolist())) == [2016, 2017, 2018, 2019, 2020]
    counts = np.zeros((10, 5, 5), dtype=int)
    np.add.at(counts, (graph.labels, domains.numbers, graph.times - 2016), 1)
    assert (counts == 6).all()
    assert graph.split is None
    assert 0.4 < graph_homophily(graph.labels, graph.edges) < 0.6
    # The numbers of nodes tell nothing of their classes.
    assert abs(np.corrcoef(np.arange(1500) % 10, graph.labels)[0, 1]) < 0.1


def test_nodes_have_one_to_four_labels_that_overlap_otherwise_in_every_domain() -> None:
    graph = make("synthetic-labels")
    domains = graph.groups["domain"].numbers
    assert graph.labels.shape == (1500, 10)
    assert set(graph.labels.sum(axis=1).tolist()) == {1, 2, 3, 4}
    assert graph.labels.sum(axis=0).min() >= 150
    together = [np.corrcoef(graph.labels[domains == domain].T)[np.triu_indices(10, 1)] for domain in range(5)]
    assert np.abs(np.corrcoef(together)[np.triu_indices(5, 1)]).max() < 0.5


@pytest.mark.parametrize("name", ["synthetic", "synthetic-labels"])
def test_a_graph_is_decided_by_its_options_alone(name: str) -> None:
    np.random.default_rng(1).random()
    first, again, other = make(name), make(name, seed=0), make(name, seed=1)
    assert first.digest == again.digest != other.digest
    assert (first.edges[0] != first.edges[1]).all()


def test_looks_of_classes_shift_with_domain_and_period() -> None:
    """A class is farther from itself elsewhere than two halves of it are from each other in one place."""
    graph = make("synthetic", nodes=10_000)
    features, domains = np.asarray(graph.features), graph.groups["domain"].numbers
    assert graph.times is not None
    for groups in (domains, graph.times):
        first, last = (features[(graph.labels == 3) & (groups == end)] for end in (groups.min(), groups.max()))
        moved = np.linalg.norm(first.mean(axis=0) - last.mean(axis=0))
        assert moved > 3 * np.linalg.norm(first[::2].mean(axis=0) - first[1::2].mean(axis=0))


def test_looks_of_labels_shift_with_domain_and_company() -> None:
    """What a linear model learns of labels on nodes with one of them in one domain, it cannot use elsewhere."""
    graph = make("synthetic-labels", nodes=9000)
    features, domains = np.asarray(graph.features), graph.groups["domain"].numbers
    alone = graph.labels.sum(axis=1) == 1
    home = (domains == 0) & alone
    learned = home & (np.cumsum(home) % 2 == 0)

    def worth(places: np.ndarray) -> float:
        """Return the mean ROC-AUC over labels, to which it is nothing how frequent labels are."""
        found = []
        for label in graph.labels.T:
            model = LogisticRegression(max_iter=300).fit(features[learned], label[learned])
            found.append(roc_auc_score(label[places], model.decision_function(features[places])))
        return float(np.mean(found))

    assert worth(home & ~learned) > 0.95
    assert worth((domains == 2) & alone) < 0.8
    assert worth((domains == 0) & ~alone) < 0.8


@pytest.mark.parametrize(
    ("name", "options", "shape"),
    [
        ("synthetic", {"nodes": 75, "classes": 3}, (75, 3)),
        ("synthetic", {"nodes": 5001, "classes": 40}, (5001, 40)),
        ("synthetic-labels", {"nodes": 20, "labels": 4}, (20, 4)),
        ("synthetic-labels", {"nodes": 3000, "labels": 25}, (3000, 25)),
    ],
)
def test_nodes_and_classes_are_as_many_as_asked_for(name: str, options: dict[str, int], shape: tuple) -> None:
    graph = make(name, **options)
    assert (len(graph), len(graph.classes)) == shape


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("synthetic", {"nodes": 249}, "'synthetic': nodes must be 250–1000000, found 249"),
        ("synthetic", {"classes": 1}, "classes must be 2–100, found 1"),
        ("synthetic", {"classes": "ten"}, "classes must be 2–100, found 'ten'"),
        ("synthetic", {"seed": -1}, "seed must be 0–"),
        ("synthetic-labels", {"labels": 3}, "'synthetic-labels': labels must be 4–100, found 3"),
        ("synthetic-labels", {"nodes": 1e3}, "nodes must be 50–1000000, found 1000.0"),
        ("synthetic", {"node": 5}, "unknown parameter 'node'; did you mean 'nodes'?"),
    ],
)
def test_options_out_of_bounds_are_refused(name: str, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(name, **options)
