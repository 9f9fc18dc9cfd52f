"""SEM: curvature of edges, by hand and by a linear program; the neighbours of highest curvature are kept."""

import networkx
import numpy as np
import pytest
from scipy.optimize import linprog

from skeleton_cgl.engine.study import Component
from skeleton_cgl.graphs.links import Links
from skeleton_cgl.methods.curvature import Ollivier, Surrogate
from skeleton_cgl.methods.neighbours import Neighbours
from skeleton_cgl.methods.sem import SEM
from skeleton_cgl.registry import METHODS

TRIANGLE_AND_BRIDGE = networkx.Graph([(0, 1), (0, 2), (1, 2), (0, 3), (3, 4), (3, 5), (4, 5)])
"""Two triangles, and a bridge between 0 and 3."""


def links_of(graph: networkx.Graph, self_loops: bool = True) -> Links:
    edges = np.array(graph.edges).T
    both = edges if graph.is_directed() else np.concatenate([edges, edges[::-1]], axis=1)
    return Links.of(both, len(graph), self_loops)


def ollivier(graph: networkx.Graph, largest: int = 50) -> Ollivier:
    return Ollivier(links_of(graph), largest, np.random.default_rng(0))


def by_linear_program(graph: networkx.Graph, one: int, other: int) -> float:
    """Return 1 − W₁, W₁ as the cheapest transport along shortest paths."""
    left, right = list(graph[one]), list(graph[other])
    lengths = dict(networkx.all_pairs_shortest_path_length(graph))
    costs = np.array([[lengths[source][target] for target in right] for source in left], dtype=float)
    leaving = np.kron(np.eye(len(left)), np.ones(len(right)))
    arriving = np.kron(np.ones(len(left)), np.eye(len(right)))
    masses = np.concatenate([np.full(len(left), 1 / len(left)), np.full(len(right), 1 / len(right))])
    return 1 - linprog(costs.ravel(), A_eq=np.concatenate([leaving, arriving]), b_eq=masses).fun


@pytest.mark.parametrize(
    ("graph", "edge", "curvature"),
    [
        (networkx.cycle_graph(3), (0, 1), 1 / 2),
        (networkx.cycle_graph(4), (0, 1), 0),
        (networkx.cycle_graph(5), (0, 1), 0),
        (networkx.cycle_graph(6), (0, 1), 0),
        (networkx.complete_graph(4), (0, 1), 2 / 3),
        (networkx.path_graph(4), (1, 2), 0),
        (networkx.star_graph(3), (0, 1), 0),
        (TRIANGLE_AND_BRIDGE, (0, 3), -2 / 3),
    ],
)
def test_ollivier_curvature_is_that_by_hand(graph: networkx.Graph, edge: tuple[int, int], curvature: float) -> None:
    assert ollivier(graph).of(*edge) == pytest.approx(curvature)
    assert ollivier(graph).of(*edge[::-1]) == pytest.approx(curvature)


@pytest.mark.parametrize("seed", range(4))
def test_ollivier_curvature_is_that_of_a_linear_program(seed: int) -> None:
    graph = networkx.gnm_random_graph(14, 28, seed=seed)
    found = ollivier(graph)
    values = []
    for edge in graph.edges:
        values.append(found.of(*edge))
        assert values[-1] == pytest.approx(by_linear_program(graph, *edge), abs=1e-8)
    assert len({round(value, 6) for value in values}) > 5


def test_the_direction_of_edges_and_loops_do_not_matter_to_it() -> None:
    graph = networkx.gnm_random_graph(10, 20, seed=0)
    one_way = networkx.DiGraph(graph.edges)
    one_way.add_nodes_from(graph)
    found = Ollivier(Links.of(np.array(one_way.edges).T, 10), 50, np.random.default_rng(0))
    assert all(found.of(*edge) == ollivier(graph).of(*edge) for edge in graph.edges)


def test_of_large_neighbourhoods_a_part_stands_for_all() -> None:
    """In a complete graph any part of the size gives the same, up to what both parts share."""
    graph = networkx.complete_graph(30)
    assert ollivier(graph).of(0, 1) == pytest.approx(28 / 29)
    assert -1e-9 <= ollivier(graph, largest=5).of(0, 1) < 28 / 29
    assert ollivier(graph, largest=29).of(0, 1) == pytest.approx(28 / 29)


def test_the_surrogate_is_its_formula() -> None:
    graph = networkx.gnm_random_graph(12, 50, seed=1, directed=True)
    found = Surrogate(links_of(graph))
    for source, target in graph.edges:
        into, out = set(graph.predecessors(target)), set(graph.successors(source))
        assert found.of(source, target) == (len(into & out) + 1) / (max(len(into), len(out)) + 1)


@pytest.mark.parametrize("curvature", ["ollivier", "surrogate"])
def test_an_edge_of_a_triangle_is_kept_before_a_bridge(curvature: str) -> None:
    links = links_of(TRIANGLE_AND_BRIDGE)
    found = ollivier(TRIANGLE_AND_BRIDGE) if curvature == "ollivier" else Surrogate(links)
    assert min(found.of(1, 0), found.of(2, 0), found.of(4, 3)) > found.of(0, 3)
    for seed in range(5):
        scores = SEM(curvature=curvature).scores(links, np.random.default_rng(seed))
        assert set(Neighbours(links).around(0, (2,), scores).tolist()) == {0, 1, 2}
        assert set(Neighbours(links).around(0, (3,), scores).tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("curvature", ["ollivier", "surrogate"])
def test_of_every_hop_the_neighbours_of_highest_curvature_are_kept(curvature: str) -> None:
    """A neighbour counts by the highest curvature of its edges to those kept in the hop before."""
    graph = networkx.gnm_random_graph(30, 90, seed=3)
    links = links_of(graph)
    found = ollivier(graph) if curvature == "ollivier" else Surrogate(links)
    scores = SEM(curvature=curvature, largest=50).scores(links, np.random.default_rng(0))
    for centre in graph:
        nodes = Neighbours(links).around(centre, (2, 3), scores).tolist()
        kept, rest = [centre], nodes[1:]
        latest = [centre]
        for fan_out in (2, 3):
            candidates = {node for each in latest for node in graph[each]} - set(kept)
            worth = {
                node: max(found.of(node, each) for each in latest if graph.has_edge(node, each)) for node in candidates
            }
            size = min(fan_out, len(candidates))
            latest, rest = rest[:size], rest[size:]
            assert [worth[node] for node in latest] == sorted(worth.values(), reverse=True)[:size]
            kept += latest
        assert not rest


def test_ties_are_broken_by_chance() -> None:
    links = links_of(networkx.complete_graph(6))
    drawn = (SEM().scores(links, np.random.default_rng(seed)) for seed in range(60))
    assert {int(Neighbours(links).around(0, (1,), scores)[1]) for scores in drawn} == {1, 2, 3, 4, 5}


def test_of_a_hub_so_many_neighbours_are_looked_at() -> None:
    """With more than are looked at, the others come after them, and are not missing."""
    links = links_of(networkx.star_graph(40))
    scores = SEM(largest=3).scores(links, np.random.default_rng(0))
    assert len(Neighbours(links).around(0, (5,), scores)) == 6


def test_what_the_surrogate_does_not_know_is_not_in_its_key() -> None:
    def key(**parameters: object) -> str:
        return Component(name="sem", parameters=parameters).row(METHODS).digest

    assert key(curvature="surrogate", largest=7) == key(curvature="surrogate")
    assert len({key(), key(largest=7), key(curvature="surrogate")}) == 3
