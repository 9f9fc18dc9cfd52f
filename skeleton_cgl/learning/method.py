"""What a continual-learning method is: the few moments of learning a lesson in which it may have its say."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import METHODS
from skeleton_cgl.scenarios.scenario import Experience, Need, Queries, Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class LearningFailed(RuntimeError):
    """A lesson could not be learned: the loss or what follows from it is not finite."""


class Method:
    """Derive from this and override the moments the method cares about; without any it learns the lesson and no more.

    needs: what the method cannot do without; a scenario or backbone that does not offer it is refused in one sentence.
    On a stream, which has no borders between lessons, only the moments of a step come, `step_samples` to `step_done`: a
    method with `begin_lesson`, `lesson_samples`, `learn_lesson` or `end_lesson` needs borders without saying so.

    offline: the method is no learner of streams, but what these are held against: there it learns every piece as a
    lesson with a beginning and an end, by the training recipe.

    paper: where the method is from, as lists of methods show it. counts_lessons: whether it goes by how many lessons
    there will be, so that orders of more than the default one has are refused.

    What a method has to remember from lesson to lesson it gives in `state` and takes back in `restore`, as tensors,
    numbers, text, lists and dicts; what it forgets to give is found out before a study runs.

    watches_all: whether early stopping watches the validation samples of all lessons so far, whatever the recipe says.

    by_content: whether `state` holds the inputs of the samples that are kept, and not only their numbers in the pool.

    younger, gone: parameters that came or went while records were kept, each with the value that means "as before".
    version: raised when the method comes to other numbers; keys have it, and with it what derives from the method.
    """

    needs: frozenset[Need] = frozenset()
    offline: ClassVar[bool] = False
    paper: ClassVar[str] = ""
    counts_lessons: bool = False
    watches_all: ClassVar[bool] = False
    by_content: ClassVar[bool] = False
    younger: ClassVar[Mapping[str, Any]] = {}
    gone: ClassVar[Mapping[str, Any]] = {}
    version: ClassVar[int] = 1

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a built-in method with what they leave unsaid, so that one meaning has one key."""
        return parameters

    def fits(self, learner: "Learner") -> None:
        """Refuse a learner the method cannot be used with, in one sentence, before anything is learned."""

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        """Called before a lesson is learned."""

    def lesson_samples(self, learner: "Learner", experience: Experience) -> Samples:  # noqa: ARG002
        """Return the samples to learn the lesson from."""
        return experience.training

    def learn_lesson(self, learner: "Learner", experience: Experience) -> None:
        """Learn the lesson: as the training recipe says, from `lesson_samples`."""
        learner.train(self.lesson_samples(learner, experience))

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:  # noqa: ARG002
        """Return the samples of one step, from those whose turn it is; on streams, the place for what is remembered."""
        return samples

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        """Return the loss to be minimised."""
        return learner.task_loss(batch)

    def gradients_ready(self, learner: "Learner") -> None:
        """Called when the gradients of the loss are there, before the optimizer's step."""

    def step_done(self, learner: "Learner", batch: "Batch") -> None:
        """Called after the optimizer's step."""

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        """Called when a lesson has been learned."""

    def answer(self, learner: "Learner", queries: Queries, step: int) -> Tensor:  # noqa: ARG002
        """Return the outputs (Q, outputs met) for queries that all reveal the same step, −1 for none."""
        return learner.outputs(learner.inputs(queries))

    def samples_kept(self) -> int:
        """Return how many samples are kept for later lessons, of whatever lesson; a record tells what that costs."""
        return 0

    def keeps_all(self, taught: Sequence[Tensor]) -> bool:  # noqa: ARG002
        """Return whether the memory has room for all samples to learn from; users are told before a study runs.

        taught: the labels of those of every lesson.
        """
        return False

    def state(self) -> dict[str, Any]:
        """Return what has to be remembered."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""


MOMENTS = (
    *("begin_lesson", "lesson_samples", "learn_lesson", "step_samples", "loss"),
    *("gradients_ready", "step_done", "end_lesson", "answer", "state", "restore"),
)
"""What a method may override of learning and answering."""

_AT_BORDERS = ("begin_lesson", "lesson_samples", "learn_lesson", "end_lesson")

_FORMER = {
    "begin_task": "begin_lesson",
    "training_samples": "lesson_samples",
    "end_task": "end_lesson",
    "settings": "needs",
    "check": "needs",
}


def make_method(name: str, parameters: Mapping[str, Any]) -> Method:
    """Return the method called `name`; refuse unknown names and parameters, and one that saves without restoring."""
    method: Method = METHODS.make(name, parameters)
    kind = type(method)
    for former, now in _FORMER.items():
        if hasattr(kind, former):
            raise InputError(f"method {name!r}: `{former}` is called `{now}`; nothing would call it by its former name")
    saves, restores = (overrides(kind, moment) for moment in ("state", "restore"))
    if saves != restores:
        there, missing = ("state", "restore") if saves else ("restore", "state")
        raise InputError(f"method {name!r}: has `{there}` but not `{missing}`; what it remembers would be lost")
    return method


def needs_of(method: Method) -> frozenset[Need]:
    """Return what a method needs: what it says, and borders where it has something to do at them on streams too."""
    at_borders = not method.offline and any(overrides(type(method), moment) for moment in _AT_BORDERS)
    return method.needs | ({"borders"} if at_borders else frozenset())


def overrides(kind: type[Method], moment: str) -> bool:
    """Return whether a method has its own say in a moment."""
    return getattr(kind, moment) is not getattr(Method, moment)
