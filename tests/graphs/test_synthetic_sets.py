"""The built-in links and graphs: what tells their classes, that domains differ, and that options alone decide them."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph_set import GraphSet
from skeleton_cgl.graphs.link_set import LinkSet, pair_keys
from skeleton_cgl.registry import GRAPH_DATASETS


def links(**options: Any) -> LinkSet:
    found = GRAPH_DATASETS.make("synthetic-links", options).read()
    assert isinstance(found, LinkSet)
    return found


def graphs(**options: Any) -> GraphSet:
    found = GRAPH_DATASETS.make("synthetic-graphs", options).read()
    assert isinstance(found, GraphSet)
    return found


def products(found: LinkSet, ends: np.ndarray) -> np.ndarray:
    """Return (P, D): all products of a feature of the one end with one of the other, whichever way a pair is given."""
    features = np.asarray(found.features)
    features = np.hstack([np.ones((len(features), 1)), features])
    outer = features[ends[0]][:, :, None] * features[ends[1]][:, None, :]
    return (outer + outer.transpose(0, 2, 1))[:, *np.triu_indices(features.shape[1])]


def half(count: int) -> np.ndarray:
    return np.random.default_rng(0).random(count) < 0.5


@pytest.mark.parametrize("seed", [0, 1])
def test_products_of_the_ends_tell_the_class_of_a_link_in_its_own_domain_and_in_no_other(seed: int) -> None:
    found = links(seed=seed)
    clues, domains, training = products(found, found.ends), found.groups["domain"].numbers, half(len(found))
    here, elsewhere = [], []
    for domain in range(5):
        inside = domains == domain
        model = RidgeClassifier().fit(clues[inside & training], found.labels[inside & training])
        here.append(model.score(clues[inside & ~training], found.labels[inside & ~training]))
        elsewhere.append(model.score(clues[~inside], found.labels[~inside]))
    assert np.mean(here) > 0.85
    assert np.mean(elsewhere) < 0.3


def test_whether_a_pair_is_linked_is_told_in_its_own_domain_better_than_by_what_another_taught() -> None:
    found = links()
    domains = found.groups["domain"].numbers
    own = np.zeros(found.nodes, dtype=int)
    own[found.ends[0]] = own[found.ends[1]] = domains
    assert (own[found.ends] == domains).all(), "a link stays in its domain"
    pairs = np.stack(np.triu_indices(found.nodes, 1))
    pairs = pairs[:, own[pairs[0]] == own[pairs[1]]]
    linked = np.isin(pair_keys(pairs, found.nodes, False), pair_keys(found.ends, found.nodes, False))
    clues, training = products(found, pairs), half(len(linked))
    models = {
        domain: RidgeClassifier(alpha=10.0, class_weight="balanced").fit(clues[chosen], linked[chosen])
        for domain in range(5)
        for chosen in [training & (own[pairs[0]] == domain)]
    }
    for domain in range(5):
        asked = ~training & (own[pairs[0]] == domain)
        here, elsewhere = (
            roc_auc_score(linked[asked], models[taught].decision_function(clues[asked]))
            for taught in (domain, (domain + 2) % 5)
        )
        assert here > 0.75
        assert here > elsewhere + 0.1


def test_links_are_pairs_of_different_nodes_each_given_once() -> None:
    found = links()
    assert (found.nodes, len(found), len(found.classes), found.directed) == (500, 4000, 6, True)
    assert (found.ends[0] != found.ends[1]).all()
    assert len(np.unique(pair_keys(found.ends, found.nodes, directed=False))) == 4000
    assert found.times is not None
    assert set(found.times.tolist()) == {2016, 2017, 2018, 2019, 2020}
    for numbers, fewest in ((found.labels, 450), (found.groups["domain"].numbers, 600), (found.times - 2016, 250)):
        assert np.bincount(numbers).min() >= fewest
    assert len(links(nodes=300)) == 2400


def shapes_of(found: GraphSet) -> np.ndarray:
    """Return (G, 4): what tells shapes apart without the features: sizes, cycles and the largest degree."""
    number_of_links = np.diff(found.edge_starts) / 2
    degrees = np.bincount(found.edges[1], minlength=len(found.features))
    cycles = number_of_links - found.sizes + 1
    return np.stack([found.sizes, cycles == 0, cycles == 1, np.maximum.reduceat(degrees, found.starts[:-1])], axis=1)


def colours_of(found: GraphSet) -> np.ndarray:
    """Return (G, D): the mean features of a graph's nodes, among those of its domain."""
    sums = np.add.reduceat(found.features.astype(float), found.starts[:-1], axis=0)
    means = sums / found.sizes[:, None]
    inside = np.eye(4)[found.groups["domain"].numbers]
    return (inside[:, :, None] * means[:, None, :]).reshape(len(found), -1)


