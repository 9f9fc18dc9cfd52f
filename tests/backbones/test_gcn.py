"""GCN: the one for clips and the one for graphs are one function, the one the reference defines."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.clips.gcn import GCN
from skeleton_cgl.backbones.convolution import StackedConvolutions
from skeleton_cgl.backbones.graphs.skeleton_gcn import SkeletonGCN as GraphGCN
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.whole import Graphs
from skeleton_cgl.skeletons.layout import NTU, UCLA, JointLayout

os.environ.setdefault("DGLBACKEND", "pytorch")

FRAMES, CHANNELS = 4, 3


def make_gcn(layout: JointLayout, width: int = 8, depth: int = 3) -> GCN:
    """Return a GCN for clips in float64 whose BatchNorms are no identity."""
    torch.manual_seed(0)
    gcn = GCN(FRAMES * CHANNELS, layout, width, depth).double()
    unsettle(gcn)
    return gcn


def make_graph_gcn(width: int = 8, depth: int = 3) -> GraphGCN:
    """Return the GCN for graphs in float64, with the weights of `make_gcn`."""
    torch.manual_seed(0)
    gcn = GraphGCN(FRAMES * CHANNELS, width, depth).double()
    unsettle(gcn)
    return gcn


def unsettle(gcn: StackedConvolutions) -> None:
    for module in gcn.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.normal_(module.weight, 1, 0.3)
            nn.init.normal_(module.bias, 0, 0.3)
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)


def make_clips(layout: JointLayout, count: int = 5) -> Tensor:
    return torch.randn(count, CHANNELS, FRAMES, len(layout), dtype=torch.float64)


def as_graphs(layout: JointLayout, clips: Tensor) -> Graphs:
    """Return the clips as whole graphs, every joint with its frames × coordinates."""
    bones = np.array(layout.bones).T
    starts = len(layout) * np.arange(len(clips) + 1)
    edges = np.concatenate([start + each for start in starts[:-1] for each in (bones, bones[::-1])], axis=1)
    features = clips.permute(0, 3, 2, 1).reshape(-1, FRAMES * CHANNELS)
    found = Graphs.of(starts, edges, features.numpy(), self_loops=True)
    return replace(found, content=replace(found.content, features=features))


def on_graphs_of(gcn: GraphGCN, graphs: Graphs) -> Tensor:
    """Return an embedding per graph."""
    return gcn.join(gcn(graphs.content), graphs)


def by_messages(gcn: GraphGCN, graphs: Graphs) -> Tensor:
    """Return an embedding per graph as DGL sums and reads out."""
    import dgl
    from dgl import function

    graph = graphs.content.graph
    graph.set_batch_num_nodes(graphs.sizes)
    owners = torch.bucketize(graphs.content.links.targets, graphs.starts[1:], right=True)
    graph.set_batch_num_edges(torch.bincount(owners, minlength=len(graphs)))
    hidden = graphs.content.dense_features
    for layer in gcn.layers:
        graph.ndata["hidden"] = hidden
        graph.update_all(function.copy_u("hidden", "message"), function.sum("message", "summed"))
        hidden = layer.norm(layer.neighbours(graph.ndata["summed"]).relu() + layer.own(hidden).relu())
    graph.ndata["hidden"], graph.ndata["gate"] = hidden, torch.sigmoid(gcn.gate(hidden))
    parts = [dgl.sum_nodes(graph, "hidden", "gate"), dgl.max_nodes(graph, "hidden")]
    found: Tensor = gcn.predictor(torch.cat(parts, dim=1))
    return found


def as_places(graphs: Graphs, at: Tensor) -> Places:
    """Return places in the graph that graphs are blocks of."""
    return replace(graphs.content, at=at, every=False)


def neighbours_of(layout: JointLayout, joint: int) -> list[int]:
    return [joint, *(b for a, b in layout.bones if a == joint), *(a for a, b in layout.bones if b == joint)]


def normalised_by_hand(rows: list[Tensor], norm: nn.BatchNorm1d) -> list[Tensor]:
    stacked = torch.stack(rows)
    mean, variance = norm.running_mean, norm.running_var
    if norm.training:
        mean = stacked.mean(dim=0)
        variance = (stacked - mean).square().mean(dim=0)
    return [norm.weight * (row - mean) / (variance + norm.eps).sqrt() + norm.bias for row in rows]


def layers_by_hand(gcn: GCN, layout: JointLayout, clips: Tensor) -> list[dict[tuple[int, int], Tensor]]:
    """Return what enters every layer and what leaves the last, by (clip, joint): the reference, joint by joint."""
    nodes = [(clip, joint) for clip in range(len(clips)) for joint in range(len(layout))]
    hidden = {
        (clip, joint): torch.stack([clips[clip, c, t, joint] for t in range(FRAMES) for c in range(CHANNELS)])
        for clip, joint in nodes
    }
    entering = [hidden]
    for layer in gcn.layers:
        rows = []
        for clip, joint in nodes:
            total = sum(layer.neighbours.weight @ hidden[clip, other] for other in neighbours_of(layout, joint))
            own = layer.own.weight @ hidden[clip, joint] + layer.own.bias
            rows.append((total + layer.neighbours.bias).clamp(min=0) + own.clamp(min=0))
        hidden = dict(zip(nodes, normalised_by_hand(rows, layer.norm), strict=True))
        entering.append(hidden)
    return entering


def embed_by_hand(gcn: GCN, layout: JointLayout, clips: Tensor) -> Tensor:
    hidden = layers_by_hand(gcn, layout, clips)[-1]
    first, _, norm = gcn.predictor
    rows = []
    for clip in range(len(clips)):
        joints = [hidden[clip, joint] for joint in range(len(layout))]
        gated = sum(joint / (1 + torch.exp(-(gcn.gate.weight[0] @ joint + gcn.gate.bias))) for joint in joints)
        largest = torch.stack([torch.stack(values).max() for values in zip(*joints, strict=True)])
        rows.append((first.weight @ torch.cat([gated, largest]) + first.bias).clamp(min=0))
    return torch.stack(normalised_by_hand(rows, norm))


def gradients(gcn: StackedConvolutions, embeddings: Tensor) -> list[Tensor]:
    """Return the gradients of a fixed combination of all embeddings by all weights."""
    generator = torch.Generator().manual_seed(7)
    direction = torch.randn(embeddings.shape, generator=generator, dtype=embeddings.dtype)
    return list(torch.autograd.grad((embeddings * direction).sum(), list(gcn.parameters())))


@pytest.mark.parametrize("training", [True, False], ids=["training", "answering"])
def test_embeddings_and_gradients_are_those_of_the_definition_joint_by_joint(
    layout: JointLayout, training: bool
) -> None:
    gcn = make_gcn(layout).train(training)
    clips = make_clips(layout)
    by_hand = embed_by_hand(gcn, layout, clips)
    dense = gcn(gcn.arrange(clips))
    torch.testing.assert_close(dense, by_hand)
    torch.testing.assert_close(gradients(gcn, dense), gradients(gcn, by_hand))


@pytest.mark.parametrize("training", [True, False], ids=["training", "answering"])
@pytest.mark.parametrize("body", [UCLA, NTU], ids=lambda body: body.name)
def test_clips_graphs_and_dgl_agree_in_embeddings_and_gradients(body: JointLayout, training: bool) -> None:
    dense, on_graphs, plain = (made.train(training) for made in (make_gcn(body), make_graph_gcn(), make_graph_gcn()))
    clips = make_clips(body)
    graphs = as_graphs(body, clips)
    by_product, by_dgl = dense(dense.arrange(clips)), by_messages(plain, graphs)
    by_sums = on_graphs_of(on_graphs, graphs.arranged(on_graphs.arrange))
    for gcn, found in ((dense, by_product), (on_graphs, by_sums)):
        torch.testing.assert_close(found, by_dgl)
        torch.testing.assert_close(gradients(gcn, found), list(gradients(plain, by_messages(plain, graphs))))
    torch.testing.assert_close(dense.state_dict(), on_graphs.state_dict())


def test_clips_and_graphs_agree_in_single_precision() -> None:
    dense, on_graphs = make_gcn(UCLA).float(), make_graph_gcn().float()
    clips = make_clips(UCLA, 40).float()
    by_product, by_sums = dense(dense.arrange(clips)), on_graphs_of(on_graphs, as_graphs(UCLA, clips))
    torch.testing.assert_close(by_product, by_sums, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradients(dense, by_product), gradients(on_graphs, by_sums), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("training", [True, False], ids=["training", "answering"])
def test_nodes_are_embedded_as_the_definition_says_joint_by_joint(layout: JointLayout, training: bool) -> None:
    """One graph of three separate skeletons, asked about at a few places, some of them twice."""
    dense, gcn = make_gcn(layout).train(training), make_graph_gcn().train(training)
    clips = make_clips(layout, 3)
    graphs = as_graphs(layout, clips)
    at = torch.tensor([[4, 17], [0, 4], [9, 9]])
    places = as_places(graphs, at)
    by_hand = layers_by_hand(dense, layout, clips)[-1]
    expected = torch.stack([by_hand[divmod(node, len(layout))] for node in at.flatten().tolist()])
    # Not the predictor: it belongs to the embedding of a whole graph.
    own = list(gcn.layers.parameters())
    slopes = torch.autograd.grad(
        (expected * torch.arange(1.0, 7).double()[:, None]).sum(), list(dense.layers.parameters())
    )
    for inputs in (places, gcn.arrange(places)):
        found = gcn(inputs)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            torch.autograd.grad((found * torch.arange(1.0, 7).double()[:, None]).sum(), own), slopes
        )


def test_edge_attention_is_that_of_the_definition_edge_by_edge(layout: JointLayout) -> None:
    gcn = make_gcn(layout)
    clips = make_clips(layout, 3)
    with torch.no_grad():
        entering = layers_by_hand(gcn, layout, clips)
        found = gcn.edge_attention(gcn.arrange(clips))
    assert len(found) == len(gcn.layers)
    for layer, hidden, attention in zip(gcn.layers, entering, found, strict=False):
        expected = torch.zeros(len(clips), len(layout), len(layout), dtype=torch.float64)
        for clip, joint in hidden:
            target = torch.tanh(layer.neighbours.weight @ hidden[clip, joint])
            others = neighbours_of(layout, joint)
            products = [(layer.neighbours.weight @ hidden[clip, other]) @ target for other in others]
            scores = torch.stack([product if product > 0 else 0.2 * product for product in products])
            expected[clip, joint, others] = scores.exp() / scores.exp().sum()
        torch.testing.assert_close(attention, expected)


@pytest.mark.parametrize("training", [True, False], ids=["training", "answering"])
def test_edge_attention_and_its_gradient_agree_on_both_paths(training: bool) -> None:
    gcn, graph_gcn = make_gcn(UCLA).train(training), make_graph_gcn().train(training)
    clips = make_clips(UCLA, 3)
    graphs = as_graphs(UCLA, clips)
    places = as_places(graphs, torch.zeros(1, 1, dtype=torch.int64))
    for inputs in (graphs.content, places, graph_gcn.arrange(places)):
        sources, targets = inputs.links.sources, inputs.links.targets
        dense = [
            layer[sources // len(UCLA), targets % len(UCLA), sources % len(UCLA)]
            for layer in gcn.edge_attention(gcn.arrange(clips))
        ]
        on_graphs = graph_gcn.edge_attention(inputs)
        torch.testing.assert_close(dense, on_graphs)
        by_product, by_messages = (
            torch.autograd.grad(torch.cat(layers).norm(), list(own.parameters()), allow_unused=True, retain_graph=True)
            for own, layers in ((gcn, dense), (graph_gcn, on_graphs))
        )
        for one, other in zip(by_product, by_messages, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(one, other)


def test_the_neighbour_sum_taken_once_is_the_one_taken_every_time() -> None:
    gcn = make_gcn(UCLA)
    clips = make_clips(UCLA, 9)
    rows = torch.tensor([7, 0, 3, 3])
    arranged = tuple(part[rows] for part in gcn.arrange(clips))
    torch.testing.assert_close(arranged, gcn.arrange(clips[rows]))
    torch.testing.assert_close(gcn(arranged), gcn(gcn.arrange(clips[rows])))


def test_joints_may_be_numbered_in_any_way(layout: JointLayout) -> None:
    renumbered = [3, 0, 5, 1, 4, 2]
    place = {joint: number for number, joint in enumerate(renumbered)}
    other = JointLayout(
        name="renumbered",
        joints=[layout.joints[joint] for joint in renumbered],
        root=place[layout.root],
        bones=[(place[a], place[b]) for a, b in layout.bones],
    )
    clips = make_clips(layout)
    first, second = make_gcn(layout), make_gcn(other)
    torch.testing.assert_close(first(first.arrange(clips)), second(second.arrange(clips[..., renumbered])))


@pytest.mark.parametrize(("depth", "width"), [(1, 32), (2, 64), (4, 512), (8, 128), (16, 32), (16, 256)])
def test_shallow_and_deep_narrow_and_wide_ones_learn(depth: int, width: int) -> None:
    torch.manual_seed(0)
    gcn = GCN(FRAMES * CHANNELS, UCLA, width, depth)
    head = nn.Linear(64, 2)
    clips, labels = make_clips(UCLA, 16).float(), torch.arange(16) % 2
    clips[labels == 1] += 0.5
    inputs = gcn.arrange(clips)
    optimizer = torch.optim.Adam([*gcn.parameters(), *head.parameters()], lr=0.001)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        losses.append(functional.cross_entropy(head(gcn(inputs)), labels))
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0]
    assert all(parameter.isfinite().all() for parameter in gcn.parameters())


@pytest.mark.parametrize("path", ["clips", "graphs"])
def test_the_norm_of_the_gradient_can_be_differentiated_again(layout: JointLayout, path: str) -> None:
    clips = make_clips(layout)
    gcn = make_gcn(layout, width=5, depth=2) if path == "clips" else make_graph_gcn(width=5, depth=2)
    parameters = list(gcn.parameters())

    def embedded() -> Tensor:
        if isinstance(gcn, GCN):
            return gcn(gcn.arrange(clips))
        return on_graphs_of(gcn, as_graphs(layout, clips))

    def gradient_norm() -> Tensor:
        loss = functional.cross_entropy(embedded(), torch.arange(len(clips)))
        return sum(part.abs().sum() for part in torch.autograd.grad(loss, parameters, create_graph=True))

    slopes = torch.autograd.grad(gradient_norm(), parameters)
    directions = [torch.randn_like(parameter) for parameter in parameters]
    along = sum((slope * direction).sum() for slope, direction in zip(slopes, directions, strict=True))
    step, ends = 1e-6, []
    for sign in (-1, 2):
        with torch.no_grad():
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter += sign * step * direction
        ends.append(gradient_norm())
    torch.testing.assert_close(along, (ends[1] - ends[0]) / (2 * step), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("wrong", [{"depth": 0}, {"width": 0}])
def test_no_layer_and_no_unit_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="depth and width must be at least 1"):
        GCN(FRAMES * CHANNELS, UCLA, **wrong)
    with pytest.raises(ValueError, match="depth and width must be at least 1"):
        GraphGCN(FRAMES * CHANNELS, **wrong)
