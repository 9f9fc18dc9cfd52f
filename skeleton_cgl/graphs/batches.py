"""What backbones get of problems on irregular graphs."""

import copy
import os
import zlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    import dgl


@dataclass(frozen=True)
class Places:
    """Places `at` (N, m) in one graph, m nodes asked about together; with the features (nodes, F) of all its nodes.

    Self-loops are edges like any other. summed (nodes, F): the features summed over neighbours, where a backbone has
    done that once for all.
    """

    graph: "dgl.DGLGraph"
    features: Tensor
    at: Tensor
    summed: Tensor | None = None

    @property
    def places(self) -> int:
        return self.at.shape[1]

    @property
    def independent(self) -> bool:
        return False

    @property
    def content(self) -> "Places":
        return self

    @property
    def version(self) -> Hashable:
        # What DGL gives as the edges is the memory of the graph itself, in a new tensor every time.
        edges = [zlib.crc32(end.cpu().numpy()) for end in self.graph.edges()]
        held = (self.features, self.at) if self.summed is None else (self.features, self.at, self.summed)
        return *edges, *(tensor._version for tensor in held)

    def copied(self) -> "Places":
        return copy.deepcopy(self)

    def __len__(self) -> int:
        return len(self.at)

    def rows(self, chosen: Tensor) -> "Places":
        # What is put into a local graph, or added to it, stays there.
        return replace(self, graph=self.graph.local_var(), at=self.at[chosen.to(self.at.device)])

    def to(self, device: torch.device) -> "Places":
        if self.at.device == device:
            return self
        summed = None if self.summed is None else self.summed.to(device)
        return Places(self.graph.to(device), self.features.to(device), self.at.to(device), summed)

    def arranged(self, arrange: Callable[[Any], "Places"]) -> "Places":
        return arrange(self)


@dataclass(frozen=True)
class Graphs:
    """Whole graphs, each with the features of its nodes as `features`; one embedding is wanted per graph."""

    members: tuple["dgl.DGLGraph", ...]

    @property
    def places(self) -> int:
        return 1

    @property
    def independent(self) -> bool:
        return False

    @cached_property
    def content(self) -> "dgl.DGLGraph":
        """All of them as one batch of DGL's."""
        import dgl

        return dgl.batch(list(self.members))

    @property
    def version(self) -> Hashable:
        return tuple(member.ndata[name]._version for member in self.members for name in member.ndata)

    def copied(self) -> "Graphs":
        return Graphs(tuple(copy.deepcopy(member) for member in self.members))

    def __len__(self) -> int:
        return len(self.members)

    def rows(self, chosen: Tensor) -> "Graphs":
        return Graphs(tuple(self.members[row] for row in chosen.tolist()))

    def to(self, device: torch.device) -> "Graphs":
        return Graphs(tuple(member.to(device) for member in self.members))

    def arranged(self, arrange: Callable[[Any], Any]) -> "Graphs":  # noqa: ARG002
        """Return these graphs: what is the same in every epoch is different for every batch of them."""
        return self


def graph_of(edges: np.ndarray, nodes: int) -> "dgl.DGLGraph":
    """Return the graph of edges (2, E), from sources to targets."""
    os.environ.setdefault("DGLBACKEND", "pytorch")
    import dgl

    return dgl.graph((edges[0], edges[1]), num_nodes=nodes)


def neighbour_sum(graph: "dgl.DGLGraph", features: Tensor) -> Tensor:
    """Return (nodes, F): for every node the sum of the features at the other ends of its in-edges."""
    import dgl.function as message

    with graph.local_scope():
        graph.ndata["features"] = features
        graph.update_all(message.copy_u("features", "message"), message.sum("message", "summed"))
        return graph.ndata["summed"]
