"""What backbones get of irregular graphs: places in one graph, and whole graphs in batches."""

import numpy as np
import pytest
import torch

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Graphs, Places, graph_of, neighbour_sum

EDGES = np.array([[0, 1, 2, 3, 3, 1], [1, 0, 1, 3, 2, 2]])
FEATURES = torch.tensor([[1.0, 2], [3, 5], [7, 11], [13, 17]])


def places(*at: tuple[int, ...]) -> Places:
    return Places.of(EDGES, FEATURES.numpy(), torch.tensor(at), self_loops=False)


def test_a_graph_has_its_edges_from_sources_to_targets_and_nodes_without_any() -> None:
    graph = graph_of(EDGES, 6)
    assert graph.num_nodes() == 6
    sources, targets = graph.edges()
    assert sorted(zip(sources.tolist(), targets.tolist(), strict=True)) == sorted(map(tuple, EDGES.T.tolist()))


def test_neighbours_are_summed_over_the_edges_that_lead_to_a_node() -> None:
    expected = torch.zeros(4, 2)
    for source, target in EDGES.T:
        expected[target] += FEATURES[source]
    graph = graph_of(EDGES, 4)
    torch.testing.assert_close(neighbour_sum(graph, FEATURES), expected)
    assert not graph.ndata, "the graph is left as it was"


def test_rows_of_places_are_other_places_in_the_same_graph() -> None:
    whole = places((0, 1), (2, 2), (3, 0))
    assert (len(whole), whole.places) == (3, 2)
    some = whole.rows(torch.tensor([2, 0, 2]))
    assert some.at.tolist() == [[3, 0], [0, 1], [3, 0]]
    assert some.links is whole.links
    assert some.features is whole.features
    assert not whole.independent
    assert whole.content is whole


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


def test_graphs_are_batched_in_the_sequence_of_their_rows() -> None:
    members = []
    for size in (1, 3, 2):
        members.append(graph_of(np.array([[0], [size - 1]]), size))
        members[-1].ndata["features"] = torch.full((size, 2), float(size))
    whole = Graphs(tuple(members))
    assert (len(whole), whole.places, whole.independent) == (3, 1, False)
    batch = whole.rows(torch.tensor([2, 0, 2])).content
    assert batch.batch_num_nodes().tolist() == [2, 1, 2]
    assert batch.ndata["features"][:, 0].tolist() == [2, 2, 1, 2, 2]
    assert whole.content is whole.content, "batched once"
    assert len(whole.to(torch.device("cpu"))) == 3


def test_a_copy_of_graphs_or_places_shares_nothing_and_a_version_tells_of_writes() -> None:
    graph = graph_of(EDGES, 4)
    graph.ndata["features"] = FEATURES.clone()
    for inputs in (Graphs((graph,)), places((0,), (3,)).copied()):
        copied, before = inputs.copied(), inputs.version
        member = copied.members[0] if isinstance(copied, Graphs) else copied.graph
        features = member.ndata["features"] if isinstance(copied, Graphs) else copied.features
        fresh = copied.version
        features.mul_(2)
        assert copied.version != fresh
        member.edges()[0].fill_(1)
        assert inputs.version == before
        own = inputs.members[0] if isinstance(inputs, Graphs) else inputs.graph
        assert sorted(own.edges()[0].tolist()) == sorted(EDGES[0].tolist())
