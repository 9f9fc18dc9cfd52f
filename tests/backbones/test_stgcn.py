"""ST-GCN: kept channels last for speed, and the same function as its definition on (N, C, T, V)."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.clips.stgcn import STGCN, Block
from skeleton_cgl.skeletons.layout import NTU, UCLA, JointLayout

FRAMES, CHANNELS = 12, 3


def make_stgcn(layout: JointLayout, **parameters: float) -> STGCN:
    """Return an ST-GCN in float64 whose BatchNorms are no identity and whose edges differ in importance."""
    torch.manual_seed(0)
    stgcn = STGCN(layout, CHANNELS, **parameters).double()
    for module in stgcn.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.normal_(module.weight, 1, 0.3)
            nn.init.normal_(module.bias, 0, 0.3)
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
        if isinstance(module, Block):
            nn.init.uniform_(module.spatial.importance, 0.5, 1.5)
    return stgcn


def make_clips(layout: JointLayout, count: int = 4) -> Tensor:
    return torch.randn(count, CHANNELS, FRAMES, len(layout), dtype=torch.float64)


def normalised_plainly(features: Tensor, norm: nn.BatchNorm1d) -> Tensor:
    """Return features (N, C, …) normalised channel by channel, without touching the running statistics."""
    statistics = (None, None) if norm.training else (norm.running_mean, norm.running_var)
    return functional.batch_norm(features, *statistics, norm.weight, norm.bias, norm.training, eps=norm.eps)


def blocks_plainly(stgcn: STGCN, layout: JointLayout, clips: Tensor) -> list[Tensor]:
    """Return what enters every block and what leaves the last, (N, C, T, V), from the definition of Yan et al."""
    count, channels, frames, joints = clips.shape
    by_joint = clips.permute(0, 3, 1, 2).reshape(count, joints * channels, frames)
    hidden = normalised_plainly(by_joint, stgcn.norm).view(count, joints, channels, frames).permute(0, 2, 3, 1)
    partitions = torch.from_numpy(layout.partitions()).double()
    entering = [hidden]
    for block in stgcn.blocks:
        spatial, inputs, outputs = block.spatial, hidden.shape[1], len(block.spatial.weight)
        weights = torch.cat(spatial.weight.split(inputs, dim=1)).view(-1, inputs, 1, 1)
        projected = functional.conv2d(hidden, weights, spatial.bias.flatten()).view(count, 3, outputs, frames, joints)
        mixed = torch.einsum("nkctv,kvw->nctw", projected, partitions * spatial.importance)
        mixed = normalised_plainly(mixed, block.spatial_norm).relu()
        kernel = block.temporal.weight
        convolved = functional.conv2d(mixed, kernel, padding=(kernel.shape[2] // 2, 0))
        residual = hidden
        if inputs != outputs:
            linear, norm = block.residual
            residual = normalised_plainly(functional.conv2d(hidden, linear.weight[..., None, None]), norm)
        hidden = (normalised_plainly(convolved, block.temporal_norm) + residual).relu()
        entering.append(hidden)
    return entering


def gradients(stgcn: STGCN, embeddings: Tensor) -> list[Tensor]:
    generator = torch.Generator().manual_seed(7)
    direction = torch.randn(embeddings.shape, generator=generator, dtype=embeddings.dtype)
    return list(torch.autograd.grad((embeddings * direction).sum(), list(stgcn.parameters())))


@pytest.mark.parametrize("training", [True, False], ids=["training", "answering"])
@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        (UCLA, {"width": 8, "depth": 2}),
        (NTU, {"width": 4, "depth": 1, "kernel": 5}),
        (UCLA, {"width": 3, "depth": 3, "kernel": 1}),
    ],
    ids=["ucla", "ntu", "as wide as the coordinates"],
)
def test_embeddings_and_gradients_are_those_of_the_definition(
    body: JointLayout, parameters: dict[str, int], training: bool
) -> None:
    stgcn = make_stgcn(body, **parameters).train(training)
    clips = make_clips(body)
    plain = blocks_plainly(stgcn, body, clips)[-1].mean(dim=(2, 3))
    found = stgcn(stgcn.arrange(clips))
    assert found.shape == (len(clips), parameters["width"])
    torch.testing.assert_close(found, plain)
    torch.testing.assert_close(gradients(stgcn, found), gradients(stgcn, plain))


def test_a_joint_hears_itself_its_parent_and_its_children_and_nobody_else(layout: JointLayout) -> None:
    stgcn = make_stgcn(layout, width=4, depth=1, kernel=1).eval()
    spatial = stgcn.blocks[0].spatial
    features = torch.randn(1, 1, len(layout), CHANNELS, dtype=torch.float64)
    heard = torch.autograd.functional.jacobian(spatial, features)[0, 0, :, :, 0, 0].abs().sum(dim=(1, 3))
    torch.testing.assert_close((heard > 0).double(), torch.from_numpy(layout.adjacency()).double())


def test_edge_attention_is_that_of_the_definition_edge_by_edge(layout: JointLayout) -> None:
    stgcn = make_stgcn(layout, width=4, depth=2).eval()
    clips = make_clips(layout, 2)
    with torch.no_grad():
        entering = blocks_plainly(stgcn, layout, clips)
        found = stgcn.edge_attention(stgcn.arrange(clips))
    assert len(found) == len(stgcn.blocks)
    parents = dict(layout.bones)
    for block, hidden, attention in zip(stgcn.blocks, entering, found, strict=False):
        weights = block.spatial.weight.detach().split(hidden.shape[1], dim=1)
        for clip, frame, joint in [(0, 0, 0), (0, 5, 1), (1, 11, 3), (1, 7, 4)]:
            scores = {}
            for other in range(len(layout)):
                if other == joint:
                    weight = weights[0]
                elif parents.get(joint) == other:
                    weight = weights[1]
                elif parents.get(other) == joint:
                    weight = weights[2]
                else:
                    continue
                h_i, h_j = weight @ hidden[clip, :, frame, joint], weight @ hidden[clip, :, frame, other]
                scores[other] = functional.leaky_relu(h_j @ torch.tanh(h_i), 0.2)
            expected = torch.zeros(len(layout), dtype=torch.float64)
            expected[list(scores)] = torch.softmax(torch.stack(list(scores.values())), dim=0)
            torch.testing.assert_close(attention[clip, frame, joint], expected)


def test_the_gradient_of_the_gradient_norm_is_that_of_the_definition(layout: JointLayout) -> None:
    stgcn = make_stgcn(layout, width=4, depth=2)
    clips = make_clips(layout)

    def slopes(embeddings: Tensor) -> tuple[Tensor, ...]:
        loss = functional.cross_entropy(embeddings, torch.arange(4))
        first = torch.autograd.grad(loss, list(stgcn.parameters()), create_graph=True)
        return torch.autograd.grad(sum(part.abs().sum() for part in first), list(stgcn.parameters()))

    plain = slopes(blocks_plainly(stgcn, layout, clips)[-1].mean(dim=(2, 3)))
    torch.testing.assert_close(slopes(stgcn(stgcn.arrange(clips))), plain)


def test_dropout_acts_in_training_alone(layout: JointLayout) -> None:
    without, with_dropout = make_stgcn(layout), make_stgcn(layout, dropout=0.5)
    with_dropout.load_state_dict(without.state_dict())
    clips = without.arrange(make_clips(layout))
    assert not torch.equal(with_dropout(clips), with_dropout(clips))
    with_dropout.load_state_dict(without.state_dict())
    torch.testing.assert_close(with_dropout.eval()(clips), without.eval()(clips))


@pytest.mark.parametrize(("depth", "width"), [(1, 32), (4, 64), (8, 16)])
def test_shallow_and_deep_ones_learn(layout: JointLayout, depth: int, width: int) -> None:
    torch.manual_seed(0)
    stgcn = STGCN(layout, CHANNELS, width, depth)
    head = nn.Linear(width, 2)
    clips, labels = make_clips(layout, 16).float(), torch.arange(16) % 2
    clips[labels == 1] += 0.5
    inputs = stgcn.arrange(clips)
    optimizer = torch.optim.Adam([*stgcn.parameters(), *head.parameters()], lr=0.001)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        losses.append(functional.cross_entropy(head(stgcn(inputs)), labels))
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"depth": 0}, "depth and width must be at least 1, found 0 and 64"),
        ({"width": 0}, "depth and width must be at least 1, found 2 and 0"),
        ({"kernel": 8}, "kernel must be odd, found 8"),
        ({"kernel": -1}, "kernel must be odd, found -1"),
        ({"dropout": 1.5}, r"between 0 and 1.* got 1\.5"),
    ],
)
def test_parameters_without_meaning_are_refused(wrong: dict[str, float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        STGCN(UCLA, CHANNELS, **wrong)
