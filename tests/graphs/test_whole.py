"""Whole graphs: some of them are put together as they are, numbered anew, and what is asked for again is kept."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs import whole as module
from skeleton_cgl.graphs.whole import Graphs

STARTS = np.array([0, 3, 4, 8])
EDGES = np.array([[0, 1, 1, 4, 5, 7, 6], [1, 0, 2, 5, 6, 4, 6]])
FEATURES = np.arange(16, dtype=np.float32).reshape(8, 2)
EDGE_FEATURES = np.arange(14, dtype=np.float32).reshape(7, 2)


def graphs(self_loops: bool = True) -> Graphs:
    return Graphs.of(STARTS, EDGES, FEATURES, self_loops, EDGE_FEATURES)


def parts_of(found: Graphs) -> list[Any]:
    """Return every graph as features by node, and edges with their features, both by the node's place in it."""
    content = found.content
    assert content.edge_features is not None
    edges = zip(content.links.sources.tolist(), content.links.targets.tolist(), strict=True)
    told = list(zip(edges, content.edge_features.tolist(), strict=True))
    parts = []
    for start, end in zip(found.starts[:-1].tolist(), found.starts[1:].tolist(), strict=True):
        own = {(s - start, t - start): marks for (s, t), marks in told if start <= t < end}
        parts.append((content.dense_features[start:end].tolist(), own))
    return parts


def test_graphs_have_their_edges_with_their_features_and_an_added_loop_has_none() -> None:
    first, lone, last = parts_of(graphs(self_loops=False))
    assert first == ([[0, 1], [2, 3], [4, 5]], {(0, 1): [0, 1], (1, 0): [2, 3], (1, 2): [4, 5]})
    assert lone == ([[6, 7]], {})
    assert last[1] == {(0, 1): [6, 7], (1, 2): [8, 9], (3, 0): [10, 11], (2, 2): [12, 13]}
    looped = parts_of(graphs())
    assert looped[1][1] == {(0, 0): [-1, -1]}
    assert looped[2][1] == {**last[1], **{(node, node): [-1, -1] for node in range(4)}}


@pytest.mark.parametrize("chosen", [[2, 0], [1], [0, 1, 2], [1, 1, 2, 1]])
def test_some_graphs_are_those_of_all_in_the_sequence_asked_for(chosen: list[int]) -> None:
    everything = graphs().arranged(lambda places: places.keeping(doubled=2 * places.features))
    everything.content.links.weights("symmetric")
    found = everything.rows(torch.tensor(chosen))
    assert (len(found), found.places, found.independent, found.embedded) == (
        len(chosen),
        1,
        True,
        sum(int(everything.sizes[row]) for row in chosen),
    )
    assert parts_of(found) == [parts_of(everything)[row] for row in chosen]
    assert torch.equal(found.content.kept["doubled"], 2 * found.content.features)
    assert found.content.at.flatten().tolist() == list(range(found.embedded))
    assert found.content.every
    # Made of their own edges, these weigh the same.
    fresh = replace(found.content.links, _weights={})
    assert torch.equal(found.content.links.weights("symmetric"), fresh.weights("symmetric"))
    assert parts_of(found.rows(torch.tensor([0]))) == parts_of(found)[:1], "numbered as they were asked for"


def test_sums_over_edges_and_their_gradients_stay_within_a_graph() -> None:
    everything = graphs()
    chosen = torch.tensor([2, 0, 2])
    found = everything.rows(chosen)
    table = torch.randn(found.embedded, 3, dtype=torch.float64, requires_grad=True)
    direction = torch.randn(found.embedded, 3, dtype=torch.float64)
    dense = torch.zeros(found.embedded, found.embedded, dtype=torch.float64)
    for source, target in zip(found.content.links.sources, found.content.links.targets, strict=True):
        degrees = (found.content.links.sources == source).sum() * (found.content.links.targets == target).sum()
        dense[target, source] = float(degrees) ** -0.5
    summed = found.content.links.sum(table, "symmetric")
    torch.testing.assert_close(summed, dense @ table)
    (slope,) = torch.autograd.grad((summed * direction).sum(), table)
    torch.testing.assert_close(slope, dense.T @ direction)


