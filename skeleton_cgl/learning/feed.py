"""Samples on their way to a backbone: arranged once per pool and backbone, then handed out row by row."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.blame import blamed
from skeleton_cgl.errors import InputError
from skeleton_cgl.process import seeded
from skeleton_cgl.scenarios.inputs import Inputs, Pool
from skeleton_cgl.seeds import seed_of


@dataclass(frozen=True)
class Arrangement:
    """A pool as a backbone wants it, what it was made of, and the version in which all are to find it."""

    of: Hashable
    inputs: Inputs
    version: Hashable


class Feed:
    """What a backbone is fed with on a device.

    A backbone's `arrange` is given a copy of a whole pool the first time one of its samples is asked for. One
    arrangement is kept at a time in a process, for all backbones of one identity; a backbone without an identity shares
    it with none.
    """

    _kept: Arrangement | None = None

    def __init__(self, backbone: Backbone, device: torch.device) -> None:
        self._backbone = backbone
        self._device = device

    def inputs(self, pool: Pool, ids: Tensor) -> Inputs:
        """Return samples as they are."""
        return self._arranged(pool).rows(ids).to(self._device)

    def training_inputs(self, pool: Pool, ids: Tensor) -> Inputs:
        """Return samples as training sees them: drawn anew, where the pool augments."""
        if not pool.augmented:
            return self.inputs(pool, ids)
        # The stage seeds torch's generator; drawing from it keeps augmentation a part of the stage's randomness.
        random = np.random.default_rng(int(torch.randint(2**62, (1,))))
        return self._arrange(pool.drawn(ids, random)).to(self._device)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Within: what is kept for all may be read; one who writes into it is refused, and nobody else finds it so."""
        try:
            yield
        finally:
            kept = Feed._kept
            changed = kept is not None and kept.inputs.version != kept.version
            if changed:
                Feed._kept = None
        if changed:
            raise InputError(
                f"backbone {type(self._backbone).__name__}: it or the method writes into features or edges that all "
                "learners share; work on a copy (`clone()`)"
            )

    def _arranged(self, pool: Pool) -> Inputs:
        wanted = (pool.digest, self._backbone.identity or self._backbone, self._device)
        if Feed._kept is None or Feed._kept.of != wanted:
            Feed._kept = None
            # What all find must not depend on who came first: not on what was drawn, nor on what was written.
            with seeded(seed_of("arrange", pool.digest)):
                arranged = self._arrange(pool.whole().copied())
            # Rows that depend on one another need all of them: there is nothing to gain from moving some.
            arranged = arranged if arranged.independent else arranged.to(self._device)
            Feed._kept = Arrangement(wanted, arranged, arranged.version)
        return Feed._kept.inputs

    def _arrange(self, inputs: Inputs) -> Inputs:
        name = type(self._backbone).__name__
        try:
            return inputs.arranged(self._backbone.arrange)
        except InputError as error:
            raise InputError(f"backbone {name}: {error}") from error
        except Exception as error:
            raise InputError(f"backbone {name}: `arrange` fails: {blamed(error, self._backbone)}") from error
