"""Products of dense matrices by oneDNN, where PyTorch has it.

PyTorch leaves products of float32 to MKL, which takes twice as long on processors that are not Intel's, since it does
not use all of their instructions; on Intel's there is nothing to gain, and nothing to lose. Numbers may differ in the
last bit: what has records of numbers stays with `torch.matmul`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

Times = Callable[[Tensor, Tensor], Tensor]

_WORTH_IT = 1 << 24
"""Multiplications from which on it is worth it: a product of a size that is new takes oneDNN a while to prepare."""


def times(left: Tensor, right: Tensor) -> Tensor:
    """Return left (n, i) · right (i, o), differentiably as often as wanted."""
    if not _suits(left, right):
        return left @ right
    found: Tensor = _Times.apply(left, right)
    return found


class _Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        ctx.save_for_backward(left, right)
        found: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.T, None, "none", [], "")
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        left, right = ctx.saved_tensors
        by_left = times(gradient, right.T) if ctx.needs_input_grad[0] else None
        by_right = times(left.T, gradient) if ctx.needs_input_grad[1] else None
        return by_left, by_right


def _suits(left: Tensor, right: Tensor) -> bool:
    alike = left.dtype == right.dtype == torch.float32 and left.device.type == right.device.type == "cpu"
    large = left.numel() * right.shape[1] >= _WORTH_IT
    return alike and large and _is_there() and not torch.is_autocast_enabled("cpu")


@cache
def _is_there() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
