"""GCN, GAT, GIN and SGC for nodes: what DGL's layers compute with the same weights, sparse or dense, all or a few."""

import os
import re
import textwrap
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.backbone import Backbone, make_backbone
from skeleton_cgl.backbones.graphs.gat import GAT
from skeleton_cgl.backbones.graphs.gcn import GCN
from skeleton_cgl.backbones.graphs.gin import GIN
from skeleton_cgl.backbones.graphs.sgc import SGC
from skeleton_cgl.engine.checking import check_subject
from skeleton_cgl.engine.checking.of_backbones import answers_each_by_itself, arranges, gives_embeddings
from skeleton_cgl.engine.checking.promise import Verdict
from skeleton_cgl.engine.checking.subject import find_subject
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.study import Component
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.learning.training import Training
from skeleton_cgl.registry import GRAPH_BACKBONES
from skeleton_cgl.scenarios.made_up import made_up_graph
from skeleton_cgl.scenarios.scenario import Facts

os.environ.setdefault("DGLBACKEND", "pytorch")

MODELS = Path(__file__).parents[2] / "models"
NODES, FEATURES, WIDTH = 24, 6, 8
_RANDOM = np.random.default_rng(0)
EDGES = np.unique(_RANDOM.integers(0, NODES, (2, 40)), axis=1)
TABLE = (_RANDOM.normal(size=(NODES, FEATURES)) * (_RANDOM.random((NODES, FEATURES)) < 0.5)).astype(np.float32)
FEW = np.array([[3, 17], [5, 5]])
EVERY = np.arange(NODES)[:, None]

MADE: dict[str, Callable[[], Backbone]] = {
    "gcn": lambda: GCN(FEATURES, width=WIDTH, depth=3),
    "gcn begin": lambda: GCN(FEATURES, "begin", width=WIDTH),
    "gcn cglb": lambda: GCN(FEATURES, "cglb", width=WIDTH),
    "gcn agale": lambda: GCN(FEATURES, "agale", width=WIDTH),
    "gcn mean, narrow": lambda: GCN(FEATURES, width=4, normalisation="mean", batch_norm=False, bias=True),
    "gat": lambda: GAT(FEATURES, width=WIDTH, heads=2),
    "gat without BatchNorm": lambda: GAT(FEATURES, width=WIDTH, heads=4, depth=1, batch_norm=False),
    "gin": lambda: GIN(FEATURES, width=WIDTH),
    "gin without BatchNorm, narrow": lambda: GIN(FEATURES, width=4, depth=3, batch_norm=False),
    "sgc": lambda: SGC(FEATURES, width=WIDTH),
    "sgc of three layers": lambda: SGC(FEATURES, hops=3, width=WIDTH, depth=3),
}


def make(name: str, training: bool) -> Any:
    """Return a backbone in float64 whose BatchNorms are no identity and whose zeros are none."""
    torch.manual_seed(0)
    backbone = MADE[name]().double().train(training)
    for parameter in backbone.parameters():
        if not parameter.any():
            nn.init.normal_(parameter)
    for module in backbone.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.normal_(module.weight, 1, 0.3)
            nn.init.normal_(module.bias, 0, 0.3)
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
        # Where dropout is tried, it is tried by itself.
        if hasattr(module, "dropout"):
            module.dropout = 0.0
    return backbone


def places(at: np.ndarray = EVERY, sparse: bool = False, both_ways: bool = False) -> Places:
    edges = np.unique(np.concatenate([EDGES, EDGES[::-1]], axis=1), axis=1) if both_ways else EDGES
    found = Places.of(edges, csr_array(TABLE) if sparse else TABLE, at, self_loops=True)
    return replace(found, features=found.features.double())


def by_dgl(backbone: Any, inputs: Places) -> Tensor:
    """Return the embeddings as DGL's layers compute them on dense features, all nodes in every layer."""
    embed = {GCN: _gcn_by_dgl, GAT: _gat_by_dgl, GIN: _gin_by_dgl, SGC: _sgc_by_dgl}[type(backbone)]
    found: Tensor = embed(backbone, inputs.graph, inputs.dense_features)
    return found[inputs.at.flatten()]