def test_tables_are_read_out_graph_by_graph() -> None:
    found = graphs().rows(torch.tensor([2, 1]))
    table = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    first, second = table[:4], table[4:]
    expected = {
        "sums": torch.stack([first.sum(dim=0), second.sum(dim=0)]),
        "means": torch.stack([first.mean(dim=0), second.mean(dim=0)]),
        "largest": torch.stack([first.amax(dim=0), second.amax(dim=0)]),
    }
    for name, wanted in expected.items():
        read: Tensor = getattr(found, name)(table)
        torch.testing.assert_close(read, wanted)
        slopes = [torch.autograd.grad(each.sin().sum(), table, retain_graph=True)[0] for each in (read, wanted)]
        torch.testing.assert_close(*slopes)


def test_graphs_are_asked_for_by_their_numbers() -> None:
    found = graphs().numbered(np.array([0, 2]))
    assert parts_of(found) == [parts_of(graphs())[row] for row in (0, 2)]
    assert parts_of(found.rows(torch.tensor([2, 0]))) == parts_of(found)[::-1]
    for missing in (1, 3):
        with pytest.raises(InputError, match=f"sample {missing} is not among these graphs"):
            found.rows(torch.tensor([0, missing]))


def test_what_is_asked_for_a_second_time_is_kept_for_a_third() -> None:
    everything = graphs()
    first, second, third, other = (everything.rows(torch.tensor(ids)) for ids in ([2, 0], [2, 0], [2, 0], [0, 2]))
    assert first is not second
    assert second is third
    assert other is not third
    assert parts_of(second) == parts_of(first) == parts_of(other)[::-1]


def test_a_batch_that_was_written_into_is_refused() -> None:
    everything = graphs()
    for _ in range(2):
        kept = everything.rows(torch.tensor([2, 0]))
    kept.content.features.add_(1)
    with pytest.raises(InputError, match="something was written into a batch that all learners share"):
        everything.rows(torch.tensor([2, 0]))
    assert parts_of(everything.rows(torch.tensor([0]))) == parts_of(graphs())[:1], "that of all is as it was"


def test_batches_are_kept_up_to_a_bound_those_used_last_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = graphs()
    asked = [torch.tensor(ids) for ids in ([0, 1], [1, 0], [0, 1, 1])]
    size = everything.rows(torch.tensor([0, 1])).bytes
    assert size >= 4 * (8 + 2 * 4)
    monkeypatch.setattr(module, "_MOST_KEPT", int(2.5 * size))

    def kept() -> list[bool]:
        held = {id(batch) for batch, _ in everything._batches.values()}
        assert sum(batch.bytes for batch, _ in everything._batches.values()) <= module._MOST_KEPT
        return [id(everything._batches.get(ids.numpy().tobytes(), (None,))[0]) in held for ids in asked]

    for ids in (asked[0], asked[0], asked[1], asked[1]):
        everything.rows(ids)
    assert kept() == [True, True, False]
    everything.rows(asked[0])
    for _ in range(2):
        everything.rows(asked[2])
    assert kept() == [True, False, True], "the one used longest ago went"
    monkeypatch.setattr(module, "_MOST_KEPT", 1)
    for _ in range(2):
        everything.rows(torch.tensor([1]))
    assert kept() == [False, False, False], "one that is too large by itself is not kept"


WRITES: dict[str, Callable[[Graphs], Any]] = {
    "features": lambda held: held.content.features,
    "sources": lambda held: held.content.links.sources,
    "edge features": lambda held: held.content.edge_features,
    "kept": lambda held: held.content.kept["doubled"],
    "starts": lambda held: held.starts,
}


@pytest.mark.parametrize("written", WRITES)
def test_a_version_tells_of_writes_and_a_copy_shares_nothing(written: str) -> None:
    everything = graphs().arranged(lambda places: places.keeping(doubled=2 * places.features))
    copied, before = everything.copied(), everything.version
    untouched, fresh = WRITES[written](everything).clone(), copied.version
    WRITES[written](copied).add_(1)
    assert copied.version != fresh
    assert everything.version == before
    assert torch.equal(WRITES[written](everything), untouched)
    assert parts_of(everything) == parts_of(graphs())


def test_graphs_stay_where_they_are_wanted() -> None:
    everything = graphs()
    assert everything.to(torch.device("cpu")) is everything
