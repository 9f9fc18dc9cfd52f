"""CTR-GCN (Chen et al. 2021): one topology shared by all channels, refined for every channel by the clip itself.

Written from the formulas of the paper; the number of blocks is small by default, for comparison with the order study.
"""

import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.skeletons.layout import JointLayout

BRANCHES = 4


class RefinedConvolution(nn.Module):
    """Channel-wise topology refinement: z_i,c = Σ_j (A_ij + α·Q_ij,c) · (W x_j)_c.

    A (V, V) is learned, starting from a partition of the skeleton. Q_ij = ξ(tanh(ψ(x̄_i) − φ(x̄_j))) is one topology per
    channel and clip, x̄ the mean over the frames; ψ and φ lead to few channels and ξ back to all. α starts from zero, so
    that learning begins with the shared topology alone.
    """

    def __init__(self, partition: Tensor, inputs: int, outputs: int) -> None:
        super().__init__()
        few = max(4, inputs // 8)
        # A_ij weighs joint j in what joint i receives; `layout.partitions()` has the receiver last.
        self.topology = nn.Parameter(partition.T.clone())
        self.alpha = nn.Parameter(torch.zeros(()))
        self.psi = nn.Linear(inputs, few)
        self.phi = nn.Linear(inputs, few)
        self.xi = nn.Linear(few, outputs)
        self.weight = nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        """Return (N, outputs, T, V) from features (N, inputs, T, V)."""
        pooled = features.mean(dim=2).mT
        differences = self.psi(pooled).unsqueeze(2) - self.phi(pooled).unsqueeze(1)
        refinement = self.xi(torch.tanh(differences)).permute(0, 3, 1, 2)
        return torch.einsum("ncij,nctj->ncti", self.topology + self.alpha * refinement, self.weight(features))


class MultiScaleTemporal(nn.Module):
    """Four branches of a quarter of the channels each, joined: convolutions of 5 frames with dilation 1 and 2, the
    maximum over 3 frames, and the frame itself; T stays as it is."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        part = channels // BRANCHES
        self.branches = nn.ModuleList(
            [
                nn.Sequential(*_entrance(channels, part), nn.ReLU(), *_over_five_frames(part, dilation=1)),
                nn.Sequential(*_entrance(channels, part), nn.ReLU(), *_over_five_frames(part, dilation=2)),
                nn.Sequential(
                    *_entrance(channels, part),
                    nn.ReLU(),
                    nn.MaxPool2d((3, 1), stride=1, padding=(1, 0)),
                    nn.BatchNorm2d(part),
                ),
                nn.Sequential(*_entrance(channels, part)),
            ]
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return (N, channels, T, V) from features of the same shape."""
        return torch.cat([branch(features) for branch in self.branches], dim=1)


def _entrance(channels: int, part: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(channels, part, 1, bias=False), nn.BatchNorm2d(part)


def _over_five_frames(part: int, dilation: int) -> tuple[nn.Module, ...]:
    reach = (2 * dilation, 0)
    return nn.Conv2d(part, part, (5, 1), padding=reach, dilation=(dilation, 1), bias=False), nn.BatchNorm2d(part)


class Block(nn.Module):
    """Σ_k refined convolutions, BatchNorm, residual, ReLU; multi-scale temporal module, dropout, residual, ReLU."""

    def __init__(self, partitions: Tensor, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.spatial = nn.ModuleList(RefinedConvolution(partition, inputs, outputs) for partition in partitions)
        self.norm = nn.BatchNorm2d(outputs)
        self.temporal = nn.Sequential(MultiScaleTemporal(outputs), nn.Dropout(dropout))
        self.spatial_residual = _residual(inputs, outputs)
        self.residual = _residual(inputs, outputs)

    def forward(self, features: Tensor) -> Tensor:
        """Return (N, outputs, T, V) from features (N, inputs, T, V)."""
        refined = sum(convolution(features) for convolution in self.spatial)
        hidden = (self.norm(refined) + self.spatial_residual(features)).relu()
        return (self.temporal(hidden) + self.residual(features)).relu()


def _residual(inputs: int, outputs: int) -> nn.Module:
    if inputs == outputs:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))


class CTRGCN(Backbone):
    """BatchNorm over joints × coordinates, `depth` blocks of `width` channels, mean over frames and joints.

    Refused: depth below 1, a width the four temporal branches cannot share, dropout outside [0, 1].
    """

    def __init__(self, layout: JointLayout, channels: int, width: int = 64, depth: int = 2, dropout: float = 0) -> None:
        super().__init__()
        if depth < 1:
            raise ValueError(f"depth must be at least 1, found {depth}")
        if width < BRANCHES or width % BRANCHES:
            raise ValueError(f"width must be a multiple of {BRANCHES}, found {width}")
        partitions = torch.from_numpy(layout.partitions())
        self.norm = nn.BatchNorm1d(channels * len(layout))
        self.blocks = nn.Sequential(
            *(Block(partitions, width if before else channels, width, dropout) for before in range(depth))
        )

    def forward(self, clips: Tensor) -> Tensor:
        """Return (N, width) from clips (N, C, T, V)."""
        by_joint = clips.transpose(2, 3)
        normalised = self.norm(by_joint.flatten(1, 2)).view(by_joint.shape).transpose(2, 3)
        return self.blocks(normalised).mean(dim=(2, 3))
