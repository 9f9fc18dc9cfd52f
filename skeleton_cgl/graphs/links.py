"""The edges of a graph as tensors, sums over them, and some of a node's edges by chance."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.config import did_you_mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.sparse import Blocks, Pattern, dots, product, turned_product

if TYPE_CHECKING:
    import dgl

Weighting = Literal["plain", "mean", "symmetric"]
"""plain: 1 for every edge. mean: 1/d_in(i) for j → i. symmetric: 1/√(d_out(j)·d_in(i)), loops counted in both."""


_ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the edges (E,) of other links; share (E,): for how many of these each stands, where some were drawn."""

    links: "Links"
    edges: Tensor
    shares: Tensor | None = None

    @property
    def share(self) -> Tensor:
        return torch.ones_like(self.edges).double() if self.shares is None else self.shares


@dataclass(frozen=True, eq=False)
class Links:
    """The edges of a graph, sorted by target and then by source: its in-edges, node by node.

    part_of: where these are some of the links of another graph, and weigh what they weigh there. origins (nodes,):
    where sources are numbered apart from targets, the numbers the nodes have among them.
    """

    pattern: Pattern
    part_of: "Part | None" = None
    origins: Tensor | None = None
    _weights: dict[tuple[str, torch.dtype], Tensor] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, edges: np.ndarray, nodes: int, self_loops: bool = False) -> "Links":
        """Return the links of edges (2, E) from sources to targets; refuse an end that is no node.

        self_loops: with exactly one loop at every node, whatever loops are among the edges; otherwise these stay.
        """
        sources, targets = (np.asarray(ends, dtype=np.int64) for ends in edges)
        if len(sources) and not 0 <= min(sources.min(), targets.min()) <= max(sources.max(), targets.max()) < nodes:
            raise InputError(f"edges: an end is outside the nodes 0–{nodes - 1}")
        if self_loops:
            proper, every = sources != targets, np.arange(nodes)
            sources, targets = (np.concatenate([ends[proper], every]) for ends in (sources, targets))
        keys = targets * nodes + sources
        if (np.diff(keys) < 0).any():
            sequence = np.argsort(keys, kind="stable")
            sources, targets = sources[sequence], targets[sequence]
        return cls(_by_target(torch.from_numpy(sources.copy()), torch.from_numpy(targets), nodes))

    @property
    def nodes(self) -> int:
        return self.pattern.shape[0]

    @property
    def sources(self) -> Tensor:
        """(E,)"""
        return self.pattern.columns

    @property
    def targets(self) -> Tensor:
        """(E,)"""
        return self.pattern.rows

    @property
    def device(self) -> torch.device:
        return self.sources.device

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def in_degrees(self) -> Tensor:
        """(nodes,)"""
        return self.pattern.offsets.diff()

    def weights(self, kind: Weighting, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the weight (E,) of every edge, as `Weighting` says, computed once; refuse an unknown one."""
        if (kind, dtype) not in self._weights:
            check_weighting(kind)
            self._weights[kind, dtype] = self._computed(kind).to(dtype)
        return self._weights[kind, dtype]

    def _turned_weights(self, kind: Weighting, dtype: torch.dtype) -> Tensor:
        """Return the weights in the sequence of the transpose, computed once."""
        name = f"{kind} turned"
        if (name, dtype) not in self._weights:
            self._weights[name, dtype] = self.weights(kind, dtype)[self.pattern.turned[2]]
        return self._weights[name, dtype]

    def _computed(self, kind: Weighting, edges: Tensor | slice = _ALL) -> Tensor:
        """Return the weights of some edges."""
        if self.part_of is not None:
            found = self.part_of.links._computed(kind, self.part_of.edges[edges])
            return found if kind == "plain" else found * self.part_of.share[edges]
        inward = self.in_degrees[self.targets[edges]].double()
        if kind == "plain":
            return torch.ones_like(inward)
        if kind == "mean":
            return 1 / inward
        return (inward * self._out_degrees[self.sources[edges]]).rsqrt()

    @cached_property
    def _out_degrees(self) -> Tensor:
        return torch.bincount(self.sources, minlength=self.nodes)

    def sum(self, features: Tensor, weights: Weighting | Tensor = "plain") -> Tensor:
        """Return (nodes, F): for every node the weighted sum of the features (nodes, F) at its in-edges' sources.

        weights: a kind, or one number (E,) for every edge, by which it is differentiable as well.
        """
        if isinstance(weights, Tensor):
            return product(self.pattern, weights, features)
        if weights == "plain":
            return product(self.pattern, None, features)
        back = partial(self._turned_weights, weights, features.dtype)
        return product(self.pattern, self.weights(weights, features.dtype), features, back)

    def dots(self, at_targets: Tensor, at_sources: Tensor) -> Tensor:
        """Return (E,): for every edge the inner product of rows of two tables (nodes, F), its target's and source's."""
        return dots(self.pattern, at_targets, at_sources)

    def of_targets(self, table: Tensor) -> Tensor:
        """Return (E, F): for every edge the row of its target in a table (nodes, F)."""
        return turned_product(self._arriving, None, table)

    def of_sources(self, table: Tensor) -> Tensor:
        """Return (E, F): for every edge the row of its source in a table (nodes, F)."""
        return turned_product(self._leaving, None, table)

    def softmax(self, scores: Tensor) -> Tensor:
        """Return (E, H): the softmax of scores (E, H) over the in-edges of every node."""
        targets = self.targets[:, None].expand_as(scores)
        # Less the largest, which changes nothing but that no number overflows.
        largest = scores.new_zeros(self.nodes, scores.shape[1])
        largest = largest.scatter_reduce(0, targets, scores.detach(), "amax", include_self=False)
        found = (scores - largest[self.targets]).exp()
        return found / self.of_targets(product(self._arriving, None, found))

    @cached_property
    def _arriving(self) -> Pattern:
        """(nodes, E): which edges lead to every node."""
        return Pattern((self.nodes, len(self)), self.pattern.offsets, torch.arange(len(self), device=self.device))

    @cached_property
    def _leaving(self) -> Pattern:
        """(sources, E): which edges begin at every source."""
        offsets, _, edges = self.pattern.turned
        return Pattern((self.pattern.shape[1], len(self)), offsets, edges)

    @property
    def graph(self) -> "dgl.DGLGraph":
        """A graph of DGL's with these edges, in this sequence; a new one every time, so that it may be written into."""
        os.environ.setdefault("DGLBACKEND", "pytorch")
        import dgl

        return dgl.graph((self.sources.clone(), self.targets.clone()), num_nodes=self.nodes)

    def among(self, nodes: Tensor) -> "Links":
        """Return the links between some nodes, given in ascending order, numbered by their place among them."""
        place = torch.full((self.nodes,), -1, device=self.device)
        place[nodes] = torch.arange(len(nodes), device=self.device)
        sources, targets = place[self.sources], place[self.targets]
        both = (sources >= 0) & (targets >= 0)
        return Links(_by_target(sources[both], targets[both], len(nodes)))

    def blocks(self, nodes: Blocks) -> tuple["Links", Tensor]:
        """Return the links of some parts of a graph that none leads out of, and which (E,) of these links they are."""
        pattern, edges = self.pattern.blocks(nodes)
        return Links(
            pattern, _weights={kind: table[edges.members] for kind, table in self._weights.items()}
        ), edges.members

    def by_itself(self) -> "Links":
        """Return the same links, without those of the graph that they may be some blocks of."""
        return replace(self, pattern=self.pattern.by_itself())

    def into(self, nodes: Tensor, most: int) -> "tuple[Links, Tensor | None]":
        """Return the in-edges of some nodes, and the nodes these and their neighbours are, ascending.

        The sources are then numbered among the latter; not if they are more than `most`, and None stands for all.
        """
        pattern, edges = self.pattern.of_rows(nodes)
        origins, places = torch.cat([pattern.columns, nodes]).unique(return_inverse=True)
        if len(origins) > most:
            return Links(pattern, Part(self, edges), nodes), None
        sources, own = places.split([len(edges), len(nodes)])
        return Links(Pattern((len(nodes), len(origins)), pattern.offsets, sources), Part(self, edges), own), origins

    def own(self, table: Tensor) -> Tensor:
        """Return (nodes, F): of what the sums are made of, the rows of the nodes themselves."""
        return table if self.origins is None else table[self.origins]

    def some(self, part: "Part", nodes: Tensor) -> "Links":
        """Return a part of these links, between some nodes given in ascending order."""
        edges, sequence = part.edges.sort()
        sources, targets = (torch.searchsorted(nodes, ends[edges]) for ends in (self.sources, self.targets))
        return Links(_by_target(sources, targets, len(nodes)), Part(self, edges, part.share[sequence]))

    def to(self, device: torch.device) -> "Links":
        return self if self.device == device else Links(self.pattern.to(device))

    def tensors(self) -> Iterator[Tensor]:
        """Yield all that is held."""
        yield from self.pattern.tensors()
        yield from self._weights.values()

    def sampled(self, nodes: Tensor, fan_out: int, random: np.random.Generator) -> "Part":
        """Return at most `fan_out` in-edges of each of some nodes, with the weight of all; loops come on top of them.

        Drawn without replacement by Floyd's algorithm, for all nodes at a time: time and memory are those of the edges
        drawn, whatever the degrees.
        """
        loops = self._loops[nodes]
        looped = loops >= 0
        own = loops[looped]
        if not fan_out:
            return Part(self, own)
        starts = self.pattern.offsets[nodes]
        proper = self.pattern.offsets[nodes + 1] - starts - looped.long()
        picked = _drawn(proper.cpu().numpy(), fan_out, random)
        rows, places = (torch.from_numpy(part).to(self.device) for part in picked)
        # The place among a node's edges other than its loop becomes one among all of them.
        edges = starts[rows] + places
        edges += looped[rows] & (edges >= loops[rows])
        share = (proper.double() / proper.clamp(max=fan_out))[rows]
        return Part(self, torch.cat([edges, own]), torch.cat([share, torch.ones_like(own).double()]))

    @cached_property
    def _loops(self) -> Tensor:
        """(nodes,) the edge that is a node's loop, −1 where it has none."""
        found = torch.full((self.nodes,), -1, device=self.device)
        edges = (self.sources == self.targets).nonzero()[:, 0]
        return found.scatter(0, self.targets[edges], edges)


def check_weighting(kind: str) -> None:
    """Refuse a weighting that there is not."""
    known = get_args(Weighting)
    if kind not in known:
        raise ValueError(f"normalisation {kind!r}{did_you_mean(str(kind), known)}")


def _by_target(sources: Tensor, targets: Tensor, nodes: int) -> Pattern:
    """Return the pattern of edges sorted by target."""
    counts = torch.bincount(targets, minlength=nodes)
    return Pattern((nodes, nodes), torch.nn.functional.pad(counts.cumsum(0), (1, 0)), sources)


def _drawn(counts: np.ndarray, most: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs (row, place): for every row at most `most` different places below its count, each as likely."""
    few = np.flatnonzero(counts <= most)
    all_rows = np.repeat(few, counts[few])
    firsts = np.repeat(np.cumsum(counts[few]) - counts[few], counts[few])
    all_places = np.arange(len(all_rows)) - firsts
    if len(few) == len(counts):
        return all_rows, all_places
    many = np.flatnonzero(counts > most)
    chosen = _different(counts[many], most, random)
    return np.concatenate([all_rows, np.repeat(many, most)]), np.concatenate([all_places, chosen.ravel()])


def _different(counts: np.ndarray, number: int, random: np.random.Generator) -> np.ndarray:
    """Return (rows, number): for every row so many different places below its count, which is larger."""
    lasts = counts - number + np.arange(number)[:, None]
    chosen: np.ndarray = random.integers(0, lasts + 1).T
    ascending = np.sort(chosen, axis=1)
    # Where nothing was drawn twice, which is most rows of many, there is nothing to replace.
    twice = np.flatnonzero((ascending[:, 1:] == ascending[:, :-1]).any(axis=1))
    if len(twice):
        kept = chosen[twice]
        for place in range(1, number):
            taken = (kept[:, :place] == kept[:, place, None]).any(axis=1)
            kept[taken, place] = lasts[place, twice[taken]]
        chosen[twice] = kept
    return chosen
