"""Piggyback (Mallya et al. 2018): a fixed backbone, and for every task a mask that says which of its weights count."""

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.masking import Masking, masked
from skeleton_cgl.methods.parameters import check_flag, check_number
from skeleton_cgl.methods.pretraining import pretrain
from skeleton_cgl.scenarios.scenario import Experience, Need, Queries

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class Piggyback(Method):
    """W ⊙ [m ≥ τ] with fixed W and an m per task, at first 2τ everywhere; ∂m = W ⊙ ∂(W ⊙ [m ≥ τ]), straight through.

    Masked are the backbone's weights of two axes and more; its biases, other parameters and BatchNorm stay as they are.
    m has an Adam of its own with the recipe's rate, plateau included, and is forgotten with the lesson; kept of a task
    are its mask and its rows of the head, with which its queries are answered ever after. Those that reveal no task are
    answered with the latest mask.

    threshold: τ. pretraining: whether W is trained without labels when the first lesson begins; otherwise it is as
    drawn, as the examples of BeGin have it.
    """

    needs: frozenset[Need] = frozenset(["revealed task"])
    paper: ClassVar[str] = "Mallya et al. 2018"

    def __init__(self, threshold: float = 0.01, pretraining: bool = True) -> None:
        check_number(above=0, threshold=threshold)
        check_flag(pretraining=pretraining)
        self.threshold = threshold
        self.pretraining = pretraining
        self.masks: list[dict[str, Tensor]] = []
        self.rows: list[Tensor] = []
        self._lesson: Masking | None = None

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        if self.pretraining and not self.masks:
            pretrain(learner, experience)
        self._lesson = Masking(learner.backbone, self.threshold)

    def gradients_ready(self, learner: "Learner") -> None:  # noqa: ARG002
        assert self._lesson is not None
        self._lesson.take_gradients()

    def step_done(self, learner: "Learner", batch: "Batch") -> None:  # noqa: ARG002
        assert self._lesson is not None
        self._lesson.step(learner.optimizer.param_groups[0]["lr"])

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:  # noqa: ARG002
        assert self._lesson is not None
        self.masks.append(self._lesson.end())
        self.rows.append(learner.head.rows.detach()[learner.columns_of(learner.taught[-1])].cpu())
        self._lesson = None

    def answer(self, learner: "Learner", queries: Queries, step: int) -> Tensor:
        inputs = learner.inputs(queries)
        if not self.masks:
            return learner.outputs(inputs)
        with masked(learner.backbone, self.masks[step]):
            if step < 0:
                return learner.outputs(inputs)
            embeddings = learner.embeddings(inputs)
        # Not from the whole head: a product with more columns may round otherwise, and old answers are to stay.
        rows = self.rows[step].to(embeddings)
        answers = embeddings.new_full((len(inputs), len(learner.head.outputs)), -torch.inf)
        answers[:, learner.columns_of(learner.taught[step])] = functional.linear(embeddings, rows[:, :-1], rows[:, -1])
        return answers

    def state(self) -> dict[str, Any]:
        return {"masks": self.masks, "rows": self.rows}

    def restore(self, state: dict[str, Any]) -> None:
        self.masks, self.rows = list(state["masks"]), list(state["rows"])
