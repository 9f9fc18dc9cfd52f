"""SSM and SEM on streams: what is kept of nodes that pass, that it stays as it was, and how a step learns from it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.engine.study import Component
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.ssm_stream import SSMStream
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.made_up import made_up_clips
from skeleton_cgl.scenarios.scenario import Experience, GivenBatches, Samples
from tests.learning.learners import small_learner, weights_of
from tests.methods.on_nodes import learner_of, lessons_of, nodes
from tests.scenarios.graphs import label_scenario, node_graph

NAMES = ("ssm-stream", "sem-stream")


class Watched(SSMStream):
    """Notes what every step replayed, and the loss beside that of an independent pass of both parts."""

    def __init__(self, count: int = 40, fan_outs: tuple[int, ...] = (3, 2)) -> None:
        super().__init__(count, fan_outs)
        self.seen: list[tuple[Samples, Batch | None, list[int]]] = []
        self.losses: list[tuple[float, float]] = []

    def step_samples(self, learner: Learner, samples: Samples) -> Samples:
        before = self.memory["number"].tolist() if len(self.memory) else []
        chosen = super().step_samples(learner, samples)
        self.seen.append((samples, self._replayed, before))
        return chosen

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        again = self._replayed
        with learner.statistics_kept(), torch.no_grad():
            expected = cross_entropy(learner.outputs(batch.inputs), batch.targets)
            if again is not None:
                with learner.answering() if len(again) == 1 else learner.statistics_kept():
                    expected += cross_entropy(learner.outputs(again.inputs), again.targets)
        loss = super().loss(learner, batch)
        self.losses.append((loss.item(), expected))
        return loss


WATCHED = f"{__name__}:Watched"


def cross_entropy(outputs: Tensor, targets: Tensor) -> float:
    """Return the mean over classes of the mean loss of each, all outputs allowed."""
    losses = functional.cross_entropy(outputs.double(), targets, reduction="none")
    return float(torch.stack([losses[targets == target].mean() for target in targets.unique()]).mean())


def stream_of(samples: Samples, batch: int = 8, name: str = "a piece") -> Experience:
    """Return samples as a piece of a stream, in batches."""
    hidden = replace(samples, step=torch.full_like(samples.ids, -1))
    rows = torch.arange(len(samples)).split(batch)
    none = hidden.select(torch.arange(0))
    return Experience((), (name,), (), hidden, none, GivenBatches(rows))  # type: ignore[arg-type]


def subgraphs(learner: Learner, graph: Graph) -> list[tuple[list[int], set[tuple[int, int]], int]]:
    """Return, for every centre, the nodes kept, centre first, the edges between them, and the centre's label."""
    state = learner.state()["method"]
    kept, labels = state["subgraphs"], state["columns"]["labels"].tolist()
    number = {row.tobytes(): node for node, row in enumerate(np.asarray(graph.features, dtype=np.float32))}
    all_nodes = np.array([number[row.tobytes()] for row in kept["features"].numpy()])
    ends, found = kept["edges"].numpy(), []
    for row, label in enumerate(labels):
        start = int(kept["at"][row, 0])
        inside = (kept["components"] == kept["components"][start]).numpy()
        assert inside.nonzero()[0][0] == start
        of_centre = inside[ends]
        assert (of_centre[0] == of_centre[1]).all(), "an edge leads from one centre's subgraph to another's"
        found.append((all_nodes[inside].tolist(), set(map(tuple, all_nodes[ends[:, of_centre[0]]].T.tolist())), label))
    return found


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("fan_outs", [(5, 5), (1,), (2, 3, 1), (200, 200)])
def test_a_centre_has_so_many_neighbours_of_every_hop_and_the_edges_there_are(method: str, fan_outs: tuple) -> None:
    graph = node_graph()
    near = [set(graph.edges[0, graph.edges[1] == node].tolist()) - {node} for node in range(len(graph))]
    edges = {(source, target) for source, target in graph.edges.T.tolist() if source != target}
    scenario = nodes(graph=graph)
    count = 7 * sum(fan_outs) + sum(fan_outs) - 1
    learner = learner_of(scenario, method, {"count": count, "fan_outs": fan_outs})
    passed = torch.cat([lesson.training.ids for lesson in lessons_of(scenario)]).tolist()
    for step, lesson in enumerate(lessons_of(scenario)):
        learner.learn(stream_of(lesson.training), step)
        found = subgraphs(learner, graph)
        assert len(found) == learner.method.samples_kept() == 7
        assert sum(len(kept) - 1 for kept, _, _ in found) <= count
    assert {label for _, _, label in found} - {0, 1}, "nothing entered after the first lesson"
    for kept, between, label in found:
        assert kept[0] in passed
        assert graph.labels[kept[0]] == label
        met, rest, latest = {kept[0]}, kept[1:], {kept[0]}
        for fan_out in fan_outs:
            candidates = set().union(*(near[node] for node in latest)) - met
            size = min(fan_out, len(candidates))
            latest, rest = set(rest[:size]), rest[size:]
            assert len(latest) == size
            assert latest <= candidates
            met |= latest
        assert not rest
        proper = {pair for pair in between if pair[0] != pair[1]}
        assert proper == {pair for pair in edges if set(pair) <= met}


