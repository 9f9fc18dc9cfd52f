"""SEM on streams: of the graph in view the neighbours of highest curvature are kept, whichever curvature is asked for.

What it shares with SSM on streams is in test_ssm_stream.py.
"""

import numpy as np
import pytest
import torch

from skeleton_cgl.engine.study import Component
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph, make_graph
from skeleton_cgl.learning.method import make_method
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.methods.curvature import Ollivier, Surrogate
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.node import NodeScenario
from tests.methods.on_nodes import learner_of, lessons_of, nodes
from tests.methods.test_sem import TRIANGLE_AND_BRIDGE, links_of
from tests.methods.test_ssm_stream import stream_of, subgraphs
from tests.scenarios.graphs import node_graph

CURVATURES = ("surrogate", "ollivier")


def triangles(many: int) -> NodeScenario:
    """Return a scenario of so many pairs of triangles, a bridge within each pair, side by side."""
    one = np.array(TRIANGLE_AND_BRIDGE.edges).T
    ends = np.concatenate([one + 6 * number for number in range(many)], axis=1)
    random = np.random.default_rng(0)
    features, labels = random.normal(size=(6 * many, 4)).astype(np.float32), np.arange(6 * many) // 2 % 6
    return nodes(graph=make_graph("triangles", np.concatenate([ends, ends[::-1]], axis=1), features, labels))


@pytest.mark.parametrize("curvature", CURVATURES)
def test_neighbours_in_a_triangle_are_kept_before_one_across_a_bridge(curvature: str) -> None:
    scenario = triangles(60)
    parameters = {"count": 200, "fan_outs": (2,), "curvature": curvature}
    learner = learner_of(scenario, "sem-stream", parameters)
    for step, lesson in enumerate(lessons_of(scenario)):
        learner.learn(stream_of(lesson.training), step)
    kept = [nodes_of for nodes_of, _, _ in subgraphs(learner, scenario_graph(60))]
    bridged = [each for each in kept if each[0] % 6 in (0, 3)]
    assert len(bridged) > 10
    assert all({node // 3 for node in each} == {each[0] // 3} for each in kept)


def scenario_graph(many: int) -> Graph:
    features = np.random.default_rng(0).normal(size=(6 * many, 4)).astype(np.float32)
    return make_graph("triangles", np.zeros((2, 0), dtype=np.int64), features, np.arange(6 * many) // 2 % 6)


def test_an_edge_of_a_triangle_has_more_curvature_than_a_bridge() -> None:
    links = links_of(TRIANGLE_AND_BRIDGE)
    for found in (Surrogate(links), Ollivier(links, 20, np.random.default_rng(0))):
        assert min(found.of(1, 0), found.of(2, 0), found.of(4, 3)) > found.of(0, 3)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_the_first_hop_has_the_neighbours_of_highest_curvature(curvature: str) -> None:
    graph = node_graph()
    scenario = nodes(graph=graph)
    learner = learner_of(scenario, "sem-stream", {"count": 60, "fan_outs": (3,), "curvature": curvature, "largest": 99})
    learner.learn(stream_of(lessons_of(scenario)[0].training), 0)
    links = lessons_of(scenario)[0].training.pool.whole().links
    found = Surrogate(links) if curvature == "surrogate" else Ollivier(links, 99, np.random.default_rng(0))
    for kept, _, _ in subgraphs(learner, graph):
        centre, *rest = kept
        near = set(graph.edges[0, graph.edges[1] == centre].tolist()) - {centre}
        worth = sorted((found.of(node, centre) for node in near), reverse=True)[: len(rest)]
        assert [found.of(node, centre) for node in rest] == pytest.approx(worth)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_what_was_measured_of_a_graph_before_changes_nothing(curvature: str) -> None:
    """Large neighbourhoods stand in random parts of them: drawn for every centre, whoever else was looked at before."""
    scenario = nodes()
    parameters = {"count": 30, "fan_outs": (2, 1), "curvature": curvature, "largest": 2}
    training = lessons_of(scenario)[0].training
    going_on = learner_of(scenario, "sem-stream", parameters)
    for step, rows in enumerate(torch.arange(40).split(16)):
        restored = learner_of(scenario, "sem-stream", parameters)
        restored.restore(from_bytes(to_bytes(going_on.state())))
        for learner in (going_on, restored):
            learner.learn(stream_of(training.select(rows)), step)
        assert to_bytes(restored.state()) == to_bytes(going_on.state())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"curvature": "ricci"}, "curvature must be ollivier or surrogate, found 'ricci'"),
        ({"largest": 1}, "largest 1 is not a whole number of at least 2"),
        ({"sampling": "degree"}, "unknown parameter 'sampling'"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=f"method 'sem-stream': {message}"):
        make_method("sem-stream", parameters)


def test_what_the_surrogate_does_not_know_is_not_in_its_key() -> None:
    def key(**parameters: object) -> str:
        return Component(name="sem-stream", parameters=parameters).row(METHODS).digest

    assert key() == key(curvature="surrogate", largest=7)
    assert len({key(), key(curvature="ollivier"), key(curvature="ollivier", largest=7)}) == 3
