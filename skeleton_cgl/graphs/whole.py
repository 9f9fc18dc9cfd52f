"""Whole graphs on their way into a backbone: block by block in one graph, put together without a loop over them.

Letters: G graphs, n nodes and E edges of all of them.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.sparse import Blocks, Pattern, product

_MOST_KEPT = 1 << 28
"""So many bytes of batches that were asked for again are kept, for a third time."""


@dataclass(frozen=True, eq=False)
class Graphs:
    """Graphs as blocks of one graph; one embedding is wanted per graph.

    content: all their nodes, graph by graph, as places. starts (G + 1,): the first node of every graph, and the number
    of all nodes. numbers (G,), ascending: by which numbers the graphs are asked for; where there are none, graph i is
    asked for as i. codes: where features are numbers of kinds, how many there are of every column.
    """

    content: Places
    starts: Tensor
    numbers: Tensor | None = None
    codes: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls,
        starts: np.ndarray,
        edges: np.ndarray,
        features: np.ndarray,
        self_loops: bool,
        edge_features: np.ndarray | None = None,
        codes: tuple[int, ...] | None = None,
    ) -> "Graphs":
        """Return graphs of what a `GraphSet` has; self_loops: with exactly one loop at every node, without features."""
        nodes = len(features)
        places = Places.of(edges, features, np.arange(nodes)[:, None], self_loops)
        if edge_features is not None:
            places = replace(places, edge_features=_with_loops(edges, edge_features, nodes, self_loops))
        made = torch.from_numpy(np.array(starts, dtype=np.int64))
        return cls(replace(places, every=True), made, codes=codes)

    @property
    def places(self) -> int:
        return 1

    @property
    def independent(self) -> bool:
        return True

    @property
    def embedded(self) -> int:
        return int(self.starts[-1])

    @property
    def version(self) -> Hashable:
        return self.content.version, 0 if self.starts.is_inference() else self.starts._version

    def tensors(self) -> Iterator[Tensor]:
        """Yield all that is held."""
        yield from self.content.tensors()
        yield from (each for each in (self.starts, self.numbers) if each is not None)

    @property
    def sizes(self) -> Tensor:
        """(G,) the number of nodes of every graph."""
        return self.starts.diff()

    def sums(self, table: Tensor) -> Tensor:
        """Return (G, F): for every graph the sum of its rows in a table (n, F)."""
        return product(self._members, None, table)

    def means(self, table: Tensor) -> Tensor:
        """Return (G, F): for every graph the mean of its rows in a table (n, F)."""
        return self.sums(table) / self.sizes[:, None]

    def largest(self, table: Tensor) -> Tensor:
        """Return (G, F): for every graph the largest number in each column of its rows in a table (n, F)."""
        owner = torch.repeat_interleave(self.sizes)[:, None].expand_as(table)
        return table.new_zeros(len(self), table.shape[1]).scatter_reduce(0, owner, table, "amax", include_self=False)

    @cached_property
    def _members(self) -> Pattern:
        """(G, n): which nodes are in every graph."""
        nodes = int(self.starts[-1])
        return Pattern((len(self), nodes), self.starts, torch.arange(nodes, device=self.starts.device))

    def copied(self) -> "Graphs":
        numbers = None if self.numbers is None else self.numbers.clone()
        return Graphs(self.content.copied(), self.starts.clone(), numbers, self.codes)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def floats_of(self, chosen: Tensor) -> int:
        """Return how many features all nodes of some graphs have."""
        nodes = self.sizes[self._rows_of(chosen.to(self.starts.device))].sum()
        return int(nodes) * self.content.features.shape[1]

    def rows(self, chosen: Tensor) -> "Graphs":
        """Return the graphs of these numbers, in that order, which numbers them from then on; refuse an unknown one.

        What is asked for a second time is kept for a third, such as what a lesson is validated on.
        """
        key = chosen.long().cpu().numpy().tobytes()
        if key in self._batches:
            self._batches.move_to_end(key)
            batch, version = self._batches[key]
            if batch.version != version:
                del self._batches[key]
                raise InputError("graphs: something was written into a batch that all learners share; work on a copy")
            return batch
        batch = self._assembled(self._rows_of(chosen.to(self.starts.device)))
        if hash(key) not in self._asked:
            self._asked.add(hash(key))
            return batch
        self._batches[key] = batch, batch.version
        while sum(each.bytes for each, _ in self._batches.values()) > _MOST_KEPT:
            self._batches.popitem(last=False)
        return batch

    @cached_property
    def _batches(self) -> "OrderedDict[bytes, tuple[Graphs, Hashable]]":
        return OrderedDict()

    @cached_property
    def _asked(self) -> set[int]:
        return set()

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return sum(each.numel() * each.element_size() for each in self.tensors())

    def numbered(self, rows: np.ndarray) -> "Graphs":
        """Return some of the graphs, ascending, which are asked for by the numbers they have here; others are gone."""
        numbers = torch.from_numpy(rows)
        some = self._assembled(numbers)
        content = replace(some.content, links=some.content.links.by_itself())
        return replace(some, content=content, numbers=numbers)

    def _rows_of(self, chosen: Tensor) -> Tensor:
        if self.numbers is None:
            return chosen
        rows = torch.searchsorted(self.numbers, chosen).clamp(max=len(self.numbers) - 1)
        missing = self.numbers[rows] != chosen
        if missing.any():
            raise InputError(f"sample {int(chosen[missing][0])} is not among these graphs")
        return rows

    def _assembled(self, rows: Tensor) -> "Graphs":
        content = self.content
        blocks = Blocks.of(self.starts[rows], self.starts[rows + 1])
        links, edges = content.links.blocks(blocks)
        starts = blocks.starts
        nodes = int(starts[-1])
        places = Places(
            links,
            _picked(content.features, blocks.members),
            torch.arange(nodes, device=starts.device)[:, None],
            kept={name: table[blocks.members] for name, table in content.kept.items()},
            edge_features=None if content.edge_features is None else content.edge_features[edges],
            every=True,
        )
        return Graphs(places, starts, codes=self.codes)

    def to(self, device: torch.device) -> "Graphs":
        if self.starts.device == device:
            return self
        numbers = None if self.numbers is None else self.numbers.to(device)
        return Graphs(self.content.to(device), self.starts.to(device), numbers, self.codes)

    def arranged(self, arrange: Callable[[Any], Places]) -> "Graphs":
        """Return these graphs with what a backbone's `arrange` keeps of all their nodes."""
        return replace(self, content=arrange(self.content))

    def plain(self, hops: int, read_out: str) -> Tensor:
        """Return (G, F): Â^hops·X of the nodes of every graph, their mean or sum; of codes, a column for every kind."""
        content = self.content
        if self.codes is not None:
            columns = zip(content.dense_features.long().T, self.codes, strict=True)
            kinds = [one_hot(column, number) for column, number in columns]
            content = replace(content, features=torch.cat(kinds, dim=1).float())
        table = content.propagated(hops, slice(None))
        return self.sums(table) if read_out == "sum" else self.means(table)


def _picked(features: Any, nodes: Tensor) -> Any:
    return features[nodes] if isinstance(features, Tensor) else features.rows(nodes)


def _with_loops(edges: np.ndarray, features: np.ndarray, nodes: int, self_loops: bool) -> Tensor:
    """Return the features of edges in the sequence of `Links`; those of a loop that is added are −1."""
    if self_loops:
        proper = edges[0] != edges[1]
        every = np.arange(nodes)
        edges = np.concatenate([edges[:, proper], np.stack([every, every])], axis=1)
        features = np.concatenate([features[proper], np.full((nodes, features.shape[1]), -1, dtype=features.dtype)])
    return torch.from_numpy(features[np.lexsort(edges)].astype(np.float32))
