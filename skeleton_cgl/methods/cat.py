"""CaT, condense and train (Liu et al. 2023): every task becomes a few synthetic nodes, and only these are learned."""

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.errors import InputError
from skeleton_cgl.methods.condensed import Condensed, drawn_per_class, lowered
from skeleton_cgl.methods.parameters import check_number, check_whole
from skeleton_cgl.methods.remembering import Remembering
from skeleton_cgl.scenarios.scenario import Experience, Need

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner

_COUNT = 20
"""Rows per task where neither a count nor a total is given."""
_FEWEST = 2
"""BatchNorm needs two."""


class CaT(Remembering[Condensed]):
    """Condenses a task's training nodes D_t into M_t rows X̃ without edges, then learns M_1 ∪ … ∪ M_t alone.

    The rows start as features of real nodes, each class with its share of M_t, at least one, and at most all it has.
    `steps` times, with weights W (F, width) drawn anew and f(Z) = ReLU(ZW), each row of it brought to length 1:
    min_X̃ Σ_c ‖mean_c f(ÂX) − mean_c f(X̃)‖², by Adam at `rate`. Queries are answered in the real graph.

    The distance is blind to how long rows are, and Adam's steps make them longer: on features as small as those of a
    row-normalised bag of words, several times as long as real ones. BatchNorm may then learn statistics that no query
    has, and a backbone without it do better.

    count: M_t. total: instead, what all tasks have together: M_t = ⌊total / tasks⌋. epochs: how long a lesson is
    trained, if not as the training recipe says.
    """

    needs: frozenset[Need] = frozenset(["nodes", "one class"])
    paper: ClassVar[str] = "Liu et al. 2023"
    by_content: ClassVar[bool] = True

    def __init__(
        self,
        count: int | None = None,
        total: int | None = None,
        steps: int = 5000,
        rate: float = 1e-3,
        width: int = 512,
        epochs: int | None = None,
    ) -> None:
        if count is not None and total is not None:
            raise ValueError("give either a count per task or a total of all tasks")
        check_whole(_FEWEST, optional=True, count=count, total=total)
        check_whole(0, steps=steps)
        check_whole(1, width=width)
        check_whole(1, optional=True, epochs=epochs)
        check_number(rate=rate)
        if rate <= 0:
            raise ValueError(f"rate {rate} is not positive")
        self.count = _COUNT if count is None else count
        self.total = total
        self.counts_lessons = total is not None
        self.steps = steps
        self.rate = rate
        self.width = width
        self.epochs = epochs
        self.memory = Condensed()

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        unsaid = parameters.get("count") is None and parameters.get("total") is None
        return {**parameters, "count": _COUNT} if unsaid else parameters

    def fits(self, learner: "Learner") -> None:
        if self.total is not None and self.total // (learner.lessons or 1) < _FEWEST:
            raise InputError(
                f"CaT: a total of {self.total} leaves fewer than {_FEWEST} rows to {learner.lessons} tasks"
            )

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        training = experience.training
        counts = shares(training.labels, self._rows_of_a_task(learner, experience))
        random = torch.Generator().manual_seed(learner.seed_of_lesson("condensation", experience))
        first = training.select(drawn_per_class(training.labels, counts, random))
        matching = Matching(learner.plain(training, hops=1), training.labels, first.labels, self.width, random)
        rows = lowered(matching.loss, learner.plain(first), self.steps, self.rate)
        self.memory.keep(rows, first.labels, first.step)

    def _rows_of_a_task(self, learner: "Learner", experience: Experience) -> int:
        rows = self.count if self.total is None else self.total // (learner.lessons or 1)
        classes = len(experience.training.labels.unique())
        if rows < max(classes, _FEWEST):
            raise InputError(f"CaT: {rows} rows are too few for the {classes} classes of {learner.lesson_in_words()}")
        return rows

    def learn_lesson(self, learner: "Learner", experience: Experience) -> None:  # noqa: ARG002
        learner.train(self.memory.samples(), self.epochs)


class Matching:
    """How far class means of rows are from those of real nodes, Â·X (N, F), as a random encoder sees both."""

    def __init__(self, real: Tensor, labels: Tensor, of_rows: Tensor, width: int, random: torch.Generator) -> None:
        self._real = real
        self._means_of_real, self._means_of_rows = (_means(each).to(real) for each in (labels, of_rows))
        self._width = width
        self._random = random

    def loss(self, rows: Tensor) -> Tensor:
        """Return Σ_c ‖mean_c f(ÂX) − mean_c f(X̃)‖² for an encoder f drawn now."""
        # Not scaled: what it gives is brought to length 1.
        weights = torch.empty(rows.shape[1], self._width).uniform_(-1, 1, generator=self._random).to(rows)
        real, made = (functional.normalize(each.matmul(weights).relu_(), dim=1) for each in (self._real, rows))
        return (self._means_of_real @ real - self._means_of_rows @ made).square().sum()


def shares(labels: Tensor, rows: int) -> dict[int, int]:
    """Return how many of the rows each class gets: one, then in proportion to its size n_c, and at most n_c.

    They are given one by one to the class with the largest n_c / (share + ½), which is Webster's method. It is less
    than 1 for a class that has n_c of them, and more for any other: the former comes last.
    """
    classes, sizes = labels.unique(return_counts=True)
    given = torch.ones_like(sizes)
    while given.sum() < min(rows, len(labels)):
        given[(sizes / (given + 0.5)).argmax()] += 1
    return dict(zip(classes.tolist(), given.tolist(), strict=True))


def _means(labels: Tensor) -> Tensor:
    """Return (classes, N) what takes the mean of every class, ascending."""
    members = (labels == labels.unique()[:, None]).float()
    return members / members.sum(dim=1, keepdim=True)
