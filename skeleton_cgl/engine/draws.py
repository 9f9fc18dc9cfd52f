"""What a study draws at random, from which seeds, and what its noise floors draw anew."""

from typing import Any, Literal

from pydantic import Field, model_validator

from skeleton_cgl.config import Checked

FloorKind = Literal["seeds", "splits", "both"]
FLOORS: tuple[FloorKind, ...] = ("seeds", "splits", "both")
"""What the runs of a noise floor may draw anew."""
LARGEST_SEED = 2**62


class Seeds(Checked):
    """Seeds of the data split, of the first weights and of training noise, memories included.

    What is not given is drawn from the study's seed. Repeat r adds r to each.
    """

    split: int | None = Field(default=None, ge=0, le=LARGEST_SEED)
    weights: int | None = Field(default=None, ge=0, le=LARGEST_SEED)
    noise: int | None = Field(default=None, ge=0, le=LARGEST_SEED)


class NoiseFloor(Checked):
    """Runs of one order that differ in what is drawn and not in the order: what a disparity is without any order.

    runs: so many of each of so many `orders`, the ordinary one among them, in every repeat. kinds: what is drawn anew,
    first weights and training noise ("seeds"), the data split ("splits"), or "both"; by default all that the data
    allow. A plain number stands for the runs.
    """

    runs: int = Field(ge=2, le=10_000)
    orders: int = Field(default=4, ge=1, le=10_000)
    kinds: tuple[FloorKind, ...] | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _a_number_means_runs(cls, value: Any) -> Any:
        return {"runs": value} if isinstance(value, int) and not isinstance(value, bool) else value
