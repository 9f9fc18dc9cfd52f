"""What backbones get of problems on irregular graphs."""

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.links import Links, Part
from skeleton_cgl.graphs.sparse import Pattern, SparseFeatures

if TYPE_CHECKING:
    import dgl

Features: TypeAlias = Tensor | SparseFeatures
"""(nodes, F); both have `matmul`, `shape` and `to`."""

Table = TypeVar("Table", bound=Features)

_WORTH_IT = 0.7
"""The share of a graph's nodes up to which it is worth leaving the others out."""


@dataclass(frozen=True, eq=False)
class Places:
    """Places `at` (N, m) in one graph, m nodes asked about together; with the features (nodes, F) of all its nodes.

    numbers (N,), ascending: by which numbers the rows are asked for; where there are none, row i is asked for as i.
    components (nodes,): which part of the graph every node is in; only the parts that rows are in come along with them.
    kept: what a backbone's `arrange` computed once for all, by name, a row for every node. edge_features (E, B): of the
    links, in their sequence; −1 for a loop that was added. every: whether the places are all nodes, in their sequence.
    """

    links: Links
    features: Features
    at: Tensor
    numbers: Tensor | None = None
    components: Tensor | None = None
    kept: Mapping[str, Tensor] = field(default_factory=dict)
    edge_features: Tensor | None = None
    every: bool = False

    @classmethod
    def of(
        cls,
        edges: np.ndarray,
        features: np.ndarray | csr_array,
        at: np.ndarray | Tensor,
        self_loops: bool,
        numbers: np.ndarray | None = None,
        components: np.ndarray | None = None,
    ) -> "Places":
        """Return places in the graph of edges (2, E); self_loops: with exactly one loop at every node.

        Refused: ends and places that are no node, numbers that do not ascend, an edge from one component to another.
        """
        nodes = features.shape[0]
        links = Links.of(edges, nodes, self_loops)
        asked = _tensor(at, np.int64)
        if len(asked) and not 0 <= int(asked.min()) <= int(asked.max()) < nodes:
            raise InputError(f"places: one is outside the nodes 0–{nodes - 1}")
        if numbers is not None and (np.diff(numbers) <= 0).any():
            raise InputError("places: their numbers must ascend")
        if components is not None and (components[edges[0]] != components[edges[1]]).any():
            raise InputError("places: an edge leads from one component to another")
        made = _tensor(features, np.float32) if isinstance(features, np.ndarray) else SparseFeatures.of(features)
        return cls(links, made, asked, _tensor_or_none(numbers), _tensor_or_none(components))

    @classmethod
    def alone(cls, features: Tensor) -> "Places":
        """Return a place for each of the nodes of these features (N, F), which have no neighbour but themselves."""
        nodes = torch.arange(len(features), device=features.device)
        links = Links(Pattern((len(nodes), len(nodes)), torch.arange(len(nodes) + 1, device=nodes.device), nodes))
        return cls(links, features, nodes[:, None])

    @property
    def places(self) -> int:
        return self.at.shape[1]

    @property
    def independent(self) -> bool:
        return False

    @property
    def embedded(self) -> int:
        return self.at.numel()

    @property
    def asked(self) -> Tensor | slice:
        """Where the places (N·m,) are among the nodes."""
        return slice(None) if self.every else self.at.flatten()

    @property
    def content(self) -> "Places":
        return self

    @cached_property
    def graph(self) -> "dgl.DGLGraph":
        """The graph for DGL's operators; it is of these places alone, and may be written into."""
        return self.links.graph

    @cached_property
    def dense_features(self) -> Tensor:
        """The features (nodes, F) as one tensor, whether they are kept sparse or not."""
        return self.features if isinstance(self.features, Tensor) else self.features.dense()

    def towards(self, hops: int) -> "Paths":
        """Return what embeddings of these places are made of in so many layers, each of which sums over in-edges."""
        if hops not in self._paths:
            self._paths[hops] = Paths.to(self.links, self.asked, hops)
        return self._paths[hops]

    @cached_property
    def _paths(self) -> "dict[int, Paths]":
        return {}

    @property
    def version(self) -> Hashable:
        return sum(0 if tensor.is_inference() else tensor._version for tensor in self.tensors())

    def tensors(self) -> Iterator[Tensor]:
        # What is computed when it is first asked for is in version 0 then: asking changes no sum.
        yield from self.links.tensors()
        yield from (self.features,) if isinstance(self.features, Tensor) else self.features.tensors()
        yield from (each for each in (self.at, self.numbers, self.components, self.edge_features) if each is not None)
        yield from self.kept.values()

    def copied(self) -> "Places":
        kept = {name: table.clone() for name, table in self.kept.items()}
        numbers, components, edge_features = (
            None if each is None else each.clone() for each in (self.numbers, self.components, self.edge_features)
        )
        links, features = copy.deepcopy(self.links), copy.deepcopy(self.features)
        return Places(links, features, self.at.clone(), numbers, components, kept, edge_features, self.every)

    def __len__(self) -> int:
        return len(self.at)

    def floats_of(self, chosen: Tensor) -> int:
        """Return how many features the places of some rows have; of sparse features, those that are not zero."""
        if isinstance(self.features, Tensor):
            return len(chosen) * self.places * self.features.shape[1]
        entries = self.features.pattern.offsets.diff()
        return int(entries[self.at[self._rows_of(chosen.to(self.at.device))]].sum())

    def rows(self, chosen: Tensor) -> "Places":
        """Return the rows of these numbers, in that order, which numbers them from then on; refuse an unknown one."""
        at = self.at[self._rows_of(chosen.to(self.at.device))]
        places = replace(self, at=at, numbers=None, every=False)
        if self.components is None:
            return places
        asked = torch.zeros(int(self.components.max()) + 1, dtype=torch.bool, device=at.device)
        asked[self.components[at.flatten()]] = True
        inside = asked[self.components]
        return places if bool(inside.all()) else places._among(inside.nonzero()[:, 0])

    def asking(self, at: Tensor) -> "Places":
        """Return other places (N, m) in the same graph, which number them from then on."""
        return replace(self, at=at.to(self.at.device), numbers=None, every=False)

    @property
    def next_number(self) -> int:
        """The first number above those of all rows."""
        return len(self.at) if self.numbers is None or not len(self.at) else int(self.numbers[-1]) + 1

    def beside(self, other: "Places") -> "Places":
        """Return this graph and another as one, without an edge between them; refuse features of another kind.

        The rows of the other come after those of this one, with the numbers from `next_number` on. Both are as a pool
        has them: what a backbone arranged is not taken over.
        """
        nodes, first = self.links.nodes, self.next_number
        numbers = None if self.numbers is None else torch.cat([self.numbers, first + torch.arange(len(other))])
        components = None
        if self.components is not None:
            apart = other.components if other.components is not None else torch.zeros_like(other.links.in_degrees)
            components = torch.cat([self.components, apart + int(self.components.max()) + 1])
        at = torch.cat([self.at, other.at + nodes])
        pattern = self.links.pattern.stacked(other.links.pattern, apart=True)
        return Places(Links(pattern), _stacked(self.features, other.features), at, numbers, components)

    def _rows_of(self, chosen: Tensor) -> Tensor:
        if self.numbers is None:
            return chosen
        rows = torch.searchsorted(self.numbers, chosen).clamp(max=len(self.numbers) - 1)
        missing = self.numbers[rows] != chosen
        if missing.any():
            raise InputError(f"sample {int(chosen[missing][0])} has no place in this graph")
        return rows

    def _among(self, nodes: Tensor, links: Links | None = None) -> "Places":
        """Return the graph of some nodes, given in ascending order, with the same rows; links: if not all of theirs."""
        return Places(
            self.links.among(nodes) if links is None else links,
            _rows(self.features, nodes),
            torch.searchsorted(nodes, self.at),
            self.numbers,
            None if self.components is None else self.components[nodes],
            {name: table[nodes] for name, table in self.kept.items()},
        )

    def sampled(self, fan_outs: Sequence[int], random: np.random.Generator) -> "Places":
        """Return the same places in a graph around them: hop by hop, at most so many in-edges of every node, by chance.

        fan_outs: one per hop, beginning with the nodes asked about. Loops come along in any case. The graph has at most
        N·m·Π(fan-outs + 1) nodes, however many links the whole one has; all layers run on all of it. Where neighbours
        are weighted, each that was drawn weighs as much as those it stands for, so that sums are right on average.
        """
        reached = frontier = self.at.unique()
        parts = []
        for fan_out in fan_outs:
            part = self.links.sampled(frontier, fan_out, random)
            parts.append(part)
            frontier = _not_in(self.links.sources[part.edges].unique(), reached)
            reached = torch.cat([reached, frontier]).sort().values
        # Who is reached last passes on what it has itself.
        parts.append(self.links.sampled(frontier, 0, random))
        edges, shares = (torch.cat(each) for each in zip(*((part.edges, part.share) for part in parts), strict=True))
        return self._among(reached, self.links.some(Part(self.links, edges, shares), reached))

    def to(self, device: torch.device) -> "Places":
        if self.at.device == device:
            return self
        kept = {name: table.to(device) for name, table in self.kept.items()}
        numbers, components, edge_features = (
            None if each is None else each.to(device) for each in (self.numbers, self.components, self.edge_features)
        )
        links, features, at = self.links.to(device), self.features.to(device), self.at.to(device)
        return Places(links, features, at, numbers, components, kept, edge_features, self.every)

    def keeping(self, **tables: Tensor) -> "Places":
        """Return the places with more that was computed once for all: tables (nodes, …), a row for every node."""
        for name, table in tables.items():
            if len(table) != self.links.nodes:
                raise InputError(f"{name}: expected a row for each of {self.links.nodes} nodes, found {len(table)}")
        return replace(self, kept={**self.kept, **tables})

    def arranged(self, arrange: Callable[[Any], "Places"]) -> "Places":
        return arrange(self)

    def plain(self, hops: int, read_out: str) -> Tensor:  # noqa: ARG002
        """Return (N, F): Â^hops·X at every place, multiplied over the places of a row."""
        return self.propagated(hops, self.at.flatten()).unflatten(0, (-1, self.places)).prod(dim=1)

    def propagated(self, hops: int, at: Tensor | slice) -> Tensor:
        """Return Â^hops·X at some nodes, dense; sparse features stay so until then."""
        if isinstance(self.features, Tensor):
            summed = self.features
            for _ in range(hops):
                summed = self.links.sum(summed, "symmetric")
            return summed[at]
        weights = self.links.weights("symmetric")
        sums = _matrix(self.links.pattern, weights)
        table = _matrix(self.features.pattern, self.features.values)
        for _ in range(hops):
            table = sums @ table
        rows = at if isinstance(at, slice) else at.numpy(force=True)
        return torch.from_numpy(table[rows].toarray()).to(self.at.device)


