"""Link classification as a scenario: links of one class each, whose classes or periods arrive one by one."""

from typing import Any, Literal

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.link_set import LINKED, LinkSet
from skeleton_cgl.scenarios.connections import Connections, degrees
from skeleton_cgl.scenarios.item_split import ItemSplit
from skeleton_cgl.scenarios.lessons import Prefix
from skeleton_cgl.scenarios.one_class import OneClassScenario, OneClassSettings
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.scenarios.views import GraphPool, ItemViews, NodesOf, ViewName


class LinkSettings(OneClassSettings):
    """One class per link.

    setting: class- and task-il on the whole graph, whose links are all there, only their classes are not; in time-il on
    the links that have come. features: those "given" of the nodes, or their "degrees", in and out; "auto" takes degrees
    where none are given. leaking_degrees: degrees count links of periods to come (BeGin); by default they do not.
    """

    kind: Literal["link"]
    data: str = "synthetic-links"
    setting: Literal["class-il", "task-il", "time-il"] = "class-il"
    features: Literal["auto", "given", "degrees"] = "auto"
    leaking_degrees: bool = False

    def make(self, seed: int) -> "LinkScenario":
        opened = self.checked().opened(LinkSet)
        return LinkScenario(opened, self, self.split_for(opened.data, seed))

    def meaningless(self) -> dict[str, str]:
        idle = super().meaningless()
        if self.setting != "time-il":
            idle["leaking_degrees"] = f"all links are there from the beginning in {self.setting}"
        return idle

    def connections(self, links: LinkSet) -> Connections:
        """Return the links without labels, with the features these settings mean; refuse those that there are not."""
        if self.features == "given" and links.features is None:
            raise InputError(f"scenario: features: {links.name} has none; take degrees")
        given = None if self.features == "degrees" else links.features
        if self.leaking_degrees:
            if given is not None:
                raise InputError("scenario: leaking_degrees: the features are given; it goes with features: degrees")
            given = degrees(links.ends, links.nodes, links.directed)
        return Connections(links.ends, links.nodes, links.directed, given, self.self_loops)


class LinkScenario(OneClassScenario):
    """Incremental learning of the links of a graph."""

    def __init__(self, opened: Opened[LinkSet], settings: LinkSettings, split: ItemSplit) -> None:
        links = opened.data
        if links.classes == (LINKED,):
            raise InputError(f"scenario: data: {links.name} has links without classes; that is kind: link-prediction")
        offered = {"features": settings.connections(links).width, "rows": "pairs"}
        super().__init__(opened, settings, split, Facts("graph", offered, join="product"))

    def views_of(self, opened: Opened[LinkSet], settings: Any, view: ViewName) -> "LinkViews":
        return LinkViews(settings.connections(opened.data), view, self.items_of)

    def more_content(self, settings: Any) -> tuple[str, ...]:
        return (settings.features, str(settings.leaking_degrees))


class LinkViews(ItemViews):
    """The views of links: all of them, or those that have come; a sample has the number of its link."""

    def __init__(self, links: Connections, name: ViewName, items: NodesOf) -> None:
        super().__init__(name)
        self._links = links
        self._items = items

    def made(self, prefix: Prefix) -> GraphPool:
        here = np.arange(self._links.ends.shape[1])
        if self.name == "so far":
            here = np.unique(np.concatenate([self._items(lesson.units) for lesson in prefix]))
        ends = self._links.ends[:, here]
        return GraphPool(self._links.places(ends, ends.T.copy(), here))
