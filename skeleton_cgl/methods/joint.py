"""Joint: the task loss on all data of all tasks so far; the ceiling continual learners are measured against."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from skeleton_cgl.methods.parameters import check_flag
from skeleton_cgl.methods.replay import Replay
from skeleton_cgl.scenarios.inputs import together
from skeleton_cgl.scenarios.scenario import Experience, Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


class Joint(Replay):
    """Replay that keeps everything, every sample as it stood in its own task; early stopping watches all tasks too.

    restart: begin every task from the first weights, as BeGin does, instead of going on. On a stream it is given all
    that has come, whenever it is examined, for as many epochs as the recipe has: the bound, and no learner of streams.
    """

    offline: ClassVar[bool] = True
    watches_all: ClassVar[bool] = True
    younger: ClassVar[Mapping[str, Any]] = {"restart": False}

    def __init__(self, restart: bool = False) -> None:
        check_flag(restart=restart)
        super().__init__(fraction=1)
        self.restart = restart

    def keeps_all(self, taught: Sequence[Tensor]) -> bool:  # noqa: ARG002
        """Return false: it is expected to, and there is nothing to be told."""
        return False

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:  # noqa: ARG002
        if self.restart:
            learner.start_over()

    def lesson_samples(self, learner: "Learner", experience: Experience) -> Samples:
        training = replace(experience.training, pool=together(experience.training.pool))
        return super().lesson_samples(learner, replace(experience, training=training))
