"""BatchNorm: recalibrated statistics are exactly those of the inputs; who is warned without; passing unnoted."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.engine.learners import make_learner
from skeleton_cgl.learning.batchnorm import normalising, recalibrating, unnoted
from skeleton_cgl.learning.learner import UNSETTLED, Batch, Learner
from skeleton_cgl.learning.method import Method
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.scenario import Samples
from tests.learning.by_hand import inputs_of
from tests.learning.learners import FLAT_BACKBONE, small_learner
from tests.scenarios.graphs import node_scenario
from tests.scenarios.small import lesson, scenario_of

STATISTICS = ("running_mean", "running_var")


class Noting(Method):
    """Bare that notes the samples of every step."""

    def __init__(self) -> None:
        self.steps: list[Samples] = []

    def step_samples(self, learner: Learner, samples: Samples) -> Samples:  # noqa: ARG002
        self.steps.append(samples)
        return samples


def statistics_of(learner: Learner, batches: list[Samples]) -> list[Tensor]:
    """Return the mean over batches of what BatchNorm finds in each, layer by layer, with momentum 1."""
    found = []
    for samples in batches:
        backbone = copy.deepcopy(learner.backbone).train()
        for layer in normalising(backbone):
            layer.momentum = 1.0
        with torch.no_grad():
            backbone(inputs_of(samples, backbone).content)
        found.append([getattr(layer, name) for layer in normalising(backbone) for name in STATISTICS])
    return [torch.stack(values).mean(dim=0) for values in zip(*found, strict=True)]


def running(learner: Learner) -> list[Tensor]:
    return [getattr(layer, name) for layer in normalising(learner.backbone) for name in STATISTICS]


@pytest.mark.parametrize("backbone", ["gcn", "stgcn"])
@pytest.mark.parametrize("watching", [{}, {"patience": 2}, {"plateau": {"patience": 1}}])
def test_statistics_are_those_of_the_training_samples_under_the_weights_in_the_end(
    small: Path, backbone: str, watching: dict[str, Any]
) -> None:
    """To the bit; with early stopping, under those of the best epoch. Without recalibration they trail behind."""
    experience = lesson(scenario_of(small), (0, 1))
    for recalibrate in (True, False):
        learner = small_learner(scenario_of(small), backbone=backbone, epochs=12, recalibrate=recalibrate, **watching)
        learner.learn(experience, 0)
        expected = statistics_of(learner, [experience.training])
        assert all(map(torch.equal, running(learner), expected)) == recalibrate


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gin"])
def test_statistics_are_those_of_all_nodes_of_a_graph_however_few_are_learned(backbone: str) -> None:
    scenario = node_scenario(split={"ratios": (1, 1, 8)})
    experience = scenario.experience(scenario.lessons(scenario.default)[:1])
    learner = make_learner(scenario, backbone, "bare", Training(epochs=3, recalibrate=True), 0, {"width": 8})
    learner.learn(experience, 0)
    torch.testing.assert_close(running(learner), statistics_of(learner, [experience.training]))


def test_the_statistics_of_batches_are_those_of_all_of_an_epoch(small: Path) -> None:
    experience = lesson(scenario_of(small), (0, 1))
    learner = small_learner(scenario_of(small), f"{__name__}:Noting", epochs=3, batch_size=9, recalibrate=True)
    learner.learn(experience, 0)
    assert isinstance(learner.method, Noting)
    number = len(learner.method.steps) // 3
    assert number > 1
    torch.testing.assert_close(running(learner), statistics_of(learner, learner.method.steps[-number:]))


class Layers(Backbone):
    """Dropout before BatchNorm, one that nothing passes through, and one that is held in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.norm, self.unused, self.frozen = (nn.BatchNorm1d(3) for _ in range(3))

    def train(self, mode: bool = True) -> "Layers":
        super().train(mode)
        self.frozen.eval()
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        return self.frozen(self.norm(self.dropout(inputs)))


