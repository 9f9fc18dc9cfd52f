"""EvolveGCN's weights against the recurrence in NumPy, snapshot by snapshot; without it, it is a GCN to the bit."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from skeleton_cgl.backbones.backbone import make_backbone
from skeleton_cgl.backbones.graphs.evolving_gcn import EvolvingGCN, MatrixGRU
from skeleton_cgl.backbones.graphs.gcn import GCN
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.scenarios.scenario import Facts

FEATURES, WIDTH, DEPTH = 6, 4, 3
VARIANTS = ("o", "h")
Graph = tuple[np.ndarray, np.ndarray]
"""Edges (2, E) and features (nodes, F)."""


def graphs(*sizes: int) -> list[Graph]:
    found = []
    for seed, nodes in enumerate(sizes):
        random = np.random.default_rng(seed)
        features = random.normal(size=(nodes, FEATURES)) * (random.random((nodes, FEATURES)) < 0.6)
        found.append((random.integers(0, nodes, (2, 3 * nodes)), features.astype(np.float32)))
    return found


SNAPSHOTS = graphs(9, 12, 15)


def places_of(graph: Graph, sparse: bool = False, at: Sequence[int] | None = None) -> Places:
    edges, features = graph
    asked = np.arange(len(features)) if at is None else np.array(at)
    return Places.of(edges, csr_array(features) if sparse else features, asked[:, None], self_loops=True)


def made(variant: str, training: bool = False, **parameters: Any) -> Any:
    """Return a backbone none of whose weights are zero, whose BatchNorms are no identity."""
    torch.manual_seed(0)
    backbone = EvolvingGCN(FEATURES, variant, WIDTH, DEPTH, **parameters).train(training)
    for name, parameter in backbone.named_parameters():
        if "shift" in name or "norms" in name:
            torch.nn.init.normal_(parameter)
    for norm in backbone.norms or ():
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    return backbone


def told(backbone: Any, snapshots: Sequence[Graph], sparse: bool = False) -> Any:
    backbone.evolve([backbone.snapshot_of(places_of(each, sparse)) for each in snapshots])
    return backbone


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


class ByHand:
    """The definition in NumPy, in double precision."""

    def __init__(self, backbone: Any) -> None:
        self.values = {name: value.double().numpy() for name, value in backbone.state_dict().items()}
        self.variant = "h" if backbone.pools else "o"
        self.training, self.norms = backbone.training, backbone.norms is not None

    def gate(self, layer: int, name: str, entering: np.ndarray, weight: np.ndarray) -> np.ndarray:
        p, q, s = (self.values[f"cells.{layer}.{name}.{each}"] for each in ("of_input", "of_weight", "shift"))
        return p @ entering + q @ weight + s

    def pooled(self, layer: int, hidden: np.ndarray) -> np.ndarray:
        p = self.values[f"scores.{layer}"]
        y = hidden @ p / np.sqrt((p**2).sum())
        best = sorted(range(len(y)), key=lambda node: -y[node])[:WIDTH]
        return np.stack([hidden[node] * np.tanh(y[node]) for node in best]).T

    def step(self, layer: int, entering: np.ndarray, weight: np.ndarray) -> np.ndarray:
        z, r = (sigmoid(self.gate(layer, name, entering, weight)) for name in ("update", "reset"))
        return (1 - z) * weight + z * np.tanh(self.gate(layer, "candidate", entering, r * weight))

    def convolved(self, layer: int, hidden: np.ndarray, weight: np.ndarray, edges: np.ndarray) -> np.ndarray:
        nodes = len(hidden)
        adjacency = np.zeros((nodes, nodes))
        for source, target in edges.T:
            adjacency[target, source] += source != target
        adjacency += np.eye(nodes)
        adjacency /= np.sqrt(np.outer(adjacency.sum(axis=1), adjacency.sum(axis=0)))
        found = adjacency @ hidden @ weight
        if self.norms:
            mean, variance = (self.values[f"norms.{layer}.running_{each}"] for each in ("mean", "var"))
            if self.training:
                mean, variance = found.mean(axis=0), found.var(axis=0)
            scale, shift = (self.values[f"norms.{layer}.{each}"] for each in ("weight", "bias"))
            found = (found - mean) / np.sqrt(variance + 1e-5) * scale + shift
        return np.maximum(found, 0)

    def weights(self, snapshots: Sequence[Graph]) -> list[np.ndarray]:
        """Snapshot by snapshot, layer by layer, as the paper has it."""
        weights = [self.values[f"first.{layer}"] for layer in range(DEPTH)]
        for edges, features in snapshots:
            hidden = features.astype(np.float64)
            for layer in range(DEPTH):
                entering = self.pooled(layer, hidden) if self.variant == "h" else weights[layer]
                weights[layer] = self.step(layer, entering, weights[layer])
                hidden = self.convolved(layer, hidden, weights[layer], edges)
        return weights

    def embeddings(self, snapshots: Sequence[Graph], graph: Graph) -> np.ndarray:
        hidden = graph[1].astype(np.float64)
        for layer, weight in enumerate(self.weights(snapshots)):
            hidden = self.convolved(layer, hidden, weight, graph[0])
        return hidden


def close(found: torch.Tensor, expected: np.ndarray) -> None:
    torch.testing.assert_close(found.detach().double(), torch.from_numpy(expected), rtol=1e-4, atol=1e-5)


def test_one_step_of_the_gru_is_that_of_the_formula() -> None:
    backbone = made("o")
    cell: MatrixGRU = backbone.cells[0]
    entering, weight = torch.randn(FEATURES, WIDTH), torch.randn(FEATURES, WIDTH)
    close(cell(entering, weight), ByHand(backbone).step(0, entering.double().numpy(), weight.double().numpy()))


def test_the_nodes_with_the_largest_scores_are_pooled_and_missing_ones_are_zero() -> None:
    backbone = made("h")
    with torch.no_grad():
        backbone.scores[0].copy_(torch.tensor([3.0, 4, 0, 0, 0, 0]))
    hidden = torch.zeros(5, FEATURES)
    hidden[:, 0] = torch.tensor([1.0, 5, -5, 0, 2])
    hidden[:, 2] = torch.arange(5.0)
    # y = 3/5 of the first feature: nodes 1, 4, 0, 3 by size.
    wanted = torch.stack([hidden[node] * np.tanh(0.6 * float(hidden[node, 0])) for node in (1, 4, 0, 3)]).T
    torch.testing.assert_close(backbone._pooled(0, hidden), wanted)
    few = backbone._pooled(0, hidden[:2])
    torch.testing.assert_close(few[:, :2], wanted[:, [0, 2]])
    assert not few[:, 2:].any()
    assert few.shape == (FEATURES, WIDTH)


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("training", [True, False], ids=["training", "answering"])
@pytest.mark.parametrize("batch_norm", [True, False], ids=["BatchNorm", "none"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_and_embeddings_are_those_of_the_recurrence_through_all_snapshots(
    variant: str, batch_norm: bool, training: bool, sparse: bool
) -> None:
    for count in range(4):
        backbone = told(made(variant, training, batch_norm=batch_norm), SNAPSHOTS[:count], sparse)
        by_hand = ByHand(backbone)
        for weight, expected in zip(backbone.weights(), by_hand.weights(SNAPSHOTS[:count]), strict=True):
            close(weight, expected)
        expected = by_hand.embeddings(SNAPSHOTS[:count], SNAPSHOTS[2])
        for inputs in (places_of(SNAPSHOTS[2], sparse), backbone.arrange(places_of(SNAPSHOTS[2], sparse))):
            close(backbone(inputs), expected)
            asked = inputs.asking(torch.tensor([[3], [0]]))
            close(backbone(asked), expected[[3, 0]])


@pytest.mark.parametrize("variant", VARIANTS)
def test_going_on_through_t_snapshots_is_t_steps_from_one_to_the_next(variant: str) -> None:
    """In a layer by itself, whose weights before are the W_0 of another."""
    backbone = made(variant, batch_norm=False)
    steps = []
    for count in range(4):
        steps.append([weight.detach() for weight in told(backbone, SNAPSHOTS[:count]).weights()])
    for before, after in pairwise(steps):
        assert not any(torch.allclose(one, other, atol=1e-3) for one, other in zip(before, after, strict=True))
    other = made(variant, batch_norm=False)
    with torch.no_grad():
        other.first[0].copy_(steps[2][0])
    torch.testing.assert_close(told(other, SNAPSHOTS[2:]).weights()[0], steps[3][0])


@pytest.mark.parametrize("encoder", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_without_snapshots_and_with_an_update_of_zero_it_is_a_gcn_to_the_bit(variant: str, encoder: bool) -> None:
    for sparse in (True, False):
        inputs = places_of(SNAPSHOTS[2], sparse)
        torch.manual_seed(3)
        gcn = GCN(FEATURES, width=WIDTH, depth=2, dropout=0.3, encoder=encoder)
        torch.manual_seed(3)
        evolving = EvolvingGCN(FEATURES, variant, WIDTH, 2, dropout=0.3, encoder=encoder)  # type: ignore[arg-type]
        for count in (0, 3):
            for cell in evolving.cells:
                torch.nn.init.constant_(cell.update.shift, -1e4)
            told(evolving, SNAPSHOTS[:count], sparse)
            for training in (True, False):
                found = []
                for backbone in (gcn, evolving):
                    torch.manual_seed(4)
                    # What GCN sums before it encodes, the other does after: the same but for the last bits.
                    found.append(backbone.train(training)(inputs if encoder else backbone.arrange(inputs)))
                assert torch.equal(*found)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients_reach_the_first_weights_and_all_of_the_recurrence(variant: str) -> None:
    backbone = told(made(variant, training=True, encoder=True), SNAPSHOTS)
    backbone(places_of(SNAPSHOTS[2])).square().sum().backward()
    for name, parameter in backbone.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_pooling_leaves_no_trace_in_the_running_statistics() -> None:
    backbone = told(made("h", training=True), SNAPSHOTS)
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    backbone.weights()
    for name, value in backbone.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_snapshots_are_part_of_the_state_and_one_who_was_not_told_of_theirs_says_so() -> None:
    for variant in VARIANTS:
        one, other = told(made(variant), SNAPSHOTS[:2]), made(variant)
        other.load_state_dict(one.state_dict())
        if variant == "h":
            with pytest.raises(InputError, match="those of 2 snapshots, and it was told of 0"):
                other.weights()
            told(other, SNAPSHOTS[:2])
        inputs = places_of(SNAPSHOTS[2])
        assert torch.equal(one(inputs), other(inputs))


def test_of_a_snapshot_that_is_not_pooled_nothing_is_kept() -> None:
    assert made("o").snapshot_of(places_of(SNAPSHOTS[0])) == {}
    assert set(made("h").snapshot_of(places_of(SNAPSHOTS[0]))) == {"offsets", "sources", "features"}


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"variant": "p"}, "unknown variant 'p'"),
        ({"normalisation": "symmetrical"}, "did you mean 'symmetric'"),
        ({"dropout": 1}, "dropout must be at least 0 and below 1, found 1"),
        ({"depth": 0}, "depth and width must be at least 1"),
    ],
)
def test_what_it_cannot_have_is_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make_backbone("evolving-gcn", parameters, Facts("graph", {"features": FEATURES}), seed=0)
