"""AGCN: the adaptive graph convolution of 2s-AGCN (Shi et al. 2019), in which the data may join any two joints.

The second stream of the paper is the same network on bones: `preparation: {stream: bone}` in the scenario.
"""

import torch
from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.skeletons.layout import JointLayout


class AdaptiveConvolution(nn.Module):
    """h'_w = Σ_k Σ_v (A_k + B_k + C_k)[v,w] · W_k h_v.

    A_k are the partitions of the skeleton (self, inward, outward) and stay as they are; B_k (V, V) is learned, starts
    from zero and is shared by all clips; C_k (N, V, V) is each clip's own: C_k[v,w] = softmax_v(θ_k(h_v)·φ_k(h_w)).
    θ_k and φ_k are linear, and the product is their mean over the frames, divided by the root of their channels.
    """

    skeleton: Tensor

    def __init__(self, partitions: Tensor, inputs: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("skeleton", partitions, persistent=False)
        self.learned = nn.Parameter(torch.zeros_like(partitions))
        self.embedded = max(1, outputs // 4)
        self.theta = nn.Conv2d(inputs, len(partitions) * self.embedded, 1, bias=False)
        self.phi = nn.Conv2d(inputs, len(partitions) * self.embedded, 1, bias=False)
        self.weight = nn.Conv2d(len(partitions) * inputs, outputs, 1, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        """Return (N, outputs, T, V) from features (N, inputs, T, V)."""
        graphs = self.skeleton + self.learned + self.similarity(features)
        summed = torch.einsum("nctv,nkvw->nkctw", features, graphs)
        return self.weight(summed.flatten(1, 2))

    def similarity(self, features: Tensor) -> Tensor:
        """Return C (N, 3, V, V); its columns sum to 1."""
        theta = self.theta(features).unflatten(1, (-1, self.embedded))
        phi = self.phi(features).unflatten(1, (-1, self.embedded))
        products = torch.einsum("nketv,nketw->nkvw", theta, phi) / (features.shape[2] * self.embedded**0.5)
        return torch.softmax(products, dim=2)


class Block(nn.Module):
    """Adaptive convolution, BatchNorm, residual, ReLU; dropout; temporal convolution, BatchNorm, residual, ReLU."""

    def __init__(self, partitions: Tensor, inputs: int, outputs: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.spatial = nn.Sequential(AdaptiveConvolution(partitions, inputs, outputs), nn.BatchNorm2d(outputs))
        # No bias: the BatchNorm that follows takes it away again.
        self.temporal = nn.Sequential(
            nn.Conv2d(outputs, outputs, (kernel, 1), padding=(kernel // 2, 0), bias=False), nn.BatchNorm2d(outputs)
        )
        self.dropout = nn.Dropout(dropout)
        self.spatial_residual = _residual(inputs, outputs)
        self.residual = _residual(inputs, outputs)

    def forward(self, features: Tensor) -> Tensor:
        """Return (N, outputs, T, V) from features (N, inputs, T, V)."""
        hidden = (self.spatial(features) + self.spatial_residual(features)).relu()
        return (self.temporal(self.dropout(hidden)) + self.residual(features)).relu()


def _residual(inputs: int, outputs: int) -> nn.Module:
    if inputs == outputs:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))


class AGCN(Backbone):
    """BatchNorm over joints × coordinates, `depth` blocks of `width` channels, mean over frames and joints.

    Refused: depth or width below 1, an even kernel, dropout outside [0, 1].
    """

    def __init__(
        self,
        layout: JointLayout,
        channels: int,
        width: int = 64,
        depth: int = 2,
        kernel: int = 9,
        dropout: float = 0,
    ) -> None:
        super().__init__()
        if depth < 1 or width < 1:
            raise ValueError(f"depth and width must be at least 1, found {depth} and {width}")
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, found {kernel}")
        partitions = torch.from_numpy(layout.partitions())
        self.norm = nn.BatchNorm1d(channels * len(layout))
        self.blocks = nn.Sequential(
            *(Block(partitions, width if before else channels, width, kernel, dropout) for before in range(depth))
        )

    def forward(self, clips: Tensor) -> Tensor:
        """Return (N, width) from clips (N, C, T, V)."""
        by_joint = clips.transpose(2, 3)
        normalised = self.norm(by_joint.flatten(1, 2)).view(by_joint.shape).transpose(2, 3)
        return self.blocks(normalised).mean(dim=(2, 3))
