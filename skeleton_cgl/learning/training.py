"""The training recipe of a lesson: how long, how fast, in which batches, on what device."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from skeleton_cgl.config import Checked
from skeleton_cgl.scenarios.scenario import Samples


class Training(Checked):
    """How a lesson is learned; the defaults are those of the order study (Wei et al. 2024).

    batch_size: None takes all samples at once. reset_optimizer: start every lesson with a new optimizer instead of one
    that lives through the sequence. patience: stop a lesson when the validation loss has not improved for so many
    epochs, and go back to the weights of its best epoch.
    """

    epochs: int = Field(default=100, ge=1)
    learning_rate: float = Field(default=0.001, gt=0)
    weight_decay: float = Field(default=0, ge=0)
    batch_size: int | None = Field(default=None, ge=2)
    optimizer: Literal["adam", "sgd"] = "adam"
    reset_optimizer: bool = False
    patience: int | None = Field(default=None, ge=1)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"


class Recipe:
    """The pace of the training recipe: so many epochs of batches in random order, or of all samples at once."""

    def __init__(self, training: Training) -> None:
        self._training = training

    def epochs(self, samples: Samples) -> Iterator[Iterator[Tensor]]:
        size = min(self._training.batch_size or len(samples), len(samples))
        # All at once, and not drawn anew: the same batch every epoch.
        whole = torch.arange(len(samples)) if size == len(samples) and not samples.pool.augmented else None
        for _ in range(self._training.epochs):
            yield iter([whole]) if whole is not None else self._shuffled(len(samples), size)

    def _shuffled(self, number: int, size: int) -> Iterator[Tensor]:
        """Yield batches in random order; a rest of one sample joins the batch before it (BatchNorm needs two)."""
        shuffled = torch.randperm(number)
        borders = [*range(0, number, size), number]
        if len(borders) > 2 and borders[-1] - borders[-2] == 1:
            del borders[-2]
        for start, end in pairwise(borders):
            yield shuffled[start:end]
