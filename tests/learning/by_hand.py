"""Learning written out by hand: a weight vector per class in a dict, plain gradient descent, loops where they fit.

Shares with the library the backbone and the first weights of each class, and nothing of how it learns.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from skeleton_cgl.backbones.backbone import Backbone, make_backbone
from skeleton_cgl.backbones.head import Head
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.scenarios.inputs import Inputs
from skeleton_cgl.scenarios.scenario import Samples, Scenario


def inputs_of(samples: Samples, backbone: Backbone) -> Inputs:
    """Return samples as a backbone wants them, arranged for this once."""
    return samples.pool.whole().rows(samples.ids).arranged(backbone.arrange)


class HandMade:
    """A backbone and one row of weights per class, each a tensor of its own."""

    def __init__(self, scenario: Scenario, backbone: str = "gcn", seed: int = 0, rate: float = 0.05) -> None:
        parameters = {"gcn": {"width": 6}, "stgcn": {"width": 5, "kernel": 3}}[backbone]
        self.scenario = scenario
        self.backbone = make_backbone(backbone, parameters, scenario.facts, seed)
        self.rows: dict[int, Tensor] = {}
        self.seed = seed
        self.rate = rate

    def meet(self, task: tuple[int, ...], width: int = 64) -> None:
        for label in task:
            head = Head(width, self.seed, self.scenario.outputs)
            head.meet([label])
            self.rows[label] = head.rows.detach()[0].clone().requires_grad_()

    def outputs(self, samples: Samples, classes: list[int]) -> Tensor:
        embeddings = self.backbone(inputs_of(samples, self.backbone).content)
        return torch.stack([embeddings @ self.rows[label][:-1] + self.rows[label][-1] for label in classes], dim=1)

    def parameters(self) -> dict[str | int, Tensor]:
        return {**dict(self.backbone.named_parameters()), **self.rows}

    def train(self, loss: Callable[[], Tensor], epochs: int = 3) -> None:
        """Take plain gradient steps of the loss."""
        self.backbone.train()
        for _ in range(epochs):
            parameters = self.parameters().values()
            gradients = torch.autograd.grad(loss(), parameters, allow_unused=True)
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    if gradient is not None:
                        parameter -= self.rate * gradient
        self.backbone.eval()

    def assert_same_as(self, learner: Learner, tolerance: float = 1e-5) -> None:
        for name, value in learner.backbone.state_dict().items():
            torch.testing.assert_close(value, self.backbone.state_dict()[name], atol=tolerance, rtol=tolerance)
        assert set(learner.head.outputs) == set(self.rows)
        for label, row in zip(learner.head.outputs, learner.head.rows, strict=True):
            torch.testing.assert_close(row, self.rows[label], atol=tolerance, rtol=tolerance)


def balanced_cross_entropy(outputs: Tensor, labels: Tensor, classes: list[int]) -> Tensor:
    """Return the mean over the classes present of the mean loss of their samples, among `classes`."""
    present = sorted(set(labels.tolist()))
    losses = []
    for label in present:
        rows = outputs[labels == label]
        losses.append((rows.exp().sum(dim=1).log() - rows[:, classes.index(label)]).mean())
    return torch.stack(losses).mean()
