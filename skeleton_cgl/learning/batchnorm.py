"""BatchNorm's running statistics: setting them to what the present weights make of given inputs."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from skeleton_cgl.backbones.backbone import Backbone


def normalising(module: nn.Module) -> list[_BatchNorm]:
    """Return the layers that normalise by statistics of a batch, and keep running ones for evaluation."""
    return [layer for layer in module.modules() if isinstance(layer, _BatchNorm) and layer.running_mean is not None]


def used(layer: _BatchNorm) -> bool:
    """Return whether a batch ever passed through a layer in training; a backbone may have some that it does not use."""
    return layer.num_batches_tracked is None or bool(layer.num_batches_tracked)


@contextmanager
def recalibrating(backbone: Backbone) -> Iterator[None]:
    """Within: the running statistics become the mean over the batches that pass of the statistics of each.

    The batches pass as in training, but for dropout. A layer through which none passes keeps what it has, as does one
    that the backbone holds in evaluation mode.
    """
    training = backbone.training
    backbone.train()
    layers = [layer for layer in normalising(backbone) if layer.training]
    backbone.eval()
    before = [({name: buffer.clone() for name, buffer in layer.named_buffers()}, layer.momentum) for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.train()
        # The mean of all batches, instead of one in which later ones count more.
        layer.momentum = None
    try:
        with torch.no_grad():
            yield
    finally:
        for layer, (buffers, momentum) in zip(layers, before, strict=True):
            passed = used(layer)
            layer.momentum = momentum
            for name, buffer in layer.named_buffers():
                # The count is of steps of training.
                if not passed or name == "num_batches_tracked":
                    buffer.copy_(buffers[name])
        backbone.train(training)


@contextmanager
def unnoted(module: nn.Module) -> Iterator[None]:
    """Within: what passes in training is normalised as always, and running statistics take no note of it.

    Gradients of what passed may be taken afterwards, which putting former statistics back would not allow.
    """
    noting = [layer for layer in normalising(module) if layer.track_running_stats]
    for layer in noting:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in noting:
            layer.track_running_stats = True
