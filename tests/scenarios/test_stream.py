"""Task-free streams: which samples come when, what is asked and scored, and what a learner is told of it: nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import recall_score

from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.archive import write_archive
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import Method
from skeleton_cgl.learning.training import Training
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.lessons import Order, Prefix, Segment, TaskLesson, Unit
from skeleton_cgl.scenarios.measures import SIZE
from skeleton_cgl.scenarios.scenario import Queries, Samples
from skeleton_cgl.scenarios.settings import make_scenario
from skeleton_cgl.scenarios.views import Surroundings
from tests.core.reach import objects_reached, reached
from tests.scenarios.graphs import CLASSES, DOMAINS, node_graph, write_npz
from tests.scenarios.sets import graph_set, link_set, measure_of
from tests.scenarios.telling import tells

TASKS: Order = ((0, 1), (2, 3), (4, 5))
GAUSSIAN = {"name": "gaussian", "sigma": 3}
TRANSITIONS: list[Any] = ["hard", GAUSSIAN, {"name": "global", "share": 0.3}, {"name": "boundary", "batches": 2}]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The fields of a scenario of 360 nodes in three tasks of two classes."""
    path = write_npz(node_graph(), tmp_path_factory.mktemp("streams") / "nodes.npz")
    return {"kind": "node", "data": str(path)}


def stream_of(of: dict[str, Any], drawn_from: int = 0, **fields: Any) -> Any:
    return make_scenario({"kind": "stream", "of": of, "transition": "hard", **fields}, drawn_from)


def prefixes(stream: Any, order: Order | None = None) -> list[Prefix]:
    lessons = stream.lessons(order or stream.default)
    return [lessons[: step + 1] for step in range(len(lessons))]


def tokens(stream: Any, order: Order | None = None) -> list[str]:
    return [lesson.token for lesson in stream.lessons(order or stream.default)]


def batches_of(stream: Any, order: Order | None = None) -> list[tuple[int, ...]]:
    return [batch for lesson in stream.lessons(order or stream.default) for batch in lesson.batches]


def nodes_of(graph: Graph, given: Samples | Queries) -> np.ndarray:
    """Return the nodes that samples or queries are, by their features, of which no two are alike."""
    places = given.pool.whole().rows(given.ids)
    found = places.dense_features[places.at[:, 0]].numpy()
    apart = np.abs(found[:, None] - graph.features[None].astype(np.float32)).sum(axis=2)
    assert (apart.min(axis=1) == 0).all()
    return apart.argmin(axis=1)


def trained(stream: Any, method: str = "bare", pieces: int | None = None, **training: Any) -> Learner:
    recipe = Training(**{"learning_rate": 0.05, "device": "cpu", **training})
    learner = make_learner(stream, "gcn", method, recipe, 0, {"width": 6})
    for step, prefix in enumerate(prefixes(stream)[:pieces]):
        learner.learn(stream.experience(prefix), step)
    return learner


@pytest.mark.parametrize("transition", TRANSITIONS, ids=str)
def test_a_stream_has_the_training_samples_of_its_tasks_with_their_labels(
    nodes: dict[str, Any], transition: Any
) -> None:
    graph = node_graph()
    stream, inner = stream_of(nodes, transition=transition), make_scenario(nodes, 0)
    training = inner.experience((TaskLesson(tuple(range(CLASSES))),)).training
    came = set()
    for prefix in prefixes(stream):
        experience = stream.experience(prefix)
        samples = experience.training
        assert np.array_equal(graph.labels[nodes_of(graph, samples)], samples.labels.numpy())
        assert samples.step.unique().tolist() == [-1]
        assert len(experience.validation) == 0
        assert (experience.outputs, experience.lesson.units) == ((), ())
        rows = [row for batch in next(experience.pace.epochs(samples)) for row in batch.tolist()]
        assert rows == list(range(len(samples)))
        came |= set(samples.ids.tolist())
    assert came <= set(training.ids.tolist())
    assert transition == GAUSSIAN or came == set(training.ids.tolist())


