"""Products with sparse matrices, differentiable as often as wanted: sums over neighbours, features mostly zero.

Every product is a bag of weighted rows, which PyTorch's embedding bags sum faster than its sparse matrices, DGL's
messages and SciPy do (experiments/benchmark_graphs.py).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse._sparsetools import csr_tocsc
from torch import Tensor
from torch.nn import functional

Turned: TypeAlias = Callable[[], Tensor]

_AT_ONCE = 1 << 22
"""Numbers gathered at a time: memory does not grow with edges × features."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Ranges of rows put one after the other: each from `begins` (B,) to before `ends` (B,), where it was."""

    begins: Tensor
    ends: Tensor
    starts: Tensor
    """(B + 1,): where each begins now, and the number of all rows."""

    @classmethod
    def of(cls, begins: Tensor, ends: Tensor) -> "Blocks":
        return cls(begins, ends, functional.pad((ends - begins).cumsum(0), (1, 0)))

    @property
    def counts(self) -> Tensor:
        """(B,)"""
        return self.ends - self.begins

    @property
    def shift(self) -> Tensor:
        """(B,): how much less the number of a row is now than it was."""
        return self.begins - self.starts[:-1]

    @cached_property
    def members(self) -> Tensor:
        """(rows,): the number of every row where it was."""
        rows = torch.arange(int(self.starts[-1]), device=self.starts.device)
        return rows + torch.repeat_interleave(self.shift, self.counts)


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where a matrix has entries, row by row: offsets (rows + 1,) into the columns (E,) of its entries.

    turn: gives the transpose, where somebody knows it already.
    """

    shape: tuple[int, int]
    offsets: Tensor
    columns: Tensor
    turn: "Callable[[], Turn] | None" = None

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def rows(self) -> Tensor:
        """The row (E,) of every entry."""
        return torch.repeat_interleave(self.offsets.diff())

    @cached_property
    def turned(self) -> "Turn":
        """The transpose: its offsets (columns + 1,), the rows (E,) of its entries, and which entry (E,) each is."""
        if self.turn is not None:
            return self.turn()
        # Without SciPy's matrices around it, which take several times as long to make as a small pattern to turn.
        made = tuple(np.empty(size, dtype=np.int64) for size in (self.shape[1] + 1, len(self), len(self)))
        csr_tocsc(*self.shape, self.offsets.cpu().numpy(), self.columns.cpu().numpy(), np.arange(len(self)), *made)
        offsets, rows, entries = (torch.from_numpy(part).to(self.offsets.device) for part in made)
        return offsets, rows, entries

    def of_rows(self, chosen: Tensor) -> tuple["Pattern", Tensor]:
        """Return the rows `chosen`, in that order, and which entry each of theirs is."""
        starts = self.offsets[chosen]
        # Of these rows alone, however many there are.
        counts = self.offsets[chosen + 1] - starts
        offsets = functional.pad(counts.cumsum(0), (1, 0))
        number = int(offsets[-1])
        shift = torch.repeat_interleave(starts - offsets[:-1], counts, output_size=number)
        entries = shift + torch.arange(number, device=offsets.device)
        return Pattern((len(chosen), self.shape[1]), offsets, self.columns[entries]), entries

    def stacked(self, lower: "Pattern", apart: bool = False) -> "Pattern":
        """Return these rows and then those of another; apart: the columns of the other come after these as well."""
        (rows, width), (more, other_width) = self.shape, lower.shape
        offsets = torch.cat([self.offsets, lower.offsets[1:] + self.offsets[-1]])
        columns = torch.cat([self.columns, lower.columns + width * apart])
        return Pattern((rows + more, width + other_width * apart), offsets, columns)

    def blocks(self, rows: Blocks) -> tuple["Pattern", Blocks]:
        """Return some blocks of a matrix that has no entries outside of its blocks, and the ranges of their entries."""
        entries = Blocks.of(self.offsets[rows.begins], self.offsets[rows.ends])
        size = int(rows.starts[-1])
        made = _cut(self.offsets, self.columns, rows, entries)
        return Pattern((size, size), *made, lambda: self._turned_blocks(rows, entries)), entries

    def _turned_blocks(self, rows: Blocks, entries: Blocks) -> "Turn":
        # The entries of a block are a range of their own in the transpose as well.
        offsets, columns, places = self.turned
        shift = torch.repeat_interleave(entries.shift, entries.counts)
        return *_cut(offsets, columns, rows, entries), places[entries.members] - shift

    def to(self, device: torch.device) -> "Pattern":
        return Pattern(self.shape, self.offsets.to(device), self.columns.to(device))

    def by_itself(self) -> "Pattern":
        """Return the same, without the matrix that it may be some blocks of."""
        return replace(self, turn=None)

    def tensors(self) -> Iterator[Tensor]:
        """Yield all that is held."""
        yield from (self.offsets, self.columns)
        yield from (each for name in ("rows", "turned") for each in _as_tuple(self.__dict__.get(name)))


Turn: TypeAlias = tuple[Tensor, Tensor, Tensor]


def _cut(offsets: Tensor, columns: Tensor, rows: Blocks, entries: Blocks) -> tuple[Tensor, Tensor]:
    """Return the offsets and columns of some blocks, numbered anew."""
    begins = offsets[rows.members] - torch.repeat_interleave(entries.shift, rows.counts)
    found = columns[entries.members] - torch.repeat_interleave(rows.shift, entries.counts)
    return torch.cat([begins, entries.starts[-1:]]), found


def product(pattern: Pattern, values: Tensor | None, dense: Tensor, turned_values: Turned | None = None) -> Tensor:
    """Return (rows, F): the matrix with these values (E,), 1 where none are given, times `dense` (columns, F).

    turned_values: gives the values in the sequence of the transpose, where somebody keeps them.
    """
    found: Tensor = _Product.apply(pattern, values, dense, turned_values, False)
    return found


def turned_product(pattern: Pattern, values: Tensor | None, dense: Tensor) -> Tensor:
    """Return (columns, F): the transpose of the matrix with these values times `dense` (rows, F)."""
    found: Tensor = _Product.apply(pattern, values, dense, None, True)
    return found


def dots(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """Return (E,): for the entry at (r, c) the inner product of row r of `left` and row c of `right`."""
    found: Tensor = _Dots.apply(pattern, left, right)
    return found


class _Product(torch.autograd.Function):
    """A·X, or Aᵀ·X where turned. By X, its gradient is the product the other way round; by the values of A, dots."""

    @staticmethod
    def forward(
        ctx: Any, pattern: Pattern, values: Tensor | None, dense: Tensor, turned_values: Turned | None, turned: bool
    ) -> Tensor:
        ctx.pattern, ctx.turned_values, ctx.turned = pattern, turned_values, turned
        ctx.save_for_backward(values, dense if ctx.needs_input_grad[1] else None)
        if not turned:
            return _bags(dense, pattern.columns, pattern.offsets, values)
        offsets, rows, entries = pattern.turned
        if values is not None:
            values = values[entries] if turned_values is None else turned_values()
        return _bags(dense, rows, offsets, values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        values, dense = ctx.saved_tensors
        by_values = by_dense = None
        if ctx.needs_input_grad[1]:
            by_values = dots(ctx.pattern, *((dense, gradient) if ctx.turned else (gradient, dense)))
        if ctx.needs_input_grad[2]:
            by_dense = _Product.apply(ctx.pattern, values, gradient, ctx.turned_values, not ctx.turned)
        return None, by_values, by_dense, None, None


class _Dots(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(left, right)
        found = left.new_empty(len(pattern))
        step = max(_AT_ONCE // max(left.shape[1], 1), 1)
        for first in range(0, len(pattern), step):
            chosen = slice(first, first + step)
            ends = left[pattern.rows[chosen]], right[pattern.columns[chosen]]
            torch.linalg.vecdot(*ends, out=found[chosen])
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        left, right = ctx.saved_tensors
        by_left = _Product.apply(ctx.pattern, gradient, right, None, False) if ctx.needs_input_grad[1] else None
        by_right = _Product.apply(ctx.pattern, gradient, left, None, True) if ctx.needs_input_grad[2] else None
        return None, by_left, by_right


_LEVELS = 1 << 16


def dropout(values: Tensor, share: float) -> Tensor:
    """Return values of which a share, drawn anew, is zero and the others are scaled so that the mean stays.

    A draw of 64 bits decides about four values: ten times as fast as PyTorch's, which draws for every one. The share is
    rounded to a multiple of 2⁻¹⁶, and the scale is that of what was rounded to.
    """
    least = round(share * _LEVELS)
    if not least:
        return values
    draws = torch.empty((values.numel() + 3) // 4, dtype=torch.int64, device=values.device).random_(-(2**63), None)
    parts = draws.view(torch.int16)[: values.numel()].view(values.shape)
    stays = parts >= least - _LEVELS // 2
    return values * stays.to(values.dtype).mul_(_LEVELS / (_LEVELS - least))


def _bags(dense: Tensor, members: Tensor, offsets: Tensor, values: Tensor | None) -> Tensor:
    """Return (bags, F): the rows of `dense` that are members of every bag, weighted by the values and summed."""
    weights = None if values is None else values.detach().to(dense.dtype)
    # Detached: with gradients to come, a slower way would be taken that notes what they need.
    return functional.embedding_bag(
        members, dense.detach().contiguous(), offsets, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Features (N, F) that are mostly zero, such as bags of words: the entries that are not, row by row."""

    pattern: Pattern
    values: Tensor

    @classmethod
    def of(cls, table: csr_array) -> "SparseFeatures":
        """Return a table of SciPy's in memory of its own."""
        offsets, columns = (torch.from_numpy(part.astype(np.int64)) for part in (table.indptr, table.indices))
        rows, width = table.shape
        return cls(Pattern((rows, width), offsets, columns), torch.from_numpy(table.data.astype(np.float32)))

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        return self.values.device

    def __len__(self) -> int:
        return self.shape[0]

    @cached_property
    def _turned_values(self) -> Tensor:
        return self.values[self.pattern.turned[2]]

    def matmul(self, weight: Tensor) -> Tensor:
        """Return X·W (N, width) for weights (F, width), differentiably in them."""
        return product(self.pattern, self.values, weight, lambda: self._turned_values)

    def dropped(self, share: float) -> "SparseFeatures":
        """Return the features after dropout: a zero stays one whether it is dropped or not, so entries alone draw."""
        return replace(self, values=dropout(self.values, share))

    def rows(self, chosen: Tensor) -> "SparseFeatures":
        """Return the rows `chosen`, in that order."""
        pattern, entries = self.pattern.of_rows(chosen)
        return SparseFeatures(pattern, self.values[entries])

    def dense(self) -> Tensor:
        """Return all of it (N, F), zeros and all."""
        found = self.values.new_zeros(self.shape)
        # Added: an entry may be given in parts.
        return found.index_put_((self.pattern.rows, self.pattern.columns), self.values, accumulate=True)

    def double(self) -> "SparseFeatures":
        return replace(self, values=self.values.double())

    def to(self, device: torch.device) -> "SparseFeatures":
        return replace(self, pattern=self.pattern.to(device), values=self.values.to(device))

    def tensors(self) -> Iterator[Tensor]:
        """Yield all that is held."""
        yield from (self.values, *self.pattern.tensors(), *_as_tuple(self.__dict__.get("_turned_values")))


def _as_tuple(held: Tensor | tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
    if held is None:
        return ()
    return held if isinstance(held, tuple) else (held,)
