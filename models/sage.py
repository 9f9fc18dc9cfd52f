"""GraphSAGE for nodes: a node's own features and the mean of its neighbours', each through weights of its own.

After Hamilton, Ying and Leskovec 2017, with the mean as aggregator. An example of a backbone for nodes of your own.
"""

from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.links import Links


class Layer(nn.Module):
    """h' = ReLU(BatchNorm(W·h_i + V·mean_j h_j + b)), the mean over the in-edges j → i."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, width)
        self.neighbours = nn.Linear(inputs, width, bias=False)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, hidden: Tensor, links: Links) -> Tensor:
        """Return (nodes, width) from (nodes, inputs)."""
        return self.norm(self.own(hidden) + self.neighbours(links.sum(hidden, "mean"))).relu()


class SAGE(Backbone):
    """`depth` layers of `width` units. Refused: depth or width below 1."""

    takes = "graph"

    def __init__(self, features: int, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        if depth < 1 or width < 1:
            raise ValueError(f"depth and width must be at least 1, found {depth} and {width}")
        self.layers = nn.ModuleList(Layer(width if before else features, width) for before in range(depth))

    def forward(self, places: Places) -> Tensor:
        """Return (N·m, width), an embedding per place."""
        hidden = places.dense_features
        for layer in self.layers:
            hidden = layer(hidden, places.links)
        return hidden[places.at.flatten()]