@pytest.mark.parametrize("method", NAMES)
def test_no_label_of_a_neighbour_is_kept_or_read(method: str) -> None:
    """Other labels of all nodes that are not learned from, by hundreds neighbours of those that are: no bit changes."""
    graph = node_graph()
    split = np.random.default_rng(1).integers(0, 3, len(graph))
    poisoned = graph.labels.copy()
    poisoned[split > 0] = np.random.default_rng(2).permutation(poisoned[split > 0])
    states, parameters = [], {"count": 40, "fan_outs": (4, 4)}
    for labels in (graph.labels, poisoned):
        made = make_graph("small", graph.edges, graph.features, labels, split=split)
        scenario = nodes(graph=made)
        learner = learner_of(scenario, method, parameters)
        for step, lesson in enumerate(lessons_of(scenario)):
            learner.learn(stream_of(lesson.training), step)
        states.append(learner.state())
        assert sum(split[node] > 0 for kept, _, _ in subgraphs(learner, made) for node in kept) > 10
    assert (graph.labels != poisoned).sum() > 100
    assert to_bytes(states[0]) == to_bytes(states[1])
    kept = states[0]["method"]
    assert len(kept["columns"]["labels"]) == 5 < len(kept["subgraphs"]["features"])
    assert kept["subgraphs"].keys() == {"features", "sparse", "edges", "at", "components"}


def test_every_node_that_passed_is_a_centre_with_probability_m_over_all() -> None:
    scenario = nodes()
    samples = lessons_of(scenario)[0].training.select(torch.arange(20))
    learner, trials = learner_of(scenario, "ssm-stream", {"count": 4, "fan_outs": (1,)}), 1500
    counts = torch.zeros(len(node_graph()))
    for trial in range(trials):
        learner._seed, learner.method = trial, make_method("ssm-stream", {"count": 4, "fan_outs": (1,)})
        for rows in torch.arange(20).split(7):
            learner.method.memory.offer(learner, samples.select(rows))
        counts[learner.method.memory["ids"]] += 1
    assert counts.sum() == 4 * trials
    # The standard deviation is √(1500 · 1/5 · 4/5) = 15.5.
    assert (counts[samples.ids] - trials / 5).abs().max() < 4 * 15.5


def test_a_centre_has_the_subgraph_of_its_own_number_whoever_passes_with_it() -> None:
    """Offered one by one or at once, with room for all: what is drawn of a centre's neighbours is the same."""
    scenario = nodes()
    samples = lessons_of(scenario)[0].training.select(torch.arange(6))
    states = []
    for size in (1, 4, 6):
        learner = learner_of(scenario, "ssm-stream", {"count": 24, "fan_outs": (2, 2)})
        for rows in torch.arange(6).split(size):
            learner.method.memory.offer(learner, samples.select(rows))
        states.append(to_bytes(learner.method.state()))
    assert states[0] == states[1] == states[2]


