"""The hardest of the samples seen last, filled step by step, without borders between lessons and without draws."""

from typing import Any

import torch
from torch import Tensor

from skeleton_cgl.methods.parameters import check_whole
from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.scenario import Samples


class HardSamples:
    """The last `recent` samples by their ids, labels and steps, with the loss each had when it was last seen.

    A sample that is seen again counts once. Those of a batch come at once: the harder ones count as the later, so that
    of a batch larger than `recent` the hardest are kept.
    """

    def __init__(self, hard: int, recent: int) -> None:
        check_whole(1, hard=hard, recent=recent)
        if hard > recent:
            raise ValueError(f"hard {hard} is more than the last {recent} samples they are chosen from")
        self.hard = hard
        self.recent = recent
        self._columns: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self._columns["ids"]) if self._columns else 0

    def see(self, samples: Samples, losses: Tensor) -> None:
        """Take in samples (N,) with the losses (N,) that they have."""
        harder_later = losses.cpu().argsort(stable=True)[-self.recent :]
        seen = samples.select(harder_later)
        new = {"ids": seen.ids, "labels": seen.labels, "step": seen.step, "losses": losses.cpu()[harder_later]}
        if self._columns:
            others = ~torch.isin(self._columns["ids"], samples.ids)
            new = {name: torch.cat([self._columns[name][others], value]) for name, value in new.items()}
        self._columns = {name: value[-self.recent :] for name, value in new.items()}

    def hardest(self, pool: Pool) -> Samples:
        """Return the `hard` samples of the highest losses, or as many as there are, the hardest first."""
        rows = self._columns["losses"].argsort(descending=True, stable=True)[: self.hard]
        ids, labels, step = (self._columns[name][rows] for name in ("ids", "labels", "step"))
        return Samples(pool, ids, labels, step)

    def state(self) -> dict[str, Any]:
        return dict(self._columns)

    def restore(self, state: dict[str, Any]) -> None:
        self._columns = dict(state)
