"""What a task owns beside the weights it shares with others: with it, old tasks are answered as when they were learned.

A task owns its rows of the head, BatchNorm's scale, shift and running statistics, and biases: all parameters and
buffers that the method does not share out among tasks.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from skeleton_cgl.scenarios.scenario import Queries

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner

_ROWS = "head.rows"


def weights_of(backbone: nn.Module, prefix: str = "") -> dict[str, nn.Parameter]:
    """Return what is shared out or masked, by name: trainable parameters of two axes and more that are no biases.

    By name, since a bias may have two axes: one row for every partition of the joints. prefix: what names begin with,
    before a dot.
    """
    return {
        name: value
        for name, value in backbone.named_parameters(prefix)
        if value.requires_grad and value.ndim > 1 and name.rpartition(".")[2] != "bias"
    }


class OwnParts:
    """What every task owns, as copies by the names of the model; of the head its rows alone."""

    def __init__(self) -> None:
        self._of_tasks: list[dict[str, Tensor]] = []

    def __len__(self) -> int:
        return len(self._of_tasks)

    def keep(self, learner: "Learner", shared: Collection[str]) -> None:
        """Keep what the task just learned owns: all but what is `shared`."""
        model = learner.model.state_dict()
        parts = {name: value.detach().clone() for name, value in model.items() if name not in {_ROWS, *shared}}
        rows = learner.head.rows.detach()[learner.columns_of(learner.taught[-1])]
        self._of_tasks.append({**parts, _ROWS: rows})

    def answer(self, learner: "Learner", queries: Queries, step: int, weights: Mapping[str, Tensor]) -> Tensor:
        """Return the outputs (Q, outputs met) as of a task, by what it owns and other weights; −∞ where it has none.

        With the task's rows of the head alone: how a product is rounded may depend on how many rows there are.
        """
        own = {name: value.to(learner.device) for name, value in self._of_tasks[step].items()}
        found = learner.outputs(learner.inputs(queries), {**own, **weights})
        answers = found.new_full((len(found), len(learner.head.outputs)), -torch.inf)
        answers[:, learner.columns_of(learner.taught[step])] = found
        return answers

    def of(self, step: int) -> Mapping[str, Tensor]:
        """Return what a task owns, by name; that of step −1 is the latest."""
        return self._of_tasks[step]

    def state(self) -> list[dict[str, Any]]:
        return list(self._of_tasks)

    def restore(self, state: list[dict[str, Any]]) -> None:
        self._of_tasks = list(state)
