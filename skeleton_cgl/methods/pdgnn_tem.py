"""PDGNN-TEM, topology-aware embedding memory (Zhang et al. 2024): replay what was aggregated over neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.kept_samples import most_of_a_class
from skeleton_cgl.methods.parameters import check_whole
from skeleton_cgl.scenarios.scenario import Experience, Need, Samples
from skeleton_cgl.scenarios.views import GraphPool

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors (N, F) with their labels and the steps they reveal."""

    vectors: Tensor
    labels: Tensor
    step: Tensor

    def __deepcopy__(self, memo: dict[int, Any]) -> "Embeddings":
        # Nothing writes into it, and it may be large.
        return self


class PDGNN(Method):
    """L(D_t ∪ B) on topology-aware embeddings τ(X)_v, which the backbone aggregates without parameters.

    Since an embedding of a node is all that the learned layers are given of it, B keeps embeddings and labels, and no
    graph: e of every class of every past task, drawn without replacement in proportion to how many nodes they cover,
    themselves and their in-neighbours; with e above the number of nodes, all of them, and the loss is that of Joint.

    per_class: e. task_losses: "sum" is the definition: one loss for all samples that are answered among the same
    outputs, and the sum of these. In class-incremental learning that is one loss over D_t ∪ B; in task-incremental
    learning every task's loss counts whole. "together": one loss over D_t ∪ B everywhere.

    The backbone decides τ; PDGNN's is `sgc` with aggregation appnp, two hops and two layers.
    """

    needs: frozenset[Need] = frozenset(["nodes", "one class", "aggregated features"])
    paper = "Zhang et al. 2024"
    by_content: ClassVar[bool] = True

    def __init__(self, per_class: int = 400, task_losses: Literal["sum", "together"] = "sum") -> None:
        check_whole(1, per_class=per_class)
        if task_losses not in ("sum", "together"):
            raise ValueError(f"task_losses must be sum or together, found {task_losses!r}")
        self.per_class = per_class
        self.task_losses = task_losses
        self._kept: list[Embeddings] = []

    def lesson_samples(self, learner: "Learner", experience: Experience) -> Samples:
        parts = [*self._kept, _embeddings(learner, experience.training)]
        vectors, labels, step = (
            torch.cat([getattr(part, column) for part in parts]) for column in ("vectors", "labels", "step")
        )
        return Samples(GraphPool(Places.alone(vectors)), torch.arange(len(labels)), labels, step)

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        outputs = learner.outputs(batch.inputs)
        if self.task_losses == "together" or bool((batch.among == batch.among[0]).all()):
            return learner.loss_of(outputs, batch)
        problem = learner.problem
        scopes, scope_of = batch.among.unique(dim=0, return_inverse=True)
        losses = []
        for scope in range(len(scopes)):
            rows = scope_of == scope
            found = problem.losses(outputs[rows], batch.targets[rows], batch.among[rows])
            losses.append((found * problem.weights(batch.targets[rows])).sum())
        return torch.stack(losses).sum()

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        generator = torch.Generator().manual_seed(learner.seed_of_lesson("embeddings", experience))
        training = experience.training
        covered = coverage_of(training)
        chosen = [training.ids.new_zeros(0)]
        for label in training.labels.unique():
            rows = (training.labels == label).nonzero()[:, 0]
            if len(rows) > self.per_class:
                rows = rows[torch.multinomial(covered[rows], self.per_class, generator=generator)]
            chosen.append(rows)
        self._kept.append(_embeddings(learner, training.select(torch.cat(chosen).sort().values)))

    def samples_kept(self) -> int:
        return sum(len(kept.labels) for kept in self._kept)

    def keeps_all(self, taught: Sequence[Tensor]) -> bool:
        return self.per_class >= most_of_a_class(taught)

    def state(self) -> dict[str, Any]:
        return {"tasks": [dict(vars(kept)) for kept in self._kept]}

    def restore(self, state: dict[str, Any]) -> None:
        self._kept = [Embeddings(**columns) for columns in state["tasks"]]


def _embeddings(learner: "Learner", samples: Samples) -> Embeddings:
    """Return samples as the backbone aggregates them in the graph in view."""
    return Embeddings(learner.aggregated(learner.inputs(samples)).cpu(), samples.labels, samples.step)


def coverage_of(samples: Samples) -> Tensor:
    """Return (N,) how many nodes of the graph in view samples cover: themselves and their in-neighbours."""
    places = samples.pool.whole().rows(samples.ids)
    assert isinstance(places, Places), "the method needs nodes"
    links = places.links
    proper = links.targets[links.sources != links.targets]
    return 1 + torch.bincount(proper, minlength=links.nodes)[places.at[:, 0]].double()
