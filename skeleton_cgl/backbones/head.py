"""The head of a learner: one output per class, added when the class appears."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from skeleton_cgl.errors import InputError
from skeleton_cgl.seeds import seed_of


class ClassHead(nn.Module):
    """A linear output per class met so far, and the table from class to output column.

    The row of a class (its weights, then its bias) starts from a seed of its own, so that a class starts the same
    wherever it comes in an order. Rows are in order of appearance: a parameter vector of earlier is a beginning of the
    later one.
    """

    def __init__(self, width: int, seed: int, names: Sequence[str] = ()) -> None:
        super().__init__()
        self.width = width
        self.classes: list[int] = []
        self.rows = nn.Parameter(torch.empty(0, width + 1))
        self._seed = seed
        self._names = tuple(names)
        self._columns = torch.empty(0, dtype=torch.int64)

    def meet(self, classes: Sequence[int]) -> int:
        """Add a row for every class not met before; return how many were added."""
        new = [label for label in sorted(set(classes)) if label not in self.classes]
        if new:
            rows = torch.stack([self._first_row(label) for label in new])
            self.rows = nn.Parameter(torch.cat([self.rows.detach(), rows.to(self.rows.device)]))
            self.classes += new
            self._make_table()
        return len(new)

    def _first_row(self, label: int) -> Tensor:
        """Return (width + 1,) uniform in ±1/√width, as `nn.Linear` starts."""
        generator = torch.Generator().manual_seed(seed_of("head", self._seed, self.name(label)))
        return (2 * torch.rand(self.width + 1, generator=generator) - 1) / self.width**0.5

    def name(self, label: int) -> str:
        """Return the name of a class, which its seeds depend on; a class nobody announced is called by its number."""
        return self._names[label] if label < len(self._names) else f"class {label}"

    def _make_table(self) -> None:
        self._columns = torch.full((max(self.classes, default=-1) + 1,), -1, dtype=torch.int64)
        self._columns[self.classes] = torch.arange(len(self.classes))

    def columns(self, labels: Tensor) -> Tensor:
        """Return the output column of every label; refuse a class not met."""
        if len(labels) and (int(labels.min()) < 0 or int(labels.max()) >= len(self._columns)):
            raise InputError(f"label outside the classes met so far, {sorted(self.classes)}")
        columns = self._columns[labels]
        if (columns < 0).any():
            raise InputError(f"label outside the classes met so far, {sorted(self.classes)}")
        return columns

    def forward(self, embeddings: Tensor) -> Tensor:
        """Return (N, classes met) from embeddings (N, width)."""
        return torch.addmm(self.rows[:, -1], embeddings, self.rows[:, :-1].T)

    def restore(self, classes: Sequence[int], rows: Tensor) -> None:
        """Take over classes and rows as another head left them."""
        self.classes = list(classes)
        self.rows = nn.Parameter(rows.clone().to(self.rows.device))
        self._make_table()