def _graph_conv(weighting: str, weight: Tensor | None, bias: Tensor | None = None) -> Any:
    from dgl.nn.pytorch import GraphConv

    norm = {"plain": "none", "mean": "right", "symmetric": "both"}[weighting]
    convolution = GraphConv(1, 1, norm=norm, weight=False, bias=False)
    # Not as its own parameters: gradients are to reach those of the backbone.
    return lambda graph, hidden: (
        convolution(graph, hidden if weight is None else hidden @ weight) + (0 if bias is None else bias)
    )


def _gcn_by_dgl(backbone: GCN, graph: Any, hidden: Tensor) -> Tensor:
    for number, layer in enumerate(backbone.layers):
        hidden = _graph_conv(backbone.weighting, layer.weight, layer.bias)(graph, hidden)
        hidden = (hidden if backbone.norms is None else backbone.norms[number](hidden)).relu()
    return _graph_conv(backbone.weighting, None)(graph, hidden) if backbone.sums_last else hidden


def _gat_by_dgl(backbone: GAT, graph: Any, hidden: Tensor) -> Tensor:
    from dgl.nn.pytorch import GATConv

    for number, layer in enumerate(backbone.layers):
        heads, width = layer.of_source.shape
        convolution = GATConv(len(layer.weight), width, heads, negative_slope=layer.slope).double()
        values = {
            "attn_l": layer.of_source[None],
            "attn_r": layer.of_target[None],
            "bias": layer.bias,
            "fc.weight": layer.weight.T,
        }
        hidden = torch.func.functional_call(convolution, values, (graph, hidden)).flatten(1)
        hidden = functional.elu(hidden if backbone.norms is None else backbone.norms[number](hidden))
    return hidden


def _gin_by_dgl(backbone: GIN, graph: Any, hidden: Tensor) -> Tensor:
    from dgl.nn.pytorch import GINConv

    for number, layer in enumerate(backbone.layers):

        def twice(total: Tensor, layer: Any = layer) -> Tensor:
            first = total @ layer.first + layer.shift
            return layer.second((first if layer.norm is None else layer.norm(first)).relu())

        convolution = GINConv(None, "sum", learn_eps=True).double()
        hidden = torch.func.functional_call(convolution, {"eps": layer.epsilon[None]}, (graph, hidden))
        hidden = twice(hidden)
        hidden = (hidden if backbone.norms is None else backbone.norms[number](hidden)).relu()
    return hidden


def _sgc_by_dgl(backbone: SGC, graph: Any, hidden: Tensor) -> Tensor:
    from dgl.nn.pytorch import SGConv

    first, *others = backbone.layers
    convolution = SGConv(FEATURES, len(first.bias), k=backbone.hops).double()
    values = {"fc.weight": first.weight, "fc.bias": first.bias}
    hidden = torch.func.functional_call(convolution, values, (graph, hidden))
    for layer in others:
        hidden = layer(hidden.relu())
    return hidden


def gradients(backbone: Backbone, embeddings: Tensor) -> list[Tensor]:
    direction = torch.arange(1, 1 + embeddings.numel(), dtype=torch.float64).sin().view_as(embeddings)
    return list(torch.autograd.grad((embeddings * direction).sum(), list(backbone.parameters())))


@pytest.mark.parametrize("training", [True, False], ids=["training", "answering"])
@pytest.mark.parametrize("name", MADE)
def test_embeddings_and_gradients_are_those_of_dgl(name: str, training: bool) -> None:
    """Features sparse and dense, arranged and not, for a few places and for all."""
    # DGL's SGConv takes in-degrees for both ends, which is the same where every link goes both ways.
    both_ways = name.startswith("sgc")
    for at in (FEW, EVERY):
        expected = make(name, training)
        wanted = by_dgl(expected, places(at, both_ways=both_ways))
        slopes = gradients(expected, wanted)
        for sparse in (True, False):
            for arranged in (True, False):
                backbone, inputs = make(name, training), places(at, sparse, both_ways)
                found = backbone(backbone.arrange(inputs) if arranged else inputs)
                torch.testing.assert_close(found, wanted)
                torch.testing.assert_close(gradients(backbone, found), slopes)
                torch.testing.assert_close(backbone.state_dict(), expected.state_dict())


