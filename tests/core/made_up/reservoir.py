"""Experience replay on a stream: an even sample of all that has passed, replayed beside every batch."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from skeleton_cgl.learning.method import Method
from skeleton_cgl.scenarios.scenario import Samples, join

if TYPE_CHECKING:
    from skeleton_cgl.learning.learner import Learner


class Reservoir(Method):
    """Keeps `size` samples by Vitter's algorithm R."""

    def __init__(self, size: int = 8) -> None:
        self.size = size
        self.seen = 0
        self.ids = torch.empty(0, dtype=torch.int64)
        self.labels = torch.empty(0, dtype=torch.int64)

    def step_samples(self, learner: "Learner", samples: Samples) -> Samples:  # noqa: ARG002
        remembered = Samples(samples.pool, self.ids, self.labels, torch.full((len(self.ids),), -1))
        for row in range(len(samples)):
            self._offer(samples.ids[row : row + 1], samples.labels[row : row + 1])
        return join([samples, remembered])

    def _offer(self, ids: Tensor, labels: Tensor) -> None:
        self.seen += 1
        if len(self.ids) < self.size:
            self.ids, self.labels = torch.cat([self.ids, ids]), torch.cat([self.labels, labels])
            return
        place = int(torch.randint(self.seen, (1,)))
        if place < self.size:
            self.ids, self.labels = self.ids.clone(), self.labels.clone()
            self.ids[place], self.labels[place] = ids[0], labels[0]

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen, "ids": self.ids, "labels": self.labels}

    def restore(self, state: dict[str, Any]) -> None:
        self.seen, self.ids, self.labels = state["seen"], state["ids"], state["labels"]
