"""The fields that scenarios on graphs share: data and split, and the view of one graph's nodes."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator

from skeleton_cgl.errors import InputError
from skeleton_cgl.graphs.graph import Graph
from skeleton_cgl.graphs.items import Items
from skeleton_cgl.scenarios.item_split import ItemSplit
from skeleton_cgl.scenarios.opened import Data, Opened, open_shuffled
from skeleton_cgl.scenarios.settings import ScenarioSettings
from skeleton_cgl.scenarios.views import Surroundings, ViewName


class DataSettings(ScenarioSettings):
    """Data of graphs, and how they are divided.

    data: an archive made by `prepare graph`, a file or folder in a published form, or the name of a built-in set.
    reader: the reader by name, or its options, {name: planetoid, dataset: cora}; dataset: short for the option of that
    name. self_loops: every node is one of its neighbours, once.
    """

    data: str
    dataset: str | None = None
    reader: dict[str, Any] = Field(default_factory=dict)
    self_loops: bool = True
    split: ItemSplit = ItemSplit()

    @field_validator("reader", mode="before")
    @classmethod
    def _a_name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    def opened(self, *expected: type[Data]) -> Opened[Data]:
        """Return the data; refuse what the reader refuses, and data of another kind."""
        options = self.reader | ({} if self.dataset is None else {"dataset": self.dataset})
        return open_shuffled(self.data, options, *expected)

    def split_for(self, items: Items, seed: int) -> ItemSplit:
        """Return the split with what it leaves open settled: the seed, unless it has its own, and what "auto" means."""
        drawn = "seed" not in self.split.model_fields_set
        return (self.split.model_copy(update={"seed": seed}) if drawn else self.split).settled(items)

    def idle(self, fields: Mapping[str, str]) -> Self:
        """Return these settings; refuse those of the fields that were given, each with the reason why it is idle."""
        for field, reason in fields.items():
            if field in self.model_fields_set:
                raise InputError(f"scenario: {field}: {reason}")
        return self


class GraphSettings(DataSettings):
    """How a learner sees a graph whose nodes are learned.

    view: "whole", one fixed graph for all lessons (BeGin); "task", the subgraph of the nodes of a lesson (CGLB, AGALE),
    with inter_task_edges of all lessons so far. Queries are answered on the same view.
    """

    view: Literal["whole", "task"] = "whole"
    inter_task_edges: bool = False

    @property
    def view_name(self) -> ViewName:
        if self.view == "whole":
            if self.inter_task_edges:
                raise InputError("scenario: inter_task_edges: the whole graph has all edges; it goes with view: task")
            return "whole"
        return "so far" if self.inter_task_edges else "own"

    def surroundings(self, graph: Graph) -> Surroundings:
        return Surroundings(graph.edges, graph.features, self.self_loops)
