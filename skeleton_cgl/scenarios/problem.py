"""What a query asks for: how outputs become a loss, and answers become scores. Holds no data and no truth.

Letters: N samples, Q queries, O outputs of the head, G groups in which queries are judged, U units. `among` (…, O) says
which outputs an answer may be among.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.ranking import average_precision, roc_area


@dataclass(frozen=True)
class Truth:
    """What the right answers are; it stays in the scenario.

    labels (Q,) or (Q, O): as in samples. asked (Q, G) bool: the groups each query counts in. unit (G,): the unit each
    group belongs to; units without a group have no score. output (G,): the output that a group judges, where queries
    have many labels; None where every output has one group of its own number.
    """

    labels: Tensor
    asked: Tensor
    unit: Tensor
    units: int
    output: Tensor | None = None

    @cached_property
    def queries(self) -> Tensor:
        """(G,) how many queries count in every group."""
        return self.asked.sum(dim=0)

    def of(self, rows: Tensor) -> "Truth":
        """Return the truth of some queries."""
        return replace(self, labels=self.labels[rows], asked=self.asked[rows])

    def measure(self, part: str, metric: str, by_group: Tensor, counts: Tensor | None = None) -> Measure:
        """Return values (G,) as a measure: a unit has the mean of its groups that have a value."""
        known = ~by_group.isnan()
        values = self.by_unit(by_group.nan_to_num(0)) / self.by_unit(known.double())
        return self.measure_of_units(part, metric, values, counts)

    def measure_of_units(self, part: str, metric: str, values: Tensor, counts: Tensor | None = None) -> Measure:
        """Return values (U,) as a measure."""
        asked = self.by_unit(self.queries)
        return Measure(part, metric, values.numpy(), asked.numpy(), None if counts is None else counts.numpy())

    def by_unit(self, values: Tensor) -> Tensor:
        """Return (U,) the sums over the groups of every unit of values (G,)."""
        return torch.zeros(self.units, dtype=values.dtype).index_add(0, self.unit, values)


class Columns(Protocol):
    """What a problem may know of a head: the outputs it has, in the sequence of its columns."""

    outputs: list[int]

    def columns(self, outputs: Tensor) -> Tensor:
        """Return the column of every output; refuse one not met."""
        ...


class Problem(Protocol):
    """One class, many labels, a link: the loss of outputs, and the worth of answers.

    metrics: the names of what `measure` gives, the larger the better; tables and disparities are of the first. version:
    raised when losses or scores come to other numbers; keys have it, and a problem without one is in its first.
    """

    @property
    def metrics(self) -> tuple[str, ...]: ...

    def outputs_of(self, labels: Tensor) -> list[int]:
        """Return the outputs that the labels of samples tell of, ascending."""
        ...

    def targets(self, labels: Tensor, head: Columns) -> Tensor:
        """Return what the outputs of samples should be, in the terms of a head's columns."""
        ...

    def wanted(self, labels: Tensor, outputs: int) -> Tensor:
        """Return (N, outputs) what all outputs known should be as numbers; NaN where labels do not tell."""
        ...

    def losses(self, found: Tensor, targets: Tensor, among: Tensor) -> Tensor:
        """Return (N,) the loss of every sample, from outputs (N, O)."""
        ...

    def weights(self, targets: Tensor) -> Tensor:
        """Return (N,) how much each sample counts in the loss of a batch; they sum to 1."""
        ...

    def distillation(self, wanted: Tensor, found: Tensor, temperature: float) -> Tensor:
        """Return how far outputs (N, O) are from those wanted."""
        ...

    def measure(self, answers: Tensor, truth: Truth, among: Tensor, part: str) -> tuple[Measure, ...]:
        """Return the worth of answers (Q, O); refuse what is no answer."""
        ...


