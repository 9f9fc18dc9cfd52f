"""A reservoir of nodes with small subgraphs around them, by content, for methods that replay them step by step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.graphs.links import Links
from skeleton_cgl.methods.neighbours import Choice
from skeleton_cgl.methods.reservoir import Reservoir
from skeleton_cgl.methods.subgraphs import contents_of, cut_out, places_of, whole_of
from skeleton_cgl.scenarios.inputs import Pool
from skeleton_cgl.scenarios.scenario import Samples

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Batch, Learner


@dataclass(frozen=True, eq=False)
class View:
    """The graph of a pool, and how neighbours are chosen in it: a pool copies its graph whenever it is asked for it."""

    digest: str
    places: Places
    choice: Choice

    def __deepcopy__(self, memo: dict[int, Any]) -> "View":
        # Nothing writes into it; a copy of who holds it may hold the same.
        return self


class SubgraphReservoir(Reservoir):
    """Algorithm R over `count` centres, each with at most so many neighbours of every hop of the graph in view.

    Subgraphs are cut out of samples that enter, and of no others, by draws of a seed that the number of the sample has.
    Of neighbours features are kept, and no label. What passes through the backbone is arranged again when it has
    changed; neither that nor the graph in view is part of the state.
    """

    def __init__(self, count: int, fan_outs: Sequence[int], choice: Callable[[Links], Choice]) -> None:
        super().__init__(count)
        self._fan_outs = fan_outs
        self._choice = choice
        self._subgraphs: Places | None = None
        self._view: View | None = None
        self._arranged: tuple[Any, Batch] | None = None

    def offer(self, learner: "Learner", samples: Samples, **own: Tensor) -> None:
        """Store samples as Algorithm R does, and what is around those that enter."""
        numbers = self.seen + torch.arange(len(samples))
        super().offer(learner, samples, number=numbers, **own)
        entered = (self["number"] >= numbers[0]).nonzero()[:, 0]
        if len(entered):
            self._surround(learner, entered, samples.pool)

    def _surround(self, learner: "Learner", slots: Tensor, pool: Pool) -> None:
        view = self._in_view(pool)
        seeds = [learner.seed_of_draw("subgraph", number) for number in self["number"][slots].tolist()]
        scores = [view.choice(np.random.default_rng(seed)) for seed in seeds]
        found = cut_out(view.places.rows(self["ids"][slots]), self._fan_outs, scores)
        before = self._subgraphs
        rows = torch.arange(len(self))
        rows[slots] = torch.arange(len(slots)) + (0 if before is None else len(before))
        self._subgraphs = (found if before is None else before.beside(found)).rows(rows)

    def _in_view(self, pool: Pool) -> View:
        if self._view is None or self._view.digest != pool.digest:
            # No edge leads from one component to another: neighbours are the same, and no part has to be cut out.
            places = replace(whole_of(pool), components=None)
            self._view = View(pool.digest, places, self._choice(places.links))
        return self._view

    def batch(self, learner: "Learner", most: int) -> "Batch | None":
        """Return min(most, b) centres, drawn evenly and without replacement, in a graph of their own; None of none."""
        # In the sequence of their slots: the same centres are the same batch.
        slots = self.draw(learner, most).sort().values
        if not len(slots):
            return None
        taught = learner.taught
        wanted = self["number"][slots].tolist(), len(learner.head.outputs), len(taught), taught[-1]
        if self._arranged is None or self._arranged[0] != wanted:
            assert self._subgraphs is not None
            drawn = self._subgraphs.rows(slots), self["labels"][slots], self["step"][slots]
            self._arranged = wanted, learner.batch_of(*drawn)
        return self._arranged[1]

    def state(self) -> dict[str, Any]:
        return {**super().state(), "subgraphs": {} if self._subgraphs is None else contents_of(self._subgraphs)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._subgraphs = places_of(state["subgraphs"]) if state["subgraphs"] else None
        self._arranged = None