@dataclass(frozen=True, eq=False)
class Paths:
    """The links that lead to some nodes, layer by layer: over what a layer gives, the next one sums.

    links: of every layer, the first first. nodes: those that features are needed of, then those that every layer gives
    something for, ascending; None for all. at: where what is asked about is among what the last layer gives.
    """

    links: tuple[Links, ...]
    nodes: tuple[Tensor | None, ...]
    at: Tensor | slice
    _cut: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def through_all(cls, links: Links, at: Tensor | slice, hops: int) -> "Paths":
        """Return all links for every layer."""
        return cls((links,) * hops, (None,) * (hops + 1), at)

    @classmethod
    def to(cls, links: Links, at: Tensor | slice, hops: int) -> "Paths":
        """Return the links that lead to the nodes `at`, and all where that leaves too little out to be worth it."""
        if isinstance(at, slice):
            return cls.through_all(links, at, hops)
        most = int(_WORTH_IT * links.nodes)
        needed, places = at.unique(return_inverse=True)
        if len(needed) > most:
            return cls.through_all(links, at, hops)
        nodes: list[Tensor | None] = [needed]
        layers: list[Links] = []
        for _ in range(hops):
            first = nodes[0]
            layer, before = (links, None) if first is None else links.into(first, most)
            layers.insert(0, layer)
            nodes.insert(0, before)
        return cls(tuple(layers), tuple(nodes), places)

    def rows(self, name: str, table: Table, level: int = 0) -> Table:
        """Return what a table has for the nodes of a level, cut out once; name: what it is called."""
        nodes = self.nodes[level]
        if nodes is None:
            return table
        if name not in self._cut:
            self._cut[name] = _rows(table, nodes)
        return self._cut[name]


