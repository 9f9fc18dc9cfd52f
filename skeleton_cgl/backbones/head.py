"""The head of a learner: one linear output per class, label or whatever is asked for, added when it appears."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.lessons import Unit
from skeleton_cgl.seeds import seed_of


class Head(nn.Module):
    """A linear output for everything met so far of what is `known`, and the table from output to column.

    known: None where nobody is to know what there will be, as on a stream: then any number may be met.

    The row of an output (its weights, then its bias) starts from a seed of its own, so that a class starts the same
    wherever it comes in an order. Rows are in order of appearance: a parameter vector of earlier is a beginning of the
    later one.
    """

    def __init__(self, width: int, seed: int, known: Sequence[Unit] | None) -> None:
        super().__init__()
        self.width = width
        self.outputs: list[int] = []
        self.rows = nn.Parameter(torch.empty(0, width + 1))
        self._seed = seed
        self.known = None if known is None else tuple(known)
        self._make_table()

    @property
    def span(self) -> int:
        """How many outputs there are to tell apart: all that are known, or those up to the highest that was met."""
        return 1 + max(self.outputs, default=-1) if self.known is None else len(self.known)

    def meet(self, outputs: Sequence[int]) -> int:
        """Add a row for every output not met before; return how many were added; refuse one that is not known."""
        for output in outputs:
            if output < 0 or (self.known is not None and output >= len(self.known)):
                known = "0 and above" if self.known is None else f"0–{len(self.known) - 1}"
                raise InputError(f"head: no output {output}; known are {known}")
        new = [output for output in sorted(set(outputs)) if output not in self.outputs]
        if new:
            rows = torch.stack([self._first_row(output) for output in new])
            self.rows = nn.Parameter(torch.cat([self.rows.detach(), rows.to(self.rows.device)]))
            self.outputs += new
            self._make_table()
        return len(new)

    def _first_row(self, output: int) -> Tensor:
        """Return (width + 1,) uniform in ±1/√width, as `nn.Linear` starts."""
        key = str(output) if self.known is None else self.known[output].key
        generator = torch.Generator().manual_seed(seed_of("head", self._seed, key))
        return (2 * torch.rand(self.width + 1, generator=generator) - 1) / self.width**0.5

    def start_over(self) -> None:
        """Have every output met as it starts."""
        if self.outputs:
            rows = torch.stack([self._first_row(output) for output in self.outputs])
            self.rows = nn.Parameter(rows.to(self.rows.device))

    def _make_table(self) -> None:
        self._columns = torch.full((self.span,), -1, dtype=torch.int64)
        self._columns[self.outputs] = torch.arange(len(self.outputs))

    def columns(self, outputs: Tensor) -> Tensor:
        """Return the column of every output; refuse one not met."""
        inside = not len(outputs) or (int(outputs.min()) >= 0 and int(outputs.max()) < len(self._columns))
        columns = self._columns[outputs] if inside else None
        if columns is None or (columns < 0).any():
            raise InputError(f"label outside the classes met so far, {sorted(self.outputs)}")
        return columns

    def forward(self, embeddings: Tensor) -> Tensor:
        """Return (N, outputs met) from embeddings (N, width)."""
        return torch.addmm(self.rows[:, -1], embeddings, self.rows[:, :-1].T)

    def restore(self, outputs: Sequence[int], rows: Tensor) -> None:
        """Take over outputs and rows as another head left them."""
        self.outputs = list(outputs)
        self.rows = nn.Parameter(rows.clone().to(self.rows.device))
        self._make_table()
