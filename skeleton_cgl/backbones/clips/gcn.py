"""GCN: graph convolutions on the joints, a sum and a max read-out joined, and a predictor.

Clips of one data set share one graph, so the convolution is dense linear algebra over (N, V, F), and the first
neighbour sum, which depends on the data alone, is taken once per data set.
"""

import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.backbones.convolution import StackedConvolutions, attention_over
from skeleton_cgl.skeletons.layout import JointLayout


class GCN(StackedConvolutions):
    """`depth` graph convolutions of `width` units, [Σᵢ σ(w·hᵢ+b)·hᵢ ‖ maxᵢ hᵢ], Linear → ReLU → BatchNorm.

    A node is a joint, and its features are its whole trajectory, frames × coordinates.
    """

    adjacency: Tensor

    def __init__(self, features: int, layout: JointLayout, width: int = 64, depth: int = 2) -> None:
        super().__init__(features, width, depth)
        self.register_buffer("adjacency", torch.from_numpy(layout.adjacency()), persistent=False)

    def arrange(self, clips: Tensor) -> tuple[Tensor, Tensor]:
        """Return joint trajectories (N, V, T·C) and their neighbour sums, from clips (N, C, T, V)."""
        trajectories = clips.permute(0, 3, 2, 1).flatten(2).contiguous()
        return trajectories, self._sum(trajectories)

    def forward(self, inputs: tuple[Tensor, Tensor]) -> Tensor:
        """Return (N, 64), an embedding per clip."""
        return self.predicted(self._read_out(self.embedded(*inputs, self._sum)[-1]))

    def edge_attention(self, inputs: tuple[Tensor, Tensor]) -> list[Tensor]:
        """Return, per layer, softmax over the in-edges of i of LeakyReLU₀.₂(Σ_d (h_j W)_d · tanh((h_i W)_d))."""
        projected = self.projected(inputs[0], self.embedded(*inputs, self._sum))
        return [attention_over(torch.tanh(layer) @ layer.mT, self.adjacency) for layer in projected]

    def _sum(self, features: Tensor) -> Tensor:
        """Return A·h for h (N, V, F)."""
        # bmm: matmul with a two-dimensional left factor folds h through a transposed copy when it needs a gradient.
        return torch.bmm(self.adjacency.to(features).expand(len(features), -1, -1), features)

    def _read_out(self, hidden: Tensor) -> Tensor:
        """Return (N, 2·width) from (N, V, width)."""
        # A product: the gradient of (gate * h).sum(1) comes back transposed in memory and slows all that follows.
        weighted = torch.bmm(torch.sigmoid(self.gate(hidden)).mT, hidden).squeeze(1)
        return torch.cat([weighted, _largest(hidden)], dim=1)


def _largest(hidden: Tensor) -> Tensor:
    """Return (N, width), the maximum over the joints of (N, V, width)."""
    # Pooling finds the places ten times faster than Tensor.max; gathering has the faster gradient.
    _, places = functional.max_pool1d(hidden.detach().mT, hidden.shape[1], return_indices=True)
    return hidden.gather(1, places.mT).squeeze(1)
