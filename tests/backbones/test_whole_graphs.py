"""Backbones on whole graphs and pairs: node by node as their definitions say, with encoders, codes and edges."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.backbone import make_backbone
from skeleton_cgl.backbones.graphs.gat import GAT
from skeleton_cgl.backbones.graphs.gcn import GCN
from skeleton_cgl.backbones.graphs.gin import GIN
from skeleton_cgl.backbones.graphs.sgc import SGC
from skeleton_cgl.backbones.graphs.skeleton_gcn import SkeletonGCN
from skeleton_cgl.backbones.joins import join_of
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.engine.study import Component
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.learning.training import Training
from skeleton_cgl.registry import GRAPH_BACKBONES
from skeleton_cgl.scenarios.scenario import Facts
from tests.golden.whole_graphs import WholeGraphsSettings

WIDTH = 6
STARTS = np.array([0, 4, 5, 9, 12])
_RANDOM = np.random.default_rng(0)
EDGES = np.array(
    [
        (source, target)
        for start, end in pairwise(STARTS)
        for source, target in product(range(start, end), repeat=2)
        if source != target and _RANDOM.random() < 0.6
    ]
).T
NODES, LINKS = int(STARTS[-1]), EDGES.shape[1]
CODES, EDGE_CODES = (4, 3), (3, 2)
MEASURES = _RANDOM.normal(size=(NODES, 3)).astype(np.float32)
KINDS = np.stack([_RANDOM.integers(0, count, NODES) for count in CODES], axis=1)
EDGE_MEASURES = _RANDOM.normal(size=(LINKS, 2)).astype(np.float32)
EDGE_KINDS = np.stack([_RANDOM.integers(0, count, LINKS) for count in EDGE_CODES], axis=1)

Offered = dict[str, Any]
DATA: dict[str, tuple[np.ndarray, np.ndarray | None, Offered]] = {
    "measures": (MEASURES, None, {"features": 3}),
    "measures, those of edges too": (MEASURES, EDGE_MEASURES, {"features": 3, "edge_features": 2}),
    "measures, kinds of edges": (MEASURES, EDGE_KINDS, {"features": 3, "edge_features": 2, "edge_codes": EDGE_CODES}),
    "kinds": (KINDS, None, {"features": 2, "codes": CODES}),
    "kinds, those of edges too": (
        KINDS,
        EDGE_KINDS,
        {"features": 2, "codes": CODES, "edge_features": 2, "edge_codes": EDGE_CODES},
    ),
}
MADE: dict[str, Callable[..., Any]] = {
    "gcn": lambda **given: GCN(**given, width=WIDTH, depth=3),
    "gcn mean, bias": lambda **given: GCN(**given, width=WIDTH, normalisation="mean", bias=True, batch_norm=False),
    "gcn cglb": lambda **given: GCN(**given, preset="cglb", width=WIDTH),
    "gat": lambda **given: GAT(**given, width=WIDTH, heads=2),
    "gin": lambda **given: GIN(**given, width=WIDTH),
}
ALL: dict[str, Callable[..., Any]] = {
    **MADE,
    "sgc": lambda features, **_: SGC(features, width=WIDTH),
    "skeleton-gcn": lambda features, **_: SkeletonGCN(features, width=WIDTH),
}


def graphs(data: str, self_loops: bool = True) -> Graphs:
    features, of_edges, _ = DATA[data]
    found = Graphs.of(STARTS, EDGES, features.astype(np.float32), self_loops, of_edges)
    return replace(found, content=replace(found.content, features=found.content.dense_features.double()))


def make(name: str, data: str, training: bool = False, rows: str = "graphs", **parameters: Any) -> Any:
    """Return a backbone in float64 none of whose parameters is zero or one."""
    torch.manual_seed(0)
    backbone = ALL[name](**DATA[data][2], rows=rows, **parameters).double().train(training)
    for parameter in backbone.parameters():
        nn.init.normal_(parameter, 0.1, 0.5)
    return backbone


def embeddings_by_hand(backbone: Any, data: str, self_loops: bool) -> Tensor:
    """Return an embedding per node, edge by edge; a loop that was added carries a message and adds nothing to it."""
    edges: list[tuple[int, int, int | None]] = [(int(s), int(t), edge) for edge, (s, t) in enumerate(EDGES.T)]
    if self_loops:
        edges += [(node, node, None) for node in range(NODES)]
    hidden = _encoded(backbone, data)
    for number, layer in enumerate(backbone.layers):
        added = [_of_edge(backbone, data, number, edge) for *_, edge in edges]
        embed = {GCN: _gcn_layer, GAT: _gat_layer, GIN: _gin_layer}[type(backbone)]
        hidden = embed(backbone, layer, hidden, edges, added)
        hidden = hidden if backbone.norms is None else backbone.norms[number](hidden)
        hidden = functional.elu(hidden) if isinstance(backbone, GAT) else hidden.relu()
    if getattr(backbone, "sums_last", False):
        rows = [[hidden[s] for s, t, _ in edges if t == node] for node in range(NODES)]
        hidden = torch.stack([sum(row, torch.zeros(WIDTH).double()) for row in rows])
    return hidden


def _encoded(backbone: Any, data: str) -> Tensor:
    features, _, offered = DATA[data]
    if "codes" in offered:
        tables = backbone.encoder.weight.split(list(CODES))
        return torch.stack([sum(table[kind] for table, kind in zip(tables, row, strict=True)) for row in features])
    table = torch.from_numpy(features).double()
    return table if backbone.encoder is None else table @ backbone.encoder.weight.T + backbone.encoder.bias


def _of_edge(backbone: Any, data: str, number: int, edge: int | None) -> Tensor | float:
    _, of_edges, offered = DATA[data]
    if edge is None or of_edges is None:
        return 0.0
    weight = backbone.edges[number].weight
    if "edge_codes" in offered:
        tables = weight.split(list(EDGE_CODES))
        return sum(table[kind] for table, kind in zip(tables, of_edges[edge], strict=True))
    return sum(value * row for value, row in zip(of_edges[edge].tolist(), weight, strict=True))


def _gcn_layer(backbone: Any, layer: Any, hidden: Tensor, edges: list[Any], added: list[Any]) -> Tensor:
    inward, outward = (np.bincount([edge[end] for edge in edges], minlength=NODES) for end in (1, 0))
    rows = [torch.zeros(WIDTH, dtype=torch.float64) for _ in range(NODES)]
    for (source, target, _), more in zip(edges, added, strict=True):
        own, others = {
            "plain": (1.0, 1.0),
            "mean": (1 / inward[target], 1.0),
            "symmetric": (1 / np.sqrt(inward[target]), 1 / np.sqrt(outward[source])),
        }[backbone.weighting]
        rows[target] = rows[target] + own * (others * hidden[source] + more) @ layer.weight
    return torch.stack(rows) + (0 if layer.bias is None else layer.bias)


def _gat_layer(backbone: Any, layer: Any, hidden: Tensor, edges: list[Any], added: list[Any]) -> Tensor:  # noqa: ARG001
    heads, each = layer.of_source.shape
    projected = hidden @ layer.weight
    parts = []
    for head in range(heads):
        own = slice(head * each, (head + 1) * each)
        rows = []
        for node in range(NODES):
            arriving = [(s, more) for (s, t, _), more in zip(edges, added, strict=True) if t == node]
            target = projected[node, own] @ layer.of_target[head]
            scores = [projected[s, own] @ layer.of_source[head] + target for s, _ in arriving]
            raised = [functional.leaky_relu(score, layer.slope).exp() for score in scores]
            messages = [projected[s, own] + (more if isinstance(more, float) else more[own]) for s, more in arriving]
            weighted = [value / sum(raised) * message for value, message in zip(raised, messages, strict=True)]
            rows.append(sum(weighted, torch.zeros(each).double()))
        parts.append(torch.stack(rows))
    return torch.cat(parts, dim=1) + layer.bias


def _gin_layer(backbone: Any, layer: Any, hidden: Tensor, edges: list[Any], added: list[Any]) -> Tensor:  # noqa: ARG001
    rows = [(1 + layer.epsilon) * row for row in hidden]
    for (source, target, _), more in zip(edges, added, strict=True):
        rows[target] = rows[target] + hidden[source] + more
    first = torch.stack(rows) @ layer.first + layer.shift
    found: Tensor = layer.second((first if layer.norm is None else layer.norm(first)).relu())
    return found


def gradients(backbone: Any, embeddings: Tensor) -> list[Tensor]:
    direction = torch.arange(1, 1 + embeddings.numel(), dtype=torch.float64).sin().view_as(embeddings)
    parameters = list(backbone.parameters())
    slopes = torch.autograd.grad((embeddings * direction).sum(), parameters, retain_graph=True, allow_unused=True)
    return [torch.zeros(()) if slope is None else slope for slope in slopes]


@pytest.mark.parametrize("self_loops", [True, False], ids=["loops", "no loops"])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", MADE)
def test_embeddings_and_gradients_are_those_of_the_definition_edge_by_edge(
    name: str, data: str, self_loops: bool
) -> None:
    """In training and when answering, with an encoder and without, arranged and not."""
    for training, encoder in ((True, True), (False, False)):
        backbone = make(name, data, training, encoder=encoder)
        wanted = embeddings_by_hand(backbone, data, self_loops)
        slopes = gradients(backbone, wanted)
        inputs = graphs(data, self_loops)
        for given in (inputs, inputs.arranged(backbone.arrange)):
            found = backbone(given.content)
            torch.testing.assert_close(found, wanted)
            torch.testing.assert_close(gradients(backbone, found), slopes)


@pytest.mark.parametrize("name", ALL)
def test_graphs_are_embedded_as_each_would_be_alone(name: str) -> None:
    data = "measures" if name in ("sgc", "skeleton-gcn") else "kinds, those of edges too"
    backbone = make(name, data, read_out="gated", after=(5, 3))
    join = join_of(backbone, Facts("graph", {}))
    everything = graphs(data).arranged(backbone.arrange)
    together = join(backbone(everything.content), everything)
    assert len(together) == len(STARTS) - 1
    for rows in ([0], [1], [2], [3], [3, 1], [2, 2, 0]):
        some = everything.rows(torch.tensor(rows))
        torch.testing.assert_close(join(backbone(some.content), some), together[rows])


@pytest.mark.parametrize("read_out", ["mean", "sum", "gated"])
def test_graphs_are_read_out_and_layers_follow(read_out: str) -> None:
    backbone = make("gcn", "measures", read_out=read_out, after=[4, 2])
    inputs = graphs("measures")
    hidden = backbone(inputs.content)
    rows = []
    for start, end in pairwise(STARTS):
        own = hidden[start:end]
        if read_out == "gated":
            gate = backbone.join.gated.gate
            weights = [1 / (1 + (-(gate.weight[0] @ node + gate.bias)).exp()) for node in own]
            total = sum(weight * node for weight, node in zip(weights, own, strict=True))
            row = torch.cat([total, torch.stack([column.max() for column in own.T])])
        else:
            row = sum(own) / (len(own) if read_out == "mean" else 1)
        for layer in backbone.join.layers:
            row = (layer.weight @ row + layer.bias).clamp(min=0)
        rows.append(row)
    found = backbone.join(hidden, inputs)
    torch.testing.assert_close(found, torch.stack(rows))
    torch.testing.assert_close(gradients(backbone, found), gradients(backbone, torch.stack(rows)))


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("training", [True, False], ids=["training", "answering"])
def test_of_a_pair_the_product_is_taken_and_layers_follow(name: str, training: bool) -> None:
    """Some nodes are in several pairs, and one is a pair with itself."""
    at = torch.tensor([[0, 5], [5, 0], [7, 7], [0, 2]])
    content = graphs("measures").content
    places = Places(content.links, content.features, at)
    backbone = make(name, "measures", training, rows="pairs", after=(4,))
    hidden = embeddings_by_hand(backbone, "measures", self_loops=True)
    (layer,) = backbone.join.layers
    wanted = torch.stack([layer.weight @ (hidden[one] * hidden[other]) + layer.bias for one, other in at]).relu()
    slopes = gradients(backbone, wanted)
    for given in (places, backbone.arrange(places)):
        found = backbone.join(backbone(given), given)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(gradients(backbone, found), slopes)


def test_dropout_comes_after_the_layers_that_follow_in_training_alone() -> None:
    backbone = make("gcn", "measures", after=(400,), after_dropout=0.25)
    inputs = graphs("measures")
    hidden = backbone(inputs.content).detach()
    answered = backbone.join(hidden, inputs)
    assert torch.equal(answered, backbone.join(hidden, inputs))
    backbone.train()
    drawn = backbone.join(hidden, inputs)
    positive = answered > 0
    assert 0.15 < float((drawn[positive] == 0).double().mean()) < 0.35
    stays = drawn != 0
    torch.testing.assert_close(drawn[stays], answered[stays] / 0.75)


@pytest.mark.parametrize("name", ["gcn", "gat", "gin", "skeleton-gcn"])
@pytest.mark.parametrize("data", ["measures", "kinds, those of edges too"])
def test_attention_of_edges_is_that_of_every_graph_alone(name: str, data: str) -> None:
    backbone = make(name, data, encoder=True)
    everything = graphs(data).arranged(backbone.arrange)
    found = backbone.edge_attention(everything.content)
    links = everything.content.links
    for row in range(len(everything)):
        own = (links.targets >= STARTS[row]) & (links.targets < STARTS[row + 1])
        alone = backbone.edge_attention(everything.rows(torch.tensor([row])).content)
        torch.testing.assert_close([layer[own] for layer in found], alone)
    for plain, arranged in zip(backbone.edge_attention(graphs(data).content), found, strict=True):
        torch.testing.assert_close(plain, arranged)
        totals = torch.zeros(NODES, *plain.shape[1:], dtype=torch.float64).index_add(0, links.targets, plain)
        torch.testing.assert_close(totals, torch.ones_like(totals))


@pytest.mark.parametrize("name", ["gcn", "gat", "gin", "skeleton-gcn"])
@pytest.mark.parametrize("data", ["measures", "kinds, those of edges too"])
def test_what_twp_asks_for_can_be_differentiated_again(name: str, data: str) -> None:
    """The slopes of the norm of a loss's gradient and of attention, along a direction, are those of small steps."""
    backbone = make(name, data, training=True, read_out="gated", after=(4,), encoder=True)
    inputs = graphs(data).arranged(backbone.arrange)
    parameters = list(backbone.parameters())

    def value() -> Tensor:
        loss = backbone.join(backbone(inputs.content), inputs).sin().mean()
        slopes = torch.autograd.grad(loss, parameters, create_graph=True)
        attention = torch.cat([layer.flatten() for layer in backbone.edge_attention(inputs.content)])
        return sum(part.square().sum() for part in slopes) + attention.norm()

    directions = [torch.randn_like(parameter) for parameter in parameters]
    slopes = torch.autograd.grad(value(), parameters, allow_unused=True)
    along = sum((s * d).sum() for s, d in zip(slopes, directions, strict=True) if s is not None)
    step, ends = 1e-6, []
    for sign in (-1, 2):
        with torch.no_grad():
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter += sign * step * direction
        ends.append(value())
    torch.testing.assert_close(along, (ends[1] - ends[0]) / (2 * step), rtol=1e-4, atol=1e-7)


