"""Node classification as a scenario: nodes of one class each, whose classes, domains or periods arrive one by one."""

from typing import Any, ClassVar, Literal

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.scenarios.graph_settings import GraphSettings
from skeleton_cgl.scenarios.item_split import ItemSplit
from skeleton_cgl.scenarios.one_class import OneClassScenario, OneClassSettings
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.scenario import Facts, Need
from skeleton_cgl.scenarios.views import ViewName, Views


class NodeSettings(OneClassSettings, GraphSettings):
    """One class per node; in time-il a lesson sees the graph as far as it has come, and no other view."""

    version: ClassVar[int] = 2
    offered: ClassVar[tuple[Need, ...]] = (*OneClassSettings.offered, "nodes")

    kind: Literal["node"]
    data: str = "synthetic"

    def make(self, seed: int) -> "NodeScenario":
        opened = self.checked().opened(Graph)
        return NodeScenario(opened, self, self.split_for(opened.data, seed))

    def meaningless(self) -> dict[str, str]:
        idle = super().meaningless()
        if self.setting == "time-il":
            reason = "in time-il a lesson sees the graph as far as it has come, and no other view"
            idle |= dict.fromkeys(("view", "inter_task_edges"), reason)
        return idle


class NodeScenario(OneClassScenario):
    """Incremental learning of the nodes of a graph."""

    def __init__(self, opened: Opened[Graph], settings: NodeSettings, split: ItemSplit) -> None:
        graph = opened.data
        if graph.many_labels:
            raise InputError(f"scenario: data: {graph.name} has many labels per node; that is kind: multilabel")
        super().__init__(
            opened, settings, split, Facts("graph", {"features": graph.features.shape[1], "rows": "nodes"})
        )

    def views_of(self, opened: Opened[Graph], settings: Any, view: ViewName) -> Views:
        name = view if view == "so far" else settings.view_name
        return Views(settings.surroundings(opened.data), name, self.items_of, self.training_of)
