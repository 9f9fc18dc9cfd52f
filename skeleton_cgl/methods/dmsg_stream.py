"""DMSG on streams (DRIFT): a reservoir of the nodes of every batch that are unlike, replayed with noise."""

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.diversity import farthest_first
from skeleton_cgl.methods.noise import Noise, Strengths
from skeleton_cgl.methods.parameters import check_number
from skeleton_cgl.methods.reservoir import Reservoir
from skeleton_cgl.process import seeded
from skeleton_cgl.scenarios.scenario import Need, Samples, join

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


class DMSGStream(Method):
    """L(batch) + λ L(B) + λ_adv L_adv + λ_vae L_vae, B being min(|batch|, b) draws from a reservoir of `count` nodes.

    B is replayed as h = μ + σε, and L_adv and L_vae are of it, as DMSG has them; answers are the model's. Both parts
    pass through the backbone together, kept nodes where they are in the graph in view. Afterwards half of the batch,
    rounded up, is offered to the reservoir, in the first epoch alone: `farthest_first`, by the probabilities of the
    pass that the step is made of. As with ER, a node is replayed within its own lesson as well.

    σ's linear map and the discriminator have an Adam of their own, at the rate of the recipe, which lives as long as
    the stream does, and longer than lessons where these have borders. ε is drawn from a seed of its own at every step.

    replay, adversarial, variational: λ, λ_adv, λ_vae.
    """

    needs: frozenset[Need] = frozenset(["nodes", "one class"])
    paper: ClassVar[str] = "Qiao et al. 2025"

    def __init__(self, count: int = 100, replay: float = 20, adversarial: float = 1, variational: float = 1) -> None:
        check_number(least=0, replay=replay, adversarial=adversarial, variational=variational)
        self.memory = Reservoir(count)
        self.replay = replay
        self.adversarial = adversarial
        self.variational = variational
        self._noise: Noise | None = None
        self._known: dict[str, Any] = {}
        """What the noise had learned when the method was restored."""
        self._offered: Samples | None = None
        self._likely: Tensor | None = None

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:
        self._offered = samples
        if not len(self.memory):
            return samples
        return join([samples, self.memory.at(self.memory.draw(learner, len(samples)), samples.pool)])

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        if batch.sizes:
            strengths = Strengths(self.replay, self.adversarial, self.variational)
            loss, outputs = self.noise(learner).loss(
                learner, batch, strengths, lambda spread: self.drawn(learner, spread)
            )
        else:
            outputs = learner.outputs(batch.inputs)
            loss = learner.loss_of(outputs, batch)
        among = batch.among[: len(outputs)]
        self._likely = outputs.detach().masked_fill(~among, -torch.inf).softmax(dim=1)
        return loss

    def noise(self, learner: "Learner") -> Noise:
        """Return the noise, made when something is replayed for the first time, or again after a restore."""
        if self._noise is None:
            with seeded(learner.seed_of("noise")):
                self._noise = Noise(learner, self._known)
        return self._noise

    def drawn(self, learner: "Learner", spread: Tensor) -> Tensor:
        """Return ε of this step, in the shape of σ: by the count of draws from the memory, wherever a stream is cut."""
        generator = torch.Generator().manual_seed(learner.seed_of_draw("noise", self.memory.drawn))
        return torch.randn(spread.shape, dtype=spread.dtype, generator=generator).to(spread.device)

    def step_done(self, learner: "Learner", batch: "Batch") -> None:
        assert self._offered is not None
        assert self._likely is not None
        if batch.sizes:
            self.noise(learner).step(learner)
        if learner.first_pass:
            size = len(self._offered)
            picked = farthest_first(self._likely, batch.targets[:size], (size + 1) // 2)
            self.memory.offer(learner, self._offered.select(picked.cpu()))
        self._offered = self._likely = None

    def samples_kept(self) -> int:
        return len(self.memory)

    def state(self) -> dict[str, Any]:
        return {"memory": self.memory.state(), "noise": self._known if self._noise is None else self._noise.learned()}

    def restore(self, state: dict[str, Any]) -> None:
        self.memory.restore(state["memory"])
        self._known, self._noise = state["noise"], None
