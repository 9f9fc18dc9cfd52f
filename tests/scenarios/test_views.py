"""Views of a graph: which nodes and edges a learner sees of it, and what their numbers tell."""

import numpy as np
import pytest
import torch

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.scenarios.lessons import task_lessons
from skeleton_cgl.scenarios.views import Surroundings, Views, numbers_in

NODES = 12
EDGES = np.array([[0, 1, 2, 3, 4, 5, 6, 7, 0, 4], [1, 0, 3, 2, 5, 4, 7, 6, 4, 0]])
FEATURES = np.arange(NODES, dtype=np.float32)[:, None]
UNIT = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
LESSONS = [np.arange(4), np.arange(4, 8)]


def views(name: str) -> Views:
    graph = Surroundings(EDGES, FEATURES, self_loops=False)
    return Views(
        graph,
        name,  # type: ignore[arg-type]
        nodes=lambda units: np.flatnonzero(np.isin(UNIT, units)),
        remembered=lambda units: np.flatnonzero(np.isin(UNIT, units))[:2],
    )


def edges_of(places: Places) -> set[tuple[int, int]]:
    """Return the edges by the nodes of the whole graph, which their features tell."""
    names = places.dense_features[:, 0].int().tolist()
    return {
        (names[source], names[target])
        for source, target in zip(places.links.sources.tolist(), places.links.targets.tolist(), strict=True)
    }


def nodes_at(places: Places) -> list[int]:
    return places.dense_features[places.at[:, 0], 0].int().tolist()


WITHIN = {(0, 1), (1, 0), (2, 3), (3, 2)}
BETWEEN = {(0, 4), (4, 0)}
SECOND = {(4, 5), (5, 4), (6, 7), (7, 6)}


def test_the_whole_view_has_all_nodes_for_every_prefix() -> None:
    every = views("whole")
    first, second = (every.pool(task_lessons(order)) for order in (((0,),), ((2,), (1,))))
    assert first is second
    assert edges_of(first.whole()) == WITHIN | BETWEEN | SECOND
    assert nodes_at(first.whole()) == list(range(NODES))


def test_so_far_has_the_lessons_of_the_prefix_and_the_edges_between_them() -> None:
    so_far = views("so far")
    assert edges_of(so_far.pool(task_lessons(((0,),))).whole()) == WITHIN
    places = so_far.pool(task_lessons(((0,), (1,)))).whole()
    assert edges_of(places) == WITHIN | BETWEEN | SECOND
    assert nodes_at(places.rows(torch.tensor([5, 0]))) == [5, 0]
    with pytest.raises(InputError, match="sample 9"):
        places.rows(torch.tensor([9]))


def test_the_own_view_has_the_last_lesson_alone_and_memories_stand_alone() -> None:
    prefix = task_lessons(((0,), (1,)))
    own = views("own")
    places = own.pool(prefix).whole()
    ids = own.numbers(prefix, np.array([4, 7]))
    alone = places.rows(ids)
    assert nodes_at(alone) == [4, 7]
    assert edges_of(alone) == SECOND
    assert len(alone.features) == 4
    remembered = torch.from_numpy(numbers_in(LESSONS, 0, np.array([1])))
    both = places.rows(torch.cat([ids, remembered]))
    assert nodes_at(both) == [4, 7, 1]
    assert edges_of(both) == SECOND
    assert len(both.features) == 5
    assert nodes_at(places.rows(remembered)) == [1]


def test_together_the_lessons_stand_side_by_side() -> None:
    prefix = task_lessons(((0,), (1,)))
    places = views("own").pool(prefix).together.whole()
    ids = torch.from_numpy(
        np.concatenate([numbers_in(LESSONS, 0, np.array([0, 3])), numbers_in(LESSONS, 1, np.array([4]))])
    )
    assert nodes_at(places.rows(ids)) == [0, 3, 4]
    assert edges_of(places.rows(ids)) == WITHIN | SECOND
    assert edges_of(places.rows(ids[:2])) == WITHIN


@pytest.mark.parametrize("name", ["whole", "so far", "own"])
def test_queries_are_the_nodes_given_in_the_sequence_told(name: str) -> None:
    prefix = task_lessons(((0,), (1,)))
    steps, nodes = np.array([0, 0, 1, 1, 1]), np.array([1, 2, 4, 6, 7])
    asked = views(name).asked(prefix, steps, nodes)
    places = asked.pool.whole().rows(asked.ids)
    assert nodes_at(places) == nodes[asked.sequence].tolist()
    expected = WITHIN | SECOND | (BETWEEN if name != "own" else set())
    assert edges_of(places) == expected


def test_on_the_own_view_neither_numbers_nor_places_tell_the_lesson() -> None:
    random = np.random.default_rng(0)
    unit = np.repeat([0, 1], 100)
    graph = Surroundings(random.integers(200, size=(2, 300)), random.normal(size=(200, 2)), False)
    made = Views(graph, "own", lambda units: np.flatnonzero(np.isin(unit, units)), lambda _: np.arange(0))
    asked = made.asked(task_lessons(((0,), (1,))), unit, np.arange(200))
    lesson = unit[asked.sequence]
    places = asked.pool.whole().rows(asked.ids).at[:, 0].numpy()
    for told in (asked.ids.numpy(), places):
        assert abs(np.corrcoef(told, lesson)[0, 1]) < 0.2


def test_pools_of_one_content_have_one_digest_and_others_another() -> None:
    own = views("own")
    digests = [own.pool(task_lessons(order)).digest for order in (((0,), (1,)), ((1,),), ((0,), (2,)), ((2,), (1,)))]
    assert len(set(digests)) == len(digests)
    assert own.pool(task_lessons(((0,), (1,)))).digest == digests[0]
