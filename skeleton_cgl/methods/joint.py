"""Joint: the task loss on all data of all tasks so far; the ceiling continual learners are measured against."""

from dataclasses import replace
from typing import TYPE_CHECKING

from skeleton_cgl.methods.replay import Replay
from skeleton_cgl.scenarios.inputs import together
from skeleton_cgl.scenarios.scenario import Experience, Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


class Joint(Replay):
    """Replay that keeps everything, every sample as it stood in its own task."""

    def __init__(self) -> None:
        super().__init__(fraction=1)

    def lesson_samples(self, learner: "Learner", experience: Experience) -> Samples:
        training = replace(experience.training, pool=together(experience.training.pool))
        return super().lesson_samples(learner, replace(experience, training=training))
