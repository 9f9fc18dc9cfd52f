"""TCN: a temporal network that knows nothing of bones, the control for every backbone that does.

After Res-TCN (Kim and Reiter 2017): all coordinates of all joints in a frame are one vector of V·C channels, and 1-D
convolutions run over the frames. What a graph backbone gains over this one, it gains from the graph.
"""

from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.skeletons.layout import JointLayout


class Block(nn.Module):
    """h' = ReLU(Dropout(BatchNorm(W * h)) + residual(h)); W has `kernel` taps over time, and T stays as it is."""

    def __init__(self, inputs: int, outputs: int, kernel: int, dropout: float) -> None:
        super().__init__()
        # No bias: the BatchNorm that follows takes it away again.
        self.convolution = nn.Sequential(
            nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2, bias=False),
            nn.BatchNorm1d(outputs),
            nn.Dropout(dropout),
        )
        self.residual: nn.Module = nn.Identity()
        if inputs != outputs:
            self.residual = nn.Sequential(nn.Conv1d(inputs, outputs, 1, bias=False), nn.BatchNorm1d(outputs))

    def forward(self, features: Tensor) -> Tensor:
        """Return (N, outputs, T) from features (N, inputs, T)."""
        return (self.convolution(features) + self.residual(features)).relu()


class TCN(Backbone):
    """BatchNorm over joints × coordinates, `depth` blocks of `width` channels, mean over frames.

    Of the layout only the number of joints is used. Refused: depth or width below 1, an even kernel, dropout outside
    [0, 1].
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
        inputs = channels * len(layout)
        self.norm = nn.BatchNorm1d(inputs)
        self.blocks = nn.Sequential(
            *(Block(width if before else inputs, width, kernel, dropout) for before in range(depth))
        )

    def arrange(self, clips: Tensor) -> Tensor:
        """Return (N, C·V, T) from clips (N, C, T, V)."""
        return clips.transpose(2, 3).flatten(1, 2).contiguous()

    def forward(self, trajectories: Tensor) -> Tensor:
        """Return (N, width) from what `arrange` made of the clips, (N, C·V, T)."""
        return self.blocks(self.norm(trajectories)).mean(dim=2)
