"""The optimizers of a recipe, and what they remember: when a head grows, when a learner is saved and restored."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.head import Head
from skeleton_cgl.learning.training import Training


def make_optimizer(training: Training, parameters: Sequence[nn.Parameter], head: Head) -> torch.optim.Optimizer:
    """Return a new optimizer of the recipe's kind."""
    rate, decay = training.learning_rate, training.weight_decay
    if training.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=rate, weight_decay=decay)
    if training.head_steps == "own":
        return RowwiseAdam(parameters, head, rate, decay)
    return torch.optim.Adam(parameters, lr=rate, weight_decay=decay, fused=True)


class RowwiseAdam(torch.optim.Adam):
    """Adam in which every row of the head counts its own steps t, from when it was met.

    m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², θ ← θ − η·(m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε)
    """

    def __init__(self, parameters: Sequence[nn.Parameter], head: Head, rate: float, decay: float) -> None:
        super().__init__(parameters, lr=rate, weight_decay=decay, fused=True)
        self._head = head

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step: rows of the head each by its own count, all other parameters by theirs."""
        rows, gradient = self._head.rows, self._head.rows.grad
        # Adam passes over what has no gradient.
        rows.grad = None
        value: float | None = super().step(closure)
        rows.grad = gradient
        if gradient is not None:
            self._step_rows(rows, gradient)
        return value

    def _step_rows(self, rows: nn.Parameter, gradient: Tensor) -> None:
        group, memory = self.param_groups[0], self.state[rows]
        if not memory:
            memory["step"] = torch.zeros(len(rows), 1, device=rows.device)
            memory["exp_avg"], memory["exp_avg_sq"] = torch.zeros_like(rows), torch.zeros_like(rows)
        step, mean, square = memory["step"], memory["exp_avg"], memory["exp_avg_sq"]
        first, second = group["betas"]
        if group["weight_decay"]:
            gradient = gradient.add(rows, alpha=group["weight_decay"])
        step += 1
        mean.lerp_(gradient, 1 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        # In double precision: 1 − 0.999 has few digits left in single.
        of_mean, of_square = ((1 - beta ** step.double()).to(rows.dtype) for beta in (first, second))
        scale = (square / of_square).sqrt_().add_(group["eps"])
        rows.addcdiv_(mean / of_mean, scale, value=-group["lr"])


def grow(optimizer: torch.optim.Optimizer, before: nn.Parameter, after: nn.Parameter) -> None:
    """Let an optimizer go on with a parameter that has more rows: its memory of the new ones is zero."""
    group = optimizer.param_groups[0]
    group["params"] = [after if parameter is before else parameter for parameter in group["params"]]
    memory = optimizer.state.pop(before, {})
    for name, value in memory.items():
        # One number for all rows stays what it is.
        if value.ndim:
            memory[name] = torch.cat([value, value.new_zeros(len(after) - len(before), *value.shape[1:])])
    if memory:
        optimizer.state[after] = memory


def memory_of(optimizer: torch.optim.Optimizer, former: dict[int, Any] | None = None) -> dict[int, Any]:
    """Return what an optimizer remembers of every parameter, as a copy that later steps leave alone.

    former: what was returned before and is no longer wanted; its memory is used again.
    """
    memory: dict[int, Any] = copied_into(former, optimizer.state_dict()["state"])
    return memory


def copied_into(former: Any, value: Any) -> Any:
    """Return a copy of nested dicts of tensors, in the memory of a former copy wherever that fits."""
    if isinstance(value, dict):
        entries = former if isinstance(former, dict) else {}
        return {name: copied_into(entries.get(name), entry) for name, entry in value.items()}
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    fits = isinstance(former, Tensor) and _layout(former) == _layout(value)
    return former.copy_(value) if fits else value.detach().clone()


def _layout(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def clear_gradients(optimizer: torch.optim.Optimizer) -> None:
    """Forget the gradients of an optimizer's parameters; `zero_grad` takes a tenth of a tiny step for it."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let an optimizer go on with another learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def remind(optimizer: torch.optim.Optimizer, memory: dict[int, Any]) -> None:
    """Let an optimizer remember what `memory_of` another returned; the memory given is left alone."""
    groups = optimizer.state_dict()["param_groups"]
    # It changes what it is given in place.
    optimizer.load_state_dict({"state": copy.deepcopy(memory), "param_groups": groups})
    # Fused steps go through a parameter and the memory of it alike, so that both have to lie alike.
    for parameter, entries in optimizer.state.items():
        for name, value in entries.items():
            if value.shape == parameter.shape and value.stride() != parameter.stride():
                entries[name] = torch.empty_like(parameter, requires_grad=False).copy_(value)
