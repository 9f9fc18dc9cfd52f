"""Early stopping: following what is monitored after every epoch, and going back to where it was lowest."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from skeleton_cgl.learning.monitor import monitor_of
from skeleton_cgl.learning.optimizers import copied_into, memory_of, remind, set_rate
from skeleton_cgl.learning.training import Training
from skeleton_cgl.scenarios.scenario import Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


class BestEpoch:
    """Weights and optimizer of the epoch of a lesson in which what is monitored was lowest."""

    def __init__(self, learner: "Learner", validation: Samples, past: Sequence[Samples] = ()) -> None:
        self._learner = learner
        self._monitor = monitor_of(learner, validation, past)
        self._cuts = Cuts(learner.training, learner.optimizer)
        self._lowest = torch.inf
        self._weights: dict[str, Any] = {}
        self._optimizer: dict[int, Any] = {}
        self._since = 0

    def is_over(self) -> bool:
        """Look at the learner after an epoch; return whether the recipe's patience or plateau ends the lesson."""
        value = self._monitor.value()
        if value < self._lowest:
            self._lowest, self._since = value, 0
            self._keep()
        else:
            self._since += 1
        at_floor = self._cuts.reach_floor(value)
        patience = self._learner.training.patience
        return at_floor or (patience is not None and self._since >= patience)

    def _keep(self) -> None:
        weights = self._learner.model.state_dict()
        # Into the same memory again: most epochs are better than all before.
        for name, value in weights.items():
            weights[name] = copied_into(self._weights.get(name), value)
        self._weights = weights
        self._optimizer = memory_of(self._learner.optimizer, self._optimizer)

    def restore(self) -> None:
        """Go back to the best epoch, with the full learning rate for the next lesson."""
        self._learner.model.load_state_dict(self._weights)
        remind(self._learner.optimizer, self._optimizer)
        set_rate(self._learner.optimizer, self._learner.training.learning_rate)


class Cuts:
    """The cuts of an optimizer's learning rate in one lesson, as a recipe's plateau says; none without one."""

    def __init__(self, training: Training, optimizer: torch.optim.Optimizer) -> None:
        self._plateau = training.plateau
        if self._plateau is not None:
            self._optimizer = optimizer
            self._floor = self._plateau.floor * training.learning_rate
            self._schedule = ReduceLROnPlateau(
                optimizer,
                factor=self._plateau.factor,
                patience=self._plateau.patience,
                min_lr=self._floor,
                # No cut is too small to be made: the floor of a small rate would never be reached.
                eps=0,
            )

    def reach_floor(self, value: float) -> bool:
        """Cut the rate if `value` says so; return whether it is at its floor and the lesson is to end there."""
        if self._plateau is None:
            return False
        self._schedule.step(value)
        return self._plateau.stop and all(group["lr"] <= self._floor for group in self._optimizer.param_groups)
