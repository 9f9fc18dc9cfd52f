"""How well a point stands for its class: its distance to the mean, and how many others are near it."""

import torch
from torch import Tensor

_ROWS_AT_ONCE = 1000


def distances_to_mean(points: Tensor, labels: Tensor) -> Tensor:
    """Return (N,) the distance of every point (N, F) to the mean of those with its label."""
    kinds, of_kind = labels.unique(return_inverse=True)
    means = torch.stack([points[labels == kind].mean(dim=0) for kind in kinds])
    return (points - means[of_kind]).norm(dim=1)


def others_within(distance: float, points: Tensor, labels: Tensor) -> Tensor:
    """Return (N,) how many points (N, F) with another label are nearer than a distance."""
    found = []
    for some, own in zip(points.split(_ROWS_AT_ONCE), labels.split(_ROWS_AT_ONCE), strict=True):
        # Not by a product of matrices: who is within must not depend on how it is rounded.
        near = torch.cdist(some, points, compute_mode="donot_use_mm_for_euclid_dist") < distance
        found.append((near & (own[:, None] != labels)).sum(dim=1))
    return torch.cat(found)
