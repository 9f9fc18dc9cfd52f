"""The training recipe of a lesson: how long, how fast, in which batches, on what device."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from skeleton_cgl.config import Checked
from skeleton_cgl.scenarios.scenario import Samples


class Plateau(Checked):
    """Cuts of the learning rate where what is monitored no longer improves (torch's ReduceLROnPlateau).

    The rate is multiplied by `factor` after more than `patience` epochs without an improvement by a ten-thousandth, and
    never falls below `floor` times the learning rate. stop: the lesson ends when it gets there; with these defaults, at
    the third cut.
    """

    factor: float = Field(default=0.1, gt=0, lt=1)
    patience: int = Field(default=20, ge=0, le=1_000_000)
    floor: float = Field(default=0.002, gt=0, lt=1)
    stop: bool = True


class Training(Checked):
    """How a lesson is learned; the defaults are those of the order study (Wei et al. 2024).

    batch_size: None takes all samples at once. reset_optimizer: start every lesson with a new optimizer instead of one
    that lives through the sequence.

    patience: stop a lesson when what is monitored has not improved for so many epochs. plateau: cut the learning rate
    when it has not; every lesson starts with the full one. With either, a lesson goes back to its best epoch in the
    end, weights and optimizer. Pieces of a stream are gone through once, without any of it.

    monitor: "method" is the loss that the method minimises, taken of the validation samples; "task" their plain task
    loss; "score" the leading metric of the problem, the mean over the outputs they tell of, as 1 − its value.
    patience_on: "task" watches the validation samples of the lesson alone, and so stops when the new task is known,
    whatever becomes of the old ones; "seen" those of past lessons as well, each class counting the same, which the
    learner then keeps: more than a continual learner usually may.

    recalibrate: BatchNorm's running statistics are set to those of the training inputs under the present weights,
    before validating and at the end of a lesson, instead of trailing after them. With momentum 0.1 they start at a
    variance of 1 and need more than 100 steps to arrive at that of small features; what is validated with them until
    then says nothing. Without effect on streams, and where there is no BatchNorm.

    fan_outs: with batch_size, or on a stream, every training batch sees a part of the graph drawn anew for it: as many
    neighbours of every node at most, from the nodes asked about outwards, as there are layers. Validation samples and
    queries see all of it.

    head_steps: whose steps Adam corrects its averages by for the rows of the head, where the optimizer lives through
    the sequence. "shared": one count, as for any other parameter. The averages of a row that comes late start from zero
    all the same, and are taken for long settled ones: its tenth step is 2.1 learning rates long after 100 steps of
    others, and 3.8 after 400, so that classes learn the faster the later they come, which is an effect of the order by
    the optimizer alone. "own": every row counts from when it was met. Without effect on SGD.
    """

    younger: ClassVar[Mapping[str, Any]] = {
        "head_steps": "shared",
        "plateau": None,
        "monitor": "method",
        "recalibrate": False,
        "fan_outs": None,
    }

    epochs: int = Field(default=100, ge=1, le=1_000_000)
    learning_rate: float = Field(default=0.001, gt=0)
    weight_decay: float = Field(default=0, ge=0)
    batch_size: int | None = Field(default=None, ge=2, le=1_000_000_000)
    optimizer: Literal["adam", "sgd"] = "adam"
    reset_optimizer: bool = False
    patience: int | None = Field(default=None, ge=1, le=1_000_000)
    plateau: Plateau | None = None
    monitor: Literal["method", "task", "score"] = "method"
    patience_on: Literal["task", "seen"] = "task"
    recalibrate: bool = False
    fan_outs: tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...] | None = Field(default=None, min_length=1)
    head_steps: Literal["shared", "own"] = "shared"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"

    @property
    def watches(self) -> bool:
        """Whether validation samples are looked at after every epoch."""
        return self.patience is not None or self.plateau is not None

    @property
    def watches_past(self) -> bool:
        """Whether validation samples of past lessons are watched."""
        return self.watches and self.patience_on == "seen"

    @property
    def as_before(self) -> set[str]:
        """The fields that digests leave out: younger ones that change nothing, so that keys stay what they were.

        With patience, `patience_on` is never left out: before there was such a field, other numbers came of patience.
        """
        idle = set() if self.watches else {"patience_on", "monitor"}
        return super().as_before | idle | ({"head_steps"} if self.optimizer == "sgd" else set())


class Recipe:
    """The pace of the training recipe: so many epochs of batches in random order, or of all samples at once."""

    def __init__(self, training: Training, epochs: int | None = None) -> None:
        self._training = training
        self._epochs = training.epochs if epochs is None else epochs

    def epochs(self, samples: Samples) -> Iterator[Iterator[Tensor]]:
        size = min(self._training.batch_size or len(samples), len(samples))
        anew = samples.pool.augmented or self._training.fan_outs is not None
        # All at once, and not drawn anew: the same batch every epoch.
        whole = torch.arange(len(samples)) if size == len(samples) and not anew else None
        for _ in range(self._epochs):
            yield iter([whole]) if whole is not None else self._shuffled(len(samples), size)

    def _shuffled(self, number: int, size: int) -> Iterator[Tensor]:
        """Yield batches in random order; a rest of one sample joins the batch before it (BatchNorm needs two)."""
        shuffled = torch.randperm(number)
        borders = [*range(0, number, size), number]
        if len(borders) > 2 and borders[-1] - borders[-2] == 1:
            del borders[-2]
        for start, end in pairwise(borders):
            yield shuffled[start:end]
