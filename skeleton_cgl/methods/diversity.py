"""Picking samples that are unlike one another."""

import torch
from torch import Tensor


def unlike(likely: Tensor, targets: Tensor, count: int, others: float) -> Tensor:
    """Return the rows of up to `count` samples of every class that are unlike one another, and unlike other classes.

    likely (N, K): the probability of every class. The classes take turns: each picks first the sample surest of it,
    then the one with the largest d_own + others · Σ d_other, d being the least distance from what a class has picked.
    """
    classes = targets.unique()
    free = targets == classes[:, None]
    nearest = likely.new_full(free.shape, torch.inf)
    picked: list[list[int]] = [[] for _ in classes]
    for turn in range(count):
        for place, label in enumerate(classes):
            if not free[place].any():
                continue
            own = nearest[place]
            score = likely[:, label] if turn == 0 else own + others * (nearest.sum(dim=0) - own)
            row = int(score.masked_fill(~free[place], -torch.inf).argmax())
            picked[place].append(row)
            free[place, row] = False
            nearest[place] = own.minimum((likely - likely[row]).norm(dim=1))
    return torch.tensor([row for rows in picked for row in rows])