@dataclass(frozen=True)
class OneClass:
    """A query has one class: cross-entropy; accuracies, with the confusion counts.

    metrics: "accuracy" is the mean over the groups of a unit, "micro_accuracy" the share of a unit's queries that is
    answered rightly, and "roc_auc", where there are two classes, how well the outputs tell them apart. balanced:
    whether classes count equally in the loss, or samples.
    """

    metrics: tuple[str, ...] = ("accuracy",)
    balanced: bool = True

    def outputs_of(self, labels: Tensor) -> list[int]:
        return _numbers(labels.unique())

    def targets(self, labels: Tensor, head: Columns) -> Tensor:
        return head.columns(labels)

    def wanted(self, labels: Tensor, outputs: int) -> Tensor:
        """Return 1 for the class of a sample and 0 for all others, also those still to come."""
        return functional.one_hot(labels, outputs).double()

    def losses(self, found: Tensor, targets: Tensor, among: Tensor) -> Tensor:
        """Return −log softmax(found)[target], the softmax taken over the outputs `among`."""
        return functional.cross_entropy(found.masked_fill(~among, -torch.inf), targets, reduction="none")

    def weights(self, targets: Tensor) -> Tensor:
        if not self.balanced:
            return _equal_weights(targets)
        _, kinds, counts = targets.unique(return_inverse=True, return_counts=True)
        return 1 / (counts[kinds] * len(counts)).float()

    def distillation(self, wanted: Tensor, found: Tensor, temperature: float) -> Tensor:
        """Return −mean Σ_c softmax(wanted/T)_c · log softmax(found/T)_c."""
        likely = functional.softmax(wanted / temperature, dim=1)
        return -(likely * functional.log_softmax(found / temperature, dim=1)).sum(dim=1).mean()

    def measure(self, answers: Tensor, truth: Truth, among: Tensor, part: str) -> tuple[Measure, ...]:
        """Return the metrics; of equal answers the lowest class counts.

        Refused: not a number for a class allowed, −∞ for all classes allowed.
        """
        _refuse_nan(answers, among)
        largest, answered = answers.masked_fill(~among, -torch.inf).max(dim=1)
        if largest.isneginf().any():
            raise InputError("answers: a query has no answer above −∞ among the classes allowed")
        classes = answers.shape[1]
        counts = torch.bincount(truth.labels * classes + answered, minlength=classes * classes)
        right = (truth.asked & (answered == truth.labels)[:, None]).sum(dim=0).double()
        found = {
            "accuracy": lambda: truth.measure(part, "accuracy", right / truth.queries),
            "micro_accuracy": lambda: truth.measure_of_units(
                part, "micro_accuracy", truth.by_unit(right) / truth.by_unit(truth.queries)
            ),
            "roc_auc": lambda: truth.measure_of_units(part, "roc_auc", _area_by_unit(answers, truth)),
        }
        first, *others = (found[metric]() for metric in self.metrics)
        leading = replace(first, counts=counts.reshape(classes, classes).numpy(), answered=answered.numpy())
        return (leading, *others)


class BinaryOutputs:
    """What problems share whose outputs say yes or no: samples count equally, outputs are distilled one by one."""

    def weights(self, targets: Tensor) -> Tensor:
        return _equal_weights(targets)

    def distillation(self, wanted: Tensor, found: Tensor, temperature: float) -> Tensor:
        """Return the mean binary cross-entropy of found/T under the probabilities of wanted/T."""
        likely = torch.sigmoid(wanted / temperature)
        return functional.binary_cross_entropy_with_logits(found / temperature, likely)


@dataclass(frozen=True)
class ManyLabels(BinaryOutputs):
    """A query has any number of labels: binary cross-entropy per label; average precision and ROC-AUC per label.

    Labels are 0 and 1, and NaN where not known. A group judges one label: of all queries, or of those of a domain.
    balanced: whether yes and no count equally in the loss of a batch, however many say each; otherwise samples do.
    """

    metrics: tuple[str, ...] = ("average_precision", "roc_auc")
    balanced: bool = False

    def outputs_of(self, labels: Tensor) -> list[int]:
        return _numbers((~labels.isnan()).any(dim=0).nonzero()[:, 0])

    def targets(self, labels: Tensor, head: Columns) -> Tensor:
        return labels[:, head.outputs].float()

    def wanted(self, labels: Tensor, outputs: int) -> Tensor:  # noqa: ARG002
        return labels.double()

    def losses(self, found: Tensor, targets: Tensor, among: Tensor) -> Tensor:
        """Return the mean over the known labels `among` of −log of the probability of each."""
        counted = among & ~targets.isnan()
        each = functional.binary_cross_entropy_with_logits(found, targets.nan_to_num(0), reduction="none")
        if self.balanced:
            each = each * _balance(targets, counted)
        return torch.where(counted, each, 0.0).sum(dim=1) / counted.sum(dim=1).clamp(min=1)

    def measure(self, answers: Tensor, truth: Truth, among: Tensor, part: str) -> tuple[Measure, ...]:
        """Return both metrics; 0 for a label that is not among what was met, NaN where one is not defined."""
        _refuse_nan(answers, among)
        judged = range(answers.shape[1]) if truth.output is None else truth.output.tolist()
        met = torch.where(among, answers, -torch.inf)
        measures = []
        for metric in self.metrics:
            by_group = [
                self._score(metric, met[asked, label], truth.labels[asked, label], among[asked, label])
                for asked, label in zip(truth.asked.T, judged, strict=True)
            ]
            measures.append(truth.measure(part, metric, torch.tensor(by_group, dtype=torch.float64)))
        return tuple(measures)

    def _score(self, metric: str, answers: Tensor, labels: Tensor, among: Tensor) -> float:
        return _binary_score(metric, labels, answers) if among.any() else 0.0 if len(labels) else np.nan