@pytest.mark.parametrize("transition", TRANSITIONS, ids=str)
def test_a_seed_decides_the_stream_to_the_last_sample(nodes: dict[str, Any], transition: Any) -> None:
    fixed = {**nodes, "split": {"seed": 0}}
    one, again, other = (stream_of(fixed, seed, transition=transition) for seed in (4, 4, 5))
    assert (batches_of(one), one.digest) == (batches_of(again), again.digest)
    assert batches_of(one) != batches_of(other)
    assert one.digest != other.digest
    with_seed = [stream_of(fixed, seed, transition=transition, seed=9) for seed in (4, 5)]
    assert batches_of(with_seed[0]) == batches_of(with_seed[1])
    assert with_seed[0].digest == with_seed[1].digest


def test_how_often_a_stream_is_examined_changes_neither_its_batches_nor_its_digest(nodes: dict[str, Any]) -> None:
    by_default, four, nine, third = (
        stream_of(nodes, transition=GAUSSIAN, **fields)
        for fields in ({}, {"examinations": 4}, {"examinations": 9}, {"every": 7})
    )
    batches = batches_of(by_default)
    assert [len(each.lessons(TASKS)) for each in (by_default, four, nine, third)] == [20, 4, 9, 5]
    assert [len(lesson.batches) for lesson in four.lessons(TASKS)] == [8, 7, 7, 8]
    assert [len(lesson.batches) for lesson in third.lessons(TASKS)] == [7, 7, 7, 7, 2]
    for each in (four, nine, third):
        assert batches_of(each) == batches
        assert each.digest == by_default.digest


def test_what_is_drawn_and_what_counts_in_the_loss_are_in_the_digest(nodes: dict[str, Any]) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"transition": GAUSSIAN},
        {"batch": 9},
        {"sampling": "with-replacement"},
        {"balanced": True},
    ]
    streams = [stream_of(nodes, **change) for change in changes]
    streams += [stream_of({**nodes, **change}) for change in ({"view": "task"}, {"self_loops": False})]
    assert len({stream.digest for stream in streams}) == len(streams)


def test_two_orders_share_the_pieces_that_end_within_their_common_tasks_and_no_more(nodes: dict[str, Any]) -> None:
    """Of 10 batches a task and an examination after every 3: three pieces are of the first task alone."""
    stream = stream_of(nodes, every=3)
    assert [len(batch) for batch in batches_of(stream)] == [*([10] * 9 + [6]) * 3]
    one, other = tokens(stream, TASKS), tokens(stream, (TASKS[0], TASKS[2], TASKS[1]))
    assert [mine == yours for mine, yours in zip(one, other, strict=True)] == [True] * 3 + [False] * 7
    assert len(set(one) | set(other)) == 10 + 7


@pytest.mark.parametrize("transition", ["hard", {"name": "global", "share": 0.3}], ids=str)
def test_tasks_that_change_places_take_their_batches_with_them(nodes: dict[str, Any], transition: Any) -> None:
    stream = stream_of(nodes, transition=transition)
    one, other = batches_of(stream, TASKS), batches_of(stream, TASKS[::-1])
    assert one[:10] + one[10:20] + one[20:] == other[20:] + other[10:20] + other[:10]


def test_a_piece_is_of_the_units_whose_samples_are_in_it(nodes: dict[str, Any]) -> None:
    stream = stream_of(nodes, every=10)
    assert [lesson.units for lesson in stream.lessons(TASKS)] == list(TASKS)


@pytest.mark.parametrize("view", ["whole", "task"])
def test_all_items_of_all_tasks_are_asked_about_after_every_piece_and_reveal_nothing(
    nodes: dict[str, Any], view: str
) -> None:
    graph, of = node_graph(), {**nodes, "view": view}
    stream, inner = stream_of(of, examinations=3), make_scenario(nodes, 0)
    parts = {part: _nodes_in(inner, graph, part) for part in (TRAINING, VALIDATION, TEST)}
    for prefix in prefixes(stream):
        queries = stream.queries(prefix)
        assert set(queries.step.tolist()) == {-1}
        assert sorted(nodes_of(graph, queries)) == sorted([*parts[TEST], *parts[VALIDATION]])
        assert not np.isin(nodes_of(graph, stream.experience(prefix).training), nodes_of(graph, queries)).any()


