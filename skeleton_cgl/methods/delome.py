"""DeLoMe, debiased lossless memory (Niu et al. 2024): replay of synthetic nodes whose gradients are those of a task."""

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.methods.condensed import Condensed, drawn_per_class, lowered
from skeleton_cgl.methods.parameters import check_number, check_whole
from skeleton_cgl.methods.remembering import Remembering
from skeleton_cgl.scenarios.scenario import Experience, Need

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

_HOPS = 2


class DeLoMe(Remembering[Condensed]):
    """L_t + Σ_{τ<t} L_τ, each the loss of z + τ′ ln π, which makes up for classes of unequal size; answers are z.

    π_c is the share of class c: it has its training samples if it is of the task, and what is kept of it otherwise.
    L_τ is of the nodes kept of task τ: min(count, n_c) of each class, without neighbours, which start as real ones.
    `steps` times, for a model softmax(ReLU(Â²XW)V) with weights W (F, width) and V drawn anew, they are moved by Adam
    at `rate` to lower Σ_c ‖∇CE_c(real) − ∇CE_c(synthetic)‖², the gradients being those by W and V of the mean loss of
    class c. All are means over samples in the paper, which is the loss of a scenario with `balanced: false`.

    adjustment: τ′.
    """

    needs: frozenset[Need] = frozenset(["nodes", "one class", "new classes"])
    paper: ClassVar[str] = "Niu et al. 2024"
    by_content: ClassVar[bool] = True

    def __init__(
        self, count: int = 60, steps: int = 900, rate: float = 1e-4, width: int = 256, adjustment: float = 1
    ) -> None:
        check_whole(1, count=count, width=width)
        check_whole(0, steps=steps)
        check_number(rate=rate, adjustment=adjustment)
        if rate <= 0 or adjustment < 0:
            raise ValueError("rate must be positive, and adjustment must not be negative")
        self.count = count
        self.steps = steps
        self.rate = rate
        self.width = width
        self.adjustment = adjustment
        self.memory = Condensed()
        self._remembered: Batch | None = None
        self._shift = torch.zeros(())

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        labels = experience.training.labels
        if len(self.memory):
            samples = self.memory.samples()
            labels = torch.cat([samples.labels, labels])
            self._remembered = learner.batch(samples)
        columns = learner.problem.targets(labels, learner.head)
        # A class without any sample would be impossible, and its loss infinite.
        counts = columns.bincount(minlength=len(learner.head.outputs)).clamp(min=1)
        self._shift = self.adjustment * (counts / counts.sum()).log().to(learner.device)

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        loss = learner.loss_of(learner.outputs(batch.inputs) + self._shift, batch)
        # Validation samples are looked at without the memory.
        if self._remembered is None or not learner.backbone.training:
            return loss
        outputs = learner.outputs_apart(self._remembered.inputs) + self._shift
        return loss + sum(learner.losses_of_parts(outputs, self._remembered))

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        training = experience.training
        classes, sizes = training.labels.unique(return_counts=True)
        counts = dict(zip(classes.tolist(), sizes.clamp(max=self.count).tolist(), strict=True))
        random = torch.Generator().manual_seed(learner.seed_of_lesson("condensation", experience))
        first = training.select(drawn_per_class(training.labels, counts, random))
        # Of one output alone every answer is right, and there is no gradient to match.
        outputs = max(2, int(learner.scopes()[training.step[0]].sum()))
        real = learner.plain(training, _HOPS)
        matching = GradientMatching(real, training.labels, first.labels, (self.width, outputs), random)
        rows = lowered(matching.loss, learner.plain(first), self.steps, self.rate)
        self.memory.keep(rows, first.labels, first.step)
        self._remembered = None
        self._shift = torch.zeros(())


class GradientMatching:
    """How far the gradients of rows, class by class, are from those of real nodes, Â²X (N, F), in a random model."""

    def __init__(
        self, real: Tensor, labels: Tensor, of_rows: Tensor, sizes: tuple[int, int], random: torch.Generator
    ) -> None:
        classes = labels.unique()
        self._real = [real[(labels == label).to(real.device)] for label in classes]
        self._rows = [(of_rows == label).nonzero()[:, 0].to(real.device) for label in classes]
        self._sizes = sizes
        self._random = random

    def loss(self, rows: Tensor) -> Tensor:
        """Return Σ_c ‖∇CE_c(real) − ∇CE_c(rows)‖² in a model drawn now, whose outputs stand for the classes in turn."""
        shapes = (rows.shape[1], self._sizes[0]), self._sizes
        first, second = (_drawn(shape, self._random).to(rows.device) for shape in shapes)
        total = rows.new_zeros(())
        for output, (real, own) in enumerate(zip(self._real, self._rows, strict=True)):
            both = (gradients(nodes, first, second, output) for nodes in (real, rows[own]))
            total = total + sum((wanted - found).square().sum() for wanted, found in zip(*both, strict=True))
        return total


def gradients(features: Tensor, first: Tensor, second: Tensor, target: int) -> tuple[Tensor, Tensor]:
    """Return the gradients by W and V of the mean cross-entropy of softmax(ReLU(ZW)V) for nodes Z (N, F) of one class.

    With H = ReLU(ZW) and G = (softmax(HV) − y)/N: Zᵀ(GVᵀ ⊙ [H > 0]) and HᵀG. In closed form these are differentiable
    by Z at the price of one backward pass.
    """
    hidden = (features @ first).relu()
    wanted = functional.one_hot(torch.tensor(target, device=features.device), second.shape[1])
    excess = ((hidden @ second).softmax(dim=1) - wanted) / len(features)
    return features.T @ ((excess @ second.T) * (hidden > 0)), hidden.T @ excess


def _drawn(shape: tuple[int, int], random: torch.Generator) -> Tensor:
    """Return weights (inputs, outputs) uniform in ±1/√inputs, as `nn.Linear` starts."""
    bound = shape[0] ** -0.5
    return torch.empty(shape).uniform_(-bound, bound, generator=random)
