"""Replay: a random part of every finished task is mixed into the training data of later tasks."""

from typing import TYPE_CHECKING, Any

from skeleton_cgl.methods.memory import Memory, with_fraction
from skeleton_cgl.methods.remembering import Remembering
from skeleton_cgl.scenarios.scenario import Experience, Samples, join

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


class Replay(Remembering[Memory]):
    """Learns the task loss on the new task and the memory of past tasks together, in one forward pass.

    A count that no task exceeds keeps everything, as a fraction of 1 does: it is Joint.
    """

    def __init__(self, fraction: float | None = None, count: int | None = None) -> None:
        self.memory = Memory(**with_fraction({"fraction": fraction, "count": count}))

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        return with_fraction(parameters)

    def lesson_samples(self, learner: "Learner", experience: Experience) -> Samples:  # noqa: ARG002
        return join([*self.memory.of_tasks(experience.training.pool), experience.training])

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        self.memory.keep(experience, learner.seed_of_lesson("memory", experience))