@pytest.mark.parametrize("batch", [8, 3, 1])
def test_as_many_centres_as_came_are_replayed_of_those_kept_before(batch: int) -> None:
    scenario = nodes()
    learner = learner_of(scenario, WATCHED, {"count": 25})
    learner.learn(stream_of(lessons_of(scenario)[0].training.select(torch.arange(48)), batch), 0)
    drawn = set()
    for samples, again, before in learner.method.seen:
        assert (0 if again is None else len(again)) == min(len(samples), len(before))
        if again is not None:
            drawn.add(tuple(again.inputs.dense_features[again.inputs.at[:, 0]].sum(dim=1).tolist()))
    assert learner.method.seen[0][1] is None
    assert len(drawn) > 3


@pytest.mark.parametrize("batch_norm", [True, False])
def test_a_step_minimises_the_loss_of_the_batch_and_that_of_the_centres(batch_norm: bool) -> None:
    scenario = nodes()
    learner = small_learner(scenario, WATCHED, backbone="gcn")
    if not batch_norm:
        learner.backbone.norms = None
    for step, lesson in enumerate(lessons_of(scenario)[:2]):
        learner.learn(stream_of(lesson.training), step)
    assert sum(again is not None for _, again, _ in learner.method.seen) == len(learner.method.seen) - 1
    for found, expected in learner.method.losses:
        assert found == pytest.approx(expected, rel=1e-4)


def test_what_is_replayed_leaves_no_trace_in_running_statistics() -> None:
    scenario = nodes()
    learner = learner_of(scenario, WATCHED, {})
    learner.learn(stream_of(lessons_of(scenario)[0].training), 0)
    assert int(learner.backbone.norms[0].num_batches_tracked) == len(learner.method.seen)


@pytest.mark.parametrize("method", NAMES)
def test_before_anything_is_replayed_it_is_bare_to_the_bit(method: str) -> None:
    scenario = nodes()
    samples = lessons_of(scenario)[0].training
    found = []
    for steps in (1, 2):
        piece = stream_of(samples.select(torch.arange(8 * steps)))
        pair = [learner_of(scenario, name, {}) for name in (method, "bare")]
        for learner in pair:
            learner.learn(piece, 0)
        found.append(torch.equal(*map(weights_of, pair)))
    assert found == [True, False]


@pytest.mark.parametrize("method", NAMES)
def test_what_is_replayed_stays_the_same_when_the_graph_in_view_changes(method: str) -> None:
    """Lesson by lesson another graph is in view; a centre of the first that is still there has all it had."""
    scenario = nodes(view="task")
    learner = learner_of(scenario, method, {"count": 40, "fan_outs": (3, 2)})
    first, second = (lesson.training for lesson in lessons_of(scenario)[:2])
    assert first.pool.digest != second.pool.digest
    weights, found = dict[str, Tensor](), []
    for step, samples in enumerate((first.select(torch.arange(40)), second.select(torch.arange(8)))):
        learner.learn(stream_of(samples), step)
        weights = weights or {name: value.clone() for name, value in learner.model.state_dict().items()}
        memory = learner.method.memory
        batch = memory.batch(learner, 100)
        with learner.answering(), torch.no_grad():
            outputs = learner.outputs(batch.inputs, weights)
        found.append(dict(zip(memory["number"].tolist(), outputs, strict=True)))
    stayed = found[0].keys() & found[1].keys()
    assert stayed < found[1].keys(), "nothing entered from the second graph"
    assert stayed
    for number in stayed:
        torch.testing.assert_close(found[0][number], found[1][number])


