"""Picking samples that are unlike one another."""

import torch
from torch import Tensor


def unlike(likely: Tensor, targets: Tensor, count: int, others: float) -> Tensor:
    """Return the rows of up to `count` samples of every class that are unlike one another, and unlike other classes.

    likely (N, K): the probability of every class. The classes take turns: each picks first the sample surest of it,
    then the one with the largest d_own + others · Σ d_other, d being the least distance from what a class has picked.
    """
    return _picks(likely, _sure(likely, targets), targets, count, others)


def farthest_first(likely: Tensor, targets: Tensor, count: int) -> Tensor:
    """Return the rows of up to `count` samples that are unlike one another, whatever their classes.

    likely (N, K): the probability of every class. The first is the sample surest of its class, every other one the
    sample with the largest of the least distances from those picked before.
    """
    return _picks(likely, _sure(likely, targets), torch.zeros_like(targets), count, 0)


def _sure(likely: Tensor, targets: Tensor) -> Tensor:
    """Return (N,) the probability of the class that a sample is of."""
    return likely.gather(1, targets[:, None])[:, 0]


def _picks(likely: Tensor, sure: Tensor, groups: Tensor, count: int, others: float) -> Tensor:
    """Return the rows of up to `count` samples of every group (N,), the surest of each first, group by group."""
    known = groups.unique()
    free = groups == known[:, None]
    nearest = likely.new_full(free.shape, torch.inf)
    picked: list[list[int]] = [[] for _ in known]
    for turn in range(min(count, len(groups))):
        for place in range(len(known)):
            if not free[place].any():
                continue
            own = nearest[place]
            score = sure if turn == 0 else own + others * (nearest.sum(dim=0) - own)
            row = int(score.masked_fill(~free[place], -torch.inf).argmax())
            picked[place].append(row)
            free[place, row] = False
            nearest[place] = own.minimum((likely - likely[row]).norm(dim=1))
    return torch.tensor([row for rows in picked for row in rows])
