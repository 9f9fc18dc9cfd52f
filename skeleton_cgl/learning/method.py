"""What a continual-learning method is: the few moments of learning a task in which it may have its say."""

from typing import TYPE_CHECKING, Any

from torch import Tensor

from skeleton_cgl.registry import Registry
from skeleton_cgl.scenarios.scenario import SETTINGS, Experience, Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class LearningFailed(RuntimeError):
    """A task could not be learned: the loss or what follows from it is not finite."""


class Method:
    """Derive from this and override the moments the method cares about; without any it learns the task and no more.

    settings: the incremental settings the method is defined for. What a method has to remember from task to task it
    gives in `state` and takes back in `restore`, as tensors, numbers, text, lists and dicts.
    """

    settings: tuple[str, ...] = SETTINGS

    def check(self, learner: "Learner") -> None:
        """Refuse a learner the method cannot work with, before anything is learned."""

    def begin_task(self, learner: "Learner", experience: Experience) -> None:
        """Called before a task is learned."""

    def training_samples(self, learner: "Learner", experience: Experience) -> Samples:  # noqa: ARG002
        """Return the samples to learn the task from."""
        return experience.training

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        """Return the loss to be minimised."""
        return learner.task_loss(batch)

    def gradients_ready(self, learner: "Learner") -> None:
        """Called when the gradients of the loss are there, before the optimizer's step."""

    def end_task(self, learner: "Learner", experience: Experience) -> None:
        """Called when a task has been learned."""

    def state(self) -> dict[str, Any]:
        """Return what has to be remembered."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""


METHODS = Registry(
    kind="method",
    base="skeleton_cgl.learning.method:Method",
    known={
        "bare": "skeleton_cgl.methods.bare:Bare",
        "joint": "skeleton_cgl.methods.joint:Joint",
        "replay": "skeleton_cgl.methods.replay:Replay",
        "ewc": "skeleton_cgl.methods.ewc:EWC",
        "mas": "skeleton_cgl.methods.mas:MAS",
        "twp": "skeleton_cgl.methods.twp:TWP",
        "lwf": "skeleton_cgl.methods.lwf:LwF",
        "gem": "skeleton_cgl.methods.gem:GEM",
    },
)
