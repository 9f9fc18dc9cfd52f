"""PackNet (Mallya and Lazebnik 2018): every task gets weights of its own, and uses those of the tasks before it."""

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.isolation import OwnParts, weights_of
from skeleton_cgl.methods.parameters import check_number
from skeleton_cgl.scenarios.scenario import Experience, Need, Queries

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class PackNet(Method):
    """Per task: train the free weights for a tenth of the epochs, own the largest, zero the others, train the owned.

    After task k a share of p^k of every tensor is left free; the last of N tasks owns what is left, which by default,
    with p = (1/N)^(1/(N−1)), is 1/N. Task i is answered with the weights owned by tasks ≤ i, which later tasks use and
    never move, whatever the optimizer does. Tensors are the backbone's weights of two dimensions and more; the rest,
    biases among it, is each task's own. The paper has no weight decay, which would shrink what a task owns while it is
    trained.

    prune: p, of what is free the share that a task leaves to later ones.
    """

    needs: frozenset[Need] = frozenset(["revealed task"])
    counts_lessons = True
    paper: ClassVar[str] = "Mallya and Lazebnik 2018"

    def __init__(self, prune: float | None = None) -> None:
        if prune is not None:
            check_number(prune=prune)
            if not 0 < prune < 1:
                raise ValueError(f"prune {prune} is not between 0 and 1")
        self.prune = prune
        self._owners: dict[str, Tensor] = {}
        self._own = OwnParts()
        # Of the weights that do not move at present: which they are, and their values.
        self._held: dict[str, tuple[Tensor, Tensor]] = {}

    def fits(self, learner: "Learner") -> None:
        if learner.lessons is not None and learner.lessons < 2:
            raise InputError("PackNet needs at least two tasks")

    def learn_lesson(self, learner: "Learner", experience: Experience) -> None:
        samples, task = self.lesson_samples(learner, experience), len(learner.taught)
        self._let_move(learner, owner=0)
        learner.train(samples, max(1, learner.training.epochs // 10))
        self._own_largest(learner, task)
        self._let_move(learner, owner=task)
        learner.train(samples)
        self._held = {}
        self._own.keep(learner, _weights(learner))

    def _let_move(self, learner: "Learner", owner: int) -> None:
        """Have none but these weights move from now on, by a new optimizer."""
        self._held = {
            name: (self._owner_of(name, weight) != owner, weight.detach().clone())
            for name, weight in _weights(learner).items()
        }
        learner.reset_optimizer()

    def _owner_of(self, name: str, weight: Tensor) -> Tensor:
        """Return the number of the task that owns each entry of a weight, 0 where it is free."""
        if name not in self._owners:
            self._owners[name] = torch.zeros_like(weight, dtype=torch.int16)
        return self._owners[name].to(weight.device)

    @torch.no_grad()
    def _own_largest(self, learner: "Learner", task: int) -> None:
        """Have a task own the largest free entries of every weight, the first of equal ones, and set the rest to 0."""
        for name, weight in _weights(learner).items():
            owner = self._owner_of(name, weight).flatten().clone()
            free = owner == 0
            left = 0 if task >= _lessons(learner) else round(len(owner) * self._share_left(learner) ** task)
            # Not what is above a threshold: of weights that are 0, all would be, or none.
            ranked = weight.abs().flatten().masked_fill(~free, -1).argsort(descending=True, stable=True)
            owner[ranked[: max(int(free.sum()) - left, 0)]] = task
            self._owners[name] = owner.view_as(weight)
            weight.masked_fill_(self._owners[name] == 0, 0)

    def _share_left(self, learner: "Learner") -> float:
        tasks = _lessons(learner)
        return (1 / tasks) ** (1 / (tasks - 1)) if self.prune is None else self.prune

    @torch.no_grad()
    def step_done(self, learner: "Learner", batch: "Batch") -> None:  # noqa: ARG002
        weights = _weights(learner)
        for name, (still, values) in self._held.items():
            weights[name].copy_(torch.where(still, values, weights[name]))

    def answer(self, learner: "Learner", queries: Queries, step: int) -> Tensor:
        if step < 0:
            return super().answer(learner, queries, step)
        shared = {}
        for name, weight in _weights(learner).items():
            owner = self._owner_of(name, weight)
            shared[name] = weight.masked_fill((owner == 0) | (owner > step + 1), 0)
        return self._own.answer(learner, queries, step, shared)

    def state(self) -> dict[str, Any]:
        return {"owners": self._owners, "own": self._own.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._owners = dict(state["owners"])
        self._own.restore(state["own"])


def _weights(learner: "Learner") -> dict[str, nn.Parameter]:
    """Return the weights that tasks share out, by the names they have in the model."""
    return weights_of(learner.backbone, "backbone")


def _lessons(learner: "Learner") -> int:
    assert learner.lessons is not None, "only a stream has no number of lessons, and streams have no borders"
    return learner.lessons
