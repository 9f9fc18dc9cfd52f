"""Early stopping: looking at a loss on validation samples after every epoch, and going back to where it was lowest.

What is watched is the loss that the method minimises, on the validation samples of the lesson; where past lessons count
as well, w·(that) + (1−w)·(the task loss of theirs), w being the weight of the lesson's samples among all. (Not the
method's loss of them: it is made for samples of the lesson; that of LwF is infinite for others.)
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from skeleton_cgl.blame import blamed
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import LearningFailed, Method
from skeleton_cgl.learning.optimizers import memory_of, remind
from skeleton_cgl.process import seeded
from skeleton_cgl.scenarios.scenario import Samples, join

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


class BestEpoch:
    """Weights and optimizer of the epoch with the lowest loss on the validation samples of a lesson, and past ones."""

    def __init__(self, learner: "Learner", validation: Samples, past: Sequence[Samples] = ()) -> None:
        if not len(validation):
            raise InputError(f"training: patience: {learner.lesson_in_words()} has no validation samples to watch")
        self._learner = learner
        self._pool = validation.pool
        self._batch = learner.batch(validation)
        self._past = learner.batch(join(past)) if past else None
        together = learner.problem.targets(join([*past, validation]).labels, learner.head)
        self._weight = float(learner.problem.weights(together)[-len(validation) :].sum())
        self._lowest = torch.inf
        self._weights: dict[str, Tensor] = {}
        self._optimizer = memory_of(learner.optimizer)
        self._since = 0

    def is_over(self, patience: int) -> bool:
        """Look at the learner after an epoch; return whether the loss has not improved for `patience` epochs."""
        loss = self._watched()
        if not isfinite(loss):
            raise LearningFailed(f"the validation loss of {self._learner.lesson_in_words()} is {loss}")
        if loss < self._lowest:
            self._lowest, self._since = loss, 0
            self._weights = copy.deepcopy(self._learner.model.state_dict())
            self._optimizer = memory_of(self._learner.optimizer)
        else:
            self._since += 1
        return self._since >= patience

    def restore(self) -> None:
        """Go back to the best epoch."""
        self._learner.model.load_state_dict(self._weights)
        remind(self._learner.optimizer, self._optimizer)

    def _watched(self) -> float:
        learner = self._learner
        with _without_a_trace(learner):
            # Not without gradients: a loss may be made of some.
            own = self._method().loss(learner, self._batch).item()
            if self._past is None:
                return own
            with torch.no_grad():
                return self._weight * own + (1 - self._weight) * learner.task_loss(self._past).item()

    def _method(self) -> Method:
        """Return a copy of the method, so that what it notes while it is asked is not noted in it."""
        method = self._learner.method
        shared = {id(each): each for each in (self._learner, self._pool)}
        try:
            return copy.deepcopy(method, shared)
        except Exception as error:
            raise InputError(
                f"method {type(method).__name__}: cannot be copied, which `training.patience` needs to look at its "
                f"loss: {blamed(error, method)}"
            ) from error


@contextmanager
def _without_a_trace(learner: "Learner") -> Iterator[None]:
    """Within: as when queries are answered; gradients, statistics and random generators are put back afterwards."""
    parameters = learner.parameters()
    gradients = [parameter.grad for parameter in parameters]
    learner.optimizer.zero_grad()
    try:
        # The same draws every epoch: what is compared is then the weights.
        with seeded(0), learner.statistics_kept(), learner.answering():
            yield
    finally:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
