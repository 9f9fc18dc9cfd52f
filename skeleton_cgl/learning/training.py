"""The training recipe of a stage: how long, how fast, in which batches, on what device."""

from typing import Literal

from pydantic import Field

from skeleton_cgl.config import Checked


class Training(Checked):
    """How a task is learned; the defaults are those of the order study (Wei et al. 2024).

    batch_size: None takes all samples at once. reset_optimizer: start every task with a new optimizer instead of one
    that lives through the sequence. patience: stop a task when the validation loss has not improved for so many epochs,
    and go back to the weights of its best epoch.
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
