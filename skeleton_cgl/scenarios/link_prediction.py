"""Link prediction as a scenario: is a pair of nodes linked? Links arrive by domain or by period, some of them hidden.

What is hidden, the links of test and validation, is in no graph, no degree and no feature that a learner is given.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.items import Features
from skeleton_cgl.graphs.link_set import LinkSet, pair_keys
from skeleton_cgl.parts import NAMES, TEST, VALIDATION
from skeleton_cgl.scenarios.connections import Connections, degrees
from skeleton_cgl.scenarios.graph_settings import DataSettings
from skeleton_cgl.scenarios.graph_units import Periods, Units, domains_of, periods_of
from skeleton_cgl.scenarios.item_split import ItemSplit, divide_items, refuse_empty_parts
from skeleton_cgl.scenarios.labelled import score_parts
from skeleton_cgl.scenarios.lessons import Order, Prefix, lessons_of, units_named
from skeleton_cgl.scenarios.link_pairs import Negatives, drawn_negatives, given_negatives, links_of
from skeleton_cgl.scenarios.measures import Measure
from skeleton_cgl.scenarios.opened import Opened, shuffled
from skeleton_cgl.scenarios.pair_views import PairViews
from skeleton_cgl.scenarios.problem import LinkExists, Problem, Truth
from skeleton_cgl.scenarios.scenario import Experience, Facts, Need, Queries, Samples, offers_in
from skeleton_cgl.scenarios.views import GraphPool, sequence_of


class LinkPredictionSettings(DataSettings):
    """Is a pair of nodes linked?

    setting: "domain-il", the groups of links called `domains` arrive one by one: groups that the links came with, or,
    in a graph of nodes with classes, "ends", the pairs of classes that they join, or "same ends", the classes within
    which they are. "time-il", periods of the links' times, as everywhere. Links of no group are the base, which all
    lessons see; a lesson sees its own training links besides, and in domain-il those of the lessons before it, without
    inter_task_edges only its own (the text of BeGin). Queries are answered on the graph of the latest lesson.
    joins_base: in time-il, the share of a period's training links that becomes base afterwards.

    negatives: so many pairs without a link are asked about in test, and as many in validation, for every domain or
    period, drawn between its nodes; training draws as many as there are links, between nodes of the training links. k:
    the K of Hits@K, over the negatives of all domains, or of the periods up to the one that is judged. score: what
    leads. features: those "given" of the nodes, or their "degrees" in the graph in view; "auto" takes degrees where
    none are given.

    leaking_degrees: degrees count the hidden links and those to come (BeGin). shared_training_edges: all lessons see
    the training links of all, to come or not (BeGin's code). Neither by default.
    """

    offered: ClassVar[tuple[Need, ...]] = ("graphs",)

    kind: Literal["link-prediction"]
    data: str = "synthetic-links"
    setting: Literal["domain-il", "time-il"] = "domain-il"
    domains: str | None = None
    periods: Periods = None
    inter_task_edges: bool = True
    joins_base: float = Field(default=1.0, ge=0, le=1)
    negatives: int = Field(default=1000, ge=1, le=10_000_000)
    k: int = Field(default=50, ge=1)
    score: Literal["hits", "roc_auc"] = "hits"
    features: Literal["auto", "given", "degrees"] = "auto"
    leaking_degrees: bool = False
    shared_training_edges: bool = False

    def make(self, seed: int) -> "LinkPredictionScenario":
        opened: Opened[Any] = self.checked().opened(Graph, LinkSet)
        links = shuffled(links_of(opened.data))
        return LinkPredictionScenario(links, self, self.split_for(links.data, seed))

    def checked(self) -> "LinkPredictionSettings":
        """Return these settings; refuse fields that mean nothing in the setting."""
        idle: dict[str, str] = {}
        if self.setting == "domain-il":
            idle = dict.fromkeys(("periods", "joins_base"), "there are no periods in domain-il")
        else:
            idle["domains"] = "there are none in time-il"
            idle["inter_task_edges"] = "in time-il, joins_base says what stays of earlier periods"
        if self.split.by == "file":
            raise InputError("scenario: split: by: links are taken as pairs in another sequence; no file fits them")
        return self.idle(idle)

    def units_of(self, links: LinkSet) -> Units:
        """Return what arrives one by one."""
        return domains_of(links, self.domains) if self.setting == "domain-il" else periods_of(links, self.periods)


class LinkPredictionScenario:
    """Incremental learning of which pairs of nodes are linked; what arrives are domains or periods."""

    def __init__(self, opened: Opened[LinkSet], settings: LinkPredictionSettings, split: ItemSplit) -> None:
        links = opened.data
        units = settings.units_of(links)
        self.units = units_named(units.names)
        self.unit_kind = units.kind
        self.outputs = units_named(("linked",))
        self.default = units.default
        self.offers = offers_in(settings.setting, settings.offered)
        self.problem: Problem = LinkExists(settings.k, settings.score)
        self._unit = units.of_items
        self._parts = divide_items(split, opened, self._unit, units.names)
        refuse_empty_parts(units, self._parts, "link")
        negatives = given_negatives(links)
        if negatives is not None and "negatives" in settings.model_fields_set:
            raise InputError(f"scenario: negatives: {links.name} came with its own; drop it")
        self._negatives = negatives or drawn_negatives(links, self._unit, units.names, settings.negatives, split.seed)
        _refuse_few(settings, self._negatives)
        connections = Connections(links.ends, links.nodes, False, _features(links, settings), settings.self_loops)
        self.facts = Facts("graph", {"features": connections.width, "rows": "pairs"}, join="product")
        self._ends, self._nodes = links.ends, links.nodes
        self._views = PairViews(
            connections,
            self._unit,
            self._parts,
            units.names,
            split.seed,
            calendar=units.kind == "period",
            joins_base=settings.joins_base,
            so_far=settings.inter_task_edges,
            shared=settings.shared_training_edges,
        )
        described = settings.model_dump_json(
            include={"setting", "score", "k", "inter_task_edges", "joins_base", "leaking_degrees", "features"}
            | {"shared_training_edges"}
        )
        content = [links.digest, str(settings.self_loops), described, repr(units.names), str(split.seed)]
        arrays = (self._unit, self._parts, self._negatives.pairs, self._negatives.parts)
        self.digest = hashlib.sha256(
            "\n".join(content).encode() + b"".join(map(np.ndarray.tobytes, arrays))
        ).hexdigest()
        self.notes = (*links.notes, *units.notes, self._note(split))

    def _note(self, split: ItemSplit) -> str:
        counts = ", ".join(f"{int((self._parts == part).sum())} {name}" for part, name in enumerate(NAMES))
        base = int((self._unit < 0).sum())
        asked = len(self._negatives.parts)
        return f"split by {split.by}: {counts} links, {base} in the base; {asked} pairs without a link are asked about"

    def lessons(self, order: Order) -> Prefix:
        """Return the tasks of an order; refuse unknown units, and periods in another order than the calendar's."""
        return lessons_of(order, len(self.units), self.default if self.unit_kind == "period" else None)

    def experience(self, prefix: Prefix) -> Experience:
        """Return what a learner may see of the last lesson of a prefix: links, and as many pairs without one."""
        linked = self._views.training_of(prefix[-1].units)
        return Experience(
            lesson=prefix[-1],
            keys=tuple(self.units[unit].key for unit in prefix[-1].units),
            outputs=(0,),
            training=_samples(self._views.pool(prefix), self._views.numbers(linked), len(linked)),
            validation=self._validation(prefix),
        )

    def _validation(self, prefix: Prefix) -> Samples:
        """Return what the last lesson is validated on, in a pool that also has what earlier ones were.

        A pair has its key as its number, in all lessons, which does not tell whether it is linked.
        """
        hidden, free = self._validated([unit for lesson in prefix for unit in lesson.units])
        pairs = self._pairs(hidden, free)
        numbers, first = np.unique(self._keys(pairs), return_index=True)
        own_hidden, own_free = self._validated(prefix[-1].units)
        ids = self._keys(self._pairs(own_hidden, own_free))
        return _samples(self._views.asked(prefix, pairs[:, first], numbers), ids, len(own_hidden))

    def _validated(self, units: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the links and the negatives that lessons of some units are validated on."""
        hidden = np.isin(self._unit, units) & (self._parts == VALIDATION)
        free = np.isin(self._negatives.unit, (*units, -1)) & (self._negatives.parts == VALIDATION)
        return np.flatnonzero(hidden), np.flatnonzero(free)

    def _keys(self, pairs: np.ndarray) -> np.ndarray:
        return pair_keys(pairs, self._nodes, directed=False)

    def queries(self, prefix: Prefix) -> Queries:
        """Return all queries, links that are hidden and pairs without one; of periods, those that have come."""
        positives, negatives = self._asked(prefix)
        pairs = self._pairs(positives, negatives)
        pool = self._views.asked(prefix, pairs[:, _sequence(pairs)], np.arange(pairs.shape[1]))
        return Queries(pool, torch.arange(pairs.shape[1]), torch.full((pairs.shape[1],), -1))

    def _pairs(self, positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
        return np.concatenate([self._ends[:, positives], self._negatives.pairs[:, negatives]], axis=1)

    def _asked(self, prefix: Prefix) -> tuple[np.ndarray, np.ndarray]:
        """Return the hidden links and the negatives to be asked about."""
        here = np.ones(len(self.units), dtype=bool)
        if self.unit_kind == "period":
            here[:] = False
            here[[unit for lesson in prefix for unit in lesson.units]] = True
        hidden = (self._parts == TEST) | (self._parts == VALIDATION)
        positives = np.flatnonzero(hidden & here[self._unit])
        free = (self._negatives.parts == TEST) | (self._negatives.parts == VALIDATION)
        return positives, np.flatnonzero(free & (here[self._negatives.unit] | (self._negatives.unit < 0)))

    def score(self, answers: Tensor, prefix: Prefix) -> tuple[Measure, ...]:
        """Return the metrics of the answers after a prefix: a unit's links against all pairs without one.

        A period's are against those of the periods up to it: what it is judged by must not change when others come.
        """
        positives, negatives = self._asked(prefix)
        sequence = _sequence(self._pairs(positives, negatives))
        linked = np.repeat([1.0, 0.0], [len(positives), len(negatives)])[sequence]
        unit = np.concatenate([self._unit[positives], self._negatives.unit[negatives]])[sequence]
        parts = np.concatenate([self._parts[positives], self._negatives.parts[negatives]])[sequence]
        units = len(self.units)
        last = np.arange(units) if self.unit_kind == "period" else np.full(units, units)
        free = (linked == 0)[:, None] & (unit[:, None] <= last)
        asked = ((linked == 1)[:, None] & (unit[:, None] == np.arange(units))) | free
        labels = torch.from_numpy(linked.astype(np.float32))
        truth = Truth(labels, torch.from_numpy(asked), torch.arange(units), units)
        among = torch.ones(len(sequence), 1, dtype=torch.bool)
        return score_parts(self.problem, answers, truth, among, torch.from_numpy(parts))


def _sequence(pairs: np.ndarray) -> np.ndarray:
    """Return the sequence (Q,) that pairs (2, Q) are asked in: it depends on them alone, not on which are linked."""
    return np.lexsort(pairs)[sequence_of(pairs.shape[1])]


def _features(links: LinkSet, settings: LinkPredictionSettings) -> Features | None:
    """Return the features of the nodes; None where they are the degrees in the graph in view."""
    given = settings.features != "degrees" and links.features is not None
    if settings.features == "given" and not given:
        raise InputError(f"scenario: features: {links.name} has none; take degrees")
    if settings.leaking_degrees:
        if given:
            raise InputError("scenario: leaking_degrees: the features are given; it goes with features: degrees")
        return degrees(links.ends, links.nodes, directed=False)
    return links.features if given else None


def _refuse_few(settings: LinkPredictionSettings, negatives: Negatives) -> None:
    """Refuse a k beyond the negatives that are asked about at any time, with which every link would be a hit."""
    for part in (TEST, VALIDATION):
        there = negatives.parts == part
        asked, when = int(there.sum()), ""
        if settings.setting == "time-il" and (negatives.unit >= 0).all():
            # Those of later periods are not asked about after the first.
            asked, when = int((there & (negatives.unit == 0)).sum()), " after the first period"
        if asked < settings.k:
            raise InputError(
                f"scenario: k: expected at most the {asked} {NAMES[part]} pairs without a link that are asked "
                f"about{when}, found {settings.k}"
            )


def _samples(pool: "GraphPool", ids: np.ndarray, linked: int) -> Samples:
    """Return samples of which the first so many are linked pairs, and the others are not."""
    labels = torch.zeros(len(ids))
    labels[:linked] = 1
    return Samples(pool, torch.from_numpy(ids), labels, torch.full((len(ids),), -1))