def test_dropout_is_left_out_and_layers_that_are_not_trained_keep_what_they_have() -> None:
    backbone, inputs = Layers().train(), torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    for layer in (backbone.unused, backbone.frozen):
        layer.running_mean += 3
    backbone(inputs)
    before = copy.deepcopy(backbone.state_dict())
    with recalibrating(backbone):
        backbone(inputs)
    torch.testing.assert_close(backbone.norm.running_mean, inputs.mean(dim=0))
    torch.testing.assert_close(backbone.norm.running_var, inputs.var(dim=0))
    changed = {name for name, value in backbone.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"norm.running_mean", "norm.running_var"}
    assert [layer.training for layer in (backbone, backbone.norm, backbone.frozen)] == [True, True, False]
    assert backbone.norm.momentum == 0.1


class Worse(Method):
    """Bare whose loss on validation samples grows with every step."""

    def __init__(self) -> None:
        self.steps = 0

    def step_done(self, learner: Learner, batch: Batch) -> None:  # noqa: ARG002
        self.steps += 1

    def loss(self, learner: Learner, batch: Batch) -> Tensor:
        return learner.task_loss(batch) * (1 + self.steps)


@pytest.mark.parametrize(
    ("recipe", "noted"),
    [
        ({"patience": 2}, True),
        ({"plateau": {"patience": 1}}, True),
        ({"patience": 69}, True),
        ({"patience": 70}, False),
        ({"patience": 2, "batch_size": 2, "epochs": 10}, True),
        ({"patience": 8, "batch_size": 2}, False),
        ({"patience": 2, "recalibrate": True}, False),
        ({"patience": 50, "epochs": 20}, False),
        ({"epochs": 3}, False),
    ],
)
def test_a_lesson_that_validation_ends_before_batchnorm_has_settled_is_noted(
    small: Path, recipe: dict[str, Any], noted: bool
) -> None:
    """Not where it was recalibrated, had steps enough, or went through all its epochs."""
    learner = small_learner(scenario_of(small), f"{__name__}:Worse", **{"epochs": 100, **recipe})
    learner.learn(lesson(scenario_of(small), (0, 1)), 0)
    assert learner.notes == ([UNSETTLED] if noted else [])


def test_a_backbone_without_batchnorm_is_not_noted_and_not_recalibrated(small: Path, tmp_path: Path) -> None:
    (tmp_path / "flat.py").write_text(FLAT_BACKBONE)
    for recalibrate in (False, True):
        learner = small_learner(
            scenario_of(small),
            f"{__name__}:Worse",
            backbone=str(tmp_path / "flat.py"),
            epochs=20,
            patience=2,
            recalibrate=recalibrate,
        )
        learner.learn(lesson(scenario_of(small), (0, 1)), 0)
        assert not learner.notes


def test_what_passes_unnoted_is_normalised_as_always_and_gives_gradients_afterwards() -> None:
    layers = [nn.Sequential(nn.BatchNorm1d(3), nn.BatchNorm1d(3)) for _ in range(2)]
    for frozen, _ in layers:
        frozen.eval()
    batch = torch.randn(8, 3, generator=torch.Generator().manual_seed(0)) * 5 + 2
    expected = layers[1](batch)
    before = {name: value.clone() for name, value in layers[0].state_dict().items()}
    noted = layers[0](batch)
    after = {name: value.clone() for name, value in layers[0].state_dict().items()}
    with unnoted(layers[0]):
        found = layers[0](batch)
    assert torch.equal(found, expected)
    assert torch.equal(noted, expected)
    assert all(torch.equal(value, after[name]) for name, value in layers[0].state_dict().items())
    assert not torch.equal(before["1.running_mean"], after["1.running_mean"])
    (found.sum() + noted.square().sum()).backward()
    assert layers[0][1].weight.grad is not None
    layers[0](batch)
    assert not torch.equal(after["1.running_mean"], layers[0].state_dict()["1.running_mean"])
