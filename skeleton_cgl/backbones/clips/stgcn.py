"""ST-GCN (Yan et al. 2018): spatial convolutions over three partitions of the joints, temporal ones over frames.

Activations are kept as (N, T, V, C), channels last, from input to read-out: there a 1×1 convolution is one product over
N·T·V rows, batch normalisation reduces columns, and the temporal convolution meets its fastest format.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.backbones.convolution import attention_over, check_size
from skeleton_cgl.backbones.gates import UnitGate, Wire, at
from skeleton_cgl.plain import shown
from skeleton_cgl.skeletons.layout import JointLayout

_LONGEST_KERNEL = 1023


class SpatialConvolution(nn.Module):
    """h'_w = Σ_k Σ_v A_k[v,w]·E_k[v,w]·(h_v W_k + b_k), with a learnable importance E_k[v,w] of every edge.

    The sum over neighbours is taken before the product with W, as [Σ_v A_1 h_v ‖ … ]·[W_1; …]: the same number at fewer
    channels.
    """

    partitions: Tensor

    def __init__(self, partitions: Tensor, inputs: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("partitions", partitions, persistent=False)
        self.importance = nn.Parameter(torch.ones_like(partitions))
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(outputs, len(partitions) * inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(len(partitions), outputs).uniform_(-bound, bound))

    def forward(self, features: Tensor) -> Tensor:
        """Return (N, T, V, outputs) from features (N, T, V, inputs)."""
        clips, frames, joints, inputs = features.shape
        edges = self.partitions * self.importance
        gather = edges.permute(2, 0, 1).reshape(-1, joints).to(features.dtype)
        summed = torch.bmm(gather.expand(clips * frames, -1, -1), features.reshape(-1, joints, inputs))
        bias = edges.sum(dim=1).T @ self.bias
        return functional.linear(summed.view(clips, frames, joints, -1), self.weight) + bias

    def edge_attention(self, features: Tensor) -> Tensor:
        """Return the attention of every edge by the weights W_k of the partition it belongs to."""
        weights = self.weight.chunk(len(self.partitions), dim=1)
        products = features.new_zeros(())
        for partition, weight in zip(self.partitions, weights, strict=True):
            projected = features @ weight.T
            products = products + torch.tanh(projected) @ projected.mT * (partition.T > 0)
        return attention_over(products, self.partitions.sum(dim=0).T)


class TemporalConvolution(nn.Conv2d):
    """A kernel × 1 convolution over the frames of (N, T, V, C), padded with zeros to keep T."""

    def __init__(self, channels: int, kernel: int) -> None:
        # No bias: the BatchNorm that follows takes it away again.
        super().__init__(channels, channels, (kernel, 1), padding=(kernel // 2, 0), bias=False)

    def forward(self, features: Tensor) -> Tensor:
        return super().forward(features.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class Block(nn.Module):
    """Spatial convolution, BatchNorm, ReLU, temporal convolution, BatchNorm, dropout; plus the residual, ReLU."""

    def __init__(self, partitions: Tensor, inputs: int, outputs: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.spatial = SpatialConvolution(partitions, inputs, outputs)
        self.spatial_norm = _EachChannel(outputs)
        self.temporal = TemporalConvolution(outputs, kernel)
        self.temporal_norm = _EachChannel(outputs)
        self.spatial_gate, self.unit_gate = UnitGate(outputs), UnitGate(outputs)
        self.dropout = nn.Dropout(dropout)
        self.residual: nn.Module = nn.Identity()
        if inputs != outputs:
            self.residual = nn.Sequential(nn.Linear(inputs, outputs, bias=False), _EachChannel(outputs))

    def forward(self, features: Tensor) -> Tensor:
        """Return (N, T, V, outputs) from features (N, T, V, inputs)."""
        hidden = self.spatial_gate(self.spatial_norm(self.spatial(features)).relu())
        hidden = self.dropout(self.temporal_norm(self.temporal(hidden)))
        found: Tensor = self.unit_gate((hidden + self.residual(features)).relu())
        return found

    def wires(self, before: UnitGate | None) -> list[Wire]:
        """Return the weights between gates; before: the one that features have passed."""
        wires = [
            Wire(self.spatial.weight, (self.spatial_gate, 0), at(before, 1)),
            Wire(self.temporal.weight, (self.unit_gate, 0), (self.spatial_gate, 1)),
        ]
        if isinstance(self.residual, nn.Sequential):
            linear = self.residual[0]
            assert isinstance(linear, nn.Linear)
            wires.append(Wire(linear.weight, (self.unit_gate, 0), at(before, 1)))
        return wires


class _EachChannel(nn.BatchNorm1d):
    """BatchNorm over the channels of (N, T, V, C)."""

    def forward(self, features: Tensor) -> Tensor:
        return super().forward(features.reshape(-1, features.shape[-1])).view(features.shape)


class STGCN(Backbone):
    """BatchNorm over joints × coordinates, `depth` blocks of `width` channels, mean over frames and joints."""

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
        check_size(depth, width)
        if not isinstance(kernel, int) or kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, found {shown(kernel)}")
        if kernel > _LONGEST_KERNEL:
            raise ValueError(f"kernel must be at most {_LONGEST_KERNEL}, found {kernel}")
        partitions = torch.from_numpy(layout.partitions())
        self.norm = nn.BatchNorm1d(len(layout) * channels)
        blocks = [Block(partitions, width if before else channels, width, kernel, dropout) for before in range(depth)]
        self.blocks: Sequence[Block] = nn.ModuleList(blocks)  # type: ignore[assignment]

    def arrange(self, clips: Tensor) -> Tensor:
        """Return (N, T, V, C) from clips (N, C, T, V)."""
        return clips.permute(0, 2, 3, 1).contiguous()

    def forward(self, clips: Tensor) -> Tensor:
        """Return (N, width) from clips (N, T, V, C)."""
        hidden = self._normalised(clips)
        for block in self.blocks:
            hidden = block(hidden)
        return hidden.mean(dim=(1, 2))

    def edge_attention(self, clips: Tensor) -> list[Tensor]:
        """Return, per block, the attention of every edge in every frame."""
        hidden, attention = self._normalised(clips), []
        for block in self.blocks:
            attention.append(block.spatial.edge_attention(hidden))
            hidden = block(hidden)
        return attention

    def gated(self) -> list[Wire]:
        """Return the weights between gates: every block has one after either convolution.

        The importance of edges is of all units, and on no wire.
        """
        gates = [None, *(block.unit_gate for block in self.blocks)]
        return [wire for gate, block in zip(gates, self.blocks, strict=False) for wire in block.wires(gate)]

    def _normalised(self, clips: Tensor) -> Tensor:
        return self.norm(clips.flatten(0, 1).flatten(1)).view_as(clips)
