"""HAT, hard attention to the task (Serrà et al. 2018): a task learns which units it uses, and later ones spare them."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.gates import UnitGate, Wire
from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.isolation import OwnParts
from skeleton_cgl.methods.parameters import check_choice, check_number
from skeleton_cgl.scenarios.scenario import Experience, Need, Queries

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner

_LARGEST_EMBEDDING, _LARGEST_EXPONENT, _LARGEST_GRADIENT = 6.0, 50.0, 1e4
_VARIANTS = ("paper", "begin")


class HAT(Method):
    """L + c·Σa(1−A)/Σ(1−A), the units of every layer multiplied by a = σ(s·e) with e ∼ N(0, 1) of each task, learned.

    s = 1/s_max + (s_max − 1/s_max)·i/I: i of I samples of an epoch, or epochs where one step has all samples; s_max in
    validation and for answers. ∂e is multiplied by (s_max/s)·(cosh(s·e) + 1)/(cosh e + 1), s·e within ±50; gradients
    are clipped to a norm of 1e4, and e stays within ±6. A is the largest a of past tasks. Of a weight between units i
    and j, 1 − min(A_i, A_j) of every step is taken; of one beside inputs or outputs, 1 − A of its unit. It is steps
    that are masked, not gradients: by its momentum, and by weight decay, Adam moves what has no gradient. What lies
    between no units (biases, BatchNorm, attention of edges) is not masked, but each task's own. Answers to past tasks
    stay as they were, but for what passes gates that were left half open.

    variant: "begin" as in BeGin's code, for its figures: e stays as drawn, s is s_max, A that of the latest task alone,
    and nothing but e is a task's own.
    """

    needs: frozenset[Need] = frozenset(["revealed task", "gates"])
    paper: ClassVar[str] = "Serrà et al. 2018"

    def __init__(self, s_max: float = 400, c: float = 0.75, variant: Literal["paper", "begin"] = "paper") -> None:
        check_number(least=1, s_max=s_max)
        check_number(least=0, c=c)
        check_choice(_VARIANTS, variant=variant)
        self.s_max = s_max
        self.c = c
        self.variant = variant
        self._own = OwnParts()
        self._taken: dict[str, Tensor] = {}
        self._before: dict[str, Tensor] = {}
        self._samples = self._passed = 0

    def begin_lesson(self, learner: "Learner", experience: Experience) -> None:
        self._taken = self.taken(learner)
        self._samples, self._passed = len(self.lesson_samples(learner, experience)), 0
        random = torch.Generator().manual_seed(learner.seed_of_lesson("gates", experience))
        for gate in _gates(learner).values():
            drawn = torch.randn(gate.width, generator=random).to(learner.device)
            gate.embedding = nn.Parameter(drawn, requires_grad=self.variant == "paper")
        self._anneal(learner, 0)
        learner.reset_optimizer()

    def taken(self, learner: "Learner") -> dict[str, Tensor]:
        """Return A of every gate, by name: how open past tasks have its units."""
        past = range(len(self._own)) if self.variant == "paper" else range(len(self._own))[-1:]
        found = {}
        for name, gate in _gates(learner).items():
            embeddings = [self._own.of(step)[f"{name}.embedding"].to(learner.device) for step in past]
            opened = [torch.sigmoid(self.s_max * e) for e in embeddings]
            found[name] = torch.stack([torch.zeros(gate.width, device=learner.device), *opened]).amax(dim=0)
        return found

    def _anneal(self, learner: "Learner", done: float) -> None:
        lowest = 1 / self.s_max if self.variant == "paper" else self.s_max
        for gate in _gates(learner).values():
            gate.scale, gate.hardest = lowest + (self.s_max - lowest) * done, self.s_max

    def loss(self, learner: "Learner", batch: "Batch") -> Tensor:
        return learner.task_loss(batch) + self.c * self.use(learner)

    def use(self, learner: "Learner") -> Tensor:
        """Return Σa(1−A)/Σ(1−A): how open units are that no past task needs; 0 where there are none."""
        gates = _gates(learner)
        opened = torch.cat([gate.openness(gate.embedding) for gate in gates.values() if gate.embedding is not None])
        free = 1 - torch.cat([self._taken[name] for name in gates])
        return (opened * free).sum() / free.sum().clamp(min=torch.finfo(free.dtype).tiny)

    @torch.no_grad()
    def gradients_ready(self, learner: "Learner") -> None:
        for gate in _gates(learner).values():
            e = gate.embedding
            if e is not None and e.grad is not None:
                steep = torch.cosh((gate.scale * e).clamp(-_LARGEST_EXPONENT, _LARGEST_EXPONENT)) + 1
                e.grad *= self.s_max / gate.scale * steep / (torch.cosh(e) + 1)
        nn.utils.clip_grad_norm_(learner.parameters(), _LARGEST_GRADIENT)
        self._before = {name: wire.weight.detach().clone() for name, wire in _wires(learner).items()}

    @torch.no_grad()
    def step_done(self, learner: "Learner", batch: "Batch") -> None:
        taken = {gate: self._taken[name] for name, gate in _gates(learner).items()}
        for name, wire in _wires(learner).items():
            # By `lerp`, which has 0 of a step or all of it exactly.
            wire.weight.copy_(torch.lerp(self._before[name], wire.weight, 1 - wire.used(taken)))
        self._before = {}
        for gate in taken:
            if gate.embedding is not None and gate.embedding.requires_grad:
                gate.embedding.clamp_(-_LARGEST_EMBEDDING, _LARGEST_EMBEDDING)
        self._passed += len(batch)
        epochs, rest = divmod(self._passed, self._samples)
        whole = len(batch) == self._samples
        self._anneal(learner, epochs / learner.training.epochs if whole else rest / self._samples)

    def end_lesson(self, learner: "Learner", experience: Experience) -> None:  # noqa: ARG002
        self._own.keep(learner, _wires(learner))
        for gate in _gates(learner).values():
            gate.embedding = None
        learner.reset_optimizer()

    def answer(self, learner: "Learner", queries: Queries, step: int) -> Tensor:
        self._anneal(learner, 1)
        if step >= 0 and self.variant == "paper":
            return self._own.answer(learner, queries, step, {})
        gates = [f"{name}.embedding" for name in _gates(learner)] if len(self._own) else []
        weights = {name: self._own.of(step)[name].to(learner.device) for name in gates}
        return learner.outputs(learner.inputs(queries), weights)

    def state(self) -> dict[str, Any]:
        return {"own": self._own.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._own.restore(state["own"])


def _gates(learner: "Learner") -> dict[str, UnitGate]:
    """Return the gates of the backbone by their names in the model."""
    return {name: gate for name, gate in learner.model.named_modules() if isinstance(gate, UnitGate)}


def _wires(learner: "Learner") -> dict[str, Wire]:
    """Return the weights between gates by their names in the model."""
    names = {id(parameter): name for name, parameter in learner.model.named_parameters()}
    wires: list[Wire] = learner.backbone.gated()  # type: ignore[operator]
    return {names[id(wire.weight)]: wire for wire in wires}