@pytest.mark.parametrize("seed", [0, 1])
def test_neither_shape_nor_features_alone_tell_the_class_of_a_graph(seed: int) -> None:
    found = graphs(seed=seed, graphs=1200)
    training = half(len(found))
    shape, colour = found.labels % 3, found.labels // 3

    def told(clues: np.ndarray, what: np.ndarray) -> float:
        model = RidgeClassifier().fit(clues[training], what[training])
        return float(model.score(clues[~training], what[~training]))

    assert told(shapes_of(found), shape) > 0.9
    assert told(colours_of(found), colour) > 0.75
    assert told(shapes_of(found), colour) < 0.6
    assert told(colours_of(found), shape) < 0.5


def test_what_tells_a_colour_in_one_domain_misleads_in_the_next() -> None:
    found = graphs(graphs=1200)
    sums = np.add.reduceat(found.features.astype(float), found.starts[:-1], axis=0)
    clues, colour = sums / found.sizes[:, None], found.labels // 3
    domains = found.groups["domain"].numbers
    # Less the mean of its domain, so that no shift alone misleads.
    for domain in range(4):
        clues[domains == domain] -= clues[domains == domain].mean(axis=0)
    model = RidgeClassifier().fit(clues[domains == 0], colour[domains == 0])
    assert model.score(clues[domains == 0], colour[domains == 0]) > 0.75
    assert model.score(clues[domains == 1], colour[domains == 1]) < 0.5
    sizes = [found.sizes[domains == domain].mean() for domain in range(4)]
    assert sizes == sorted(sizes)


def test_what_tells_a_class_in_the_first_periods_tells_it_badly_in_the_last() -> None:
    """With what tells it in the own domain, so that domains have no part in it."""
    found, many = links(nodes=1500), graphs(graphs=2400)
    clues = colours_of(many)
    for domain in range(4):
        inside = many.groups["domain"].numbers == domain
        clues[inside] -= clues[inside].mean(axis=0)
    first = found.groups["domain"].numbers == 0
    assert found.times is not None
    assert many.times is not None
    for table, what, times, until in (
        (products(found, found.ends[:, first]), found.labels[first], found.times[first], 2017),
        (clues, many.labels // 3, many.times, 2018),
    ):
        early, late, learned = times <= until, times == times.max(), half(len(times))
        model = RidgeClassifier().fit(table[early & learned], what[early & learned])
        then, later = (model.score(table[chosen], what[chosen]) for chosen in (early & ~learned, late))
        assert then > 0.9
        assert later < then - 0.2


def test_graphs_are_small_connected_and_spread_evenly() -> None:
    found = graphs()
    assert (len(found), found.features.shape[1], found.sizes.min(), found.sizes.max()) == (600, 8, 8, 19)
    assert found.classes == ("red ring", "red star", "red clique", "blue ring", "blue star", "blue clique")
    assert found.times is not None
    counts = np.zeros((6, 4, 4), dtype=int)
    np.add.at(counts, (found.labels, found.groups["domain"].numbers, found.times - 2018), 1)
    assert counts.min() >= 6
    cycles = np.diff(found.edge_starts) / 2 - found.sizes + 1
    assert [set(cycles[found.labels % 3 == shape]) for shape in range(3)] == [{1}, {0}, {6}]


def test_of_many_labels_graphs_have_one_shape_or_two_and_some_are_not_known() -> None:
    found = graphs(labels=True)
    assert (found.labels.shape, found.sizes.max()) == ((600, 6), 24)
    assert 0.1 < np.isnan(found.labels).mean() < 0.2
    cycles = np.diff(found.edge_starts) / 2 - found.sizes + 1
    with_clique = (found.labels[:, [2, 5]] == 1).any(axis=1)
    assert (cycles[with_clique] >= 6).all()
    known = ~np.isnan(found.labels).any(axis=1)
    assert set(found.labels[known].sum(axis=1)) == {1, 2}


@pytest.mark.parametrize("make", [links, graphs])
def test_options_alone_decide_a_set(make: Any) -> None:
    first, again, other = make(), make(seed=0), make(seed=1)
    assert first.digest == again.digest != other.digest


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (links, {"nodes": 299}, "'synthetic-links': nodes must be 300–1000000, found 299"),
        (links, {"seed": True}, "seed must be 0–"),
        (graphs, {"graphs": 95}, "'synthetic-graphs': graphs must be 96–100000, found 95"),
        (graphs, {"labels": 3}, "labels: expected true or false, found 3"),
    ],
)
def test_options_out_of_bounds_are_refused(make: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**options)
