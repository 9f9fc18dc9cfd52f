"""A memory shared out among classes by how often they were met, in which later samples replace earlier ones."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from skeleton_cgl.methods.kept_samples import KeptSamples
from skeleton_cgl.scenarios.scenario import Samples, join


class QuotaMemory(KeptSamples):
    """Keeps M_c = ⌊M·n_c/Σn⌋ samples of class c at most, of n_c met so far: of all classes never more than M."""

    def __init__(self, count: int, p: float) -> None:
        super().__init__()
        self._count = count
        self._p = p
        self._met = torch.zeros(0, dtype=torch.int64)

    @property
    def quotas(self) -> Tensor:
        """(classes,)"""
        return self._count * self._met // self._met.sum()

    def has_room(self, sizes: Sequence[int]) -> bool:
        """Return whether all samples of lessons of these sizes would be kept."""
        return self._count >= sum(sizes)

    def meet(self, training: Samples, favour: Tensor, random: torch.Generator) -> None:
        """Take in the samples of a lesson, in a random sequence.

        What is too many of a class goes at random first. Then a sample enters while there is room for its class, or
        else takes the place of a random one of it with probability p·(M_c/n_c)·favour; favour (N,): one per sample.
        """
        classes = max(len(self._met), int(training.labels.max()) + 1)
        met = torch.bincount(training.labels, minlength=classes)
        met[: len(self._met)] += self._met
        self._met = met
        remembered = self.of(training.pool)
        both, past, quotas = join([remembered, training]), len(remembered), self.quotas
        chances = (self._p * quotas / met.clamp(min=1))[training.labels] * favour
        replaces = torch.rand(len(training), generator=random) < chances
        kept: dict[int, list[int]] = {}
        # What is remembered comes first: of that, whatever finds no room goes.
        earlier = torch.randperm(past, generator=random)
        later = past + torch.randperm(len(training), generator=random)
        for row in torch.cat([earlier, later]).tolist():
            label = int(both.labels[row])
            own, quota = kept.setdefault(label, []), int(quotas[label])
            if len(own) < quota:
                own.append(row)
            elif quota and row >= past and replaces[row - past]:
                own[int(torch.randint(quota, (1,), generator=random))] = row
        rows = sorted(row for own in kept.values() for row in own)
        self.replace(both.select(torch.tensor(rows, dtype=torch.int64)))

    def state(self) -> dict[str, Any]:
        return {**super().state(), "met": self._met}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._met = state["met"]
