"""Masks over the weights of a backbone that itself stays as it is: learning one, and seeing through one."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from skeleton_cgl.learning.batchnorm import normalising
from skeleton_cgl.learning.optimizers import set_rate
from skeleton_cgl.methods.isolation import weights_of


class Masking:
    """A backbone while a mask of it is learned: its weights are W ⊙ [m ≥ τ], all the time and for whoever looks.

    So validation sees what is trained, and who goes back to the weights of an earlier epoch goes back to its mask.
    """

    def __init__(self, backbone: nn.Module, threshold: float) -> None:
        self._backbone = backbone
        self._fixed = {name: value.clone() for name, value in backbone.state_dict().items()}
        self._threshold = threshold
        self._real = {name: torch.full_like(w, 2 * threshold) for name, w in weights_of(backbone).items()}
        self._adam = torch.optim.Adam(self._real.values(), fused=True)
        # Whoever sets the backbone to training: BatchNorm has the statistics that it has, and takes no others.
        self._hooks = [layer.register_forward_pre_hook(_evaluating) for layer in normalising(backbone)]

    def take_gradients(self) -> None:
        """Turn the gradients of the weights into those of m, and leave none to move what is fixed."""
        for name, weight in weights_of(self._backbone).items():
            self._real[name].grad = None if weight.grad is None else self._fixed[name] * weight.grad
        # An optimizer passes over what has no gradient, whatever its momentum and weight decay.
        self._backbone.zero_grad()

    @torch.no_grad()
    def step(self, rate: float) -> None:
        set_rate(self._adam, rate)
        self._adam.step()
        for name, weight in weights_of(self._backbone).items():
            weight.copy_(torch.where(self._real[name] >= self._threshold, self._fixed[name], 0))

    def end(self) -> dict[str, Tensor]:
        """Put back the backbone as it was; return the mask that its weights had in the end."""
        weights = weights_of(self._backbone).items()
        # Of the weights, not of m: the lesson may have gone back to an earlier epoch. A weight of 0 is the same on.
        masks = {name: ((weight != 0) | (self._fixed[name] == 0)).detach().cpu() for name, weight in weights}
        self._backbone.load_state_dict(self._fixed)
        for hook in self._hooks:
            hook.remove()
        return masks


@contextmanager
def masked(backbone: nn.Module, mask: Mapping[str, Tensor]) -> Iterator[None]:
    """Within: the weights of a backbone are those that a mask leaves."""
    kept = {name: weight.detach().clone() for name, weight in weights_of(backbone).items()}
    try:
        with torch.no_grad():
            for name, weight in weights_of(backbone).items():
                weight.copy_(torch.where(mask[name].to(weight.device), kept[name], 0))
        yield
    finally:
        with torch.no_grad():
            for name, weight in weights_of(backbone).items():
                weight.copy_(kept[name])


def _evaluating(layer: nn.Module, _: Any) -> None:
    layer.eval()
