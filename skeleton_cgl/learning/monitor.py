"""What is monitored while a lesson is learned: one number of the validation samples, the lower the better.

"method": the loss that the method minimises. "task": the plain task loss. Where past lessons count as well, w·(that of
the lesson's samples) + (1−w)·(the task loss of past ones), w being the weight of the lesson's samples among all. (Not
the method's loss of them: it is made for samples of the lesson; that of LwF is infinite for others.) "score": 1 − the
mean of the problem's leading metric over the outputs that the samples tell of.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.blame import blamed
from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import LearningFailed, Method
from skeleton_cgl.process import seeded
from skeleton_cgl.scenarios.problem import Problem, Truth, scopes
from skeleton_cgl.scenarios.scenario import Samples, join

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class Monitor(ABC):
    """Looks at validation samples of a lesson, and of past ones, as the learner stands, and leaves no trace in it."""

    def __init__(self, learner: "Learner", validation: Samples, past: Sequence[Samples] = ()) -> None:
        if not len(validation):
            asking = "plateau" if learner.training.patience is None else "patience"
            raise InputError(f"training: {asking}: {learner.lesson_in_words()} has no validation samples to watch")
        self._learner = learner
        self._pools = [validation.pool, *(samples.pool for samples in past)]
        self._batch = learner.batch(validation)
        self._past = learner.batch(join(past)) if past else None
        self._together = join([*past, validation])

    def value(self) -> float:
        """Return what is monitored; fail where it is not finite."""
        # The same draws every epoch: what is compared is then the weights.
        with seeded(0), self._learner.statistics_kept(), self._learner.answering():
            value = self._found()
        if not isfinite(value):
            raise LearningFailed(f"the validation loss of {self._learner.lesson_in_words()} is {value}")
        return value

    @abstractmethod
    def _found(self) -> float:
        """Return what is monitored of the samples."""


class Loss(Monitor):
    """The loss that the method minimises, or the plain task loss."""

    def __init__(self, learner: "Learner", validation: Samples, past: Sequence[Samples] = ()) -> None:
        super().__init__(learner, validation, past)
        targets = learner.problem.targets(self._together.labels, learner.head)
        self._weight = float(learner.problem.weights(targets)[-len(validation) :].sum())

    def _found(self) -> float:
        plain = self._learner.training.monitor == "task" or _has_task_loss(self._learner.method)
        own = self._task_loss(self._batch) if plain else self._loss_of_method()
        if self._past is None:
            return own
        return self._weight * own + (1 - self._weight) * self._task_loss(self._past)

    @torch.no_grad()
    def _task_loss(self, batch: "Batch") -> float:
        return self._learner.task_loss(batch).item()

    def _loss_of_method(self) -> float:
        learner = self._learner
        parameters = learner.parameters()
        gradients = [parameter.grad for parameter in parameters]
        learner.optimizer.zero_grad()
        try:
            # Not without gradients: a loss may be made of some.
            return self._copied_method().loss(learner, self._batch).item()
        finally:
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient

    def _copied_method(self) -> Method:
        """Return a copy of the method, so that what it notes while it is asked is not noted in it."""
        method = self._learner.method
        shared = {id(each): each for each in (self._learner, *self._pools)}
        try:
            return copy.deepcopy(method, shared)
        except Exception as error:
            asking = "plateau" if self._learner.training.patience is None else "patience"
            raise InputError(
                f"method {type(method).__name__}: cannot be copied, which `training.{asking}` needs to look at its "
                f"loss: {blamed(error, method)}"
            ) from error


class Score(Monitor):
    """1 − the mean of the problem's leading metric over the outputs that the samples tell of."""

    def __init__(self, learner: "Learner", validation: Samples, past: Sequence[Samples] = ()) -> None:
        super().__init__(learner, validation, past)
        self._truth = truth_of(learner.problem, self._together.labels, learner.head.span)

    @torch.no_grad()
    def _found(self) -> float:
        learner, problem = self._learner, self._learner.problem
        batches = [self._batch] if self._past is None else [self._past, self._batch]
        outputs = torch.cat([learner.outputs(batch.inputs).cpu() for batch in batches])
        answers = torch.full(self._truth.asked.shape, -torch.inf)
        answers[:, learner.head.outputs] = outputs
        among = scopes([taught.outputs for taught in learner.taught], answers.shape[1])[self._together.step]
        measures = problem.measure(answers, self._truth, among, "validation")
        values = next(measure.values for measure in measures if measure.metric == problem.metrics[0])
        if np.isnan(values).all():
            words = f"{problem.metrics[0]} is not defined for the validation samples of {learner.lesson_in_words()}"
            raise InputError(f"training: monitor: score: {words}; take `task`")
        return 1 - float(np.nanmean(values))


def monitor_of(learner: "Learner", validation: Samples, past: Sequence[Samples] = ()) -> Monitor:
    """Return what a learner's training recipe monitors; refuse a lesson without validation samples."""
    kind = Score if learner.training.monitor == "score" else Loss
    return kind(learner, validation, past)


def truth_of(problem: Problem, labels: Tensor, outputs: int) -> Truth:
    """Return the truth of samples by their labels alone: every output is a unit, with those that tell of it."""
    asked = torch.zeros(len(labels), outputs, dtype=torch.bool)
    for row in range(len(labels)):
        asked[row, problem.outputs_of(labels[row : row + 1])] = True
    return Truth(labels, asked, torch.arange(outputs), outputs)


def _has_task_loss(method: Method) -> bool:
    """Return whether a method minimises the task loss and no more, which notes nothing and needs no gradient."""
    return getattr(method.loss, "__func__", None) is Method.loss
