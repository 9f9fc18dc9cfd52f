"""What backbones get of problems on irregular graphs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    import dgl


@dataclass(frozen=True)
class GraphBatch:
    """Graphs batched by DGL, with the features (nodes, F) of their nodes; self-loops are edges like any other.

    nodes (N,): the nodes asked about, where embeddings of nodes and not of whole graphs are wanted. summed (nodes, F):
    the features summed over neighbours, where that was done before.
    """

    graph: "dgl.DGLGraph"
    features: Tensor
    nodes: Tensor | None = None
    summed: Tensor | None = None


def neighbour_sum(graph: "dgl.DGLGraph", features: Tensor) -> Tensor:
    """Return (nodes, F): for every node the sum of the features at the other ends of its in-edges."""
    import dgl.function as message

    with graph.local_scope():
        graph.ndata["features"] = features
        graph.update_all(message.copy_u("features", "message"), message.sum("message", "summed"))
        return graph.ndata["summed"]
