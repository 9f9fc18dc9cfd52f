"""ER-GNN, experience replay for nodes (Zhou and Cao 2021): a few telling nodes of every class are learned again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import torch
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.methods.influence import self_influence
from skeleton_cgl.methods.kept_samples import KeptSamples, most_of_a_class
from skeleton_cgl.methods.parameters import check_choice, check_number, check_whole
from skeleton_cgl.methods.remembering import Remembering
from skeleton_cgl.methods.representatives import distances_to_mean, others_within
from skeleton_cgl.scenarios.scenario import Experience, Need, Samples, join

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

Selection = Literal["cm", "mf", "im", "random"]
Space = Literal["features", "embeddings"]
Weighting = Literal["proportional", "inverse"]
Topology = Literal["in place", "isolated"]

_PER_CLASS = 10
"""Kept of a class where neither that nor a count is given."""


class ERGNN(Remembering[KeptSamples]):
    """(1−β)·L_t + β·L_B, β = b/(b+n), of the n nodes of the task and all b nodes of the memory B, at every step.

    At the end of a lesson e nodes of each of its classes are kept for good, `per_class` or ⌊count/classes⌋ of all
    classes to come (BeGin); where lessons bring the same classes again, as domains and periods do, e of every class and
    lesson, so that a count is then of each lesson. A class with fewer is kept whole.

    selection: "cm", coverage maximisation: the fewest nodes of other classes of the lesson nearer than `distance`;
    "mf", mean of features: nearest to the mean of their class; "im", influence maximisation: the largest influence on
    the head's weights, gᵀ(H + damping·I)⁻¹g (see influence.py); "random". Equals are drawn from. space: what distances
    are of, "features" (CM, MF) or "embeddings" as the lesson leaves them (CM*, MF*).

    weighting: "proportional": where samples count equally in losses, the mean over task and memory; "inverse": β·L_t +
    (1−β)·L_B, a small memory outweighs the task (CGLB, AGALE). topology: remembered nodes stay "in place", in the graph
    in view (BeGin), or are "isolated", their own and only neighbours (CGLB, AGALE, DRIFT), who then leave no trace in
    BatchNorm's running statistics. Validation samples are looked at without the memory.
    """

    needs: frozenset[Need] = frozenset(["nodes", "one class"])
    paper: ClassVar[str] = "Zhou and Cao 2021"

    def __init__(
        self,
        selection: Selection = "cm",
        per_class: int | None = None,
        count: int | None = None,
        space: Space = "features",
        distance: float = 0.5,
        damping: float = 0.01,
        weighting: Weighting = "proportional",
        topology: Topology = "in place",
    ) -> None:
        if per_class is not None and count is not None:
            raise ValueError("give either per_class or a count")
        check_whole(1, optional=True, per_class=per_class, count=count)
        for name, number in (("distance", distance), ("damping", damping)):
            if not number > 0:
                raise ValueError(f"{name} {number} is not above 0")
        check_number(distance=distance, damping=damping)
        check_choice(get_args(Selection), selection=selection)
        check_choice(get_args(Space), space=space)
        check_choice(get_args(Weighting), weighting=weighting)
        check_choice(get_args(Topology), topology=topology)
        self.selection, self.space, self.distance, self.damping = selection, space, distance, damping
        self.per_class = _PER_CLASS if per_class is None and count is None else per_class
        self.count, self.weighting, self.topology = count, weighting, topology
        self.memory = KeptSamples()
        self._of_task = 1.0
        self._recalled: Samples | None = None
        self._alone: Batch | None = None
        self._joined: tuple[Samples, Samples] | None = None

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        unsaid = all(parameters.get(name) is None for name in ("per_class", "count"))
        return {**parameters, "per_class": _PER_CLASS} if unsaid else parameters

    def fits(self, learner: "Learner") -> None:
        self.kept_of_a_class(learner)

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        if not len(self.memory):
            return
        new, old = len(experience.training), len(self.memory)
        self._of_task = (new if self.weighting == "proportional" else old) / (new + old)
        recalled = self.memory.of(experience.training.pool)
        if self.topology == "in place":
            self._recalled = recalled
        else:
            self._alone = learner.batch_of(Places.alone(learner.plain(recalled)), recalled.labels, recalled.step)

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:  # noqa: ARG002
        if self._recalled is None:
            return samples
        # The same samples are joined once: the learner knows the same batch by it.
        if self._joined is None or self._joined[0] is not samples:
            self._joined = samples, join([samples, self._recalled])
        return self._joined[1]

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        validating = not learner.backbone.training
        if validating or (self._recalled is None and self._alone is None):
            return learner.task_loss(batch)
        outputs = learner.outputs(batch.inputs)
        if self._alone is None:
            of_task, of_memory = learner.losses_of_parts(outputs, batch)
        else:
            of_memory = learner.loss_of(learner.outputs_apart(self._alone.inputs), self._alone)
            of_task = learner.loss_of(outputs, batch)
        return self._of_task * of_task + (1 - self._of_task) * of_memory

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        training = experience.training
        seed = learner.seed_of_lesson("memory", experience)
        shuffled = torch.randperm(len(training), generator=torch.Generator().manual_seed(seed))
        ranks = self.ranks(learner, training).cpu()[shuffled]
        best_first = shuffled[ranks.argsort(stable=True)]
        classes = training.labels[best_first]
        chosen = [best_first[classes == each][: self.kept_of_a_class(learner)] for each in classes.unique()]
        self.memory.add(training.select(torch.cat(chosen).sort().values))
        self._of_task, self._recalled, self._alone, self._joined = 1.0, None, None, None

    def kept_of_a_class(self, learner: "Learner") -> int:
        """Return e; refuse a count that leaves nothing for a class."""
        if self.count is None:
            assert self.per_class is not None
            return self.per_class
        classes = learner.head.span
        if self.count < classes:
            raise InputError(f"method ERGNN: count {self.count} is less than one node for each of {classes} classes")
        return self.count // classes

    def keeps_all(self, taught: Sequence[Tensor]) -> bool:
        if self.count is None:
            return (self.per_class or 0) >= most_of_a_class(taught)
        return self.count // len(torch.cat(list(taught)).unique()) >= most_of_a_class(taught)

    def ranks(self, learner: "Learner", samples: Samples) -> Tensor:
        """Return (N,): of samples of a class, those with the lowest are kept."""
        if self.selection == "random":
            return torch.zeros(len(samples))
        if self.selection == "im":
            return -self_influence(learner, samples, self.damping)
        labels = samples.labels.to(learner.device)
        points = self._points(learner, samples)
        if self.selection == "mf":
            return distances_to_mean(points, labels)
        return others_within(self.distance, points, labels)

    def _points(self, learner: "Learner", samples: Samples) -> Tensor:
        if self.space == "features":
            return learner.plain(samples)
        with learner.answering(), torch.no_grad():
            return learner.embeddings(learner.inputs(samples))