def test_sums_are_kept_only_where_they_stay_the_same() -> None:
    def kept(name: str, data: str, **parameters: Any) -> set[str]:
        return set(make(name, data, **parameters).arrange(graphs(data).content).kept)

    for name in ("gcn", "gin"):
        assert kept(name, "measures") == {"sums"}
        assert kept(name, "kinds") == set(), "tables are learned"
        assert kept(name, "kinds, those of edges too") == {"marks"}
        assert kept(name, "measures", dropout=0.5, input_dropout=True) == set()
    inputs = graphs("kinds")
    arranged = inputs.arranged(make("gcn", "kinds").arrange).rows(torch.tensor([1, 0])).content.links
    assert ("symmetric", torch.float64) in arranged._weights, "weights are those computed for all graphs"


def test_nodes_by_themselves_have_no_join_and_the_weights_they_had() -> None:
    for name in MADE:
        assert not hasattr(make(name, "measures", rows="nodes"), "join")
        assert hasattr(make(name, "measures", rows="nodes", after=(4,)), "join")
        torch.manual_seed(0)
        alone = MADE[name](features=3).state_dict()
        torch.manual_seed(0)
        read_out = MADE[name](features=3, rows="graphs", after=(4,)).state_dict()
        torch.testing.assert_close({key: read_out[key] for key in alone}, alone, rtol=0, atol=0)


