"""Small links and sets of graphs for tests of scenarios, and what samples and queries of them are."""

from typing import Any

import numpy as np

from skeleton_cgl.graphs.graph_set import GraphSet, make_graph_set
from skeleton_cgl.graphs.items import Groups
from skeleton_cgl.graphs.link_set import LinkSet, make_link_set
from skeleton_cgl.scenarios.lessons import Prefix
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.scenario import Queries, Samples, Scenario

CLASSES, DOMAINS, PERIODS = 6, 3, 4
ITEMS = CLASSES * DOMAINS * PERIODS * 5
NODES = 60


def _crossed(random: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
    """Return classes, and domains and times that cross them, five items of each combination, mixed."""
    number = random.permutation(ITEMS)
    groups = {"domain": Groups(number // CLASSES % DOMAINS, tuple("abc"))}
    return number % CLASSES, {"groups": groups, "times": 2000 + number // (CLASSES * DOMAINS) % PERIODS}


def link_set(seed: int = 0, **changes: Any) -> LinkSet:
    """Return directed links without features, no pair of nodes twice; five of every class, domain and period."""
    random = np.random.default_rng(seed)
    every = np.array([(low, high) for high in range(NODES) for low in range(high)])
    ends = random.permuted(random.permutation(every)[:ITEMS], axis=1).T
    labels, fields = _crossed(random)
    return make_link_set("small", NODES, **{"ends": ends, "directed": True, "labels": labels, **fields, **changes})


def graph_set(seed: int = 0, **changes: Any) -> GraphSet:
    """Return paths of one to four nodes, no two nodes alike; five of every class, domain and period."""
    random = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(random.integers(1, 5, ITEMS))])
    nodes = np.setdiff1d(np.arange(starts[-1]), starts[1:] - 1)
    features = random.normal(size=(starts[-1], 3)).astype(np.float32)
    labels, fields = _crossed(random)
    return make_graph_set(
        "small",
        **{
            "starts": starts,
            "edges": np.stack([nodes, nodes + 1]),
            "features": features,
            "labels": labels,
            "both_ways": True,
            **fields,
            **changes,
        },
    )


def prefixes(scenario: Scenario) -> list[Prefix]:
    lessons = scenario.lessons(scenario.default)
    return [lessons[: step + 1] for step in range(len(lessons))]


def measure_of(measures: tuple[Measure, ...], part: str, metric: str) -> Measure:
    (found,) = (each for each in measures if (each.part, each.metric) == (part, metric))
    return found


def pairs_of(given: Samples | Queries) -> np.ndarray:
    """Return (N, 2) the nodes of every sample or query."""
    found: np.ndarray = given.pool.whole().rows(given.ids).at.numpy()
    return found


def links_at(links: LinkSet, pairs: np.ndarray) -> np.ndarray:
    """Return (N,) the link between the nodes of every pair, whichever way it leads; −1 where there is none."""
    known = {frozenset(pair): number for number, pair in enumerate(links.ends.T.tolist())}
    return np.array([known.get(frozenset(pair), -1) for pair in pairs.tolist()])


def seen_links(links: LinkSet, given: Samples | Queries) -> set[int]:
    """Return the links of the graph that samples or queries are in; all its other edges are loops."""
    edges = given.pool.whole().links
    proper = (edges.sources != edges.targets).numpy()
    ends = np.stack([edges.sources.numpy(), edges.targets.numpy()], axis=1)[proper]
    found = links_at(links, ends)
    assert (found >= 0).all()
    return set(found.tolist())


def graphs_of(graphs: GraphSet, given: Samples | Queries) -> np.ndarray:
    """Return the graphs that samples or queries are, by the features of first nodes, of which no two are alike."""
    found = given.pool.whole().rows(given.ids)
    firsts = found.content.dense_features[found.starts[:-1]].numpy()
    assert np.array_equal(found.sizes.numpy(), graphs.sizes[_same(firsts, graphs.features[graphs.starts[:-1]])])
    return _same(firsts, graphs.features[graphs.starts[:-1]])


def _same(rows: np.ndarray, among: np.ndarray) -> np.ndarray:
    apart = np.abs(rows[:, None] - among[None]).sum(axis=2)
    assert (apart.min(axis=1) == 0).all()
    return apart.argmin(axis=1)


def units_of(items: LinkSet | GraphSet, setting: str) -> np.ndarray:
    """Return what arrives one by one, of every item."""
    if setting == "domain-il":
        return items.groups["domain"].numbers
    if setting == "time-il":
        assert items.times is not None
        return items.times - 2000
    return items.labels
