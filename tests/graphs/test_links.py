"""The edges of a graph as tensors: sums over them and their gradients, sparse features, edges drawn by chance."""

import os
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.links import Links, Weighting
from skeleton_cgl.graphs.sparse import SparseFeatures, dropout

os.environ.setdefault("DGLBACKEND", "pytorch")

# Directed, with a loop at 3, a node without in-edges (4), one without out-edges (5), and one without any (6).
EDGES = np.array([[3, 0, 1, 2, 3, 1, 4, 0], [3, 1, 0, 1, 2, 2, 5, 5]])
NODES = 7
KINDS: tuple[Weighting, ...] = ("plain", "mean", "symmetric")


def table(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)


def pairs(links: Links) -> list[tuple[int, int]]:
    return list(zip(links.sources.tolist(), links.targets.tolist(), strict=True))


def test_edges_are_sorted_by_target_and_then_by_source() -> None:
    links = Links.of(EDGES, NODES)
    assert pairs(links) == sorted(map(tuple, EDGES.T.tolist()), key=lambda pair: pair[::-1])
    assert (links.nodes, len(links)) == (7, 8)
    assert links.in_degrees.tolist() == [1, 2, 2, 1, 0, 2, 0]


def test_with_loops_every_node_has_one_whatever_there_was() -> None:
    links = Links.of(EDGES, NODES, self_loops=True)
    assert Counter(pair for pair in pairs(links) if pair[0] == pair[1]) == {(node, node): 1 for node in range(NODES)}
    assert {pair for pair in pairs(links) if pair[0] != pair[1]} == {(s, t) for s, t in EDGES.T.tolist() if s != t}


@pytest.mark.parametrize("wrong", [[[0], [7]], [[-1], [0]]])
def test_an_end_that_is_no_node_is_refused(wrong: list[list[int]]) -> None:
    with pytest.raises(InputError, match="outside the nodes 0–6"):
        Links.of(np.array(wrong), NODES)


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_over_neighbours_are_those_edge_by_edge(kind: Weighting, loops: bool) -> None:
    links = Links.of(EDGES, NODES, loops)
    into = Counter(target for _, target in pairs(links))
    out_of = Counter(source for source, _ in pairs(links))
    weight = {
        "plain": lambda _source, _target: 1,
        "mean": lambda _source, target: 1 / into[target],
        "symmetric": lambda source, target: (out_of[source] * into[target]) ** -0.5,
    }[kind]
    features = table(NODES, 3)
    rows = [torch.zeros(3, dtype=torch.float64) for _ in range(NODES)]
    for source, target in pairs(links):
        rows[target] = rows[target] + weight(source, target) * features[source]
    torch.testing.assert_close(links.sum(features, kind), torch.stack(rows))
    torch.testing.assert_close(links.sum(features, links.weights(kind, torch.float64)), torch.stack(rows))
    assert links.weights(kind) is links.weights(kind), "computed once"


@pytest.mark.parametrize("norm", ["none", "right", "both"])
def test_weights_are_those_of_dgl(norm: str) -> None:
    from dgl.nn.pytorch import GraphConv

    links = Links.of(EDGES, NODES, self_loops=True)
    features = table(NODES, 3).detach()
    kind: Weighting = {"none": "plain", "right": "mean", "both": "symmetric"}[norm]  # type: ignore[assignment]
    expected = GraphConv(3, 3, norm=norm, weight=False, bias=False)(links.graph, features)
    torch.testing.assert_close(links.sum(features, kind), expected)


def test_an_unknown_weighting_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(ValueError, match="'symetric'; did you mean 'symmetric'"):
        Links.of(EDGES, NODES).weights("symetric")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_sums_can_be_differentiated_twice(kind: Weighting) -> None:
    links = Links.of(EDGES, NODES)
    assert gradcheck(lambda features: links.sum(features, kind), (table(NODES, 2),))
    assert gradgradcheck(lambda features: links.sum(features, kind).sin(), (table(NODES, 2),))