def _tensor(array: np.ndarray | Tensor, kind: type[np.generic]) -> Tensor:
    """Return an array as a tensor: the same memory where it may be written into."""
    return array if isinstance(array, Tensor) else torch.from_numpy(np.require(array, kind, ["C", "W"]))


def _tensor_or_none(array: np.ndarray | None) -> Tensor | None:
    return None if array is None else _tensor(array, np.int64)


def _rows(table: Any, nodes: Tensor) -> Any:
    return table[nodes] if isinstance(table, Tensor) else table.rows(nodes)


def _stacked(upper: Features, lower: Features) -> Features:
    """Return the rows of one table and then those of another."""
    if isinstance(upper, Tensor) and isinstance(lower, Tensor):
        return torch.cat([upper, lower])
    if isinstance(upper, SparseFeatures) and isinstance(lower, SparseFeatures):
        return SparseFeatures(upper.pattern.stacked(lower.pattern), torch.cat([upper.values, lower.values]))
    raise InputError("features: those of one graph are sparse, those of the other are not")


def _matrix(pattern: Pattern, values: Tensor) -> csr_array:
    parts = (part.numpy(force=True) for part in (values, pattern.columns, pattern.offsets))
    return csr_array(tuple(parts), shape=pattern.shape)


def _not_in(found: Tensor, known: Tensor) -> Tensor:
    """Return which of some numbers are not among others, both ascending."""
    places = torch.searchsorted(known, found).clamp(max=max(len(known) - 1, 0))
    return found[known[places] != found] if len(known) else found
