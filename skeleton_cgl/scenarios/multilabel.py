"""Many labels per node as a scenario: labels arrive task by task, as AGALE has it, or domains with all labels."""

from typing import Any, ClassVar, Literal

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.scenarios.graph_settings import GraphSettings
from skeleton_cgl.scenarios.item_split import ItemSplit
from skeleton_cgl.scenarios.many_labels import ManyLabelsScenario, ManyLabelsSettings
from skeleton_cgl.scenarios.opened import Opened
from skeleton_cgl.scenarios.scenario import Facts, Need
from skeleton_cgl.scenarios.views import Views


class MultilabelSettings(ManyLabelsSettings, GraphSettings):
    """Many labels per node."""

    offered: ClassVar[tuple[Need, ...]] = (*ManyLabelsSettings.offered, "nodes")

    kind: Literal["multilabel"]
    data: str = "synthetic-labels"
    view: Literal["whole", "task"] = "task"

    def make(self, seed: int) -> "MultilabelScenario":
        opened = self.checked().opened(Graph)
        return MultilabelScenario(opened, self, self.split_for(opened.data, seed))


class MultilabelScenario(ManyLabelsScenario):
    """Incremental learning of nodes with many labels."""

    described = ("view", "inter_task_edges")

    def __init__(self, opened: Opened[Graph], settings: MultilabelSettings, split: ItemSplit) -> None:
        graph = opened.data
        if not graph.many_labels:
            raise InputError(f"scenario: data: {graph.name} has one class per node; that is kind: node")
        super().__init__(
            opened, settings, split, Facts("graph", {"features": graph.features.shape[1], "rows": "nodes"})
        )

    def views_of(self, opened: Opened[Graph], settings: Any) -> Views:
        return Views(settings.surroundings(opened.data), settings.view_name, self.items_of, self.training_of)