def test_sums_dots_and_softmax_can_be_differentiated_twice_by_all_they_are_made_of() -> None:
    links = Links.of(EDGES, NODES)
    weighted = (table(NODES, 2), table(len(links), seed=1))
    ends = (table(NODES, 2), table(NODES, 2, seed=1))
    for function, arguments in (
        (links.sum, weighted),
        (links.dots, ends),
        (links.softmax, (table(len(links), 3),)),
        (links.of_sources, ends[:1]),
        (links.of_targets, ends[:1]),
    ):
        assert gradcheck(function, arguments)
        assert gradgradcheck(function, arguments)


def test_what_edges_have_is_that_of_their_ends_and_softmax_is_over_the_edges_into_a_node() -> None:
    links = Links.of(EDGES, NODES)
    features, scores = table(NODES, 3).detach(), 50 * table(len(links), 2).detach()
    assert torch.equal(links.of_sources(features), features[links.sources])
    assert torch.equal(links.of_targets(features), features[links.targets])
    products = (features[links.targets] * features.cos()[links.sources]).sum(dim=1)
    torch.testing.assert_close(links.dots(features, features.cos()), products)
    for target in range(NODES):
        own = links.targets == target
        torch.testing.assert_close(links.softmax(scores)[own], torch.softmax(scores[own], dim=0))


def test_a_graph_without_an_edge_sums_to_nothing() -> None:
    links = Links.of(np.zeros((2, 0), dtype=np.int64), 3)
    for kind in KINDS:
        assert torch.equal(links.sum(torch.ones(3, 2), kind), torch.zeros(3, 2))


def test_a_graph_of_dgl_has_the_same_edges_in_memory_of_its_own() -> None:
    links = Links.of(EDGES, NODES)
    graph = links.graph
    assert [end.tolist() for end in graph.edges()] == [links.sources.tolist(), links.targets.tolist()]
    assert graph.num_nodes() == NODES
    graph.edges()[0].zero_()
    assert pairs(links) == pairs(Links.of(EDGES, NODES))


def test_the_links_among_some_nodes_are_those_with_both_ends_there() -> None:
    kept = [1, 2, 3, 5]
    found = Links.of(EDGES, NODES).among(torch.tensor(kept))
    expected = [(kept.index(s), kept.index(t)) for s, t in EDGES.T.tolist() if s in kept and t in kept]
    assert sorted(pairs(found)) == sorted(expected)
    assert found.nodes == 4