def _nodes_in(inner: Any, graph: Graph, part: int) -> list[int]:
    pool = inner.queries(inner.lessons(inner.default)).pool
    ids = torch.from_numpy(np.flatnonzero(inner._parts == part))
    found: list[int] = nodes_of(graph, Queries(pool, ids, ids)).tolist()
    return found


@pytest.mark.parametrize("order", [TASKS, ((0, 5), (1, 4), (2, 3))], ids=["default tasks", "other tasks"])
def test_with_a_view_of_tasks_a_node_is_answered_in_the_subgraph_of_its_own(
    nodes: dict[str, Any], order: Order
) -> None:
    """Compared with the same weights on a graph that has the nodes of one task, and no others."""
    graph = node_graph()
    stream = stream_of({**nodes, "view": "task"}, examinations=3)
    learner = trained(stream)
    prefix = stream.lessons(order)
    queries = stream.queries(prefix)
    asked, found = nodes_of(graph, queries), learner.answer(queries)
    differing = 0
    for task in order:
        own = np.flatnonzero(np.isin(graph.labels, task))
        place = np.full(len(graph), -1)
        place[own] = np.arange(len(own))
        ends = place[graph.edges]
        alone = Surroundings(ends[:, (ends >= 0).all(axis=0)], graph.features[own].astype(np.float32), self_loops=True)
        here = np.isin(asked, own)
        ids = torch.from_numpy(place[asked[here]])
        expected = learner.answer(Queries(alone.whole, ids, torch.full_like(ids, -1)))
        torch.testing.assert_close(found[torch.from_numpy(here)], expected, rtol=1e-4, atol=1e-5)
        whole = Surroundings(graph.edges, graph.features.astype(np.float32), self_loops=True).whole
        ids = torch.from_numpy(asked[here])
        differing += not expected.allclose(learner.answer(Queries(whole, ids, torch.full_like(ids, -1))), atol=1e-3)
    assert differing == len(order)


def test_pieces_whose_queries_are_asked_in_other_tasks_have_other_names(nodes: dict[str, Any]) -> None:
    """The same samples, which are learned alike and asked about otherwise, are two records."""
    mixed = ((0, 1), (2, 4), (3, 5))
    for view, alike in (("whole", True), ("task", False)):
        stream = stream_of({**nodes, "view": view}, every=5)
        assert batches_of(stream, TASKS)[:10] == batches_of(stream, mixed)[:10]
        assert (tokens(stream, TASKS)[:2] == tokens(stream, mixed)[:2]) == alike
        # Not by the sequence of tasks: two orders of the same ones share what they begin with.
        assert tokens(stream, TASKS)[:2] == tokens(stream, (TASKS[0], TASKS[2], TASKS[1]))[:2]


def test_samples_are_learned_on_the_whole_graph_whatever_the_view_of_queries(nodes: dict[str, Any]) -> None:
    one, other = (stream_of({**nodes, "view": view}) for view in ("whole", "task"))
    pools = [stream.experience(prefixes(stream)[0]).training.pool for stream in (one, other)]
    assert pools[0].digest == pools[1].digest
    assert len(pools[0].whole()) == len(node_graph())


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_scores_are_the_recalls_of_all_classes_and_0_for_those_not_met(nodes: dict[str, Any], pieces: int) -> None:
    graph = node_graph()
    stream = stream_of(nodes, every=10)
    prefix = stream.lessons(TASKS)[:pieces]
    queries = stream.queries(prefix)
    labels = graph.labels[nodes_of(graph, queries)]
    answers = np.random.default_rng(0).normal(size=(len(labels), CLASSES))
    answers[np.arange(len(labels)), labels] += 1
    answered = answers[:, : 2 * pieces].argmax(axis=1)
    scores = stream.score(torch.from_numpy(answers), prefix)
    test = np.isin(nodes_of(graph, queries), _nodes_in(make_scenario(nodes, 0), graph, TEST))
    for part, here in (("test", test), ("validation", ~test)):
        measure = measure_of(scores, part, "accuracy")
        expected = recall_score(labels[here], answered[here], labels=range(CLASSES), average=None, zero_division=0)
        np.testing.assert_allclose(measure.values, expected)
        assert not measure.values[2 * pieces :].any()
        assert measure.asked.tolist() == np.bincount(labels[here], minlength=CLASSES).tolist()