def test_presets_for_links_and_graphs_are_those_of_begin() -> None:
    links, whole = GCN(2, "begin-links", rows="pairs"), GCN(2, "begin-graphs", rows="graphs")
    for backbone, sizes in ((links, [2, 256, 256, 256]), (whole, [146, 146, 146, 146, 146])):
        assert [len(layer.weight) for layer in backbone.layers] == sizes[:-1]
        assert backbone.width == sizes[-1]
        assert backbone.norms is not None
        assert (backbone.dropout, backbone.input_dropout, backbone.weighting) == (0, 0, "symmetric")
    assert [layer.weight.shape for layer in links.join.layers] == [(256, 256), (256, 256)]
    assert [layer.weight.shape for layer in whole.join.layers] == [(73, 146), (36, 73)]
    assert whole.join.read_out == "mean"
    assert links.encoder is None
    assert whole.encoder is not None
    counted = sum(parameter.numel() for parameter in SkeletonGCN(74).parameters())
    assert counted == 2 * 75 * 64 + 2 * 65 * 64 + 2 * 128 + 65 + 129 * 64 + 128, "CGLB's 2 × 64"


def test_younger_parameters_leave_keys_as_they_were_and_one_meaning_has_one_key() -> None:
    def key(name: str, **parameters: Any) -> Any:
        return Component(name=name, parameters=parameters).identity(GRAPH_BACKBONES)["parameters"]

    for name in ("gcn", "gat", "gin"):
        usual = {"read_out": "mean", "after": [], "after_dropout": 0, "encoder": False}
        assert key(name) == key(name, **usual)
        assert not {*usual, "rows", "codes", "edge_features", "edge_codes"} & key(name).keys()
        assert key(name, after=[4]) == key(name, after=(4,)) != key(name)
    spelled = {"depth": 4, "width": 146, "encoder": True, "after": [73, 36]}
    assert key("gcn", preset="begin-graphs") == key("gcn", **spelled)
    assert key("gcn", preset="begin-graphs", encoder=False) == key("gcn", **{**spelled, "encoder": False})


