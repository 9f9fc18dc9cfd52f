"""Batches on their way into a backbone, and the pools they are drawn from. Neither knows a backbone."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.errors import InputError

Arranged = Tensor | tuple[Tensor, ...]
"""What a clip backbone makes of the clips of a data set: tensors with a row per clip."""


ReadOut = Literal["mean", "sum"]
"""How what is known of the nodes of a graph becomes one."""


class Inputs(Protocol):
    """N rows; a backbone gives `places` embeddings for each of them, or one for every node of each.

    independent: whether a row passes through a backbone by itself, as clips do and the nodes of a graph do not.
    """

    @property
    def places(self) -> int: ...

    @property
    def embedded(self) -> int:
        """How many embeddings a backbone gives for all of them."""
        ...

    @property
    def independent(self) -> bool: ...

    @property
    def content(self) -> Any:
        """What the backbone's `forward` is given."""
        ...

    @property
    def version(self) -> Hashable:
        """Changes when something is written into what is held."""
        ...

    def __len__(self) -> int: ...

    def floats_of(self, chosen: Tensor) -> int:
        """Return how many floating-point numbers the rows `chosen` are made of: what it costs to keep them."""
        ...

    def copied(self) -> Self:
        """Return the same in memory of its own."""
        ...

    def rows(self, chosen: Tensor) -> Self:
        """Return the rows `chosen`, in that order."""
        ...

    def to(self, device: torch.device) -> Self: ...

    def arranged(self, arrange: Callable[[Any], Any]) -> Self:
        """Return these inputs with the content that a backbone's `arrange` makes of theirs."""
        ...

    def plain(self, hops: int, read_out: ReadOut) -> Tensor:
        """Return (N, F) what is known of every row without a backbone.

        Of a clip all its coordinates, the mean over actors; of a node the features Â^hops·X, summed over neighbours so
        often with symmetric weights; of a pair the product of both ends'; of a graph its nodes' read out.
        """
        ...


class Pool(Protocol):
    """All samples of a scenario, without labels.

    digest: changes with the samples and with their sequence. augmented: whether training inputs differ every time.
    """

    @property
    def digest(self) -> str: ...

    @property
    def augmented(self) -> bool: ...

    def whole(self) -> Inputs:
        """Return all samples as they are, row by row."""
        ...

    def drawn(self, ids: Tensor, random: np.random.Generator) -> Inputs:
        """Return the samples `ids` as training sees them this time."""
        ...


def together(pool: Pool) -> Pool:
    """Return the pool in which samples of all lessons so far stand as they stood in theirs.

    A scenario whose lessons see parts of one graph gives such a pool as `together` of that of a lesson; elsewhere all
    lessons have one pool.
    """
    found: Pool = getattr(pool, "together", pool)
    return found


@dataclass(frozen=True)
class Clips:
    """Clips (N, C, T, V), or what a backbone arranged them to; (N, A, …) for A > 1 actors, embedded one by one."""

    parts: Arranged
    actors: int = 1

    @property
    def places(self) -> int:
        return self.actors

    @property
    def embedded(self) -> int:
        return len(self) * self.actors

    @property
    def independent(self) -> bool:
        return True

    @property
    def content(self) -> Arranged:
        return self.parts if self.actors == 1 else _each(self.parts, lambda part: part.flatten(0, 1))

    @property
    def version(self) -> Hashable:
        return tuple(version_of(part) for part in _as_tuple(self.parts))

    def copied(self) -> "Clips":
        return replace(self, parts=_each(self.parts, Tensor.clone))

    def __len__(self) -> int:
        return len(self.parts[0] if isinstance(self.parts, tuple) else self.parts)

    def floats_of(self, chosen: Tensor) -> int:
        return len(chosen) * sum(part.shape[1:].numel() for part in _as_tuple(self.parts))

    def rows(self, chosen: Tensor) -> "Clips":
        return replace(self, parts=_each(self.parts, lambda part: part[chosen]))

    def to(self, device: torch.device) -> "Clips":
        return replace(self, parts=_each(self.parts, lambda part: part.to(device)))

    def plain(self, hops: int, read_out: ReadOut) -> Tensor:  # noqa: ARG002
        """Return (N, C·T·V); refuse to sum over neighbours, of whom coordinates are not features."""
        if hops:
            raise InputError(f"clips: features summed over neighbours {hops} times are of graphs; take hops: 0")
        (coordinates,) = _as_tuple(self.parts)
        return (coordinates.mean(dim=1) if self.actors > 1 else coordinates).flatten(1)

    def arranged(self, arrange: Callable[[Any], Arranged]) -> "Clips":
        """Return these clips as arranged; refuse other than a row per clip."""
        arranged = arrange(self.content)
        expected = len(self) * self.actors
        for part in _as_tuple(arranged):
            if not isinstance(part, Tensor) or not part.ndim or len(part) != expected:
                found = tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__
                raise InputError(f"`arrange` gives {found}; expected tensors with {expected} rows, one per clip")
        if self.actors > 1:
            arranged = _each(arranged, lambda part: part.unflatten(0, (-1, self.actors)))
        return replace(self, parts=arranged)


def version_of(tensor: Tensor) -> int:
    """Return a number that changes when something is written into a tensor; of some that cannot be, 0."""
    return 0 if tensor.is_inference() else tensor._version


def _as_tuple(parts: Arranged) -> tuple[Tensor, ...]:
    return parts if isinstance(parts, tuple) else (parts,)


def _each(parts: Arranged, change: Callable[[Tensor], Tensor]) -> Arranged:
    return tuple(change(part) for part in parts) if isinstance(parts, tuple) else change(parts)
