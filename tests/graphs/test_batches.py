"""What backbones get of irregular graphs: places in one graph."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Paths, Places
from skeleton_cgl.graphs.links import Weighting
from skeleton_cgl.graphs.sparse import SparseFeatures

EDGES = np.array([[0, 1, 2, 3, 3, 1], [1, 0, 1, 3, 2, 2]])
FEATURES = torch.tensor([[1.0, 2], [3, 5], [7, 11], [13, 17]])


def places(*at: tuple[int, ...], sparse: bool = False) -> Places:
    features = csr_array(FEATURES.numpy()) if sparse else FEATURES.numpy().copy()
    return Places.of(EDGES, features, torch.tensor(at), self_loops=False)


def edges_of(found: Places) -> list[tuple[int, int]]:
    return list(zip(found.links.sources.tolist(), found.links.targets.tolist(), strict=True))


def test_rows_of_places_are_other_places_in_the_same_graph() -> None:
    whole = places((0, 1), (2, 2), (3, 0))
    assert (len(whole), whole.places) == (3, 2)
    some = whole.rows(torch.tensor([2, 0, 2]))
    assert some.at.tolist() == [[3, 0], [0, 1], [3, 0]]
    assert some.links is whole.links
    assert some.features is whole.features
    assert not whole.independent
    assert whole.content is whole


def test_places_are_of_a_graph_with_one_loop_at_every_node_where_that_is_wanted() -> None:
    found = Places.of(EDGES, FEATURES.numpy().copy(), np.array([[0]]), self_loops=True)
    assert sorted(edges_of(found)) == sorted({*map(tuple, EDGES.T.tolist()), *((node, node) for node in range(4))})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"at": np.array([[4]])}, "outside the nodes 0–3"),
        ({"numbers": np.array([5, 3])}, "numbers must ascend"),
        ({"components": np.array([0, 0, 1, 1])}, "leads from one component to another"),
    ],
)
def test_what_is_no_place_in_a_graph_is_refused(fields: dict[str, np.ndarray], reason: str) -> None:
    given = {"at": np.array([[0], [1]]), **fields}
    with pytest.raises(InputError, match=reason):
        Places.of(EDGES, FEATURES.numpy().copy(), self_loops=False, **given)


def test_rows_are_asked_for_by_their_numbers_and_then_numbered_as_they_were_asked_for() -> None:
    whole = replace(places((0,), (2,), (3,)), numbers=torch.tensor([10, 12, 40]))
    some = whole.rows(torch.tensor([40, 10, 40]))
    assert some.at.flatten().tolist() == [3, 0, 3]
    assert some.rows(torch.tensor([1, 2])).at.flatten().tolist() == [0, 3]
    for missing in (11, 41, 0):
        with pytest.raises(InputError, match=f"sample {missing} has no place in this graph"):
            whole.rows(torch.tensor([10, missing]))


def apart(sparse: bool) -> Places:
    """Return a path of three nodes, a lone one and a pair, as three components, with what was kept of every node."""
    edges = np.array([[0, 4, 2, 5, 1], [4, 0, 5, 2, 4]])
    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    components = np.array([0, 0, 2, 1, 0, 2])
    features = csr_array(table) if sparse else table
    made = Places.of(edges, features, np.arange(6)[:, None], self_loops=True, components=components)
    return made.keeping(doubled=2 * torch.from_numpy(table))


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(("chosen", "nodes"), [([5], [2, 5]), ([3, 4], [0, 1, 3, 4]), ([5, 3, 0], [0, 1, 2, 3, 4, 5])])
def test_only_components_that_rows_are_in_come_along(chosen: list[int], nodes: list[int], sparse: bool) -> None:
    whole = apart(sparse)
    found = whole.rows(torch.tensor(chosen))
    assert [nodes[place] for place in found.at.flatten().tolist()] == chosen
    among = [(s, t) for s, t in edges_of(whole) if t in nodes]
    assert [(nodes[s], nodes[t]) for s, t in edges_of(found)] == among
    assert torch.equal(found.dense_features, whole.dense_features[nodes])
    assert torch.equal(found.kept["doubled"], 2 * found.dense_features)
    assert found.components is not None
    assert whole.components is not None
    assert torch.equal(found.components, whole.components[nodes])
    assert isinstance(found.features, SparseFeatures) == sparse


def test_what_was_summed_once_stays_with_the_rows() -> None:
    whole = places((0,), (1,)).arranged(lambda given: given.keeping(sums=given.links.sum(given.features)))
    assert whole.rows(torch.tensor([1])).kept["sums"] is whole.kept["sums"]
    with pytest.raises(InputError, match="sums: expected a row for each of 4 nodes, found 3"):
        whole.keeping(sums=torch.zeros(3, 2))


def test_places_stay_where_they_are_wanted() -> None:
    whole = places((0,), (1,))
    assert whole.to(torch.device("cpu")) is whole


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no other device here")
def test_places_go_to_a_device_whole() -> None:
    whole = places((0,), (1,))
    moved = whole.keeping(sums=whole.features).to(torch.device("cuda"))
    assert {part.device.type for part in (moved.graph, moved.features, moved.at, moved.kept["sums"])} == {"cuda"}


@pytest.mark.parametrize("hops", [0, 1, 2, 3])
def test_paths_lead_to_what_is_asked_about_and_leave_out_what_does_not(hops: int) -> None:
    """A long chain: of its 30 nodes, a few hops before one reach a few."""
    chain = np.stack([np.arange(29), np.arange(1, 30)])
    features = torch.randn(30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    asked = replace(Places.of(chain, features.numpy(), np.array([[7], [20], [7]]), self_loops=True), features=features)
    paths = asked.towards(hops)
    assert asked.towards(hops) is paths
    needed = sorted({node - back for node in (7, 20) for back in range(hops + 1)})
    assert paths.nodes[0] is not None
    assert paths.nodes[0].tolist() == needed
    found, expected = paths.rows("features", features), features
    for links in paths.links:
        found, expected = links.sum(found, "symmetric"), asked.links.sum(expected, "symmetric")
    torch.testing.assert_close(found[paths.at], expected[asked.at.flatten()])


def test_where_paths_come_from_nearly_everywhere_all_links_are_taken() -> None:
    whole = Places.of(EDGES, FEATURES.numpy().copy(), np.array([[0], [1], [3]]), self_loops=True)
    paths = whole.towards(2)
    assert paths.links == (whole.links, whole.links)
    assert paths.nodes == (None, None, None)
    every = Paths.through_all(whole.links, whole.at.flatten(), 2)
    assert torch.equal(paths.at, every.at)


def crowd(nodes: int = 300, degree: int = 40) -> Places:
    random = np.random.default_rng(1)
    edges = np.unique(random.integers(0, nodes, (2, nodes * degree)), axis=1)
    features = np.arange(nodes, dtype=np.float32)[:, None]
    return Places.of(edges, features, np.array([[3, 5], [8, 3]]), self_loops=True).keeping(
        own=torch.from_numpy(features)
    )


def test_a_sampled_graph_has_at_most_so_many_edges_per_node_and_hop_and_no_others() -> None:
    whole = crowd()
    found = whole.sampled([3, 2], np.random.default_rng(0))
    names = found.dense_features[:, 0].long()
    assert torch.equal(names[found.at], whole.at)
    assert torch.equal(found.kept["own"], found.dense_features)
    named = [(int(names[s]), int(names[t])) for s, t in edges_of(found)]
    assert len(set(named)) == len(named)
    assert set(named) <= set(edges_of(whole))
    asked = {3, 5, 8}
    first = {s for s, t in named if t in asked}
    proper = [sum(t == node and s != t for s, t in named) for node in names.tolist()]
    expected = [3 if node in asked else 2 if node in first else 0 for node in names.tolist()]
    assert proper == expected
    assert all((node, node) in named for node in names.tolist())
    assert found.links.nodes <= 3 * 4 * 3


def test_sampling_is_decided_by_its_generator_and_does_not_grow_with_the_degree() -> None:
    whole = crowd()
    one, same, other = (whole.sampled([3, 2], np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert edges_of(one) == edges_of(same)
    assert torch.equal(one.dense_features, same.dense_features)
    assert not torch.equal(one.dense_features, other.dense_features)
    wide = crowd(nodes=2000, degree=200).sampled([3, 2], np.random.default_rng(0))
    assert len(wide.links) <= 3 * (4 + 3 * 3 + 9)


@pytest.mark.parametrize("kind", ["mean", "symmetric"])
def test_weighted_sums_over_sampled_neighbours_are_right_on_average(kind: Weighting) -> None:
    whole, random = crowd(), np.random.default_rng(0)
    expected = whole.links.sum(whole.dense_features, kind)[whole.at.flatten(), 0]
    found = []
    for _ in range(400):
        some = whole.sampled([10], random)
        found.append(some.links.sum(some.dense_features, kind)[some.at.flatten(), 0])
    drawn = torch.stack(found)
    error = drawn.std(dim=0) / len(drawn) ** 0.5
    assert (error > 0).all()
    assert ((drawn.mean(dim=0) - expected).abs() < 5 * error).all()


def test_with_room_for_all_edges_sampling_takes_them_all() -> None:
    whole = crowd()
    found = whole.sampled([1000], np.random.default_rng(0))
    names = found.dense_features[:, 0].long().tolist()
    named = {(names[s], names[t]) for s, t in edges_of(found)}
    assert named == {(s, t) for s, t in edges_of(whole) if t in (3, 5, 8)} | {(node, node) for node in names}


def test_asking_for_what_is_computed_when_first_asked_for_changes_no_version() -> None:
    whole = apart(sparse=True)
    before = whole.version
    weight = torch.ones(2, 3, requires_grad=True)
    assert not isinstance(whole.features, torch.Tensor)
    whole.links.sum(whole.features.matmul(weight), "symmetric").sum().backward()
    whole.links.softmax(torch.ones(len(whole.links), 1))
    whole.sampled([1, 1], np.random.default_rng(0))
    whole.towards(2)
    assert whole.graph.num_nodes() == 6
    assert whole.rows(torch.tensor([3])).version == before == whole.version


WRITES = {
    "features": lambda held: held.dense_features if held.features is held.dense_features else held.features.values,
    "sources": lambda held: held.links.sources,
    "targets": lambda held: held.links.targets,
    "weights": lambda held: held.links.weights("mean"),
    "places": lambda held: held.at,
    "kept": lambda held: held.kept["doubled"],
    "components": lambda held: held.components,
}


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("written", WRITES)
def test_a_version_tells_of_writes_and_a_copy_shares_nothing(written: str, sparse: bool) -> None:
    whole = apart(sparse)
    WRITES[written](whole)
    copied, before = whole.copied(), whole.version
    kept = WRITES[written](whole).clone()
    fresh = copied.version
    WRITES[written](copied).add_(1)
    assert copied.version != fresh
    assert whole.version == before
    assert torch.equal(WRITES[written](whole), kept)


def test_the_graph_of_dgl_is_of_one_batch_alone() -> None:
    whole = apart(sparse=False)
    one, other = whole.rows(torch.tensor([0, 3, 5])), whole.rows(torch.tensor([0, 3, 5]))
    one.graph.ndata["more"] = one.features
    one.graph.edges()[0].zero_()
    assert one.graph is one.graph
    assert not other.graph.ndata
    assert other.graph.edges()[0].tolist() == whole.links.sources.tolist()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("numbers", [None, (10, 12)])
def test_two_graphs_side_by_side_are_one_without_an_edge_between(sparse: bool, numbers: tuple[int, int] | None) -> None:
    one, other = places((1,), (3,), sparse=sparse), places((0,), (2,), (2,), sparse=sparse)
    one = replace(one, numbers=None if numbers is None else torch.tensor(numbers))
    found = one.beside(other)
    assert edges_of(found) == [*edges_of(one), *((source + 4, target + 4) for source, target in edges_of(other))]
    assert torch.equal(found.dense_features, torch.cat([FEATURES, FEATURES]))
    assert found.at.tolist() == [[1], [3], [4], [6], [6]]
    assert found.components is None
    first = one.next_number
    assert first == (2 if numbers is None else 13)
    assert found.rows(torch.tensor([first + 1, first, first + 2])).at.tolist() == [[6], [4], [6]]
    assert found.rows(torch.tensor([one.next_number - 1])).at.tolist() == [[3]]


def test_of_graphs_side_by_side_only_parts_that_are_asked_about_come_along() -> None:
    """Where those of the first do; parts of the second are others than those of the first."""
    pair = np.array([[0, 1], [1, 0]])
    parts = Places.of(pair, np.eye(3), np.array([[0], [2]]), False, components=np.array([0, 0, 4]))
    for components in (None, np.array([0, 0, 1])):
        other = Places.of(pair, np.eye(3), np.array([[1], [2]]), False, components=components)
        found = parts.beside(other)
        assert found.components.tolist() == [0, 0, 4, *([5, 5, 5] if components is None else [5, 5, 6])]
        assert found.rows(torch.tensor([1])).links.nodes == 1
        assert found.rows(torch.tensor([2])).links.nodes == (3 if components is None else 2)


def test_sparse_features_beside_dense_ones_are_refused() -> None:
    with pytest.raises(InputError, match="those of one graph are sparse"):
        places((0,)).beside(places((0,), sparse=True))