@pytest.mark.parametrize("name", ["gcn", "gat", "gin"])
@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"read_out": "meen"}, "unknown read_out 'meen'; did you mean 'mean'"),
        ({"after": 256}, "after must be a list of widths, found 256"),
        ({"after": [0]}, "after must have widths of 1 to"),
        ({"after_dropout": 1.0}, "after_dropout must be at least 0 and below 1"),
        ({"encoder": "linear"}, "encoder must be true or false, found 'linear'"),
    ],
)
def test_what_no_backbone_can_have_is_refused(name: str, parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make_backbone(name, parameters, Facts("graph", {"features": 3, "rows": "graphs"}), seed=0)


def test_graphs_without_the_features_of_edges_a_backbone_was_made_for_are_refused() -> None:
    with pytest.raises(ValueError, match="made for features of edges, and these graphs have none"):
        make("gcn", "measures, those of edges too")(graphs("measures").content)


@pytest.mark.parametrize("name", ["gcn", "gat", "gin"])
def test_two_tasks_of_graphs_are_learned_in_batches_with_twp(name: str) -> None:
    scenario = WholeGraphsSettings(kind="whole graphs").make(0)
    parameters = {"width": 8, "read_out": "gated", "after": [8], "encoder": True}
    training = Training(epochs=25, learning_rate=0.01, batch_size=4, patience=25)
    learner = make_learner(scenario, name, method="twp", training=training, backbone_parameters=parameters)
    lessons = scenario.lessons(scenario.default)
    for number in range(2):
        losses: list[float] = []
        learner.learn(scenario.experience(lessons[: number + 1]), number, lambda _, loss: losses.append(loss))  # noqa: B023
        assert min(losses) < 0.7 * losses[0]
    assert learner.answer(scenario.queries(lessons)).isfinite().all()
