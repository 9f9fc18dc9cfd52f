"""The benchmark of streams times every method that runs on them, beside plain loops that learn the same batches."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import dgl
import pytest
import torch

from skeleton_cgl.registry import METHODS

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
TINY = (120, 200, 30, 4, 4)
"""Nodes, links, features, words of a node, classes."""
STEPWISE = {"a-gem", "bare", "der", "der-pp", "er", "gss"}

MakeModule = Callable[[str], ModuleType]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> MakeModule:
    """Return the modules of experiments/ by name, found as their scripts find one another."""
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module


def test_nodes_are_timed_on_both_views_beside_a_plain_loop_and_examined_in_one_pass(script: MakeModule) -> None:
    streams, graph = script("benchmark_streams"), script("made_graphs").citation_graph(TINY, None, "")
    found = streams.measure_nodes(graph, rounds=1, steps=2, width=8)
    for view in ("full", "sampled"):
        for method in ("bare", "er"):
            case = f"nodes_{view}_{method}"
            assert {name for name in found if name.startswith(case)} == {
                *(f"{case}_{variant}_steps_per_s" for variant in ("ours", "plain", "products")),
                *(f"{case}_{ratio}" for ratio in ("plain_over_ours", "ours_over_products")),
            }
        assert found[f"nodes_{view}_examination_passes"] == 1
    assert all(value > 0 for value in found.values())


def test_clips_are_timed_beside_plain_loops_and_examined_in_one_pass(script: MakeModule) -> None:
    found = script("benchmark_streams").measure_clips(rounds=1, clips=80, steps=2)
    assert all(found[f"clips_{method}_{loop}_over_ours"] > 0 for method in ("bare", "er") for loop in ("plain", "dgl"))
    assert found["clips_examination_passes"] == 1


def test_the_plain_model_of_joint_graphs_is_the_backbone(script: MakeModule) -> None:
    """With the same weights, clips as graphs of DGL's, one each, have the outputs that the learner gives them."""
    streams = script("benchmark_streams")
    bench = streams.clip_bench(80, 4, steps=2)
    learner, samples = bench.learner("bare"), bench.piece.training
    backbone, rows = learner.backbone, learner.head.rows
    clips = samples.pool.whole().content[samples.ids]
    model = streams.PlainJoints(clips.shape[1] * clips.shape[2], 64, learner.head.width, len(rows)).eval()
    for place, layer in enumerate(backbone.layers):
        weights = layer.neighbours.state_dict()
        model.neighbours[place].load_state_dict({"weight": weights["weight"].T, "bias": weights["bias"]})
        model.own[place].load_state_dict(layer.own.state_dict())
        model.norms[place].load_state_dict(layer.norm.state_dict())
    model.gate.load_state_dict(backbone.gate.state_dict())
    model.predictor.load_state_dict(backbone.predictor.state_dict())
    model.head.load_state_dict({"weight": rows[:, :-1], "bias": rows[:, -1]})
    with learner.answering(), torch.no_grad():
        expected = learner.outputs(learner.inputs(samples))
        torch.testing.assert_close(model(dgl.batch(streams.joint_graphs(clips))), expected)


def test_all_methods_without_borders_are_timed_beside_bare(script: MakeModule) -> None:
    streams, graph = script("benchmark_streams"), script("made_graphs").citation_graph(TINY, None, "")
    for bench in (streams.node_bench(graph, steps=2, width=8), streams.clip_bench(80, 4, steps=2)):
        names = streams.methods_on(bench)
        assert names[0] == "bare"
        assert set(METHODS.names()) > set(names) >= STEPWISE
    assert streams.methods_on(bench, only=["gss", "ncm"]) == ["bare", "gss"]
    figures = streams.measure_methods("clips", bench, rounds=1, only=["a-gem", "gss"])
    assert set(figures) == {
        *(f"clips_method_{name}_steps_per_s" for name in ("bare", "a-gem", "gss")),
        *(f"clips_method_{name}_over_bare" for name in ("a-gem", "gss")),
    }


def test_a_plain_loop_learns_the_batches_that_the_learner_does(script: MakeModule) -> None:
    """What enters the model in every step is the batch, and beside it as much from the memory."""
    streams = script("benchmark_streams")
    bench = streams.clip_bench(80, 4, steps=3)
    batches = streams.batches_of(bench.piece)
    assert [len(rows) for rows in batches] == [10] * bench.steps == [10] * 3
    for method, size in (("bare", 10), ("er", 20)):
        entered = streams.inputs_of_steps(bench.learner(method), bench)
        assert [len(inputs) for inputs in entered] == [size] * 3