@pytest.mark.parametrize("most", [NODES, 0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_links_into_some_nodes_weigh_what_they_weigh_among_all(kind: Weighting, most: int) -> None:
    links, nodes, features = Links.of(EDGES, NODES), torch.tensor([1, 4, 5]), table(NODES, 3)
    found, origins = links.into(nodes, most)
    assert origins is None if most == 0 else origins.tolist() == [0, 1, 2, 4, 5]
    needed = features if origins is None else features[origins]
    expected = links.sum(features, kind)[nodes]
    torch.testing.assert_close(found.sum(needed, kind), expected)
    torch.testing.assert_close(found.own(needed), features[nodes])
    assert torch.equal(
        *(torch.autograd.grad(each.sin().sum(), features)[0] for each in (found.sum(needed, kind), expected))
    )


def star(degree: int) -> Links:
    """Return a node with in-edges from `degree` others and from itself, and one with an in-edge from the last."""
    others = np.arange(1, degree + 1)
    edges = np.concatenate([np.stack([others, 0 * others]), [[0, degree], [0, 1]]], axis=1)
    return Links.of(edges, degree + 1)


def test_drawn_edges_are_different_ones_of_the_node_and_loops_stay() -> None:
    links = star(9)
    for seed in range(20):
        part = links.sampled(torch.tensor([0, 1, 5]), 4, np.random.default_rng(seed))
        drawn = [pairs(links)[edge] for edge in part.edges.tolist()]
        assert Counter(target for _, target in drawn) == {0: 5, 1: 1}
        assert len(set(drawn)) == 6
        assert {(0, 0), (9, 1)} <= set(drawn)
        shares = dict(zip(drawn, part.share.tolist(), strict=True))
        assert (shares[0, 0], shares[9, 1]) == (1, 1)
        assert sum(shares.values()) == pytest.approx(11), "those drawn stand for all"


def test_every_edge_is_as_likely_to_be_drawn() -> None:
    links, random = star(6), np.random.default_rng(0)
    rounds = 6000
    parts = [links.sampled(torch.tensor([0]), 2, random) for _ in range(rounds)]
    counts = Counter(links.sources[torch.cat([part.edges for part in parts])].tolist())
    # Six standard deviations of a binomial distribution.
    margin = 6 * (rounds * (1 / 3) * (2 / 3)) ** 0.5
    assert all(abs(counts[source] - rounds / 3) < margin for source in range(1, 7))


def words() -> np.ndarray:
    random = np.random.default_rng(0)
    return (random.random((5, 8)) * (random.random((5, 8)) < 0.4)).astype(np.float32)


def test_sparse_features_are_the_table_they_were_made_of() -> None:
    features = SparseFeatures.of(csr_array(words()))
    assert (features.shape, len(features)) == ((5, 8), 5)
    assert torch.equal(features.dense(), torch.from_numpy(words()))
    rows = torch.tensor([3, 0, 3, 1])
    assert torch.equal(features.rows(rows).dense(), torch.from_numpy(words())[rows])
    assert features.rows(rows[:0]).shape == (0, 8)


def test_products_with_sparse_features_are_those_with_dense_ones_and_so_are_two_gradients() -> None:
    features = SparseFeatures.of(csr_array(words())).double()
    weight = table(8, 3)
    torch.testing.assert_close(features.matmul(weight), features.dense() @ weight)
    assert gradcheck(features.matmul, (weight,))
    assert gradgradcheck(lambda weight: features.matmul(weight).sin(), (weight,))


def test_dropping_entries_is_dropping_features_a_zero_being_one_in_any_case() -> None:
    features = SparseFeatures.of(csr_array(words()))
    weight = table(8, 3).float()
    torch.manual_seed(0)
    dropped = features.dropped(0.25)
    scaled = torch.from_numpy(words()) / 0.75
    stays = dropped.dense() != 0
    torch.testing.assert_close(dropped.dense(), scaled * stays)
    assert 0 < int(stays.sum()) < np.count_nonzero(words())
    found = dropped.matmul(weight)
    torch.testing.assert_close(found, dropped.dense() @ weight)
    (gradient,) = torch.autograd.grad(found.square().sum(), weight)
    torch.testing.assert_close(gradient, 2 * dropped.dense().T @ found)
    assert torch.equal(features.dense(), torch.from_numpy(words())), "what all share is left alone"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.875])
def test_dropout_drops_its_share_keeps_the_mean_and_draws_for_each_by_itself(share: float) -> None:
    torch.manual_seed(0)
    values = torch.ones(400, 501, requires_grad=True)
    found = dropout(values, share)
    (gradient,) = torch.autograd.grad(found.sum(), values)
    found = found.detach()
    assert torch.equal(gradient, found)
    scale = float(found.max())
    assert set(found.unique().tolist()) == {0, scale}
    assert scale == pytest.approx(1 / (1 - share), rel=2**-16 / (1 - share))
    count = found.numel()
    deviation = (share * (1 - share) / count) ** 0.5
    assert float((found == 0).double().mean()) == pytest.approx(share, abs=6 * deviation)
    # Four neighbours come of one draw.
    zero = (found == 0).flatten().double() - share
    for apart in (1, 2, 3, 4):
        together = float((zero[:-apart] * zero[apart:]).mean())
        assert abs(together) < 6 * share * (1 - share) / count**0.5


def test_dropout_of_a_seed_is_the_same_and_of_nothing_none() -> None:
    values = torch.ones(7)
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        found.append(dropout(values, 0.5))
    assert torch.equal(*found)
    assert dropout(values, 0.0) is values
