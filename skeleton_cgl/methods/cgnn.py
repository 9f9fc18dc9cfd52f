"""CGNN, ContinualGNN (Wang et al. 2020): nodes that the growing graph changed, a memory, and a penalty by it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import torch
from torch import Tensor

from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.changes import Changes, shares_of_others
from skeleton_cgl.methods.importance import Anchor
from skeleton_cgl.methods.kept_samples import KeptSamples
from skeleton_cgl.methods.parameters import check_choice, check_number, check_share, check_whole
from skeleton_cgl.methods.quotas import QuotaMemory
from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.scenario import Experience, Need, Samples, join

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

Variant = Literal["defined", "begin"]


class CGNN(Method):
    """L(D_t ∪ detected ∪ B) + λ/2·Σᵢ Fᵢ(θᵢ − θ*ᵢ)², F = (∇L(B))² and θ* as the lesson begins, with λ the strength.

    Detected are past training nodes among the `share` of all nodes that the graph's growth changed most (changes.py);
    in a graph that does not grow, none. Learning them again takes their labels: in a growing graph, ids and labels of
    all past training nodes are kept besides B, and counted; share 0 detects none and keeps none. F is of the outputs
    known before the lesson: new rows of the head are free.

    The memory B has M_c = ⌊count·n_c/Σn⌋ nodes of class c at most, of n_c met so far; that may be none. At the end of a
    lesson, what is too many of a class goes at random; then every node of the lesson enters while there is room for its
    class, or else takes a random one's place with probability p·(M_c/n_c)·(1 + α·σ(10r − 5)), r being the share of
    another class among its neighbours whose labels are known.

    variant: "begin", as BeGin's published figures were made: no penalty is ever added, as its wrapper is lost; and task
    t is learned from D_t, all of D_t−1, kept until then and counted, and the memory of a task earlier, as its loader
    comes too early. Nothing is detected.
    """

    needs: frozenset[Need] = frozenset(["nodes", "one class"])
    paper: ClassVar[str] = "Wang et al. 2020"

    def __init__(
        self,
        strength: float = 80.0,
        count: int = 250,
        share: float = 0.8,
        p: float = 1.0,
        alpha: float = 0.0,
        variant: Variant = "defined",
    ) -> None:
        for name, number in (("strength", strength), ("alpha", alpha)):
            if not number >= 0:
                raise ValueError(f"{name} {number} is negative")
        check_number(strength=strength, alpha=alpha)
        check_share(share=share, p=p)
        check_whole(1, count=count)
        check_choice(get_args(Variant), variant=variant)
        self.strength, self.share, self.alpha = strength, share, alpha
        self.variant = variant
        self.memory, self.past, self.earlier = QuotaMemory(count, p), KeptSamples(), KeptSamples()
        self.changes = Changes()
        self._anchor: Anchor | None = None

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        if not len(self.memory) or not self.strength or self.variant == "begin":
            return
        batch = learner.batch(self.memory.of(experience.training.pool))
        before = learner.scopes()[:-2].any(dim=0).to(learner.device)
        # BatchNorm needs two for statistics of their own.
        with learner.observing() if len(batch) > 1 else learner.answering():
            loss = learner.loss_of(learner.outputs(batch.inputs), batch, among=before)
            self._anchor = Anchor.at(learner, learner.gradient_of(loss).square())

    def lesson_samples(self, learner: "Learner", experience: Experience) -> Samples:
        training = experience.training
        more = [self.past, self.earlier] if self.variant == "begin" else [self.memory]
        parts = [training, *(kept.of(training.pool) for kept in more), self.detected(learner, training.pool)]
        return join([part for part in parts if len(part)])

    def detected(self, learner: "Learner", pool: Pool) -> Samples:
        """Return the past nodes to be learned again that are not in the memory."""
        past = self.past.of(pool)
        if self.variant == "begin" or not len(past):
            return past.select(torch.arange(0))
        touched = self.changes.most_touched(learner, pool, self.share)
        return past.select((torch.isin(past.ids, touched) & ~torch.isin(past.ids, self.memory.ids)).nonzero()[:, 0])

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        loss = learner.task_loss(batch)
        if self._anchor is None:
            return loss
        return loss + self.strength / 2 * self._anchor.penalty(learner.parameter_vector())

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        training = experience.training
        if self.variant == "begin":
            self.earlier.replace(self.memory.of(training.pool))
            self.past.replace(training)
        elif self.share and self.changes.may_come(training.pool):
            self.past.add(training)
            self.changes.look(training.pool)
        favour = 1 + self.alpha * torch.sigmoid(10 * self._shares_of_others(training) - 5)
        seed = learner.seed_of_lesson("memory", experience)
        self.memory.meet(training, favour, torch.Generator().manual_seed(seed))
        self._anchor = None

    def _shares_of_others(self, training: Samples) -> Tensor:
        """Return (N,) r; where it does not count, 0."""
        if not self.alpha:
            return torch.zeros(len(training))
        known = [kept.of(training.pool) for kept in (self.memory, self.past)]
        return shares_of_others(join([*known, training]))[-len(training) :]

    def samples_kept(self) -> int:
        return len(torch.cat([self.memory.ids, self.past.ids, self.earlier.ids]).unique())

    def keeps_all(self, taught: Sequence[Tensor]) -> bool:
        return self.memory.has_room(list(map(len, taught)))

    def state(self) -> dict[str, Any]:
        return {name: part.state() for name, part in self._parts().items()}

    def restore(self, state: dict[str, Any]) -> None:
        for name, part in self._parts().items():
            part.restore(state[name])

    def _parts(self) -> "dict[str, KeptSamples | Changes]":
        return {"memory": self.memory, "past": self.past, "earlier": self.earlier, "changes": self.changes}
