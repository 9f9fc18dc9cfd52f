"""Memories that are filled step by step, without borders between lessons: slots of samples, and Algorithm R.

Draws come from the learner's seed and from counts that are part of the state, so that where a stream is cut into
lessons changes none of them, and a step without replay draws nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.methods.parameters import check_whole
from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.scenario import Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


class Slots:
    """At most `count` samples by their ids, labels and steps, and whatever else a method notes of each by name.

    A method's own column may come to be wider, as outputs do: what is missing in earlier rows is NaN. seen: samples
    offered so far. A memory that is larger than the data keeps all of them.
    """

    def __init__(self, count: int, fewest: int = 1) -> None:
        check_whole(fewest, count=count)
        self.count = count
        self.seen = 0
        self.drawn = 0
        self._columns: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self._columns["ids"]) if self._columns else 0

    def __getitem__(self, name: str) -> Tensor:
        """Return a column (b, …): "ids", "labels", "step" or one of the method's own."""
        return self._columns[name]

    def has_room(self, sizes: Sequence[int]) -> bool:
        """Return whether all samples of lessons of these sizes would be kept."""
        return self.count >= sum(sizes)

    def put(self, slots: Tensor, samples: Samples, **own: Tensor) -> None:
        """Put samples (n,) in slots (n,); of several for the same slot, the last one stays there."""
        rows = {slot: row for row, slot in enumerate(slots.tolist())}
        if not rows:
            return
        at, chosen = torch.tensor(list(rows)), torch.tensor(list(rows.values()))
        size = max(len(self), 1 + max(rows))
        for name, given in {"ids": samples.ids, "labels": samples.labels, "step": samples.step, **own}.items():
            new = given.cpu()
            kept = self._columns.get(name, new[:0])
            if new.ndim == 2 and new.shape[1] > kept.shape[1]:
                kept = functional.pad(kept, (0, new.shape[1] - kept.shape[1]), value=torch.nan)
            room = torch.cat([kept, new.new_zeros(size - len(kept), *new.shape[1:])])
            room[at] = new[chosen]
            self._columns[name] = room

    def draw(self, learner: "Learner", most: int) -> Tensor:
        """Return (k,) slots, k = min(most, b), drawn evenly and without replacement."""
        generator = torch.Generator().manual_seed(learner.seed_of_draw("replay", self.drawn))
        self.drawn += 1
        return torch.randperm(len(self), generator=generator)[:most]

    def at(self, slots: Tensor, pool: Pool) -> Samples:
        """Return the samples in some slots, in that order."""
        ids, labels, step = (self._columns[name][slots] for name in ("ids", "labels", "step"))
        return Samples(pool, ids, labels, step)

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen, "drawn": self.drawn, "columns": dict(self._columns)}

    def restore(self, state: dict[str, Any]) -> None:
        self.seen, self.drawn, self._columns = state["seen"], state["drawn"], dict(state["columns"])


class Reservoir(Slots):
    """Algorithm R (Vitter 1985): of m samples offered, every one is kept with probability M/m."""

    def offer(self, learner: "Learner", samples: Samples, **own: Tensor) -> None:
        """Store sample m where m ≤ M; of later ones, draw j evenly from 1..m, and put it in slot j where j ≤ M."""
        numbers = self.seen + torch.arange(1, len(samples) + 1)
        generator = torch.Generator().manual_seed(learner.seed_of_draw("reservoir", self.seen))
        even = (torch.rand(len(samples), dtype=torch.float64, generator=generator) * numbers).long()
        slots = torch.where(numbers <= self.count, numbers - 1, even)
        rows = (slots < self.count).nonzero()[:, 0]
        noted = {name: column.cpu()[rows] for name, column in own.items()}
        self.put(slots[rows], samples.select(rows), **noted)
        self.seen += len(samples)