def test_a_graph_is_copied_once_and_only_who_enters_is_cut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = nodes()
    training = lessons_of(scenario)[0].training
    copies, cut = [], []
    whole, around = type(training.pool).whole, SSMStream.choice

    def counted(pool: Any) -> Any:
        copies.append(pool.digest)
        return whole(pool)

    def choice(self: SSMStream, links: Any) -> Any:
        made = around(self, links)
        return lambda random: cut.append(1) or made(random)

    learner = learner_of(scenario, "bare", {})
    learner.learn(stream_of(training), 0)
    monkeypatch.setattr(type(training.pool), "whole", counted)
    monkeypatch.setattr(SSMStream, "choice", choice)
    learner = learner_of(scenario, "ssm-stream", {"count": 10, "fan_outs": (2,)})
    copies.clear()
    learner.learn(stream_of(training), 0)
    # One for the method, and one where the backbone's arrangement is made.
    assert len(copies) <= 2
    assert 5 <= len(cut) < len(training) / 2


def test_who_is_restored_replays_what_the_state_has_and_not_what_it_had_before() -> None:
    """Both were taught the same classes by as many nodes, so that nothing but the nodes themselves tells them apart."""
    scenario = nodes()
    parameters = {"count": 40, "fan_outs": (3, 2)}
    first, other = (lessons_of(scenario)[0].training.select(rows) for rows in torch.arange(16).split(8))
    assert first.labels.unique().tolist() == other.labels.unique().tolist()
    learners = [learner_of(scenario, "ssm-stream", parameters) for _ in range(2)]
    for learner, samples in zip(learners, (first, other), strict=True):
        learner.learn(stream_of(samples), 0)
        assert learner.method.memory.batch(learner, 100) is learner.method.memory.batch(learner, 100)
    learners[1].restore(from_bytes(to_bytes(learners[0].state())))
    batches = [learner.method.memory.batch(learner, 100) for learner in learners]
    assert torch.equal(*(batch.inputs.dense_features for batch in batches))


@pytest.mark.parametrize("method", NAMES)
def test_epochs_do_not_count_a_node_twice(method: str) -> None:
    scenario = nodes()
    learner = learner_of(scenario, method, {"count": 2000, "fan_outs": (1,)}, batch_size=16)
    training = lessons_of(scenario)[0].training
    learner.learn(lessons_of(scenario)[0], 0)
    assert learner.method.memory["ids"].sort().values.tolist() == training.ids.sort().values.tolist()
    assert learner.method.memory.seen == len(training)


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"count": 9}, "count 9 is not a whole number of at least 10"),
        ({"count": 5, "fan_outs": [2, 4]}, "count 5 is not a whole number of at least 6"),
        ({"count": 20.5}, "count 20.5 is not a whole number"),
        ({"count": True}, "count True is not a whole number"),
        ({"fan_outs": [5, 0]}, r"fan_outs must be a list of whole numbers, at least 1, found \[5, 0\]"),
        ({"fan_outs": []}, "fan_outs must be a list"),
        ({"fan_outs": 5}, "fan_outs must be a list"),
        ({"per_class": 5}, "unknown parameter 'per_class'"),
    ],
)
def test_wrong_parameters_are_refused(method: str, parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=f"method '{method}': {message}"):
        make_method(method, parameters)


def test_a_way_to_draw_neighbours_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="sampling must be random or degree, found 'curvature'"):
        make_method("ssm-stream", {"sampling": "curvature"})


@pytest.mark.parametrize("method", [*NAMES, "dmsg-stream"])
def test_other_samples_than_nodes_of_one_class_are_refused(method: str) -> None:
    with pytest.raises(InputError, match="needs samples that are nodes of one graph"):
        small_learner(made_up_clips("class-il"), method)
    with pytest.raises(InputError, match="needs samples of one class each"):
        small_learner(label_scenario(), method)


def test_one_meaning_has_one_key() -> None:
    same: list[dict[str, Any]] = [{}, {"count": 100}, {"fan_outs": [5, 5]}, {"sampling": "random"}]
    keys = {Component(name="ssm-stream", parameters=each).row(METHODS).digest for each in same}
    assert len(keys) == 1
    assert Component(name="ssm-stream", parameters={"fan_outs": [5]}).row(METHODS).digest not in keys
