"""Numbers at the nodes of a graph, such as speeds at the sensors of a road network, region after region: regression.

An example of a scenario of your own, told in scenarios.md.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.batches import Places
from skeleton_cgl.parts import TEST, TRAINING, VALIDATION
from skeleton_cgl.scenarios.labelled import score_parts
from skeleton_cgl.scenarios.lessons import Order, Prefix, Task, as_task, task_lessons, units_named
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.problem import Columns, Truth
from skeleton_cgl.scenarios.scenario import Experience, Facts, Queries, Samples
from skeleton_cgl.scenarios.settings import ScenarioSettings
from skeleton_cgl.scenarios.views import GraphPool


class SensorSettings(ScenarioSettings):
    """One number per node; the regions arrive one by one, the whole graph is in view.

    data: an .npz of edges (2, E), features (N, F), values (N,) and regions (N,); without one, data are made up.
    tolerance: how near to the truth an answer is right.
    """

    kind: str
    data: str | None = None
    tolerance: float = Field(default=0.5, gt=0)

    def make(self, seed: int) -> "Sensors":
        return Sensors(made_up() if self.data is None else dict(np.load(self.data)), self.tolerance, seed)


@dataclass(frozen=True)
class OneNumber:
    """A query has a number: squared errors; the share of answers within `tolerance`, and R², 0 where it is below."""

    tolerance: float
    metrics = ("within", "explained")

    def outputs_of(self, labels: Tensor) -> list[int]:  # noqa: ARG002
        return [0]

    def targets(self, labels: Tensor, head: Columns) -> Tensor:  # noqa: ARG002
        return labels

    def wanted(self, labels: Tensor, outputs: int) -> Tensor:  # noqa: ARG002
        return labels.double()[:, None]

    def losses(self, found: Tensor, targets: Tensor, among: Tensor) -> Tensor:  # noqa: ARG002
        return (found[:, 0] - targets).square()

    def weights(self, targets: Tensor) -> Tensor:
        return torch.full_like(targets, 1 / len(targets))

    def distillation(self, wanted: Tensor, found: Tensor, temperature: float) -> Tensor:  # noqa: ARG002
        return (wanted - found).square().mean()

    def measure(self, answers: Tensor, truth: Truth, among: Tensor, part: str) -> tuple[Measure, ...]:  # noqa: ARG002
        if not answers.isfinite().all():
            raise InputError("answers: expected finite numbers")
        within, explained = [], []
        for asked in truth.asked.T:
            values, found = truth.labels[asked].double(), answers[asked, 0].double()
            errors = values - found
            within.append((errors.abs() <= self.tolerance).double().mean())
            explained.append((1 - errors.square().sum() / (values - values.mean()).square().sum()).clamp(min=0))
        by_region = zip(self.metrics, (within, explained), strict=True)
        return tuple(truth.measure(part, metric, torch.stack(values)) for metric, values in by_region)


class Sensors:
    """Incremental learning of the numbers at nodes; what arrives are regions."""

    unit_kind = "domain"
    outputs = units_named(["value"])
    offers = frozenset(["borders"])

    def __init__(self, arrays: dict[str, np.ndarray], tolerance: float, seed: int) -> None:
        random = np.random.default_rng(seed)
        names, regions = np.unique(arrays["regions"].astype(str), return_inverse=True)
        # Files are often sorted by region: in a random sequence, the number of a node tells nothing.
        order = random.permutation(len(regions))
        regions, values = regions[order], arrays["values"][order].astype(np.float32)
        parts = np.empty_like(regions)
        for region in range(len(names)):
            own = np.flatnonzero(regions == region)
            parts[own] = random.permutation(np.resize([TRAINING, TRAINING, TRAINING, VALIDATION, TEST], len(own)))
        edges, features = np.argsort(order)[arrays["edges"]], arrays["features"][order]
        self._pool = GraphPool(Places.of(edges, features, np.arange(len(order))[:, None], self_loops=True))
        self._regions, self._values, self._parts = map(torch.from_numpy, (regions, values, parts))
        self._asked = (self._parts != TRAINING).nonzero()[:, 0]
        self.units = units_named(names.tolist())
        self.default = tuple((region,) for region in range(len(names)))
        self.problem = OneNumber(tolerance)
        self.facts = Facts("graph", {"features": features.shape[1]})
        content = f"{self._pool.digest} {self.problem} {self.units}".encode()
        content += b"".join(array.tobytes() for array in (regions, values, parts))
        self.digest = hashlib.sha256(content).hexdigest()

    def lessons(self, order: Order) -> Prefix:
        return task_lessons(tuple(as_task(task) for task in order))

    def experience(self, prefix: Prefix) -> Experience:
        taught = prefix[-1].units
        keys = tuple(self.units[region].key for region in taught)
        training, validation = (self._samples(taught, part) for part in (TRAINING, VALIDATION))
        return Experience(prefix[-1], keys, outputs=(0,), training=training, validation=validation)

    def _samples(self, taught: Task, part: int) -> Samples:
        ids = (torch.isin(self._regions, torch.tensor(taught)) & (self._parts == part)).nonzero()[:, 0]
        return Samples(self._pool, ids, self._values[ids], step=torch.full_like(ids, -1))

    def queries(self, prefix: Prefix) -> Queries:  # noqa: ARG002
        # A copy: whoever is asked may write into it.
        return Queries(self._pool, self._asked.clone(), step=torch.full_like(self._asked, -1))

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:  # noqa: ARG002
        regions = torch.arange(len(self.units))
        asked = self._regions[self._asked, None] == regions
        truth = Truth(self._values[self._asked], asked, unit=regions, units=len(regions))
        among = torch.ones(len(self._asked), 1, dtype=torch.bool)
        return score_parts(self.problem, answers, truth, among, self._parts[self._asked])


def made_up() -> dict[str, np.ndarray]:
    """Return four regions of 75 nodes; what a value is made of turns from region to region."""
    random = np.random.default_rng(0)
    regions = np.repeat(np.arange(4), 75)
    features = random.normal(size=(300, 4)) + np.eye(4)[regions]
    edges = np.stack([np.arange(300).repeat(3), 75 * regions.repeat(3) + random.integers(75, size=900)])
    edges = np.concatenate([edges, edges[::-1]], axis=1)
    turned = np.stack([np.cos(regions), np.sin(regions)], axis=1)
    values = (features[:, :2] * turned).sum(axis=1)
    near = np.bincount(edges[1], values[edges[0]], 300) / np.bincount(edges[1], minlength=300)
    names = np.array(["north", "east", "south", "west"])[regions]
    return {"edges": edges, "features": features, "values": (values + near) / 2, "regions": names}