@dataclass(frozen=True)
class LinkExists(BinaryOutputs):
    """A query is a pair of nodes, linked (1) or not (0): binary cross-entropy; Hits@K and ROC-AUC per group."""

    k: int = 50
    leading: Literal["hits", "roc_auc"] = "hits"

    @property
    def metrics(self) -> tuple[str, ...]:
        names = f"hits@{self.k}", "roc_auc"
        return names if self.leading == "hits" else names[::-1]

    def outputs_of(self, labels: Tensor) -> list[int]:  # noqa: ARG002
        return [0]

    def targets(self, labels: Tensor, head: Columns) -> Tensor:  # noqa: ARG002
        return labels.float()

    def wanted(self, labels: Tensor, outputs: int) -> Tensor:  # noqa: ARG002
        return labels.double()[:, None]

    def losses(self, found: Tensor, targets: Tensor, among: Tensor) -> Tensor:  # noqa: ARG002
        return functional.binary_cross_entropy_with_logits(found[:, 0], targets, reduction="none")

    def measure(self, answers: Tensor, truth: Truth, among: Tensor, part: str) -> tuple[Measure, ...]:
        _refuse_nan(answers, among)
        hits, areas = [], []
        for asked in truth.asked.T:
            labels, found = truth.labels[asked], answers[asked, 0]
            hits.append(hits_at(self.k, labels, found))
            areas.append(_binary_score("roc_auc", labels, found))
        by_group = (torch.tensor(values, dtype=torch.float64) for values in (hits, areas))
        by_metric = dict(zip((f"hits@{self.k}", "roc_auc"), by_group, strict=True))
        return tuple(truth.measure(part, metric, by_metric[metric]) for metric in self.metrics)


def hits_at(k: int, labels: Tensor, found: Tensor) -> float:
    """Return the share of links answered above the k-th highest answer to a pair without one (OGB); 1 if fewer are."""
    linked, free = found[labels > 0], found[labels == 0]
    if not len(linked):
        return np.nan
    if len(free) < k:
        return 1.0
    return float((linked > free.topk(k).values[-1]).double().mean())


def scopes(lessons: Sequence[Sequence[int]], outputs: int) -> Tensor:
    """Return (lessons + 1, outputs) bool: what a sample is answered among that reveals so manieth lesson.

    The last row has all that was met: −1, which reveals nothing, is its index.
    """
    table = torch.zeros(len(lessons) + 1, outputs, dtype=torch.bool)
    for place, own in enumerate(lessons):
        table[place, list(own)] = True
    table[-1] = table[:-1].any(dim=0)
    return table


def _binary_score(metric: str, labels: Tensor, found: Tensor) -> float:
    """Return a metric of binary labels; NaN where they are all alike, or there are none."""
    if not len(labels) or bool((labels == labels[0]).all()):
        return np.nan
    # Which labels and queries a mean is over is the scenario's to say.
    score = roc_area if metric == "roc_auc" else average_precision
    # −∞, for what was never met, is below all others; of infinite numbers there is no difference.
    return score(labels.numpy(), found.nan_to_num(neginf=torch.finfo(found.dtype).min).numpy())


def _area_by_unit(answers: Tensor, truth: Truth) -> Tensor:
    """Return (U,) the area under the ROC curve of the second of two classes, over all queries of every unit."""
    found = answers[:, 1] - answers[:, 0]
    areas = []
    for unit in range(truth.units):
        rows = truth.asked[:, truth.unit == unit].any(dim=1)
        areas.append(_binary_score("roc_auc", truth.labels[rows], found[rows]))
    return torch.tensor(areas, dtype=torch.float64)


def _equal_weights(targets: Tensor) -> Tensor:
    return torch.full((len(targets),), 1 / max(len(targets), 1), device=targets.device)


def _balance(targets: Tensor, counted: Tensor) -> Tensor:
    """Return (N, O) what makes the yes of a label count as much as its no, and 1 where all say the same."""
    yes, no = (counted & (targets == value) for value in (1, 0))
    of_yes, of_no = yes.sum(dim=0), no.sum(dim=0)
    both = (of_yes > 0) & (of_no > 0)
    factor = torch.where(yes, (of_yes + of_no) / (2 * of_yes.clamp(min=1)), (of_yes + of_no) / (2 * of_no.clamp(min=1)))
    return torch.where(both, factor, 1.0)


def _refuse_nan(answers: Tensor, among: Tensor) -> None:
    if answers[among].isnan().any():
        raise InputError("answers: not a number")


def _numbers(outputs: Tensor) -> list[int]:
    numbers: list[int] = outputs.tolist()
    return numbers