def test_the_size_of_a_unit_is_its_share_of_the_training_samples(nodes: dict[str, Any]) -> None:
    stream = stream_of({**nodes, "classes": [0, 1, 2, 3]}, examinations=1)
    queries = stream.queries(stream.lessons(stream.default))
    scores = stream.score(torch.zeros(len(queries), CLASSES), stream.lessons(stream.default))
    size = measure_of(scores, "training", SIZE)
    np.testing.assert_allclose(size.values, [0.25] * 4 + [np.nan] * 2)
    assert size.asked.tolist() == [48] * 4 + [0] * 2


class Guessing(Method):
    """Has all classes in the head from the first step on, and always answers the last one."""

    def step_done(self, learner: Learner, batch: Batch) -> None:  # noqa: ARG002
        learner.head.meet(range(CLASSES))
        with torch.no_grad():
            learner.head.rows[learner.head.outputs.index(CLASSES - 1), -1] = 1e6


def test_an_answer_for_a_class_that_never_came_is_worth_nothing_whatever_is_written_into_the_head(
    nodes: dict[str, Any],
) -> None:
    stream = stream_of(nodes, every=10)
    learner = trained(stream, f"{__name__}:Guessing", pieces=1)
    (prefix, *_) = prefixes(stream)
    answers = learner.answer(stream.queries(prefix))
    assert answers.argmax(dim=1).unique().tolist() == [CLASSES - 1]
    values = measure_of(stream.score(answers, prefix), "test", "accuracy").values
    assert not values[2:].any()


WALKED: list[tuple[list[object], list[np.ndarray], list[int], Learner]] = []
"""What was within reach of `Walking`: not kept by it, or it would be within reach itself."""
_STEPS = (1, 4, 6)


class Walking(Method):
    """Looks, in some steps, at all that can be reached from what it is given."""

    def __init__(self) -> None:
        self.step = 0

    def step_samples(self, learner: Learner, samples: Samples) -> Samples:
        self._walk(learner, samples)
        return samples

    def loss(self, learner: Learner, batch: Batch) -> torch.Tensor:
        self._walk(learner, batch)
        return learner.task_loss(batch)

    def step_done(self, learner: Learner, batch: Batch) -> None:
        self._walk(learner, batch)
        self.step += 1

    def _walk(self, learner: Learner, given: object) -> None:
        if self.step in _STEPS:
            objects = list(objects_reached(learner, given))
            arrays = [array.copy() for array in reached(learner, given)]
            WALKED.append((objects, arrays, [self.step, learner.head.span], learner))


@pytest.mark.parametrize("kind", ["node", "skeleton"])
def test_a_learner_is_told_of_no_task_no_batch_before_its_turn_and_no_class_before_it_appears(
    nodes: dict[str, Any], small: Path, kind: str
) -> None:
    """Two classes a task, so that labels alone do not tell it."""
    of = {**(nodes if kind == "node" else {"data": str(small)}), "tasks": [[0, 3], [1, 4], [2, 5]]}
    stream = stream_of(of, transition={"name": "gaussian", "sigma": 4}, every=40)
    WALKED.clear()
    trained(stream, f"{__name__}:Walking")
    flat = np.array([sample for batch in batches_of(stream) for sample in batch])
    labels, task = stream._label.numpy(), stream._label.numpy() % 3
    assert [step for _, _, (step, _), _ in WALKED] == [1, 1, 1, 4, 4, 4, 6, 6, 6]
    for objects, arrays, (step, span), learner in WALKED:
        came, batch, to_come = np.split(flat, [10 * step, 10 * step + 10])
        assert learner.head.known is None
        assert span == 1 + labels[[*came, *batch]].max()
        assert not [found for found in objects if isinstance(found, Segment | TaskLesson | Unit) or _asks(found)]
        assert len(arrays) > 20
        everything = np.arange(len(labels))
        unseen = np.setdiff1d(np.flatnonzero(labels >= 0), [*came, *batch])
        for array in arrays:
            assert not tells(array, task, batch, batch), step
            assert not tells(array, task, everything, np.unique(flat)), step
            assert not tells(array, labels, everything, unseen), step
            assert not tells(array, labels, to_come, to_come), step
            assert not _has_in_a_row(array, to_come[:10]), step
        # What would tell is found.
        assert tells(task[batch], task, batch, batch)
        assert tells(labels, labels, everything, unseen)
        assert _has_in_a_row(flat, to_come[:10])


