"""Samples on their way to a backbone: arranged once per pool and backbone, then handed out row by row."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.blame import blamed
from skeleton_cgl.errors import InputError
from skeleton_cgl.process import hand_back_large_blocks, seeded
from skeleton_cgl.scenarios.inputs import Inputs, Pool, ReadOut
from skeleton_cgl.seeds import seed_of

_KEPT = 4
"""So many arrangements of graphs are kept in a process."""
_KEPT_PLAIN = 2
"""So many pools are kept as they are: that of a lesson, and that of the queries."""


@dataclass(frozen=True)
class Arrangement:
    """A pool as a backbone wants it, and the version in which all are to find it."""

    inputs: Inputs
    version: Hashable


@runtime_checkable
class Sampled(Protocol):
    """Inputs of a graph, of which a part may be drawn."""

    def sampled(self, fan_outs: tuple[int, ...], random: np.random.Generator) -> Inputs:
        """Return the same rows in a part of the graph: at each step outwards, so many neighbours of a node at most."""
        ...


@runtime_checkable
class Redrawn(Protocol):
    """A pool of places in a graph of which training asks about others every time; the graph stays."""

    def redrawn(self, ids: Tensor, random: np.random.Generator) -> Tensor:
        """Return (N, m) the places of samples as training sees them this time."""
        ...


@runtime_checkable
class Asking(Protocol):
    """Inputs of a graph, of which other places may be asked about."""

    def asking(self, at: Tensor) -> Inputs:
        """Return other places (N, m) in the same graph."""
        ...


class Feed:
    """What a backbone is fed with on a device.

    A backbone's `arrange` is given a copy of a whole pool the first time one of its samples is asked for. Arrangements
    are kept in a process for all backbones of one identity; a backbone without an identity shares them with none. Of
    graphs, the few used last are kept: a lesson may have a pool for training and another for queries. Of inputs whose
    rows are independent, which are large and the same for all lessons, one.

    fan_outs: training inputs are a part of the graph around the nodes asked about, drawn with so many neighbours.
    """

    _kept: ClassVar[dict[Hashable, Arrangement]] = {}
    """Those used last are last."""
    _plain: ClassVar[dict[str, Inputs]] = {}
    """Those used last are last. Pools as they are, not arranged: nobody is given them to write into."""

    def __init__(self, backbone: Backbone, device: torch.device, fan_outs: tuple[int, ...] | None = None) -> None:
        self._backbone = backbone
        self._device = device
        self._fan_outs = fan_outs

    def inputs(self, pool: Pool, ids: Tensor) -> Inputs:
        """Return samples as they are."""
        return self._arranged(pool).rows(ids).to(self._device)

    def arranged(self, inputs: Inputs) -> Inputs:
        """Return inputs of no pool, as a pool would have them, as the backbone wants them; they are not kept."""
        return self._arrange(inputs.copied()).to(self._device)

    def plain(self, pool: Pool, ids: Tensor, hops: int, read_out: ReadOut) -> Tensor:
        """Return (N, F) what is known of samples without a backbone, on the device."""
        whole = Feed._plain.pop(pool.digest, None)
        if whole is None:
            while len(Feed._plain) >= _KEPT_PLAIN:
                del Feed._plain[next(iter(Feed._plain))]
            whole = pool.whole()
        Feed._plain[pool.digest] = whole
        return whole.rows(ids).plain(hops, read_out).to(self._device)

    def training_inputs(self, pool: Pool, ids: Tensor) -> Inputs:
        """Return samples as training sees them: drawn anew, where the pool augments or neighbours are sampled."""
        if not pool.augmented and self._fan_outs is None:
            return self.inputs(pool, ids)
        # The stage seeds torch's generator; drawing from it keeps augmentation a part of the stage's randomness.
        random = np.random.default_rng(int(torch.randint(2**62, (1,))))
        inputs = self._drawn(pool, ids, random) if pool.augmented else self.inputs(pool, ids)
        return inputs if self._fan_outs is None else self._sampled(inputs, self._fan_outs, random)

    def _drawn(self, pool: Pool, ids: Tensor, random: np.random.Generator) -> Inputs:
        if isinstance(pool, Redrawn):
            # Arranged once: it is the graph that arranging takes time for, and that stays.
            arranged = self._arranged(pool)
            assert isinstance(arranged, Asking)
            return arranged.asking(pool.redrawn(ids, random))
        return self._arrange(pool.drawn(ids, random)).to(self._device)

    def _sampled(self, inputs: Inputs, fan_outs: tuple[int, ...], random: np.random.Generator) -> Inputs:
        if not isinstance(inputs, Sampled):
            kind = type(inputs).__name__.lower()
            raise InputError(f"training: fan_outs: {kind} have no neighbours to be sampled; leave it out")
        return inputs.sampled(fan_outs, random)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Within: what is kept for all may be read; one who writes into it is refused, and nobody else finds it so."""
        try:
            yield
        finally:
            changed = [wanted for wanted, kept in Feed._kept.items() if kept.inputs.version != kept.version]
            for wanted in changed:
                del Feed._kept[wanted]
        if changed:
            raise InputError(
                f"backbone {type(self._backbone).__name__}: it or the method writes into features or edges that all "
                "learners share; work on a copy (`clone()`)"
            )

    def _arranged(self, pool: Pool) -> Inputs:
        wanted = (pool.digest, self._backbone.identity or self._backbone, self._device)
        kept = Feed._kept.pop(wanted, None)
        if kept is None:
            whole = pool.whole()
            if not whole.independent:
                # All nodes pass through a backbone at a time.
                hand_back_large_blocks()
            _make_room(whole.independent)
            # What all find must not depend on who came first: not on what was drawn, nor on what was written.
            with seeded(seed_of("arrange", pool.digest)):
                arranged = self._arrange(whole.copied())
            # Rows that depend on one another need all of them: there is nothing to gain from moving some.
            arranged = arranged if arranged.independent else arranged.to(self._device)
            kept = Arrangement(arranged, arranged.version)
        Feed._kept[wanted] = kept
        return kept.inputs

    def _arrange(self, inputs: Inputs) -> Inputs:
        name = type(self._backbone).__name__
        try:
            return inputs.arranged(self._backbone.arrange)
        except InputError as error:
            raise InputError(f"backbone {name}: {error}") from error
        except Exception as error:
            raise InputError(f"backbone {name}: `arrange` fails: {blamed(error, self._backbone)}") from error


def _make_room(independent: bool) -> None:
    """Free what is kept longest of arrangements of a kind, so that one more can be."""
    alike = [wanted for wanted, kept in Feed._kept.items() if kept.inputs.independent == independent]
    most = 1 if independent else _KEPT
    for wanted in alike[: max(len(alike) - most + 1, 0)]:
        del Feed._kept[wanted]
