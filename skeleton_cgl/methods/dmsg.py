"""DMSG, diversified memory selection and generation (Qiao et al. 2025): replay of unlike nodes, with noise."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.diversity import unlike
from skeleton_cgl.methods.kept_samples import KeptSamples, most_of_a_class
from skeleton_cgl.methods.noise import Noise, Strengths
from skeleton_cgl.methods.parameters import check_number, check_whole
from skeleton_cgl.process import seeded
from skeleton_cgl.scenarios.scenario import Experience, Need, Samples, join

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class DMSG(Method):
    """L_t + λ L_replay + λ_adv L_adv + λ_vae L_vae; of every class up to `count` nodes are kept (`unlike`).

    The embedding of a kept node is the mean μ of what may stand for it: σ = softplus₁₀(linear map of μ), ε ∼ N(0, I),
    h = μ + σε. L_replay is the loss of h; L_adv that of a discriminator which tells h from μ, and learns to, while what
    is before it learns to be told apart less; L_vae = BCE(hhᵀ, of the same class), the mean over pairs, +
    KL(N(μ, σ²) ‖ N(0, I)) in bits. Where nothing is replayed, h = μ: answers are the model's.

    Kept nodes are replayed where they are in the graph that a lesson sees. The linear map and the discriminator have an
    Adam of their own, at the rate of the recipe; they do not go back to the best epoch.

    replay, adversarial, variational: λ, λ_adv, λ_vae. others: the weight of distances from picks of other classes.
    """

    needs: frozenset[Need] = frozenset(["nodes", "one class", "new classes"])
    paper: ClassVar[str] = "Qiao et al. 2025"

    def __init__(
        self,
        count: int = 60,
        replay: float = 20,
        adversarial: float = 1,
        variational: float = 1,
        others: float = 2,
    ) -> None:
        check_whole(1, count=count)
        check_number(replay=replay, adversarial=adversarial, variational=variational, others=others)
        if min(replay, adversarial, variational, others) < 0:
            raise ValueError("replay, adversarial, variational and others must not be negative")
        self.count = count
        self.replay = replay
        self.adversarial = adversarial
        self.variational = variational
        self.others = others
        self.memory = KeptSamples()
        self.noise: dict[str, Any] = {}
        """What the noise has learned, between lessons."""
        self._learning: Noise | None = None
        self._joined: tuple[Samples, Samples] | None = None

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:  # noqa: ARG002
        if len(self.memory):
            # The same to begin with, whatever the order of lessons.
            with seeded(learner.seed_of("noise")):
                begins_anew = learner.training.reset_optimizer and self.noise
                self._learning = Noise(learner, {"weights": self.noise["weights"]} if begins_anew else self.noise)

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:  # noqa: ARG002
        if not len(self.memory):
            return samples
        if self._joined is None or self._joined[0] is not samples:
            self._joined = samples, join([samples, self.memory.of(samples.pool)])
        return self._joined[1]

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        if self._learning is None or not batch.sizes:
            return learner.task_loss(batch)
        strengths = Strengths(self.replay, self.adversarial, self.variational)
        loss, _ = self._learning.loss(learner, batch, strengths, torch.randn_like)
        return loss

    def step_done(self, learner: "Learner", batch: "Batch") -> None:  # noqa: ARG002
        if self._learning is not None:
            self._learning.step(learner)

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:
        if self._learning is not None:
            self.noise = self._learning.learned()
        self._learning = self._joined = None
        with learner.answering(), torch.no_grad():
            batch = learner.batch(experience.training)
            outputs = learner.outputs(batch.inputs).masked_fill(~batch.among, -torch.inf)
        picked = unlike(outputs.softmax(dim=1), batch.targets, self.count, self.others).cpu()
        self.memory.add(experience.training.select(picked))

    def samples_kept(self) -> int:
        return len(self.memory)

    def keeps_all(self, taught: Sequence[Tensor]) -> bool:
        return self.count >= most_of_a_class(taught)

    def state(self) -> dict[str, Any]:
        return {"memory": self.memory.state(), "noise": self.noise}

    def restore(self, state: dict[str, Any]) -> None:
        self.memory.restore(state["memory"])
        self.noise = state["noise"]