@pytest.mark.parametrize("name", MADE)
def test_single_precision_comes_to_nearly_the_same(name: str) -> None:
    backbone = make(name, training=False)
    inputs = Places.of(EDGES, csr_array(TABLE), EVERY, self_loops=True)
    torch.testing.assert_close(backbone.float()(inputs).double(), make(name, False)(places()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MADE)
def test_nodes_may_be_numbered_in_any_way(name: str) -> None:
    order = np.random.default_rng(1).permutation(NODES)
    place = np.argsort(order)
    other = Places.of(place[EDGES], TABLE[order], place[EVERY], self_loops=True)
    other = replace(other, features=other.features.double())
    torch.testing.assert_close(make(name, True)(other), make(name, True)(places()))


@pytest.mark.parametrize("name", MADE)
def test_the_norm_of_the_gradient_can_be_differentiated_again(name: str) -> None:
    backbone, inputs = make(name, training=True), places(sparse=True)
    parameters = list(backbone.parameters())

    def gradient_norm(embed: Callable[[Any, Places], Tensor]) -> Tensor:
        loss = embed(backbone, inputs).sin().mean()
        return sum(part.square().sum() for part in torch.autograd.grad(loss, parameters, create_graph=True))

    directions = [torch.randn_like(parameter) for parameter in parameters]
    slopes = torch.autograd.grad(gradient_norm(lambda own, given: own(given)), parameters, allow_unused=True)
    along = sum((s * d).sum() for s, d in zip(slopes, directions, strict=True) if s is not None)
    step, ends = 1e-6, []
    for sign in (-1, 2):
        with torch.no_grad():
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter += sign * step * direction
        ends.append(gradient_norm(lambda own, given: own(given)))
    torch.testing.assert_close(along, (ends[1] - ends[0]) / (2 * step), rtol=1e-4, atol=1e-7)


@torch.no_grad()
@pytest.mark.parametrize("name", ["gcn", "gcn cglb"])
def test_attention_of_gcn_is_that_of_the_definition_edge_by_edge_in_every_layer(name: str) -> None:
    backbone, inputs = make(name, training=False), places(sparse=True)
    found = backbone.edge_attention(inputs)
    assert len(found) == len(backbone.layers)
    hidden = inputs.dense_features
    edges = list(zip(inputs.links.sources.tolist(), inputs.links.targets.tolist(), strict=True))
    for number, (layer, attention) in enumerate(zip(backbone.layers, found, strict=True)):
        projected = hidden @ layer.weight
        scores = [float(projected[source] @ projected[target].tanh()) for source, target in edges]
        raised = [np.exp(score if score > 0 else 0.2 * score) for score in scores]
        totals = [sum(value for value, (_, end) in zip(raised, edges, strict=True) if end == node) for _, node in edges]
        expected = [value / total for value, total in zip(raised, totals, strict=True)]
        torch.testing.assert_close(attention, torch.tensor(expected, dtype=torch.float64))
        summed = inputs.links.sum(projected, backbone.weighting)
        hidden = (summed if backbone.norms is None else backbone.norms[number](summed)).relu()


def importances(backbone: Backbone, inputs: Places) -> dict[str, bool]:
    """Return, by the name of a parameter, whether the norm of the attention depends on it."""
    norm = torch.cat([layer.flatten() for layer in backbone.edge_attention(inputs)]).norm()  # type: ignore[operator]
    names, parameters = zip(*backbone.named_parameters(), strict=True)
    slopes = torch.autograd.grad(norm, parameters, allow_unused=True)
    return {name: slope is not None and bool(slope.any()) for name, slope in zip(names, slopes, strict=True)}


def test_attention_of_gat_is_the_real_one_of_its_first_layer_in_all_heads() -> None:
    from dgl.nn.pytorch import GATConv

    backbone, inputs = make("gat", training=True), places(sparse=True)
    layer = backbone.layers[0]
    convolution = GATConv(FEATURES, WIDTH // 2, 2, negative_slope=0.2).double()
    convolution.load_state_dict(
        {
            "attn_l": layer.of_source[None],
            "attn_r": layer.of_target[None],
            "bias": layer.bias,
            "fc.weight": layer.weight.T,
        }
    )
    _, expected = convolution(inputs.graph, inputs.dense_features, get_attention=True)
    (found,) = backbone.edge_attention(inputs)
    torch.testing.assert_close(found, expected[..., 0])
    assert [name for name, matters in importances(backbone, inputs).items() if matters] == [
        "layers.0.weight",
        "layers.0.of_source",
        "layers.0.of_target",
    ]


def test_attention_of_gin_is_of_what_enters_its_second_layer_whose_weights_get_no_importance() -> None:
    backbone, inputs = make("gin", training=False), places()
    (found,) = backbone.edge_attention(inputs)
    first = make("gin", training=False)
    first.layers = first.layers[:1]
    hidden = first(inputs)
    edges = list(zip(inputs.links.sources.tolist(), inputs.links.targets.tolist(), strict=True))
    for node in range(NODES):
        own = torch.tensor([target == node for _, target in edges])
        scores = torch.stack([hidden[source] @ hidden[node].tanh() for source, target in edges if target == node])
        torch.testing.assert_close(found[own], torch.softmax(scores, dim=0))
    matters = importances(backbone, inputs)
    assert {name for name, does in matters.items() if does} == {
        name for name in matters if name.startswith(("layers.0", "norms.0"))
    }


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("kind", [GCN, GAT, GIN])
def test_dropout_of_inputs_drops_features_in_training_alone(kind: type[Any], sparse: bool) -> None:
    torch.manual_seed(0)
    parameters = {"width": WIDTH, "depth": 1, "batch_norm": False, "dropout": 0.5}
    backbone = kind(FEATURES, **parameters, input_dropout=True)
    inputs = Places.of(EDGES, csr_array(TABLE) if sparse else TABLE, EVERY, self_loops=True)
    inputs = backbone.arrange(inputs)
    assert not inputs.kept, "sums over what is dropped are others every time"
    backbone.eval()
    assert torch.equal(backbone(inputs), backbone(inputs))
    backbone.train()
    backbone.dropout = 0.0
    draws = torch.stack([backbone(inputs) for _ in range(3)])
    assert not torch.equal(draws[0], draws[1])
    backbone.input_dropout, backbone.dropout = 0.0, 0.5
    shares = (backbone(inputs) == 0).float().mean() - (backbone.eval()(inputs) == 0).float().mean()
    assert shares > 0.2


@pytest.mark.parametrize(
    ("preset", "parameters", "counted"),
    [
        ("begin", {}, 1433 * 256 + 2 * 256 * 256 + 3 * 2 * 256),
        ("cglb", {}, 1433 * 256),
        ("agale", {}, 1433 * 256 + 256),
        (None, {}, 1433 * 256 + 256 * 256 + 2 * 2 * 256),
        ("begin", {"depth": 2, "batch_norm": False}, 1433 * 256 + 256 * 256),
    ],
)
def test_presets_have_their_weights_and_what_is_given_wins(
    preset: str | None, parameters: dict[str, Any], counted: int
) -> None:
    backbone = GCN(1433, preset, **parameters)
    assert sum(parameter.numel() for parameter in backbone.parameters()) == counted


def test_presets_are_those_of_their_benchmarks() -> None:
    begin, cglb, agale = (GCN(3, preset, dropout=0.25) for preset in ("begin", "cglb", "agale"))
    assert (begin.depth, begin.weighting, begin.input_dropout, begin.sums_last) == (3, "symmetric", 0.25, False)
    assert (cglb.depth, cglb.weighting, cglb.norms, cglb.sums_last) == (1, "plain", None, True)
    assert (agale.weighting, agale.input_dropout, agale.sums_last) == ("symmetric", 0.0, True)
    assert GCN(3, "agale").dropout == 0.5
    assert GCN(3, "begin").dropout == GCN(3, "cglb").dropout == 0


def test_a_preset_and_what_it_stands_for_have_one_key() -> None:
    def key(**parameters: Any) -> Any:
        return Component(name="gcn", parameters=parameters).identity(GRAPH_BACKBONES)["parameters"]

    begin = {"width": 256, "depth": 3, "normalisation": "symmetric", "input_dropout": True, "dropout": 0}
    assert key(preset="begin") == key(**begin) == key(preset="begin", depth=3)
    assert key(preset="begin") != key(preset="begin", depth=2)
    assert key() == key(depth=2) != key(preset="cglb")
    assert "preset" not in key(preset="begin")


@pytest.mark.parametrize(
    ("name", "parameters", "reason"),
    [
        ("gcn", {"preset": "begni"}, "unknown preset 'begni'; did you mean 'begin'"),
        ("gcn", {"normalisation": "symmetrical"}, "did you mean 'symmetric'"),
        ("gcn", {"head": "lineal"}, "unknown head 'lineal'; did you mean 'linear'"),
        ("gcn", {"dropout": 1}, "dropout must be at least 0 and below 1, found 1"),
        ("gcn", {"depth": 0}, "depth and width must be at least 1"),
        ("gat", {"heads": 7}, "heads must share out the width of 256 evenly, found 7"),
        ("gin", {"width": 0}, "depth and width must be at least 1"),
        ("sgc", {"hops": -1}, "hops must be a whole number, at least 0, found -1"),
    ],
)
def test_what_no_backbone_can_have_is_refused(name: str, parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make_backbone(name, parameters, Facts("graph", {"features": FEATURES}), seed=0)


@pytest.mark.parametrize("name", ["gcn", "gat", "gin", "sgc"])
def test_a_few_epochs_lower_the_loss(name: str) -> None:
    scenario = made_up_graph("class-il")
    training = Training(epochs=15, learning_rate=0.01)
    learner = make_learner(scenario, name, training=training, backbone_parameters={"width": 16})
    losses: list[float] = []
    experience = scenario.experience(scenario.lessons(scenario.default)[:1])
    learner.learn(experience, 0, lambda _, loss: losses.append(loss))
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("name", MADE)
def test_a_graph_sampled_whole_gives_the_same_embeddings(name: str) -> None:
    backbone = make(name, training=False)
    inputs = places(FEW)
    sampled = backbone.arrange(inputs).sampled([NODES] * 4, np.random.default_rng(0))
    torch.testing.assert_close(backbone(sampled), backbone(inputs))


def test_the_backbone_for_nodes_of_ones_own_is_that_of_dgl_and_keeps_its_promises() -> None:
    from dgl.nn.pytorch import SAGEConv

    path = str(MODELS / "sage.py")
    backbone: Any = make_backbone(path, {"width": WIDTH}, Facts("graph", {"features": FEATURES}), seed=0).double()
    inputs = places(FEW, sparse=True)
    hidden = inputs.dense_features
    for layer in backbone.layers:
        convolution = SAGEConv(hidden.shape[1], WIDTH, "mean").double()
        values = {
            "fc_self.weight": layer.own.weight,
            "fc_self.bias": layer.own.bias,
            "fc_neigh.weight": layer.neighbours.weight,
            "fc_neigh.bias": torch.zeros(WIDTH, dtype=torch.float64),
        }
        values = {name: value for name, value in values.items() if name in dict(convolution.named_parameters())}
        hidden = layer.norm(torch.func.functional_call(convolution, values, (inputs.graph, hidden))).relu()
    torch.testing.assert_close(backbone(inputs), hidden[inputs.at.flatten()])
    subject = find_subject(path, data="graph")
    findings = check_subject(subject, [arranges, gives_embeddings, answers_each_by_itself])
    assert {finding.verdict for finding in findings} == {Verdict.KEPT}


def test_the_page_shows_that_backbone_as_it_is_and_names_what_places_have() -> None:
    page, code = ((MODELS / name).read_text(encoding="utf-8") for name in ("README.md", "sage.py"))
    section = page.partition("## For nodes of a graph")[2].partition("\n# ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert textwrap.indent(block, "    ").strip() in code
    named = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)[1:]
    inputs = places()
    for path in re.findall(r"`([\w.]+)", " ".join(named)):
        assert attrgetter(path)(inputs) is not None