def _asks(found: object) -> bool:
    """Return whether an object is a scenario."""
    return not isinstance(found, type) and all(
        hasattr(type(found), name) for name in ("experience", "score", "queries")
    )


def _has_in_a_row(array: np.ndarray, wanted: np.ndarray) -> bool:
    if array.dtype.kind not in "iuf" or array.size < len(wanted):
        return False
    windows = np.lib.stride_tricks.sliding_window_view(array.ravel(), len(wanted))
    return bool((windows == wanted).all(axis=1).any())


def test_domains_are_streamed_with_all_their_classes(nodes: dict[str, Any]) -> None:
    graph = node_graph()
    of = {**nodes, "setting": "domain-il", "domains": "domain"}
    stream = stream_of(of, transition={"name": "gaussian", "sigma": 5}, examinations=4)
    assert (stream.unit_kind, stream.default) == ("domain", ((0,), (1,), (2,)))
    assert len(batches_of(stream)) == 3 * 10
    first = stream.experience(prefixes(stream)[0]).training
    assert set(graph.groups["domain"].numbers[nodes_of(graph, first)]) == {0, 1}
    assert len(first.labels.unique()) == CLASSES
    learner = trained(stream)
    prefix = prefixes(stream)[-1]
    queries = stream.queries(prefix)
    asked, answers = nodes_of(graph, queries), learner.answer(queries)
    scores = stream.score(answers, prefix)
    test = np.isin(asked, _nodes_in(make_scenario(of, 0), graph, TEST))
    right = answers.argmax(dim=1).numpy() == graph.labels[asked]
    for domain in range(DOMAINS):
        own = test & (graph.groups["domain"].numbers[asked] == domain)
        expected = np.mean([right[own & (graph.labels[asked] == label)].mean() for label in range(CLASSES)])
        assert measure_of(scores, "test", "accuracy").values[domain] == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["link", "graph"])
@pytest.mark.parametrize("transition", ["hard", GAUSSIAN], ids=str)
def test_links_and_whole_graphs_are_streamed(tmp_path: Path, kind: str, transition: Any) -> None:
    write_archive(link_set() if kind == "link" else graph_set(), tmp_path / "small.h5")
    of = {"kind": kind, "data": str(tmp_path / "small.h5")}
    stream, inner = stream_of(of, transition=transition, examinations=3), make_scenario(of, 0)
    flat = [sample for batch in batches_of(stream) for sample in batch]
    training = inner.experience((TaskLesson(tuple(range(CLASSES))),)).training
    assert set(flat) <= set(training.ids.tolist())
    assert transition != "hard" or sorted(flat) == sorted(training.ids.tolist())
    learner = trained(stream)
    prefix = prefixes(stream)[-1]
    queries = stream.queries(prefix)
    assert queries.ids.equal(inner.queries(inner.lessons(inner.default)).ids)
    scores = stream.score(learner.answer(queries), prefix)
    expected = inner.score(learner.answer(queries), inner.lessons(inner.default))
    for ours, theirs in zip(scores, expected, strict=False):
        np.testing.assert_array_equal(ours.values, theirs.values)


def test_units_that_are_in_no_task_are_in_no_stream(nodes: dict[str, Any]) -> None:
    stream = stream_of({**nodes, "classes": [0, 1, 2, 3]})
    with pytest.raises(InputError, match=r"task \(4, 5\): there is no class 4 in the stream"):
        stream.lessons(TASKS)
    with pytest.raises(InputError, match="lesson 0,1: expected a piece of a stream"):
        stream.queries((TaskLesson((0, 1)),))


def test_the_note_on_a_stream_tells_its_overlap(nodes: dict[str, Any]) -> None:
    for transition, index in (("hard", "0.000"), ({"name": "gaussian", "sigma": 1000}, "1.000")):
        *_, note = stream_of(nodes, transition=transition).notes
        assert note.startswith("stream of 30 batches of 10, ")
        assert f"overlap index O(0.9) = {index} in the default order" in note
